"""How an option that both SYNs must carry came to be missing: not offered, refused, or taken out on the way.

What shows where, for an initiator I that sends the SYN and a responder R (RFC 9293, 3.2; RFC 7323, 1.3; RFC 2018, 2):

| capture | SYN | SYN-ACK | what it means |
| --- | --- | --- | --- |
| at I | without | without | I did not offer it |
| at I | with | without | R refused it, or the path took it out of the SYN or of the SYN-ACK: not told apart |
| at R | without | without | I did not offer it, or the path took it out of the SYN: not told apart |
| at R | with | without | R refused it |
| any | with | with | agreed, as far as the capture point shows; I may have got a SYN-ACK without it |

In the middle each line is open to both of its neighbours. Two captures, one at each end, settle it.
"""

from __future__ import annotations

from tcpfit.diagnosis.findings.view import Handshake, View


def absence(view: View, handshake: Handshake, asked: bool, answered: bool, option: str) -> str | None:
    """Why the option was not agreed, in words; None if it was."""
    if asked and answered:
        return None
    asking, answering = view.end_of(handshake.syn), view.end_of(handshake.syn_ack)
    initiator, responder = view.host(asking), view.host(answering)
    if asked:
        if view.at(answering):
            return f"{responder} answered the SYN, which has {option}, without it: it refused"
        return (
            f"the SYN of {initiator} has {option}, the SYN-ACK of {responder} has not: {responder} does not support it "
            "or the path took it out, which a capture at the other end would tell apart"
        )
    if view.at(asking):
        return f"{initiator} did not offer {option}"
    return (
        f"the SYN of {initiator} came without {option}: it was not offered or the path took it out, which a capture "
        "next to it would tell apart"
    )


def sure(view: View, handshake: Handshake, asked: bool) -> float:
    """Confidence in the words of `absence`: the fact is certain, so it is less only where the vantage is a guess."""
    return 0.95 if view.at(view.end_of(handshake.syn_ack if asked else handshake.syn)) is not None else 0.85
