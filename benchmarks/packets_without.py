"""A capture as hosts would have made it that send no timestamps, or no identifications: these taken out of it.

What the hosts did then they still did with them: a sender that undid a recovery because of an echo (RFC 3522) seems to
do so for no reason. Only what the packets would have told otherwise can be seen this way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from tcpfit.readers.containers import open_capture
from tcpfit.readers.files import Stream

ETHERNET, VLAN, IPV4, IPV6 = 14, 0x8100, 0x0800, 0x86DD
NO_OPERATION, TIMESTAMPS = 1, 8


def write(path: Path, without: list[str], target: Path) -> None:
    """The capture at `path` to `target`, nanosecond pcap, without what is named: keys of `WITHOUT`."""
    stream = Stream(str(path))
    _, packets = open_capture(stream, str(path))
    with target.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1))
        for packet in packets:
            frame = bytearray(packet.data)
            for what in without:
                WITHOUT[what](frame)
            second, ns = divmod(packet.time_ns, 10**9)
            out.write(struct.pack("<IIII", second, ns, len(frame), packet.wire_len) + frame)
    stream.close()


def zero_identification(frame: bytearray) -> None:
    """As hosts send it that fragment nothing (RFC 6864, 4.1 allows any)."""
    at, version = network(frame)
    if version == IPV4:
        frame[at + 4 : at + 6] = bytes(2)


def blank_timestamps(frame: bytearray) -> None:
    """No-operation options in their place, so that every length stays."""
    at, version = network(frame)
    if version not in (IPV4, IPV6):
        return
    segment = at + (40 if version == IPV6 else 4 * (frame[at] & 15))
    option, end = segment + 20, min(segment + 4 * (frame[segment + 12] >> 4), len(frame))
    while option + 1 < end and frame[option]:
        length = 1 if frame[option] == NO_OPERATION else max(2, frame[option + 1])
        if frame[option] == TIMESTAMPS:
            frame[option : option + length] = bytes([NO_OPERATION]) * length
        option += length


def network(frame: bytearray) -> tuple[int, int]:
    """Where the IP header begins in an Ethernet frame, tagged or not, and which EtherType it has."""
    at = ETHERNET
    while (kind := int.from_bytes(frame[at - 2 : at])) == VLAN:
        at += 4
    return at, kind


WITHOUT: dict[str, Callable[[bytearray], None]] = {
    "identifications": zero_identification,
    "timestamps": blank_timestamps,
}
