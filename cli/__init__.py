"""The command line, installed as `tcpfit.cli`: one verb a file."""
