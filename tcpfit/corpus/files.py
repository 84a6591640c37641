"""Files of a corpus: where their bytes come from, and how one is known again without reading it.

A path of this machine, or a URL that fsspec reads (the extra [remote]): `s3://bucket/a.pcap`,
`zip://a.pcap::captures.zip`.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from tcpfit.exceptions import CaptureError, InvalidParameter

BLOCK = 1 << 20
ID_BYTES = 16

REMOTE_STAMPS = (
    "ETag",
    "etag",
    "LastModified",
    "Last-Modified",
    "last_modified",
    "mtime",
    "updated",
    "CRC",
    "date_time",
)
"""What file systems say of a file that changes with its content; a server that says none of it is read every time."""


EXTRAS = {"http": "remote", "https": "remote", "s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
"""Extras of this package with what fsspec needs for a scheme; it knows many more."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was found: its size, and a stamp that changes when the file does ('' where there is none)."""

    path: str
    size: int
    stamp: str


def is_url(path: str) -> bool:
    """Whether fsspec reads it."""
    return "://" in path


def found(path: str) -> File:
    """What is known of a file without reading it.

    Raises CaptureError, without the path, for what is not there or is no file.
    """
    if is_url(path):
        return _found_remotely(path)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise CaptureError("no such file; check the path") from None
    except PermissionError:
        raise CaptureError("no permission to look at it; check the mode of its directory") from None
    except (OSError, ValueError) as error:
        raise CaptureError(f"cannot be looked at ({_said(error)})") from None
    if stat.S_ISDIR(status.st_mode):
        raise CaptureError("a directory, not a capture; give the captures in it")
    if not stat.S_ISREG(status.st_mode):
        raise CaptureError("a pipe or device, whose content is not known before it ends; write it to a file first")
    return File(path, status.st_size, f"{status.st_mtime_ns}:{status.st_ino}")


def opened(path: str) -> BinaryIO:
    """The bytes of a file.

    Raises CaptureError, without the path, where they cannot be had.
    """
    remote = is_url(path)
    try:
        if remote:
            system, inside = filesystem(path)
            # a web server may know no ranges, and the bytes are wanted from front to back anyway
            streamed = {"block_size": 0} if path.startswith(("http://", "https://")) else {}
            return cast(BinaryIO, _Remote(system, system.open(inside, "rb", **streamed)))
        return open(path, "rb")
    except FileNotFoundError:
        raise CaptureError("no such file; check the path") from None
    except PermissionError:
        check = "the credentials" if remote else "its mode and owner"
        raise CaptureError(f"no permission to read it; check {check}") from None
    except CaptureError:
        raise
    except Exception as error:  # every file system of fsspec has errors of its own
        raise CaptureError(f"cannot be opened ({_said(error)})") from None


def content_of(path: str) -> str:
    """The identity of a file: a hash of its bytes.

    Raises CaptureError, without the path, where they cannot be had.
    """
    digest = hashlib.blake2b(digest_size=ID_BYTES)
    with opened(path) as source:
        try:
            while block := source.read(BLOCK):
                digest.update(block)
        except Exception as error:  # every file system of fsspec has errors of its own
            raise CaptureError(f"cannot be read ({_said(error)})") from None
    return digest.hexdigest()


def of_parts(contents: list[str]) -> str:
    """The identity of a trace in several files: of one file its own."""
    if len(contents) == 1:
        return contents[0]
    return hashlib.blake2b("joined ".join(["", *contents]).encode(), digest_size=ID_BYTES).hexdigest()


def of_path(path: str) -> str:
    """The identity of a file whose content cannot be had."""
    return hashlib.blake2b(b"path " + os.fsencode(path), digest_size=ID_BYTES).hexdigest()


def filesystem(url: str) -> tuple[Any, str]:
    """fsspec's file system of a URL, and the path in it.

    Raises InvalidParameter where fsspec or the part of it that the URL needs is not installed.
    """
    try:
        import fsspec
    except ImportError:
        raise InvalidParameter(f"{url}: URLs need fsspec; install tcpfit[remote]") from None
    first, _, archive = url.partition("::")
    key = ""
    if os.path.isfile(archive):  # to open an archive is to read its directory, which would be done for each file in it
        status = os.stat(archive)
        key = f"{first.partition('://')[0]} {archive} {status.st_size} {status.st_mtime_ns}"
        if key in _ARCHIVE:
            return _ARCHIVE[key], _ARCHIVE[key]._strip_protocol(first)
    try:
        system, inside = fsspec.core.url_to_fs(url)
    except ImportError as error:
        scheme = first.partition("://")[0]
        raise InvalidParameter(
            f"{url}: {scheme}:// needs a package that is not installed; "
            + (f"install tcpfit[{EXTRAS[scheme]}]" if scheme in EXTRAS else f"fsspec says: {_said(error)}")
        ) from None
    except ValueError as error:
        raise InvalidParameter(f"{url}: no URL that fsspec reads ({_said(error)})") from None
    if key:
        _ARCHIVE.clear()
        _ARCHIVE[key] = system
    return system, inside


_ARCHIVE: dict[str, Any] = {}
"""The archive of this machine that was opened last."""


class _Remote(io.RawIOBase):
    """A file of a file system, which lives as long as it: an archive is closed with the last reference to it."""

    def __init__(self, system: Any, source: BinaryIO) -> None:
        self._system, self._source = system, source

    def read(self, count: int = -1) -> bytes:
        return self._source.read(count)

    def close(self) -> None:
        self._source.close()
        super().close()


def _found_remotely(url: str) -> File:
    try:
        system, inside = filesystem(url)
        info = system.info(inside)
    except InvalidParameter as error:
        raise CaptureError(str(error).removeprefix(f"{url}: ")) from None
    except FileNotFoundError:
        raise CaptureError("no such file; check the URL") from None
    except PermissionError:
        raise CaptureError("no permission to look at it; check the credentials") from None
    except Exception as error:  # every file system of fsspec has errors of its own
        raise CaptureError(f"cannot be looked at ({_said(error)})") from None
    if info.get("type") == "directory":
        raise CaptureError("a directory, not a capture; give the captures in it")
    size = info.get("size")
    stamps = [f"{name}={info[name]}" for name in REMOTE_STAMPS if info.get(name) is not None]
    return File(url, int(size or 0), " ".join(stamps) if size is not None else "")


def _said(error: BaseException) -> str:
    """What an error says, on one line, without the path that OSError adds."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__
