"""The reader for display filters and live interfaces, through pyshark: much slower than every other one.

The filter is a Wireshark display filter here, applied to packets (``tcp.port == 443 && ip.ttl < 64``). A path that
begins with ``interface:`` is captured live until it is interrupted or until `to_s` has passed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tcpfit.exceptions import CaptureError, InvalidParameter
from tcpfit.readers import Reading, Settings
from tcpfit.readers.containers import format_of
from tcpfit.readers.tshark import FIELDS, PREFERENCES, Collector, Complaint, nanoseconds

LIVE = "interface:"


def read(path: str, settings: Settings) -> Reading:
    """Read a capture, or listen on an interface, through pyshark; see `tcpfit.readers.read`."""
    collector = Collector(replace(settings, filter=None), format_of(path))
    return collector.run(_rows(path, settings))


def _rows(path: str, settings: Settings) -> Iterator[dict[str, str]]:
    try:
        import pyshark
        from pyshark.capture.capture import TSharkCrashException
    except ImportError:
        raise CaptureError("pyshark is not installed; pip install 'tcpfit[pyshark]', or use another reader") from None
    if path == "-":
        raise InvalidParameter("the pyshark reader cannot read standard input; use --reader tshark")
    options: dict[str, Any] = {
        "display_filter": settings.filter,
        "override_prefs": dict(preference.split(":", 1) for preference in PREFERENCES),
    }
    live = path.startswith(LIVE)
    if live:
        capture = pyshark.LiveCapture(interface=path.removeprefix(LIVE), **options)
        packets = capture.sniff_continuously()
    else:
        if not os.path.isfile(path):
            raise CaptureError(f"{path}: no such file; check the path")
        capture = packets = pyshark.FileCapture(path, keep_packets=False, **options)
    first: int | None = None
    time = 0
    crash: Exception | None = None
    try:
        for packet in packets:
            row = _row(packet)
            time = nanoseconds(row["frame.time_epoch"], time)
            first = time if first is None else first
            if live and settings.to_s is not None and time > first + settings.to_s * 1e9:
                break
            yield row
    except TSharkCrashException as error:
        crash = error
    except KeyboardInterrupt:
        if not live:
            raise
    finally:
        try:
            capture.close()
        except TSharkCrashException as error:
            crash = crash or error
            capture._running_processes.clear()  # or it is closed, and complained of, a second time
    if crash is not None:
        said = str(crash).partition("Last error line: ")[2].partition("\n")[0]
        raise Complaint(said.removeprefix("tshark: ").rstrip(".") or "tshark failed without saying why")


def _row(packet: Any) -> dict[str, str]:
    """A packet's fields as tshark's own lines have them; of several layers of a kind the innermost counts."""
    layers = {"frame": packet.frame_info} | {layer.layer_name: layer for layer in packet.layers}
    row = {}
    for name in FIELDS:
        layer = layers.get(name.split(".")[0])
        field = None if layer is None else layer.get_field(name.split(".", 1)[1])
        row[name] = "" if field is None else _value(name, field)
    return row


def _value(name: str, field: Any) -> str:
    if name == "tcp.options":
        return str(field.raw_value or "")
    return str(field.show if hasattr(field, "show") else field)
