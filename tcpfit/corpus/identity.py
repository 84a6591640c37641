"""Which capture a file holds: known again by path, size and stamp, so that 100,000 files are not read to know them.

The file is a line of JSON a file, appended as files are read and written anew, sorted, when a run ends. A line that was
cut by a crash is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import IO

from tcpfit.analysis import AtomicFile
from tcpfit.arguments import path_text
from tcpfit.corpus.files import File


class Identities:
    """Content of files, by path or what `named` makes of it. A file whose size or stamp has changed is not known."""

    def __init__(self, path: Path, named: Callable[[str], str] = str) -> None:
        self._path, self._named = path, named
        self._known: dict[str, tuple[int, str, str]] = {}
        self._journal: IO[str] | None = None
        if path.exists():
            for line in path.read_text(errors="replace").splitlines():
                try:
                    name, size, stamp, content = json.loads(line)
                except ValueError:
                    continue
                self._known[name] = (size, stamp, content)

    def content(self, file: File) -> str | None:
        """The content of a file, None where it is not known."""
        size, stamp, content = self._known.get(self._named(file.path), (-1, "", ""))
        return content if file.stamp and (size, stamp) == (file.size, file.stamp) else None

    def learn(self, file: File, content: str) -> None:
        """Note the content of a file, on the disk too."""
        name = self._named(file.path)
        self._known[name] = (file.size, file.stamp, content)
        if self._journal is None:
            self._write()  # which drops a line that was cut, so that the next is not joined to it
            self._journal = self._path.open("a")
        self._journal.write(self._line(name))
        self._journal.flush()

    def keep(self, paths: set[str]) -> None:
        """Forget all files but those whose names, as text, are these, and write what is left."""
        self.close()
        self._known = {path: known for path, known in self._known.items() if path_text(path) in paths}
        self._write()

    def close(self) -> None:
        """Close the file."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _write(self) -> None:
        with AtomicFile(self._path) as partial:
            partial.write_text("".join(self._line(path) for path in sorted(self._known)))

    def _line(self, path: str) -> str:
        return json.dumps([path, *self._known[path]]) + "\n"
