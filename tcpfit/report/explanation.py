"""What stands behind the labels of one frame: the rule in words, its evidence, and what else it could have been."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit import arguments
from tcpfit.report.contract import rows
from tcpfit.report.evidence import Evidence
from tcpfit.schema import KINDS, SCHEMA_VERSION

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis


@dataclass(frozen=True)
class Rule:
    """A reason in words: what the rule asks, its source, and what else it could have been with what would tell."""

    sentence: str
    source: str
    alternatives: tuple[tuple[str, str], ...]


NEEDLESS = (
    "a late arrival, and a needless resend (spurious)",
    "a DSACK, an ACK that echoes an older timestamp, or one sooner than a round trip; a spurious event would name it",
)

RULES = {
    "fast-dupthresh": Rule(
        "Three duplicate ACKs had come, or three segments above these bytes had been SACKed: the sign to send again "
        "without waiting for the timer.",
        "RFC 5681, 3.2; IsLost of RFC 6675, 4",
        (
            ("a timeout (rto)", "a silence as long as the timer, with no ACK just before it"),
            ("RACK (fast-rack)", "only one or two segments SACKed above"),
            ("a further hole of an older recovery (partial-ack, recovery)", "a recovery that was under way already"),
            NEEDLESS,
        ),
    ),
    "fast-rack": Rule(
        "One or two segments above these bytes had been SACKed: a segment sent later had arrived, and RACK waits only "
        "a reordering window before it takes the earlier one for lost. Or a resend had arrived that was sent later: as "
        "an episode ended with it, or a timeout was taken back, or what followed one was lost again.",
        "RFC 8985, 6.2",
        (
            ("three duplicate ACKs (fast-dupthresh)", "three or more segments SACKed above"),
            ("early retransmit", "nothing in a capture: both rules act on one or two SACKed segments"),
            ("a timeout (rto)", "a silence as long as the timer, with no ACK just before it"),
            NEEDLESS,
        ),
    ),
    "early-retransmit": Rule(
        "One or two duplicate ACKs had come and no third did before it; the timer had not run out. Others that passed "
        "here before it had not reached the sender yet, or answered copies.",
        "RFC 5827, 3",
        (
            (
                "three duplicate ACKs (fast-dupthresh)",
                "the third, if the capture missed it: ACKs that skip data would show",
            ),
            ("a timeout (rto)", "a silence as long as the timer"),
            NEEDLESS,
        ),
    ),
    "partial-ack": Rule(
        "In fast recovery an ACK had just moved the left edge to these bytes, but not past all that was outstanding "
        "when the recovery began: the next hole begins here.",
        "RFC 6582, 3.2, step 3",
        (
            ("a timeout (rto)", "no ACK for half a round trip before it, or an earlier resend in the same recovery"),
            (
                "a new fast retransmit of Reno, which leaves recovery at a partial ACK (fast-dupthresh)",
                "three duplicate ACKs after the ACK that moved the left edge",
            ),
            NEEDLESS,
        ),
    ),
    "recovery": Rule(
        "A recovery was under way, and these bytes were a further hole in it that had not been sent again yet. Where "
        "they are still missing at its end, they begin the next one.",
        "RFC 6675, 5",
        (
            ("the resend of a lost resend (lost-retransmission)", "an earlier resend of the bytes in this recovery"),
            ("a timeout (rto)", "the first bytes outstanding, and a silence as long as the timer"),
            NEEDLESS,
        ),
    ),
    "rto": Rule(
        "These were the first bytes outstanding, since the timer was last started as much time had passed as a "
        "retransmission timer takes, and no ACK let them go: none had just come, it had let new data go already, or it "
        "was one of more duplicates than a fast retransmit waits for. Or they had been sent again in a recovery, were "
        "once more, and nothing but the timer can have been the reason.",
        "RFC 6298, 5.3 to 5.6; RFC 6582, 4",
        (
            ("a tail loss probe (tlp)", "the last bytes sent, repeated once after about two round trips, with SACK"),
            ("a fast retransmit (fast-dupthresh)", "duplicate ACKs before it; the capture may have missed them"),
            (
                "a needless timeout (spurious)",
                "an ACK of the original soon after it: an older echoed timestamp, a DSACK, or less than a round trip",
            ),
        ),
    ),
    "rto-recovery": Rule(
        "After a timeout the sender goes on from the first byte outstanding; these bytes were outstanding when the "
        "timer ran out and had not been sent since.",
        "RFC 5681, 3.1",
        (
            ("the resend of a lost resend (lost-retransmission)", "an earlier resend of the bytes since the timeout"),
            ("another timeout (rto)", "the first bytes outstanding, sent before since the timeout, and a silence"),
            NEEDLESS,
        ),
    ),
    "tlp": Rule(
        "After a silence of about two round trips the last bytes sent were repeated, once, or a new segment was sent "
        "that no ACK had let go: a probe, so that the answer shows what is missing at the tail.",
        "RFC 8985, 7.3",
        (
            (
                "a timeout (rto)",
                "the length of the silence: the timer takes longer; of a single segment only that tells, or that the "
                "host was seen to send no probes",
            ),
            ("a fast retransmit (fast-rack, fast-dupthresh)", "SACK blocks above the bytes"),
            (
                "new data that the application wrote then",
                "what was sent before them ended with less than a full segment",
            ),
            NEEDLESS,
        ),
    ),
    "lost-retransmission": Rule(
        "The bytes had been sent again since the recovery or the timeout began, and once more now without the timer: "
        "the earlier resend was lost too.",
        "RFC 8985, 3 and 6.2",
        (
            ("a timeout (rto)", "the first bytes outstanding, and a silence as long as the timer"),
            ("the first resend of the bytes (recovery, rto-recovery)", "no earlier resend in the episode"),
            NEEDLESS,
        ),
    ),
    "unneeded": Rule(
        "The bytes had been acknowledged or SACKed before they were sent again.",
        "RFC 9293, 3.4",
        (
            (
                "a resend whose ACK was still on its way to the sender",
                "a capture at the sender: elsewhere the time at which an ACK reached it is inferred",
            ),
            ("a keep-alive", "one byte or none, at the number before the next, after a second of silence"),
            ("a copy made by the network (duplicate)", "the same IP identification and timestamp as the original"),
        ),
    ),
    "syn": Rule(
        "The SYN was sent again more than 0.1 s after the one before: the handshake's timer ran out.",
        "RFC 6298, 5.7; RFC 9293, 3.8.1",
        (
            ("a copy made by the network (duplicate)", "less than 0.1 s between the two"),
            ("another connection on the same ports", "another initial sequence number"),
        ),
    ),
    "fin": Rule(
        "The FIN was sent again.",
        "RFC 9293, 3.6",
        (
            ("a resend of the data before it (rto, tlp)", "payload in the segment"),
            ("a copy made by the network (duplicate)", "the same IP identification and timestamp"),
        ),
    ),
    "resent": Rule(
        "The bytes were sent again later, and nothing shows that this copy arrived: no DSACK, no ACK that echoes its "
        "timestamp, none that came too soon to answer the resend.",
        "RFC 5681, 2 and 3.2; RFC 2883; RFC 3522",
        (
            (
                "arrived, and a needless resend (spurious)",
                "a DSACK, an echoed timestamp older than the resend's, or an ACK sooner than a round trip after it",
            ),
            ("arrived, and its ACKs lost on the way back", "a capture at the receiver, or a DSACK"),
            ("late and then overtaken by its resend", "a capture at the receiver, or a DSACK"),
        ),
    ),
    "hole": Rule(
        "Later bytes passed the capture point, or an ACK showed that they had come, and these had not; a later "
        "transmission brought them: the first was lost before the capture point, or before the receiver.",
        "RFC 5681, 2",
        (
            ("late (reordering)", "an older IP identification or timestamp, or less than a round trip of delay"),
            ("missed by the capture", "an ACK that covers the bytes before they were sent again"),
        ),
    ),
    "ip-id-gap": Rule(
        "The sender's IP identification skips a number that no packet brought: a resend that was lost before the "
        "capture point.",
        "RFC 6864, 4",
        (
            ("a packet of another connection of the host", "its number in a packet of that connection, if captured"),
            ("a packet without data, such as an ACK", "nothing outstanding that could have been sent again"),
            ("late (reordering)", "the number, in a packet that comes later"),
        ),
    ),
    "never-arrived": Rule(
        "The bytes never passed the capture point, neither at first nor later.",
        "RFC 5681, 2",
        (
            ("missed by the capture", "an ACK that covers them; they are then counted as missing_segments"),
            ("late, or sent again after the end of the capture", "a longer capture"),
        ),
    ),
    "unanswered": Rule(
        "The bytes had arrived before, and this copy was not needed. A receiver answers such a copy at once, but there "
        "are fewer ACKs than must have been sent: the copy, or one sent with it, was lost as well. The receiver has "
        "acknowledged each segment for itself, or two at a time and its identifications show that no ACK is missing; "
        "or they show that it sent nothing when this copy's turn to be answered had come.",
        "RFC 5681, 4.2",
        (
            ("arrived, and its answer lost on the way back", "a capture at the receiver"),
            ("arrived, and another copy sent with it was lost", "a capture at the receiver"),
        ),
    ),
    "not-resent": Rule(
        "The capture ends before the sender sent it again, if it ever did, but it should have been answered by then: "
        "SACK blocks show that data sent after it had arrived, or nothing was answered for as long as the timer runs.",
        "RFC 6675, 4; RFC 5681, 4.2",
        (
            ("late, and not lost", "a longer capture, or one at the receiver"),
            ("arrived, and its answer lost on the way back", "a capture at the receiver"),
        ),
    ),
    "not-held": Rule(
        "The capture ends before the sender came to it. Fewer duplicate ACKs came than segments were outstanding above "
        "the hole for long enough to be answered, and no ACK is missing. Duplicate ACKs do not say which segments are "
        "not held; the lowest are named.",
        "RFC 5681, 4.2; RFC 6582",
        (
            ("another segment of the same window was lost", "a capture at the receiver"),
            ("late, and not lost", "a longer capture, or one at the receiver"),
        ),
    ),
    "dsack": Rule(
        "The receiver reported with a SACK block below its ACK, or inside another block, that the bytes came a second "
        "time: the earlier copy had arrived.",
        "RFC 2883, 4; RFC 3708",
        (
            (
                "a copy made by the network (duplicate)",
                "a report although the bytes were sent once, or the same IP identification twice at the receiver",
            ),
            ("a loss (resent)", "no DSACK, from a receiver that sends them"),
        ),
    ),
    "eifel": Rule(
        "The ACK that covers the bytes echoes a timestamp older than the resend's: it answers the original.",
        "RFC 3522, 3.2",
        (
            ("a loss (resent)", "an ACK that echoes the resend's timestamp"),
            ("undecided", "equal timestamps of both copies, where the sender's clock is coarse"),
        ),
    ),
    "discarded": Rule(
        "After the resend an ACK repeated the one before it in everything: the receiver had dropped a segment whose "
        "timestamp was older than one it had taken, so the original was late and not lost.",
        "RFC 7323, 5.3",
        (
            ("a loss (resent)", "no such ACK, from a receiver that answers what it drops"),
            (
                "an answer to something else that was dropped",
                "a capture at the receiver, where the late original shows",
            ),
        ),
    ),
    "too-early": Rule(
        "The ACK that covers the bytes came sooner after the resend than the least round trip of the flow: it answers "
        "an earlier copy.",
        "RFC 3522, 1; RFC 5682",
        (
            ("a loss (resent)", "an ACK a round trip after the resend"),
            ("a path that became shorter", "later round trips below the least one so far"),
        ),
    ),
    "seen-twice": Rule(
        "Both copies passed the capture point, which is at the receiver: the first had arrived.",
        "RFC 9293, 3.8.1",
        (
            (
                "a loss between the capture point and the receiver",
                "a capture in the middle of the path (--vantage middle)",
            ),
            ("a copy made by the network (duplicate)", "the same IP identification and timestamp"),
        ),
    ),
    "ack-jump": Rule(
        "Without SACK and timestamps: the ACK that filled a hole covers these bytes too, or more duplicate ACKs came "
        "than the data held above the holes explain; so the receiver had an earlier copy. Which of several resends was "
        "the needless one, nothing shows. Or no later copy can have come: the receiver would have answered it at once "
        "and, by its identifications, sent nothing.",
        "RFC 5681, 4.2",
        (
            ("a loss (resent)", "DSACK or timestamps, which this flow does not have, or a capture at the receiver"),
            ("another resend of the same stretch", "the same"),
        ),
    ),
    "acks-lost": Rule(
        "It was all that was outstanding, and was sent again. Between the last two ACKs the receiver's IP "
        "identification skips as many packets as there were copies before the last one: it had answered each, and "
        "those ACKs were lost.",
        "RFC 5681, 4.2; RFC 6864",
        (
            ("a loss (resent)", "no number skipped between the two ACKs"),
            ("packets of other connections of the receiver", "a capture at the receiver, or DSACK"),
        ),
    ),
    "answered": Rule(
        "After the resend had filled the hole an ACK came that says nothing new: without SACK a duplicate ACK while "
        "nothing was held above another hole, with SACK one of the same blocks. It answers a copy of what the receiver "
        "had: the original came late. Such ACKs come after resends in this flow, and not at other times.",
        "RFC 5681, 4.2",
        (
            ("a loss (resent), and a copy made by the path", "duplicate ACKs where nothing was sent again before"),
            ("another resend of the same recovery", "DSACK, or a capture at the receiver"),
        ),
    ),
    "ip-id": Rule(
        "The IP identification is older than that of packets that came before it: it was sent first and overtaken.",
        "RFC 4737, 3; RFC 6864",
        (
            ("a loss and its resend (hole)", "an IP identification newer than those before it"),
            ("numbers of several connections mixed", "gaps that another connection's packets fill"),
        ),
    ),
    "tsval": Rule(
        "The TCP timestamp is older than that of data that came before it: it was sent first and overtaken.",
        "RFC 4737, 3; RFC 7323, 3",
        (
            ("a loss and its resend (hole)", "a timestamp newer than that of the data before it"),
            ("undecided", "equal timestamps, where the sender's clock is coarse"),
        ),
    ),
    "timing": Rule(
        "It filled a hole sooner than a round trip after the hole showed: no resend that a duplicate ACK asked for can "
        "come so soon. Or others of its hole came right behind it: a timer's resend comes alone.",
        "RFC 4737, 3; RFC 5681, 3.1",
        (
            (
                "a loss and its resend (hole)",
                "an IP identification that counts, or timestamps: newer than those before",
            ),
            ("a resend of the timer or of an older recovery", "a silence before it, or a recovery under way"),
        ),
    ),
    "unasked": Rule(
        "It filled a hole, and nothing that the sender had heard when it must have left asked for it: no duplicate "
        "ACK, no SACK, no timer. Neither identification nor timestamp tells; the counts are ranges.",
        "RFC 4737, 3; RFC 5681, 3.2; RFC 6298, 5",
        (
            ("a loss and its resend (hole)", "an IP identification that counts, or timestamps"),
            ("a resend of a sender with rules of its own", "the same data once more, or a DSACK: then it was late"),
        ),
    ),
    "sack-order": Rule(
        "At the sender: an earlier ACK had SACKed bytes above these, which were sent once and are acknowledged only "
        "now. The receiver got them after what was sent later.",
        "RFC 2018, 3; RFC 4737, 3",
        (
            ("in order, and the ACKs in between lost", "a capture at the receiver"),
            ("left out by ACKs that had no room for its block", "more holes than the three or four blocks of an ACK"),
        ),
    ),
    "dup-acks": Rule(
        "At the sender, without SACK: duplicate ACKs asked for these bytes, which were sent once and are acknowledged "
        "now. What was sent later had come before them.",
        "RFC 5681, 2; RFC 4737, 3",
        (
            ("data or ACKs copied on the path", "a capture at the receiver, or DSACK"),
            ("a loss (resent)", "the bytes sent again"),
        ),
    ),
    "copy": Rule(
        "The same bytes with the same IP identification and timestamp, sooner than any resend: the network or the "
        "capture made a second packet of one.",
        "RFC 4737, 3; RFC 5560",
        (
            ("a retransmission", "another IP identification or timestamp, or a round trip between the two"),
            ("a second look of the capture (mirror port)", "the same TTL within 10 us; then it is no traffic"),
        ),
    ),
    "one-rtt": Rule(
        "The losses within one round trip of the first lost transmission are one event, which a sender answers once.",
        "RFC 5348, 5.2; Parvez, Mahanti and Williamson 2010",
        (
            ("several loss events", "more than one round trip between the lost transmissions"),
            ("part of the event before", "a longer round trip then: it is the smoothed one, good to a quarter"),
        ),
    ),
    "keep-alive": Rule(
        "Nothing was outstanding, and one byte or none came at the number before the next: it asks whether the other "
        "end is there.",
        "RFC 9293, 3.8.4",
        (
            ("a retransmission (unneeded)", "more than one byte, or less than a second of silence"),
            ("a zero-window probe (window-probe)", "a window of 0 before it"),
        ),
    ),
    "window-probe": Rule(
        "The receiver's window was 0, and a byte or an old number asks whether it has opened.",
        "RFC 9293, 3.8.6.1",
        (
            ("a retransmission", "an open window"),
            ("a keep-alive", "nothing waiting to be sent, and an open window"),
        ),
    ),
    "advertised": Rule(
        "The receiver's window field was 0; no scale changes that.",
        "RFC 9293, 3.8.6.1",
        (
            ("a slow application or a small buffer at the receiver", "nothing in a capture: both look the same"),
            ("a window too small for a segment", "a field above 0; that is not counted here"),
        ),
    ),
    "ce": Rule(
        "A router on the path marked the segment CE in place of dropping it; marks within one round trip of the first "
        "are one event.",
        "RFC 3168, 5; RFC 5348, 5.2",
        (
            ("no mark but an old type of service", "a handshake that did not negotiate ECN; such marks are no event"),
            ("several events", "more than one round trip between the marks"),
        ),
    ),
    "ece": Rule(
        "The receiver sets ECE on its ACKs from the first marked segment on, until the sender's CWR comes. The sender "
        "answers once for all that was outstanding at the first of them.",
        "RFC 3168, 6.1.2 and 6.1.3",
        (
            ("more than one marked segment", "a capture at the receiver (ce); ECE does not count marks"),
            ("no mark but what the handshake means by the flags", "a SYN-ACK that agrees to classic ECN"),
            ("another event of the same window", "an ECE on an ACK above the data outstanding at the first (ece)"),
        ),
    ),
    "ace": Rule(
        "AE, CWR and ECE of the ACKs count marked packets modulo 8, from 5, and the number moved.",
        "RFC 9768, 3.2.2",
        (
            ("more marks", "eight or more between two ACKs that the capture has: the number looks the same"),
            ("an older ACK that was overtaken", "an ACK that acknowledges nothing new; such ones are passed over"),
        ),
    ),
    "cwr": Rule(
        "The CWR flag on data says that the sender has reduced its window, for marks or for a loss; the receiver then "
        "stops to set ECE.",
        "RFC 3168, 6.1.2",
        (
            ("an answer to marks (ece)", "an ACK with ECE before it that no CWR had answered"),
            ("an answer to a loss (recovery, timeout)", "a recovery or a timeout just before, and no ECE"),
        ),
    ),
    "unknown": Rule(
        "Nothing in the capture shows the cause: no duplicate ACK, no SACK above it, no silence as long as a timer.",
        "",
        (
            ("a fast retransmit", "ACKs that the capture missed, or that were cut before their SACK blocks"),
            ("a timeout (rto)", "the first bytes outstanding, and a silence"),
            ("a resend by a device on the path", "another TTL or IP identification than the sender's"),
        ),
    ),
}
"""Each reason of `tcpfit.schema.REASONS`, in words."""


def explain(analysis: Analysis, frame: int) -> dict[str, Any]:
    """What a frame is and what every event that names it rests on.

    `analysis` has to have been made with ``segments=True``, of the whole capture. Seconds count from the frame, except
    `time_s`, which counts from the start of the capture. Raises InvalidParameter for a frame that the capture does not
    have, for one that is no TCP segment, and without the segments.
    """
    arguments.analysis(analysis).check_segments()
    frame = arguments.whole("frame", frame)
    evidence = Evidence(analysis, frame)
    named = analysis.events.filter((pl.col("frame") == frame) | (pl.col("cause_frame") == frame))
    return {
        "schema": SCHEMA_VERSION,
        "capture": analysis.path,
        "frame": frame,
        "time_s": evidence.time_s,
        "segment": evidence.segment(),
        "events": [_account(event, evidence) for event in rows(named.sort(["time_ns", "flow"], maintain_order=True))],
    }


def _account(event: dict[str, Any], evidence: Evidence) -> dict[str, Any]:
    rule = RULES[event["reason"]]
    return {
        "names_it_as": "frame" if event["frame"] == evidence.frame else "cause_frame",
        "event": event,
        "what": KINDS[event["kind"]],
        "rule": rule.sentence,
        "source": rule.source or None,
        "evidence": evidence.of(event),
        "alternatives": [{"instead": instead, "told_by": told_by} for instead, told_by in rule.alternatives],
    }
