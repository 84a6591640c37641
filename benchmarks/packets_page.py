"""docs/packets.md: what was found packet by packet, as tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from importlib.metadata import version as distribution

from packets_peers import TCPFIT, TCPTRACE, TSHARK, absent, version
from packets_truth import ACCEPTED, ARRIVED, LOST, NOTHING, Found

SHOWN = 4  # frames named of a class of misses
TARGETS = {"made": 0.97, "wrong": 0.005, "fate": 0.99, "cause": 0.98}

HEAD = """# Packet by packet

Made by `python benchmarks/packets.py --markdown docs/packets.md` with tcpfit {tcpfit}; do not edit. {programs}

Captures of {scenarios} scenarios, each taken at both ends: transfers between real kernels over an emulated path that
noted every packet it dropped, held back or copied, and simulator runs. [Accuracy](accuracy.md) compares their counts;
here every packet is compared. Nothing was tuned for this page.

## Definitions

- A **transmission** is a data segment that left the sender; a super-segment counts as the segments that the wire
  carried. It is *lost* if the path's list says that it was dropped. What left the sender and is neither dropped nor
  seen at the receiver was under way when the capture ended; it counts as not lost.
- The capture at the receiver is matched with the transmissions by ports, sequence number and IP identification (over
  IPv6, which has none, by the order of arrival of the copies of a segment). What arrives a second time is a *copy by
  the path*.
- **At the receiver** the question is what a segment is that begins below the highest sequence number that has come. A
  *late original* was sent once and overtaken: right is reordering. A *retransmission* carries bytes that had been sent
  before: right is retransmission. A *late retransmission* was also overtaken by something sent after it: either word is
  right. Of a copy by the path only "copy" is right. A decision is *made* if there is a word, *wrong* if it is not the
  right one; two words that contradict each other are wrong. A word about an original that came in order, of which
  nobody asked, is *stray*; strays count as wrong in the first table.
- **At the sender** the question is whether a transmission was lost. *In question* are the transmissions whose bytes
  were sent more than once, or that were lost; the others nobody doubts.
- **In the middle** are captures inside the path, of the transfers that have one, before or behind what is lost at
  random, and behind the queue. What passes there is matched as at the receiver.
- **Losses seen from the receiver** or the middle: as the transmission may not be in the capture, losses are counted by
  segment: how many transmissions of it were lost, and how many a program says. What is too few is missed, what is too
  many invented.
- **Causes**: expiries of the retransmission timer, tail loss probes and entries into fast recovery, from the kernel's
  tracepoints (they agree with its counters) or from the simulator. An event that is said and one that happened are
  paired if they are at most a round trip apart (the mean smoothed one of the flow), nearest first, each in one pair at
  most. At the receiver an event is put at the time when it can show there: as much later as the next transmission that
  arrived was under way. Where none arrived any more it leaves no trace there and is not asked for; nor is a timer of
  the first SYN, before which nothing had come. *Precision* is the share of the said events that are in a pair,
  *recall* that of the true ones. Fast retransmits of Tahoe, which has no fast recovery, are left out.
- **tshark** flags packets (`tcp.analysis.*`). Retransmission, fast and spurious retransmission are read as
  retransmission, out-of-order as reordering; it has no word for a copy. At the sender its flags are read thus: a
  transmission was lost if the next one of its bytes is flagged retransmission or fast retransmission, and not spurious.
  It often calls a quick retransmission out-of-order, which at a sender cannot be: a second row reads that as
  retransmission. `lost_segment` is read as: every segment of the hole was lost. Of causes it names fast retransmission
  only; the first in a round trip is read as an entry into fast recovery.
- **tcptrace** has counts a flow (`-l`: "rexmt data pkts", "outoforder pkts") and says nothing of a packet. They are
  compared with the retransmissions sent and with the late segments.
