"""What the segments of a connection show about an event: frames with their distance in time, and the sender's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit.exceptions import InvalidParameter
from tcpfit.report import traffic, words

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

HELD_S = 0.2
"""Seconds that a segment passes later than its timestamp allows where the path stood still (engine: ack_delay)."""

DRIFT = 1e-3
"""Of a time: no two clocks differ by more."""

CAUSES = {
    "retransmission": "the transmission of these bytes before it",
    "loss": "the transmission that replaced it",
    "loss_event": "the transmission that replaced the first loss",
    "recovery": "the transmission before the resend that began it",
    "timeout": "the transmission that was not acknowledged in time",
    "tail_loss_probe": "the end of what was outstanding",
    "spurious": "the ACK that covers the bytes",
    "reordering": "the frame that showed its absence",
    "reorder_event": "the frame that showed the absence of the first",
    "duplicate": "the packet that it is a copy of",
    "zero_window": "the frame that opened the window again",
    "probe": "the frame before it",
    "ecn_mark": "the first marked segment since the echoes before",
    "ecn_response": "the ACK that first echoed the marks",
}
"""What `cause_frame` is, by kind."""

SUBJECTS = {
    "retransmission": "the resend",
    "loss": "the transmission that was lost",
    "loss_event": "the first transmission that was lost",
    "recovery": "the resend that began it",
    "timeout": "the resend of the timer",
    "tail_loss_probe": "the probe",
    "spurious": "the needless resend",
    "reordering": "the late segment",
    "reorder_event": "the first late segment",
    "duplicate": "the copy",
    "zero_window": "the frame that closed the window",
    "probe": "the probe",
    "ecn_mark": "the first marked segment, or the first ACK that echoes it",
    "ecn_response": "the data with CWR",
}
"""What `frame` is, by kind."""

DECIDED = ("retransmission", "timeout", "recovery", "tail_loss_probe")
"""Kinds that a sender decided on, by what it had heard and sent."""

SETTLED_LATER = ("loss", "loss_event", "spurious", "reordering", "reorder_event")
"""Kinds that hindsight settles: the phase of the sender then is not kept."""

SEEN_LATE = ("ip-id", "tsval", "timing", "unasked")
"""Reasons of reordering that the late packet itself shows; the others are the receiver's ACKs."""

WITHOUT_FLIGHT = ("spurious", "reorder_event")


