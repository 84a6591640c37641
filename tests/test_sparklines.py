"""Do the lines of a flow over time show its rounds, and do they fit a terminal?"""

from __future__ import annotations

import io

import polars as pl
import pytest

from tcpfit.report import sparklines, terminal
from tcpfit.schema import polars_schema

FLOW = {"flow": 3, "first_ns": 10**18, "last_ns": 10**18 + 38 * 10**9}


def rounds(count: int, **columns) -> pl.DataFrame:
    """Rounds of 38 s together, one after the other, of flow 3; those of another flow are around them."""
    length = 38 * 10**9 // count
    row = {"acked_bytes": 1000, "flight": 2.0, "rtt_s": 0.1, "lost_segments": 0, "acks": 1}
    rows = [
        {"flow": flow, "start_ns": 10**18 + length * n, "end_ns": 10**18 + length * (n + 1)}
        | {name: columns.get(name, [value] * count)[n] if flow == 3 else 7 * value for name, value in row.items()}
        for flow in (2, 3, 4)
        for n in range(count)
    ]
    return pl.DataFrame(rows, schema_overrides=dict(polars_schema("rounds")))


def drawn(table: pl.DataFrame) -> dict[str, sparklines.Line]:
    return {line.label: line for line in sparklines.course(FLOW, table)}


def test_each_round_is_a_level():
    """38 rounds of a second each: a place a round."""
    growing = drawn(rounds(38, acked_bytes=[1000 * n for n in range(38)]))["rate"]
    assert "".join(sorted(growing.drawing)) == growing.drawing
    assert ("▁", "█") == (growing.drawing[0], growing.drawing[-1])
    assert "0 to 296 kb/s" == growing.caption  # 37,000 bytes in the last second


def test_what_does_not_change_is_flat():
    lines = drawn(rounds(19))
    assert {"rate", "flight", "RTT"} == set(lines)
    assert {"█" * sparklines.PLACES} == {line.drawing for line in lines.values()}
    assert "0 to 4.00 kb/s" == lines["rate"].caption  # 1000 bytes in each 2 s
    assert "100 ms to 100 ms" == lines["RTT"].caption


def test_what_is_not_known_is_blank():
    samples = [0.1] * 19 + [None] * 19
    assert "█" * 19 + " " * 19 == drawn(rounds(38, rtt_s=samples))["RTT"].drawing


def test_losses_stand_where_they_were():
    lost = [0] * 38
    lost[4], lost[9] = 2, 4
    line = drawn(rounds(38, lost_segments=lost))["lost"]
    assert {4: "▅", 9: "█"} == {place: level for place, level in enumerate(line.drawing) if level != " "}
    assert "0 to 4 in 1.00 s" == line.caption


def test_few_rounds_have_no_course():
    assert [] == sparklines.course(FLOW, rounds(sparklines.LEAST_ROUNDS - 1))
    assert [] == sparklines.course(FLOW | {"last_ns": FLOW["first_ns"]}, rounds(38))


@pytest.mark.parametrize(
    "causes", [[("loss", 0.75), ("timeout", 0.25)], [("a", 0.4), ("b", 0.3), ("c", 0.2), ("d", 0.1)]]
)
def test_shares_fill_the_bar(causes):
    line = sparklines.shares(causes)
    assert line is not None
    assert sparklines.PLACES == len(line.drawing)
    assert [round(sparklines.PLACES * share) for _, share in causes] == [
        pytest.approx(line.drawing.count(fill), abs=1) for fill in sparklines.FILLS[: len(causes)]
    ]
    assert len(causes) == len(line.caption.splitlines())


def test_no_shares_no_bar():
    assert sparklines.shares([]) is None
    assert sparklines.shares([("unknown", 0.001)]) is None


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_it_fits_80_columns_of_any_encoding(encoding, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    terminal.course(terminal.console(file), FLOW, rounds(38), [("receiver-window-limited", 0.9), ("loss-limited", 0.1)])
    file.flush()
    file.seek(0)
    lines = file.read().splitlines()
    assert 6 == len(lines)
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)


def test_a_round_trip_stands_where_it_was_measured_and_counts_as_often():
    """Rounds of nine ACKs and one of a delayed ACK; after the tenth round a pause of 19 s."""
    each = pl.DataFrame({"n": [n for _ in range(3) for n in range(38)]})["n"]
    paused = drawn(rounds(38, rtt_s=[0.1] * 38).filter(~each.is_between(10, 28)))["RTT"]
    assert "█" * 10 + " " * 19 + "█" * 9 == paused.drawing
    acks = [1 if n % 10 == 9 else 9 for n in range(380)]
    delayed = drawn(rounds(380, rtt_s=[0.9 if few == 1 else 0.1 for few in acks], acks=acks))["RTT"]
    assert "110 ms to 110 ms" == delayed.caption  # (9 * 9 * 0.1 + 0.9) / 82


def test_a_last_round_without_length_hides_no_round_trip():
    table = rounds(38)
    last = table["start_ns"].max()
    flow = FLOW | {"last_ns": last}
    table = table.with_columns(end_ns=pl.when(pl.col("start_ns") == last).then("start_ns").otherwise("end_ns"))
    lines = {line.label: line for line in sparklines.course(flow, table)}
    assert "100 ms to 100 ms" == lines["RTT"].caption


def test_what_a_round_brought_after_the_last_data_is_not_crowded_before_it():
    """Its last second's bytes come over that second, of which a tenth lies before the flow's last packet."""
    flow = FLOW | {"last_ns": FLOW["last_ns"] - 900_000_000}
    line = next(line for line in sparklines.course(flow, rounds(38)) if line.label == "rate")
    assert "0 to 8.00 kb/s" == line.caption