"""

SURE = """What the events' `confidence` is worth: how many of those said with it are so. Losses are counted by
transmission at the sender and by segment at the receiver, where those that are too many are taken to be the least
sure ones."""


def page(found: Found, scenarios: int) -> str:
    """All tables, as Markdown."""
    missing = [name for name in (TSHARK, TCPTRACE) if absent(name)]
    said = [f"`{name}` {version(name)}" for name in (TSHARK, TCPTRACE) if name not in missing]
    programs = f"Beside it: {', '.join(said)}." if said else ""
    if missing:
        programs += f" Not installed and left out: {', '.join(missing)}."
    sections = [
        HEAD.format(tcpfit=distribution("tcpfit"), scenarios=scenarios, programs=programs.strip()),
        summary(found),
        receiver_tables(found),
        sender_tables(found),
        segment_table(found),
        cause_table(found),
        sure_table(found),
        count_table(found),
        miss_tables(found),
    ]
    if found.doubts:
        lines = "\n".join(f"- {doubt}" for doubt in found.doubts)
        sections.append(f"## Where the truth is not whole\n\n{lines}\n")
    return "\n".join(sections)


def share(part: float, whole: float) -> str:
    """Per cent, in the figures that tell 99.9 from 99.99."""
    return f"{part / whole:.2%}" if whole else "-"


def made_and_wrong(counts: Counter[tuple[str, str]]) -> tuple[int, int, int]:
    """Segments asked about, words, wrong words."""
    made = {key: number for key, number in counts.items() if key[1] != NOTHING}
    wrong = sum(number for (true, word), number in made.items() if word not in ACCEPTED[true])
    return counts.total(), sum(made.values()), wrong


def right_fates(counts: Counter[tuple[str, str, str]], kinds: Callable[[str], bool]) -> tuple[int, int]:
    """Transmissions asked about, and right answers."""
    of = {key: number for key, number in counts.items() if kinds(key[0])}
    return sum(of.values()), sum(number for (_, true, word), number in of.items() if true == word)


def everyone(_: str) -> bool:
    return True


def in_question(kind: str) -> bool:
    return kind != "sent once, arrived"


def summary(found: Found) -> str:
    """tcpfit against the targets."""
    table: list[tuple[str, ...]] = [("question", "asked", "figure", "target", "tcpfit", "reached")]

    def line(question: str, asked: int, figure: str, value: float, target: float, most: bool = False) -> None:
        reached = value <= target if most else value >= target
        bound = f"{'<=' if most else '>='} {target:.1%}"
        table.append((question, f"{asked:,}", figure, bound, f"{value:.2%}", "yes" if reached else "no"))

    asked, made, wrong = made_and_wrong(found.receiver[TCPFIT])
    if asked:
        line("reordering or retransmission, at the receiver", asked, "made", made / asked, TARGETS["made"])
        stray = found.in_order[TCPFIT].total()
        line("", asked + stray, "wrong", (wrong + stray) / (asked + stray), TARGETS["wrong"], most=True)
    for label, kinds in (("lost or not, at the sender", everyone), ("the same, in question", in_question)):
        asked, right = right_fates(found.sender[TCPFIT], kinds)
        if asked:
            line(label, asked, "right", right / asked, TARGETS["fate"])
    for (flows, cause, place, program), counter in sorted(found.causes.items()):
        alone = found.causes["one flow", cause, place, program]
        if program == TCPFIT and (flows == "one flow" or not alone["true"]):
            of = "" if flows == "one flow" else f", {flows}"
            for figure, whole in (("precision", counter["said"]), ("recall", counter["true"])):
                if whole:
                    line(f"{cause}, at the {place}{of}", whole, figure, counter["paired"] / whole, TARGETS["cause"])
    return f"## Targets\n\n{aligned(table, left=1)}\n"


def receiver_tables(found: Found) -> str:
    table: list[tuple[str, ...]] = [("program", "asked", "made", "wrong", "right", "stray")]
    for program, counts in found.receiver.items():
        asked, made, wrong = made_and_wrong(counts)
        stray = str(found.in_order[program].total())
        row = (program, f"{asked:,}", share(made, asked), share(wrong, asked), share(made - wrong, asked), stray)
        table.append(row)
    text = f"## At the receiver: reordering or retransmission\n\n{aligned(table)}\n"
    for program, counts in found.receiver.items():
        columns = sorted({word for _, word in counts})
        rows: list[tuple[str, ...]] = [("truth", *columns)]
        rows += [(true, *(f"{counts[true, word]:,}" for word in columns)) for true in ACCEPTED]
        text += f"\n{program} says:\n\n{aligned(rows)}\n"
    return text


def sender_tables(found: Found) -> str:
    table: list[tuple[str, ...]] = [("program", "right of all", "right in question", "lost: precision", "recall")]
    for program, counts in found.sender.items():
        both = [
            share(right, asked) for asked, right in (right_fates(counts, kinds) for kinds in (everyone, in_question))
        ]
        hit = sum(number for (_, true, word), number in counts.items() if true == word == LOST)
        said = sum(number for (_, _, word), number in counts.items() if word == LOST)
        true = sum(number for (_, truth, _), number in counts.items() if truth == LOST)
        table.append((program, *both, share(hit, said), share(hit, true)))
    text = f"## At the sender: lost or not\n\n{aligned(table)}\n"
    for program, counts in found.sender.items():
        rows: list[tuple[str, ...]] = [("transmission", "truth", LOST, ARRIVED)]
        for kind, truth in sorted({(kind, truth) for kind, truth, _ in counts}):
            rows.append((kind, truth, *(f"{counts[kind, truth, word]:,}" for word in (LOST, ARRIVED))))
        text += f"\n{program} says:\n\n{aligned(rows, left=2)}\n"
    return text


def segment_table(found: Found) -> str:
    table: list[tuple[str, ...]] = [("capture", "program", "lost", "missed", "invented", "precision", "recall")]
    for (place, program), counter in sorted(found.segments.items()):
        hit = counter["true"] - counter["missed"]
        numbers = [f"{counter[key]:,}" for key in ("true", "missed", "invented")]
        table.append((place, program, *numbers, share(hit, hit + counter["invented"]), share(hit, counter["true"])))
    return f"## Losses seen from the receiver and the middle\n\n{aligned(table, left=2)}\n"


def cause_table(found: Found) -> str:
    table: list[tuple[str, ...]] = [
        ("flows", "cause", "capture", "program", "happened", "said", "paired", "precision", "recall")
    ]
    for (flows, cause, place, program), counter in sorted(found.causes.items()):
        numbers = [f"{counter[key]:,}" for key in ("true", "said", "paired")]
        figures = share(counter["paired"], counter["said"]), share(counter["paired"], counter["true"])
        table.append((flows, cause, place, program, *numbers, *figures))
    return f"## Causes\n\n{aligned(table, left=4)}\n"


def sure_table(found: Found) -> str:
    """What a confidence is worth."""
    table: list[tuple[str, ...]] = [("event", "capture", "reason", "confidence", "said", "right", "share")]
    for (kind, place, reason, confidence), counter in sorted(found.sure.items()):
        said, right = counter["said"], counter["right"]
        table.append((kind, place, reason, f"{confidence:g}", f"{said:,}", f"{right:,}", share(right, said)))
    return f"## How sure\n\n{SURE}\n\n{aligned(table, left=3)}\n"


def count_table(found: Found) -> str:
    table: list[tuple[str, ...]] = [
        ("count", "program", "captures", "exact", "within 5 % or 1", "true", "said", "sum of differences")
    ]
    for (what, program), counter in sorted(found.counts.items()):
        keys = ("captures", "right", "near", "true", "said", "off")
        table.append((what, program, *(f"{counter[key]:,}" for key in keys)))
    note = "Late segments are all that arrived after something sent later, late retransmissions included."
    return f"## Counts a capture\n\n{note}\n\n{aligned(table, left=2)}\n"


def miss_tables(found: Found) -> str:
    """What tcpfit has wrong, the scenario with the most first."""
    text = "## What tcpfit has wrong\n\nFrames are those of the capture; where there is none, what is known instead.\n"
    questions: dict[str, Counter[tuple[str, str, str, str]]] = defaultdict(Counter)
    examples: dict[tuple[str, tuple[str, str, str, str]], list[str]] = defaultdict(list)
    for miss in found.misses:
        key = (miss.scenario, miss.place, miss.true, miss.said)
        questions[miss.question][key] += 1
        example = f"{miss.frame}" if miss.frame is not None else miss.note
        if len(examples[miss.question, key]) < SHOWN and example not in examples[miss.question, key]:
            examples[miss.question, key].append(example)
    for question, counter in questions.items():
        table: list[tuple[str, ...]] = [("misses", "scenario", "capture", "truth", "tcpfit says", "frames")]
        for key, number in sorted(counter.items(), key=lambda item: (-item[1], item[0])):
            of = examples[question, key]
            table.append((str(number), *key, ", ".join(of) + (", ..." if number > len(of) else "")))
        text += f"\n### {question.capitalize()}: {counter.total()}\n\n{aligned(table, left=6)}\n"
    return text


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Markdown: the first columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if n < left else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("| " + " | ".join(cells) + " |")
    rule = ["-" * width if n < left else "-" * (width - 1) + ":" for n, width in enumerate(widths)]
    return "\n".join([lines[0], "| " + " | ".join(rule) + " |", *lines[1:]])