class Evidence:
    """The surroundings of one frame. Seconds count from it, those before it are negative."""

    def __init__(self, analysis: Analysis, frame: int) -> None:
        """Find the frame and the segments of its connection.

        Raises InvalidParameter for a frame that the capture does not have and for one that is no TCP segment.
        """
        self.frame = frame
        self._analysis = analysis
        found = analysis.segments.filter(pl.col("frame") == frame)
        if found.is_empty():
            raise InvalidParameter(_absent(analysis, frame))
        row = found.row(0, named=True)
        self._time_ns: int = row["time_ns"]
        self.time_s = (self._time_ns - (analysis.capture.get("start_ns") or self._time_ns)) / 1e9
        self._segments = _connection(analysis, row)
        self._this = self._segments.filter(pl.col("frame") == frame).row(0, named=True)

    def segment(self) -> dict[str, Any]:
        """What the frame is: flow, range, whether its bytes were new, what acknowledged them."""
        this = self._this
        data = bool(this["payload"])
        return {
            "flow": this["flow"],
            "reverse_flow": this["reverse"],
            "src": this["src"],
            "src_port": this["src_port"],
            "dst": this["dst"],
            "dst_port": this["dst_port"],
            "vantage": self._vantage(),
            "flags": traffic.flag_names(this["flags"]),
            "payload_bytes": this["payload"],
            "left": this["left"] if data else None,
            "right": this["right"] if data else None,
            "transmission": self._transmission() if data else None,
            "earlier_frames": self._same_bytes(pl.col("frame") < self.frame) if data else [],
            "later_frames": self._same_bytes(pl.col("frame") > self.frame) if data else [],
            "acked_by": self._acked_by(this["flow"], this["right"], self.frame) if data else None,
            "acked": this["acked"],
            "duplicate_ack": self._duplicates(this) if not data else None,
            "sack": [list(block) for block in traffic.sack_blocks(this)],
            "window": this["window"],
        }

    def of(self, event: dict[str, Any]) -> dict[str, Any]:
        """Frames with their distance and meaning, and the sender's state, of one event."""
        kind = event["kind"]
        entries = []
        for column, meaning in (("frame", self._subject(event)), ("cause_frame", self._cause(event))):
            number = event[column]
            if number is not None and number != self.frame:
                entries.append(self._entry(number, meaning))
        if event["frame"] is None:
            entries.insert(0, {"frame": None, "seconds": None, "text": f"{SUBJECTS[kind]} is not in the capture"})
        entries += self._decision(event) if kind in DECIDED and event["reason"] != "syn" else self._particulars(event)
        return {
            "frames": entries,
            "rtt_s": self._rtt_s(event),
            "timer_s": event["value"] if kind in ("timeout", "tail_loss_probe") else None,
            "flight": None if kind in WITHOUT_FLIGHT or event["reason"] == "syn" else event["flight"],
            "phase": None if kind in SETTLED_LATER or event["reason"] == "syn" else event["phase"],
        }

    def _vantage(self) -> str | None:
        flows = [number for number in (self._this["flow"], self._this["reverse"]) if number is not None]
        return str(self._flow(flows[0])["vantage"]) if flows else None

    def _flow(self, number: int) -> dict[str, Any]:
        return self._analysis.flows.filter(pl.col("flow") == number).row(0, named=True)

    def _transmission(self) -> str:
        """first, again, or partly again: whether earlier frames carried the bytes."""
        covered = self._this["left"]
        earlier = self._overlapping(pl.col("frame") < self.frame).sort("left")
        for left, right in earlier.select("left", "right").iter_rows():
            if left <= covered:
                covered = max(covered, right)
        if covered >= self._this["right"]:
            return "again"
        return "first" if earlier.is_empty() else "partly again"

    def _overlapping(self, which: pl.Expr) -> pl.DataFrame:
        this = self._this
        same_way = (pl.col("src") == this["src"]) & (pl.col("src_port") == this["src_port"])
        overlap = (pl.col("left") < this["right"]) & (pl.col("right") > this["left"])
        return self._segments.filter(which & same_way & overlap & (pl.col("payload") > 0))

    def _same_bytes(self, which: pl.Expr) -> list[dict[str, Any]]:
        return [
            {"frame": number, "seconds": self._distance(time_ns)}
            for number, time_ns in self._overlapping(which).select("frame", "time_ns").iter_rows()
        ]

    def _acked_by(self, flow: int, right: int, after: int) -> dict[str, Any] | None:
        """The first ACK behind a frame that covers the bytes up to `right`."""
        acks = self._segments.filter(
            pl.col("frame") > after,
            pl.col("reverse") == flow,
            pl.col("acked") >= right,
            (pl.col("flags") & traffic.RST) == 0,
        )
        if acks.is_empty():
            return None
        return {"frame": acks["frame"][0], "seconds": self._distance(acks["time_ns"][0])}

    def _duplicates(self, ack: dict[str, Any]) -> int | None:
        """How many ACKs without data, up to this one, repeated its number."""
        if ack["acked"] is None or ack["payload"]:
            return None
        same_way = (pl.col("src") == ack["src"]) & (pl.col("src_port") == ack["src_port"])
        plain = (pl.col("payload") == 0) & ((pl.col("flags") & (traffic.SYN | traffic.FIN | traffic.RST)) == 0)
        same = self._segments.filter(pl.col("frame") <= ack["frame"], same_way, pl.col("acked") == ack["acked"])
        return max(0, same.filter(plain | (pl.int_range(pl.len()) == 0)).height - 1)

    def _subject(self, event: dict[str, Any]) -> str:
        return "the ACK that showed the hole" if self._is_by_acks(event) else SUBJECTS[event["kind"]]

    def _is_by_acks(self, event: dict[str, Any]) -> bool:
        """A loss of a flow whose data are not in the capture."""
        subject = self._row(event["frame"])
        return event["kind"] in ("loss", "loss_event") and subject is not None and subject["flow"] != event["flow"]

    def _cause(self, event: dict[str, Any]) -> str:
        if event["kind"] in ("loss", "loss_event") and event["cause_frame"] is not None:
            cause = self._row(event["cause_frame"])
            if cause is not None and (not cause["payload"] or cause["flow"] != event["flow"]):
                return "the ACK that covers the bytes"
        if event["kind"] in ("reordering", "reorder_event") and event["reason"] not in SEEN_LATE:
            return "the ACK that shows that it came, and late"
        if event["reason"] == "dsack":
            return "the ACK that reports it"
        if event["reason"] == "answered":
            cause = self._row(event["cause_frame"])
            if cause is not None and self._duplicates(cause):
                return "the duplicate ACK that answers the original"
        return CAUSES[event["kind"]]

    def _decision(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        """What the sender had heard and sent last when it sent again, as it passed the capture point."""
        if event["frame"] is None:
            return []
        before = self._segments.filter(pl.col("frame") < event["frame"])
        entries = []
        # a probe may be of new data
        what = "it" if event["kind"] == "tail_loss_probe" else "the resend"
        acks = before.filter(pl.col("reverse") == event["flow"], pl.col("acked").is_not_null())
        if not acks.is_empty():
            last = acks.row(-1, named=True)
            text = f"the last ACK before {what}: bytes below {last['acked']} have arrived"
            duplicates = self._duplicates(last)
            if duplicates:
                text += f", {ordinal(duplicates)} duplicate"
            above = sum(right - left for left, right in traffic.sack_blocks(last) if left >= event["right"])
            if above:
                text += f", and {words.plural(above, 'byte')} above {what} (SACK)"
            entries.append(self._entry(last["frame"], text))
        data = before.filter(pl.col("flow") == event["flow"], pl.col("payload") > 0)
        if not data.is_empty():
            entries.append(self._entry(data["frame"][-1], f"the last data sent before {what}"))
        return entries + self._held(event)

    def _held(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        """Where the path stood still a resend was sent at another time than it passed: by the sender's clock."""
        subject, cause = self._row(event["frame"]), self._row(event["cause_frame"])
        tick_s = self._flow(event["flow"])["stamp_tick_s"]
        if not tick_s or subject is None or cause is None or None in (subject["tsval"], cause["tsval"]):
            return []
        sent_s = (subject["tsval"] - cause["tsval"]) % 2**32 * tick_s
        if abs((subject["time_ns"] - cause["time_ns"]) / 1e9 - sent_s) < HELD_S + DRIFT * sent_s:
            return []
        numbers = f"timestamps: {subject['tsval']}, of frame {cause['frame']} {cause['tsval']}"
        text = f"{numbers}: it was sent {words.seconds(sent_s)} later, and one of them was held on its way"
        return [{"frame": None, "seconds": None, "text": text}]

    def _particulars(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        """What shows the other kinds: the ACK's SACK block or timestamp, identifications, the losses of an event."""
        kind, reason = event["kind"], event["reason"]
        subject, cause = self._row(event["frame"]), self._row(event["cause_frame"])
        texts: list[str] = []
        if kind == "loss_event":
            losses = self._losses(event)
            seen = [f"frame {number}" for number in losses if number is not None]
            unseen = len(losses) - len(seen)
            which = "its losses, by the ACKs that showed them: " if self._is_by_acks(event) else "its losses: "
            texts.append(which + ", ".join(seen + ([f"{unseen} not in the capture"] if unseen else [])))
        if kind == "loss" and cause is not None and cause["flow"] == event["flow"] and cause["payload"]:
            acked = self._acked_by(event["flow"], event["right"], event["cause_frame"])
            if acked is not None:
                return [acked | {"text": "the first ACK after that which covers the bytes"}]
        if subject is not None and cause is not None:
            texts += _comparison(kind, reason, subject, cause)
        if reason == "acks-lost":
            acks = self._segments.filter(
                pl.col("reverse") == event["flow"],
                pl.col("acked").is_not_null(),
                pl.col("frame") < event["cause_frame"],
            )
            if cause is not None and not acks.is_empty():
                last = acks.row(-1, named=True)
                texts.append(
                    f"IP identifications: {cause['ip_id']}, of the ACK before, frame {last['frame']}, {last['ip_id']}"
                )
        if reason == "unneeded":
            covering = self._segments.filter(
                pl.col("frame") < event["frame"], pl.col("reverse") == event["flow"], pl.col("acked") >= event["right"]
            )
            if not covering.is_empty():
                return [self._entry(covering["frame"][0], "the ACK that had covered the bytes before")]
        if kind == "ecn_mark":
            answers = self._analysis.events.filter(
                pl.col("flow") == event["flow"],
                pl.col("kind") == "ecn_response",
                pl.col("cause_frame") == event["frame"],
            )
            return [self._entry(number, "the data whose CWR answers it") for number in answers["frame"]]
        if kind == "spurious" and reason == "too-early":
            least = self._flow(event["flow"])["rtt_min_s"]
            texts.append(f"least round trip of the flow: {words.seconds(least)}")
        return [{"frame": None, "seconds": None, "text": text} for text in texts]

    def _losses(self, event: dict[str, Any]) -> list[int | None]:
        end_ns = event["time_ns"] + round((event["value"] or 0) * 1e9)
        losses = self._analysis.events.filter(
            pl.col("flow") == event["flow"],
            pl.col("kind") == "loss",
            pl.col("time_ns").is_between(event["time_ns"], end_ns),
        )
        return losses["frame"].to_list()

    def _rtt_s(self, event: dict[str, Any]) -> float | None:
        """The round trip when it happened: of a loss the one it carries, otherwise of the last round that has one."""
        if event["kind"] == "loss" and event["value"] is not None:
            return float(event["value"])
        measured = self._analysis.rounds.filter(
            pl.col("flow") == event["flow"], pl.col("start_ns") <= event["time_ns"], pl.col("rtt_s").is_not_null()
        )
        return None if measured.is_empty() else float(measured["rtt_s"][-1])

    def _row(self, number: int | None) -> dict[str, Any] | None:
        found = self._segments.filter(pl.col("frame") == number) if number is not None else pl.DataFrame()
        return None if found.is_empty() else found.row(0, named=True)

    def _entry(self, number: int, text: str) -> dict[str, Any]:
        row = self._row(number)
        return {"frame": number, "seconds": None if row is None else self._distance(row["time_ns"]), "text": text}

    def _distance(self, time_ns: int) -> float:
        return (time_ns - self._time_ns) / 1e9


def _absent(analysis: Analysis, frame: int) -> str:
    packets = analysis.capture.get("packets")
    if packets is not None and frame > packets:
        return f"{analysis.path} has no frame {frame}; its last one is {packets}"
    skipped = analysis.capture.get("skipped") or {}
    others = f", but one of those not analysed ({', '.join(f'{n} {reason}' for reason, n in skipped.items())})"
    return f"frame {frame} of {analysis.path} is no TCP segment{others if skipped else ''}"


def _connection(analysis: Analysis, segment: dict[str, Any]) -> pl.DataFrame:
    """Segments of the connection of one, labelled; that one alone where its connection carried no data."""
    ends = [(segment["src"], segment["src_port"]), (segment["dst"], segment["dst_port"])]
    (host, port), (peer, peer_port) = ends
    there = (pl.col("src") == host) & (pl.col("src_port") == port) & (pl.col("dst") == peer)
    back = (pl.col("src") == peer) & (pl.col("src_port") == peer_port) & (pl.col("dst") == host)
    flows = analysis.flows.filter(
        (there & (pl.col("dst_port") == peer_port)) | (back & (pl.col("dst_port") == port)),
    )["flow"]
    table = traffic.labelled(analysis, flows.to_list())
    connection = table.filter(pl.col("frame") == segment["frame"])["connection"]
    if connection.is_empty():
        return traffic.labelled(analysis).filter(pl.col("frame") == segment["frame"])
    return table.filter(pl.col("connection") == connection[0])


def _comparison(kind: str, reason: str, subject: dict[str, Any], cause: dict[str, Any]) -> list[str]:
    """What two packets have that the rule compares."""
    if kind in ("reordering", "reorder_event") and reason not in SEEN_LATE:
        return _heard(reason, subject, cause)
    if reason == "dsack":
        blocks = traffic.sack_blocks(cause)
        return [f"that ACK reports {blocks[0][0]}-{blocks[0][1]} a second time"] if blocks else []
    if reason == "eifel":
        return [f"timestamps: that ACK echoes {cause['tsecr']}, the resend carried {subject['tsval']}"]
    if reason == "too-early":
        after_s = (cause["time_ns"] - subject["time_ns"]) / 1e9
        if after_s < 0:
            before = words.seconds(-after_s)
            return [f"that ACK had passed here {before} before the resend, which was on its way already"]
        return [f"that ACK came {words.seconds(after_s)} after the resend"]
    if reason in ("ip-id", "copy"):
        return [f"IP identifications: {subject['ip_id']}, of frame {cause['frame']} {cause['ip_id']}"]
    if reason == "tsval":
        return [f"timestamps: {subject['tsval']}, of frame {cause['frame']} {cause['tsval']}"]
    return []


def _heard(reason: str, late: dict[str, Any], ack: dict[str, Any]) -> list[str]:
    """What the ACK says of a segment that came late."""
    blocks = [f"{left}-{right}" for left, right in traffic.sack_blocks(ack)]
    if reason == "dsack" and blocks:
        return [f"that ACK reports {blocks[0]} a second time: the resend was not needed, the late segment had come"]
    if reason == "eifel":
        return [f"timestamps: that ACK echoes {ack['tsecr']}, the late segment carried {late['tsval']}"]
    sacked = f", and SACKs {', '.join(blocks)}" if blocks else ""
    return [f"that ACK acknowledges the bytes below {ack['acked']}{sacked}"]


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 11th."""
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
