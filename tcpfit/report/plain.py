"""Names of files for a terminal; whoever sends a capture chooses its name."""

from __future__ import annotations

import unicodedata


def plain(text: str) -> str:
    """A name, or a sentence with one: what would move the cursor, turn the writing or break the line is escaped."""
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char)[0] == "C" else char for char in text
    )
