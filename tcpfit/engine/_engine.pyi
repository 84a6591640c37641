"""The native engine (Rust, tcpfit/engine/src). Tables cross as Arrow C streams: `polars.DataFrame(result.flows)`."""

from collections.abc import Callable
from typing import Any, Protocol

class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Result:
    """One capture analysed: tables as Arrow streams and what is known of the capture itself."""

    capture: dict[str, Any]
    flows: ArrowStream
    events: ArrowStream
    rounds: ArrowStream
    segments: ArrowStream | None

def analyze(
    path: str,
    *,
    vantage: str | None = None,
    filter: str | None = None,
    from_s: float | None = None,
    to_s: float | None = None,
    segments: bool = False,
    progress: Callable[[int, int], None] | None = None,
    max_flows: int | None = None,
    max_memory: int | None = None,
    pieces: Callable[[ArrowStream], None] | None = None,
) -> Result:
    """Analyse a capture ('-' is standard input).

    `from_s` and `to_s` are seconds after the capture's first packet. `progress(bytes_read, bytes_total)` is called a few
    times a second; bytes_total is 0 where it is not known; an exception it raises (KeyboardInterrupt included) ends the run.
    `max_flows` connections are followed at once; reading ends where the process has come to `max_memory` bytes.
    `pieces(segments)` is given the table of segments in pieces as they come, and `Result.segments` is what is left;
    an exception it raises ends the run.
    Raises CaptureError for what cannot be opened or is no capture, InvalidParameter for a filter or vantage that cannot be read.
    """

class Tracker:
    """The tracker behind `analyze`, for readers that decode packets themselves."""

    def __init__(self, *, vantage: str | None = None, filter: str | None = None,
                 from_s: float | None = None, to_s: float | None = None, segments: bool = False,
                 max_flows: int | None = None) -> None: ...
    def push(self, batch: ArrowStream) -> None:
        """Take segments: columns of `tcpfit.schema.SEGMENTS`, in the capture's order."""
    def take_piece(self) -> ArrowStream | None:
        """The next piece of the table of segments, once it is there; `Result.segments` is what was not taken."""
    def finish(self) -> Result: ...
    # `Result.capture` of a Tracker holds only tcp_segments; the reader knows the rest.
