"""Small MSS: the segments are smaller than any path of today needs.

**Claim**: the MSS agreed, who asked for it, and the share of bytes that are headers.
**Rule**: the data receiver's MSS option is below 1,220 bytes, what IPv6's least MTU of 1,280 leaves (RFC 8200,
section 5), no data segment is larger (the option of the sender itself binds its peer only), and at least half of the
data is in segments of that size, at least ten of them: an application that writes little gains nothing from a larger
MSS. No MSS option means 536 (RFC 9293, 3.7.1).
**Evidence**: SYN and SYN-ACK. Where a middlebox rewrites the option (MSS clamping) the capture shows the value on its
side: next to the host that sent it the option is as sent, elsewhere it may have been lowered on the way.
**Remedy**: raise the MTU or lift the clamp. Window growth counts segments (RFC 5681, 3.1), so the rate after a loss
is proportional to the MSS.
**Validation**: docs/diagnosis/small-mss.md; tests/test_findings.py.
"""

from __future__ import annotations

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.view import View, named

NAME = "small-mss"
ENOUGH = 1220
DEFAULT = 536


def find(view: View) -> Finding | None:
    handshake = view.handshake
    if handshake is None or not handshake.options_whole or view.data is None:
        return None
    theirs = handshake.syn if view.end_of(handshake.syn) == "dst" else handshake.syn_ack
    host, absent = view.host("dst"), theirs["mss"] is None
    small = DEFAULT if absent else theirs["mss"]
    payload = view.data["payload"].to_numpy().astype(int)
    size = small - (12 if view["timestamps"] else 0)
    full = payload[payload >= size]
    if small >= ENOUGH or len(full) < 10 or full.sum() < 0.5 * payload.sum():
        return None
    if full.max() > small and not (view["offload"] and view["smss_bytes"] <= small):
        return None
    header = 40 + (12 if view["timestamps"] else 0) + (20 if ":" in view["src"] else 0)
    said = f"{host} sent no MSS option, which means {DEFAULT}" if absent else f"the MSS option of {host} is {small}"
    there = view.at("dst")
    changed = "" if there or absent else "; it may have been lowered on the way, which shows only next to that host"
    return Finding(
        name=NAME,
        claim=f"Segments carry {size} bytes: {said}{changed}; {header / (header + size):.0%} of the bytes are headers, "
        f"and the window grows by {size} bytes where a path of 1,500 bytes allows 1,448.",
        frames=named(handshake.frames),
        display_filter=view.show("tcp.flags.syn == 1"),
        remedy=f"Raise the MTU of {host}'s interface or tunnel, or the value to which a middlebox clamps the MSS.",
        confidence=0.95,
        seconds=None,
    )
