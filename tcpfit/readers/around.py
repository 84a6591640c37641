"""What is around a datagram, VLANs and tunnels, as the engine numbers it: part of a flow's key."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

NOT_IP, TRUNCATED, BAD_IP, BAD_TCP, FRAGMENTED, ENCRYPTED, AGGREGATE, TOO_DEEP = (
    "not IP",
    "truncated header",
    "bad IP header",
    "bad TCP header length",
    "IP fragment",
    "encrypted frame",
    "802.11 aggregate (A-MSDU)",
    "more than 8 tunnels in each other",
)

DEEPEST = 8

VLAN, SERVICE, PPPOE, IP_IN_IP, GRE, GRE_KEY, VXLAN, GENEVE, GTP, L2TP, TEREDO, PSEUDOWIRE = range(1, 13)


class Skipped(Exception):
    """The packet is not analysed; the message is the reason it is counted under."""


@dataclass(frozen=True)
class Around:
    """`identity` is 0 where nothing is around; tunnels count in `depth`, tags do not."""

    identity: int = 0
    depth: int = 0

    def tagged(self, kind: int, number: int) -> Around:
        """With a tag more."""
        return replace(self, identity=_mixed(_mixed(self.identity, kind), number))

    def inside(self, kind: int, number: int) -> Around:
        """In a tunnel that a number tells from others."""
        if self.depth == DEEPEST:
            raise Skipped(TOO_DEEP)
        return replace(self, depth=self.depth + 1).tagged(kind, number)

    def between(self, kind: int, ends: tuple[bytes, bytes]) -> Around:
        """In a tunnel that is told by its ends, IPv4 addresses as IPv4-mapped ones."""
        number = 0
        for word in struct.unpack(">8I", b"".join(sorted(ends))):
            number = _mixed(number, word)
        return self.inside(kind, number)


@dataclass(frozen=True)
class Network:
    """An IP datagram where it was found.

    A `version` of 0 stands in its first nibble. `wire` counts its bytes to the end of the frame, `limit` those that the
    link layer says, if it does.
    """

    version: int
    data: bytes
    wire: int
    around: Around
    limit: int | None = None


def need(data: bytes, count: int) -> None:
    """Raise Skipped where fewer bytes were captured."""
    if len(data) < count:
        raise Skipped(TRUNCATED)


def byte(data: bytes, at: int) -> int:
    """An octet."""
    need(data, at + 1)
    return data[at]


def u16(data: bytes, at: int) -> int:
    """16 bits in network byte order."""
    need(data, at + 2)
    return data[at] << 8 | data[at + 1]


def u32(data: bytes, at: int) -> int:
    """32 bits in network byte order."""
    need(data, at + 4)
    return int.from_bytes(data[at : at + 4], "big")


def _mixed(number: int, word: int) -> int:
    rotated = (number << 5 | number >> 27) & 0xFFFFFFFF
    return (rotated ^ word) * 0x9E3779B1 & 0xFFFFFFFF
