"""What the tests take for granted."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """A job in a shell's background ignores interrupts, and the commands that tests run would inherit it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
