"""Are captures in buckets, S3's and Google's, read as files are, and is a bucket that cannot be read said?

Servers on the loopback speak the protocols: moto that of S3, gcp-storage-emulator that of Google Cloud Storage.
"""

from __future__ import annotations

import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from corpora import bytes_of, capture
from test_cli import assert_sentence, tcpfit

from tcpfit import corpus
from tcpfit.exceptions import InvalidParameter

NAMES = ("a.pcap", "site/b.pcap", "site/deep/c.pcap", "site/notes.md")


@contextmanager
def s3(monkeypatch):
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    s3fs = pytest.importorskip("s3fs")
    server.start()
    _, port = server.get_host_and_port()
    urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/reset", data=b"")  # what another test left
    for name, value in {
        "FSSPEC_S3_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    import fsspec.config

    fsspec.config.set_conf_env(fsspec.config.conf)
    try:
        yield s3fs.S3FileSystem()
    finally:
        fsspec.config.conf.pop("s3", None)
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()


@contextmanager
def gs(monkeypatch):
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # asks by gRPC, which the emulator does not speak
    gcsfs = pytest.importorskip("gcsfs")
    server = emulator.create_server("127.0.0.1", 0, in_memory=True)
    server.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server._api._httpd.server_port}")
    monkeypatch.setenv("FSSPEC_GS_TOKEN", "anon")
    import fsspec.config

    fsspec.config.set_conf_env(fsspec.config.conf)
    try:
        yield gcsfs.GCSFileSystem(token="anon")
    finally:
        fsspec.config.conf.pop("gs", None)
        gcsfs.GCSFileSystem.clear_instance_cache()
        server.stop()


@pytest.fixture(params=[s3, gs], ids=["s3", "gs"])
def bucket(request, monkeypatch, tmp_path):
    """A bucket with captures, its URL, and a folder with the same."""
    folder = tmp_path / "files"
    with request.param(monkeypatch) as system:
        system.mkdir("bucket")
        for number, name in enumerate(NAMES):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".md":
                path.write_text("words")
            else:
                capture(path, number)
            system.pipe(f"bucket/{name}", path.read_bytes())
        yield f"{request.param.__name__}://bucket", system, folder


def test_a_bucket_is_a_directory(bucket):
    url, _, _ = bucket
    everything = [f"{url}/{name}" for name in NAMES[:3]]
    for source in (url, f"{url}/"):
        assert everything == [each.paths[0] for each in corpus.plan([source])]
    assert everything[1:] == [each.paths[0] for each in corpus.plan([f"{url}/site"])]
    assert everything[1:2] == [each.paths[0] for each in corpus.plan([f"{url}/site/*.pcap"])]
    assert everything[2:] == [each.paths[0] for each in corpus.plan([url], include=["site/deep/*"])]
    with pytest.raises(InvalidParameter, match="no captures there"):
        corpus.plan([f"{url}/site/*.none"])


def test_its_captures_are_those_of_files(bucket, tmp_path):
    url, system, folder = bucket
    summary = corpus.run([url], tmp_path / "out", workers=1)
    assert (3, 0, []) == (summary.analysed, summary.unchanged, summary.failures)
    again = corpus.run([url], tmp_path / "out", workers=1)
    assert (0, 3) == (again.analysed, again.unchanged)
    corpus.run([folder], tmp_path / "local", workers=1)
    flows = [corpus.open(tmp_path / name).flows.collect() for name in ("out", "local")]
    assert flows[0].equals(flows[1])
    system.pipe("bucket/site/new.pcap", capture(tmp_path / "new.pcap", 20).read_bytes())
    system.pipe("bucket/a.pcap", capture(tmp_path / "new.pcap", 21).read_bytes())
    changed = corpus.run([url], tmp_path / "out", workers=1)
    assert (2, 2) == (changed.analysed, changed.unchanged)
    assert bytes_of(tmp_path / "out")


def test_what_is_not_there_is_said(bucket, tmp_path):
    url, _, _ = bucket
    summary = corpus.run([url, f"{url}/gone.pcap"], tmp_path / "out", workers=1)
    assert [("unreadable", f"{url}/gone.pcap", "no such file; check the URL")] == [
        (failed.status, failed.path, failed.reason) for failed in summary.failures
    ]


def test_no_permission_is_said(monkeypatch, tmp_path):
    with s3(monkeypatch) as system:
        system.mkdir("bucket")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert_sentence(tcpfit("batch", "s3://bucket/", "-o", tmp_path / "out"), 2, "s3://bucket/: cannot be listed")


@pytest.mark.parametrize(("url", "extra"), [("s3://bucket/", "s3"), ("gs://bucket/", "gs"), ("https://a/", "remote")])
def test_a_package_that_is_missing(monkeypatch, tmp_path, url, extra):
    pytest.importorskip("fsspec")
    for name in ("s3fs", "gcsfs", "aiohttp"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('gone')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(sys.path)}")
    said = f"{url}: {url.partition('://')[0]}:// needs a package that is not installed; install tcpfit[{extra}]"
    assert_sentence(tcpfit("batch", url, "-o", Path("out"), cwd=tmp_path), 2, said)
