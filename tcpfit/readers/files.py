"""The bytes of a capture in Python: a file or standard input, gzip and zstd undone, told by their first bytes."""

from __future__ import annotations

import io
import os
import sys
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from tcpfit.exceptions import CaptureError
from tcpfit.readers import Progress

BLOCK = 1 << 17

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"

DIRECTORY = "a directory, not a capture; give the captures in it"


class Stream:
    """Bytes of a capture, at a path or in an open file, read once from front to back.

    `damage` says what ended the stream early, in words; the bytes before it are good.
    """

    def __init__(self, source: str | BinaryIO, progress: Progress | None = None) -> None:
        self.damage: str | None = None
        self.compression: str | None = None
        self._source, self._size = _open(source) if isinstance(source, str) else (source, 0)
        self._read, self._progress = 0, progress
        self._buffer = bytearray()
        self._offset = 0
        head = self._raw(4)
        if head.startswith(GZIP):
            self.compression = "gzip"
        elif head == ZSTD or (head[1:] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F):
            self.compression = "zstd"
        self._blocks = {None: self._plain, "gzip": self._gzip, "zstd": self._zstd}[self.compression](head)

    @property
    def offset(self) -> int:
        """Bytes taken so far, of the stream as it is after decompression."""
        return self._offset

    def peek(self, count: int) -> bytes:
        """The next bytes, which stay there; fewer only at the end."""
        while len(self._buffer) < count:
            block = self._next()
            if not block:
                break
            self._buffer += block
        return bytes(self._buffer[:count])

    def take(self, count: int) -> bytes:
        """The next bytes; fewer only at the end."""
        taken = self.peek(count)
        del self._buffer[:count]
        self._offset += len(taken)
        return taken

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._source is not sys.stdin.buffer:
            self._source.close()

    def _next(self) -> bytes:
        try:
            return next((block for block in self._blocks if block), b"")
        except (zlib.error, EOFError, OSError) as error:
            self.damage = f"damaged or cut {self.compression or 'file'} data ({error})"
        except Exception as error:  # the zstandard package's own error class is known only where it is imported
            if type(error).__name__ != "ZstdError":
                raise
            self.damage = f"damaged or cut zstd data ({error})"
        self._blocks = iter(())
        return b""

    def _raw(self, count: int = BLOCK) -> bytes:
        block = self._source.read(count)
        self._read += len(block)
        if self._progress is not None:
            self._progress(self._read, self._size)
        return block

    def _plain(self, head: bytes) -> Iterator[bytes]:
        block = head
        while block:
            yield block
            block = self._raw()

    def _gzip(self, head: bytes) -> Iterator[bytes]:
        member = zlib.decompressobj(wbits=31)
        block = head
        while block:
            yield member.decompress(block)
            while member.eof and member.unused_data:
                rest = member.unused_data
                if not rest.startswith(GZIP[: len(rest)]):
                    return  # padding after the last member
                member = zlib.decompressobj(wbits=31)
                yield member.decompress(rest)
            block = self._raw()
        if not member.eof:
            raise EOFError("the stream ends inside a member")

    def _zstd(self, head: bytes) -> Iterator[bytes]:
        import zstandard

        source = _Joined(head, self)
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
            cast(BinaryIO, source), read_across_frames=True, closefd=False
        )
        while block := reader.read(BLOCK):
            yield block
        if source.unfinished:
            raise EOFError("the stream ends inside a frame")


class _Joined(io.RawIOBase):
    """The first bytes and the rest of a stream as one file."""

    def __init__(self, head: bytes, stream: Stream) -> None:
        self._head, self._stream = head, stream
        self.unfinished = False

    def read(self, count: int = -1) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._stream._raw(count if count > 0 else BLOCK)


def _open(path: str) -> tuple[BinaryIO, int]:
    if path == "-":
        return sys.stdin.buffer, 0
    try:
        if os.path.isdir(path):
            raise CaptureError(f"{path}: {DIRECTORY}")
        source = open(path, "rb")
        return source, os.fstat(source.fileno()).st_size
    except FileNotFoundError:
        raise CaptureError(f"{path}: no such file; check the path") from None
    except PermissionError:
        raise CaptureError(f"{path}: no permission to read it; check its mode and owner") from None
    except CaptureError:
        raise
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path}: cannot be opened ({error})") from error
