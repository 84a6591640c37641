"""The `tcpfit` command: its verbs, its exit statuses and how it fails.

0 all went well (warnings that were counted included), 1 a capture could not be read, 2 an argument makes no sense,
130 interrupted. Whatever happens, one sentence says it; TCPFIT_DEBUG=1 shows the traceback.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import warnings
from types import FrameType

import click

import tcpfit
from tcpfit.exceptions import PluginWarning

from .analyze import analyze
from .annotate import annotate
from .batch import batch
from .compare import compare
from .diagnose import diagnose
from .errors import complain, debugging, unexpected
from .events import events
from .explain import explain
from .models import models
from .plot import plot
from .pooled import dynamics, pool
from .predict import predict
from .rank import rank
from .report import report
from .rtt import rtt
from .streams import closed, silence
from .xpl import xpl

GARBAGE = 300_000
"""Objects made before the collector of garbage looks for cycles; what is in none is freed at once."""


class Interrupted(click.ClickException):
    """The user pressed Ctrl-C, or sent SIGTERM."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("interrupted; nothing was left half written")


class Verbs(click.Group):
    """The group of verbs."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a verb; an interrupt becomes a sentence."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(tcpfit.__version__, prog_name="tcpfit", message="%(prog)s %(version)s")
def main() -> None:
    """Say which TCP throughput model explains each flow of a packet capture.

    \b
    tcpfit analyze capture.pcap.gz
    tcpfit analyze *.pcapng --format csv > flows.csv
    tcpfit diagnose capture.pcap.gz
    tcpfit report capture.pcap.gz -o report.html
    tcpfit batch captures/ -o OUT
    tcpfit events capture.pcap.gz --kind loss
    tcpfit explain capture.pcap.gz 4711
    tcpfit plot time-sequence capture.pcap.gz -o tsg.html
    tcpdump -i eth0 -s 128 -w - tcp | tcpfit analyze -

    Completion of commands and options: put the matching line into your shell's start file.

    \b
    bash   eval "$(_TCPFIT_COMPLETE=bash_source tcpfit)"
    zsh    eval "$(_TCPFIT_COMPLETE=zsh_source tcpfit)"
    fish   _TCPFIT_COMPLETE=fish_source tcpfit | source
    """


main.add_command(analyze)
main.add_command(annotate)
main.add_command(batch)
main.add_command(compare)
main.add_command(dynamics)
main.add_command(diagnose)
main.add_command(events)
main.add_command(explain)
main.add_command(models)
main.add_command(plot)
main.add_command(pool)
main.add_command(predict)
main.add_command(rank)
main.add_command(report)
main.add_command(rtt)
main.add_command(xpl)


def run() -> None:
    """Entry point of the installed command."""
    # what is made here lives until it is printed, and looking for cycles in it takes a fifth of the time
    gc.set_threshold(GARBAGE)
    # numpy's threads spin when they start, for nothing: no product of matrices here is large
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not debugging():
        warnings.simplefilter("ignore")  # those of libraries; tcpfit's own are in its output
        warnings.simplefilter("always", PluginWarning)
        warnings.showwarning = lambda message, *_, **__: complain(str(message))
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # the caller had closed it, as daemons do
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - open to the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path may hold bytes that are no text
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)  # files that are half written go, as after Ctrl-C
    output = sys.stdout
    try:
        status = main.main(prog_name="tcpfit", standalone_mode=False)
    except click.ClickException as error:
        if isinstance(error, click.UsageError):
            _usage(error)
            status = 2
        else:
            complain(error.format_message())
            status = error.exit_code
    except SystemExit as left:
        # `tcpfit ... | head` is no failure: rich leaves where the pipe was closed, click replaces standard output
        if sys.stdout is output and not closed(left):
            raise
        sys.stdout = output
        silence(output)
        status = 0
    except BrokenPipeError:
        silence(sys.stdout)
        status = 0
    except Exception as error:
        if debugging():
            raise
        complain(unexpected(error))
        status = 1
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError as error:
        if not status:
            complain(unexpected(error))
        silence(sys.stdout)
        status = 1
    gc.freeze()  # nor is anything made so far looked at again while Python ends, three times over: a tenth of the time
    sys.exit(status if isinstance(status, int) else 0)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _usage(error: click.UsageError) -> None:
    verb = error.ctx.command_path if error.ctx else "tcpfit"
    sentence = " ".join(error.format_message().split())
    complain(f"{sentence.rstrip('.')}; see {verb} --help")
