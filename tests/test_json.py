"""Is the document what it promises: every key, null where nothing can be said, never NaN?"""

from __future__ import annotations

import io
import json
import math
from csv import DictReader
from tempfile import SpooledTemporaryFile

import captures
import numpy as np
import polars as pl
import pytest
from captures import Transfer
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import tcpfit
from tcpfit.models import catalogue
from tcpfit.report import contract, csv, encoding
from tcpfit.schema import polars_schema

NUMBER = (int, float, type(None))

CAPTURE = {
    "path": str,
    "format": str,
    "link_types": list,
    "packets": int,
    "tcp_segments": int,
    "bytes": int,
    "start_time": NUMBER,
    "duration_s": NUMBER,
    "skipped": dict,
    "without_data": {"refused": int, "unanswered": int, "opened": int},
    "capture_loss": {"rate": NUMBER, "low": NUMBER, "high": NUMBER},
    "warnings": list,
    "flows": list,
}
COUNT = (int, type(None))
FLOW = {
    "id": int,
    "connection": int,
    "src": str,
    "src_port": int,
    "dst": str,
    "dst_port": int,
    "start_time": float,
    "duration_s": float,
    "vantage": {"position": str, "confidence": NUMBER, "fraction": NUMBER},
    "handshake": {
        "rtt_s": NUMBER,
        "mss_bytes": COUNT,
        "window_scale": COUNT,
        "sack_permitted": (bool, type(None)),
        "mptcp": (bool, type(None)),
        "timestamps": (bool, type(None)),
        "ecn": (bool, type(None)),
        "ecn_feedback": (str, type(None)),
    },
    "ending": {"how": str, "reset_frame": COUNT, "completeness": int},
    "congestion_control": {"family": str, "confidence": NUMBER},
    "counts": dict.fromkeys(
        (
            "data_segments sent_segments data_bytes unique_bytes acked_bytes retransmitted_segments lost_segments "
            "lost_upstream spurious_retransmissions loss_events fast_recoveries timeouts tail_loss_probes "
            "reorder_events reordered_segments duplicated_segments zero_window_episodes ce_segments ece_acks "
            "ace_marks mark_events cwr_segments missing_segments"
        ).split(),
        COUNT,
    )
    | {"timeout_sequences": list},
    "count_ranges": dict,
    "parameters": {
        name: {"value": NUMBER, "low": NUMBER, "high": NUMBER, "n": COUNT}
        for name in (
            "p p_indication q_tilde p_tfrc p_mark q m p_gb p_bg loss_run rtt rtt_min rtt_p95 rto p_to w w_max b d a_h r"
        ).split()
    },
    "observed": dict.fromkeys(["throughput_bps", "goodput_bps", "steady_goodput_bps", "transfer_time_s"], NUMBER),
    "models": list,
    "verdict": {"state": str, "models": list, "text": str},
    "diagnosis": {"primary": str, "text": str, "causes": list},
}
MODEL = {
    "name": str,
    "rank": COUNT,
    "predicted_bps": NUMBER,
    "predicted_time_s": NUMBER,
    "log_ratio": NUMBER,
    "log_ratio_low": NUMBER,
    "log_ratio_high": NUMBER,
    "applicable": bool,
    "reasons": list,
    "probability_best": NUMBER,
}


def assert_shape(expected, actual, place="document"):
    if isinstance(expected, dict):
        for key, kind in expected.items():
            assert key in actual, f"{place}.{key} is left out"
            assert_shape(kind, actual[key], f"{place}.{key}")
    else:
        assert isinstance(actual, expected), f"{place} is {actual!r}"


def assert_contract(document):
    assert document["schema"] == 1
    assert document["tcpfit"] == tcpfit.__version__
    for capture in document["captures"]:
        assert_shape(CAPTURE, capture, "capture")
        sizes = [flow["counts"]["data_bytes"] for flow in capture["flows"]]
        assert sorted(sizes, reverse=True) == sizes
        for flow in capture["flows"]:
            assert_shape(FLOW, flow, "flow")
            assert flow["vantage"]["position"] in ("sender", "receiver", "middle", "unknown")
            assert flow["congestion_control"]["family"] in ("reno", "cubic", "bbr", "unknown")
            assert flow["verdict"]["state"] in ("explained", "undecided", "insufficient", "none_applies")
            ranks = [model["rank"] for model in flow["models"] if model["rank"] is not None]
            assert list(range(1, len(ranks) + 1)) == ranks
            for model in flow["models"]:
                assert_shape(MODEL, model, "model")


@pytest.fixture
def analysis(tmp_path):
    path = tmp_path / "three.pcap"
    packets = Transfer(segments=400, lost=frozenset(range(50, 400, 37))).run()
    packets += Transfer(segments=3, sport=40001, start_s=0.2).run()
    packets += Transfer(segments=30, sport=40002, start_s=0.1, v6=True).run()
    path.write_bytes(captures.pcap(sorted(packets, key=lambda packet: packet.time_ns)))
    return tcpfit.analyze(path)


def test_contract(analysis):
    document = json.loads(contract.dumps(analysis.to_dict()))
    assert_contract(document)
    assert [400, 30, 3] == [flow["counts"]["unique_bytes"] // 1000 for flow in document["captures"][0]["flows"]]


def test_same_input_same_bytes(analysis):
    again = tcpfit.analyze(analysis.path)
    assert contract.dumps(analysis.to_dict()) == contract.dumps(again.to_dict())


def test_a_line_a_flow(analysis):
    flows = [json.loads(line) for line in contract.lines(analysis)]
    assert analysis.to_dict()["captures"][0]["flows"] == [
        {key: value for key, value in flow.items() if key not in ("schema", "capture")} for flow in flows
    ]
    assert {analysis.path} == {flow["capture"] for flow in flows}


def test_short_flows_have_the_models_of_a_transfer_time(analysis):
    """Of three segments; not of 400, nor of 30 with a pause of more than a tenth of the time. From what the flow itself
    shows, whatever else is in the capture."""
    flows = {flow["counts"]["unique_bytes"] // 1000: flow for flow in analysis.to_dict()["captures"][0]["flows"]}
    of_times = {name for name, model in catalogue().items() if model.predicts == "transfer-time"} - {"catnip"}
    found = {n: [model for model in flow["models"] if model["name"] in of_times] for n, flow in flows.items()}
    assert [[], []] == [found[400], found[30]]
    assert of_times == {model["name"] for model in found[3]}
    assert {None} == {model["rank"] for model in found[3]} == {model["predicted_bps"] for model in found[3]}
    known = [model for model in found[3] if model["applicable"]]
    assert {"cardwell-2000", "hysteresis"} <= {model["name"] for model in known}
    for model in known:  # held against the time that the sender saw, which may be a part of a round trip more
        off = np.log(model["predicted_time_s"] / flows[3]["observed"]["transfer_time_s"])
        assert off == pytest.approx(model["log_ratio"], abs=0.01)
        assert "`tcpfit pool` ranks it over many" in model["reasons"][0]
    (alone,) = analysis.select([flows[3]["id"]]).to_dict()["captures"][0]["flows"]
    assert flows[3]["models"] == alone["models"]


def test_csv_is_flat_and_full(analysis):
    text = "".join(csv.flow_texts(analysis))
    header, *lines = text.splitlines()
    assert 3 == len(lines)
    assert len(set(header.split(","))) == len(header.split(","))
    table = pl.read_csv(text.encode(), infer_schema_length=None)
    assert table["counts.unique_bytes"].to_list() == [400_000, 30_000, 3_000]
    assert {"p", "p.low", "best.name", "verdict", "diagnosis.primary"} <= set(table.columns)


def flattened(flow: dict) -> dict:
    """What the CSV says of a FLOW of the document."""
    plain = {key: value for key, value in flow.items() if not isinstance(value, (dict, list))}
    for key in ("vantage", "handshake", "ending", "congestion_control", "counts", "observed"):
        plain |= {f"{key}.{inner}": value for inner, value in flow[key].items()}
    for name, estimate in flow["parameters"].items():
        plain |= {name: estimate["value"], f"{name}.low": estimate["low"], f"{name}.high": estimate["high"]}
    low, high = flow["count_ranges"].get("lost_segments", [flow["counts"]["lost_segments"]] * 2)
    plain |= {"lost_segments.low": low, "lost_segments.high": high}
    best = next((model for model in flow["models"] if model["rank"] == 1), {})
    plain |= {f"best.{key}": best.get(key) for key in ("name", "predicted_bps", "predicted_time_s", "log_ratio")}
    plain |= {"verdict": flow["verdict"]["state"], "verdict.models": flow["verdict"]["models"]}
    diagnosis = flow["diagnosis"]
    plain |= {f"diagnosis.{key}": diagnosis[key] for key in ("primary", "who", "confidence", "text", "remedy")}
    main = next((cause for cause in diagnosis["causes"] if cause["cause"] == diagnosis["primary"]), {})
    plain |= {f"diagnosis.{key}": main.get(key) for key in ("time_share", "cost_bps")}
    return plain


def test_csv_says_what_the_document_says(analysis, monkeypatch):
    def cell(value):
        if isinstance(value, list):
            return " ".join(map(str, value))
        return "" if value is None else value

    def same(text, value):
        value = cell(value)
        if isinstance(value, (float, int)) and not isinstance(value, bool):
            return math.isclose(float(text), value, rel_tol=1e-9)  # sums depend on the portion in their last digit
        return text == (str(value).lower() if isinstance(value, bool) else value)

    monkeypatch.setattr("tcpfit.analysis.FLOWS_AT_A_TIME", 2)
    rows = list(DictReader(io.StringIO("".join(csv.flow_texts(analysis)))))
    flows = [flattened(flow) | {"capture": analysis.path} for flow in contract.flow_facts(analysis)]
    assert 3 == len(flows) == len(rows)
    for row, flow in zip(rows, flows, strict=True):
        assert set(flow) == set(row)
        assert [] == [key for key in flow if not same(row[key], flow[key])]


def test_select_keeps_numbers_and_estimates(analysis):
    flows = {flow["id"]: flow for flow in analysis.to_dict()["captures"][0]["flows"]}
    largest = analysis.largest()[0]
    (alone,) = analysis.select([largest]).to_dict()["captures"][0]["flows"]
    assert flows[largest]["counts"] == alone["counts"]
    assert flows[largest]["parameters"] == alone["parameters"]
    assert flows[largest]["models"] == alone["models"]
    assert 2 == analysis.select(min_segments=10).flows.height
    with pytest.raises(tcpfit.InvalidParameter, match="no flow 99"):
        analysis.select([99])


def test_what_is_said_of_the_capture_does_not_depend_on_the_flows_shown(tmp_path):
    """The capture missed data of one of its flows; the other is shown."""
    packets = Transfer(segments=40).run()
    packets.remove([packet for packet in packets if packet.wire_len > 500][20])
    path = tmp_path / "missing.pcap"
    path.write_bytes(captures.pcap(packets + Transfer(segments=90, sport=40001, start_s=9).run()))
    analysis = tcpfit.analyze(path)
    whole = contract.capture_facts(analysis)
    assert 0 < whole["capture_loss"]["rate"] < 0.02
    for flow in (0, 1):
        assert whole == contract.capture_facts(analysis.select([flow]))
        analysis.select([flow]).write_parquet(tmp_path / "saved")
        assert whole["capture_loss"] == contract.capture_facts(tcpfit.load(tmp_path / "saved"))["capture_loss"]


def test_parquet_is_whole_and_repeatable(analysis, tmp_path):
    paths = analysis.write_parquet(tmp_path / "out")
    again = analysis.write_parquet(tmp_path / "out")
    assert paths == again
    assert sorted(path.name for path in paths) == sorted(path.name for path in (tmp_path / "out").iterdir())
    assert pl.read_parquet(tmp_path / "out/flows.parquet").equals(analysis.flows)
    assert pl.read_parquet(tmp_path / "out/captures.parquet")["path"].to_list() == [analysis.path]


def test_failed_write_leaves_nothing(tmp_path):
    from tcpfit.analysis import AtomicFile

    target = tmp_path / "table"
    target.write_text("old")
    with pytest.raises(RuntimeError), AtomicFile(target) as partial:
        partial.write_text("half")
        raise RuntimeError
    assert ["table"] == [path.name for path in tmp_path.iterdir()]
    assert target.read_text() == "old"


def test_notebook_shows_flows_escaped(analysis):
    html = analysis._repr_html_()
    assert html.count("<tr>") == 4
    assert "10.0.0.1:40000" in html
    analysis.path = "<script>"
    assert "<script>" not in analysis._repr_html_()


def test_nan_becomes_null():
    table = pl.DataFrame({"flow": [1, 2, 3], "value": [math.nan, math.inf, 1.0]})
    assert [None, None, 1.0] == [row["value"] for row in contract.rows(table)]


COLUMNS = {
    "float": (pl.Float64(), st.none() | st.floats(-1e-3, 1e-3) | st.floats()),
    "count": (pl.UInt32(), st.none() | st.integers(0, 2**32 - 1)),
    "flag": (pl.Boolean(), st.none() | st.booleans()),
    "text": (pl.String(), st.none() | st.text('"\\/\n\0aµ€😀', max_size=5)),
    "texts": (pl.List(pl.String()), st.none() | st.lists(st.sampled_from(["", 'a "b"', "µ\n"]), max_size=3)),
    "plain": (pl.List(pl.String()), st.none() | st.lists(st.sampled_from(["", "a", "b c"]), max_size=3)),
    "gaps": (pl.List(pl.String()), st.none() | st.lists(st.none() | st.just("a"), max_size=3)),
    "numbers": (pl.List(pl.UInt32()), st.none() | st.lists(st.integers(0, 9), max_size=3)),
    "word": (pl.Enum(["a", "b"]), st.none() | st.sampled_from(["a", "b"])),
}


@given(st.lists(st.tuples(*(values for _, values in COLUMNS.values())), max_size=8))
def test_rows_as_text_are_the_rows(rows):
    table = pl.DataFrame(rows, schema={name: dtype for name, (dtype, _) in COLUMNS.items()}, orient="row")
    dicts = [contract.finite(dict(zip(COLUMNS, row, strict=True))) for row in rows]
    assert [contract.dumps(row) for row in dicts] == encoding.objects(table).to_list()


def test_text_of_a_flow_is_what_python_would_write(analysis):
    texts = list(contract.flow_texts(analysis))
    assert [contract.dumps(flow) for flow in contract.flow_facts(analysis)] == texts


def test_items_of_a_flow_stay_in_their_order():
    items = pl.DataFrame({"flow": [1, 3, 1, 1], "item": ["b", "d", "a", "c"]}, schema_overrides={"flow": pl.UInt32})
    flows = pl.DataFrame({"flow": [3, 2, 1]}, schema={"flow": pl.UInt32})
    assert ["[d]", "[]", "[b, a, c]"] == contract._listed(items, flows).to_list()
    assert ["{}", "{}", "{}"] == contract._listed(items.clear(), flows, "{}").to_list()


def timeouts(backoffs: list[int]) -> pl.DataFrame:
    schema = polars_schema("events")
    rows = [
        {"flow": 7, "time_ns": at, "kind": "timeout", "reason": "rto", "segments": backoff, "phase": "loss"}
        for at, backoff in enumerate(backoffs)
    ]
    return pl.DataFrame(rows, schema=schema)


def test_timeout_sequences():
    assert {} == contract.timeout_sequences(timeouts([]))
    assert {7: [2, 0, 1]} == contract.timeout_sequences(timeouts([0, 0, 1, 2, 0]))


@given(st.lists(st.integers(1, 6), max_size=20))
def test_timeout_sequences_count_every_series(lengths):
    backoffs = [backoff for length in lengths for backoff in range(length)]
    expected = [lengths.count(length) for length in range(1, max(lengths, default=0) + 1)]
    assert ({7: expected} if lengths else {}) == contract.timeout_sequences(timeouts(backoffs))


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_wilson_interval_holds_the_share(hits, more):
    share = contract.share(hits, hits + more)
    assert 0 <= share["low"] <= share["rate"] <= share["high"] <= 1


def test_wilson_interval_is_the_textbook_one():
    # 10 of 100, as in Wilson (1927), 95 %: 0.0552 to 0.1744
    share = contract.share(10, 100)
    assert pytest.approx((0.0552, 0.1744), abs=5e-5) == (share["low"], share["high"])
    assert {"rate": None, "low": None, "high": None} == contract.share(0, 0)


def test_text_of_a_document_is_the_document(analysis):
    described = analysis.to_dict()["captures"]
    for times in range(3):
        document = contract.Document(io.BytesIO())
        for _ in range(times):
            document.add(analysis)
        assert contract.envelope(described * times) == json.loads(b"".join(document.close()))


def test_document_waits_on_disk_when_it_is_long(analysis, monkeypatch):
    held = []

    def watched(_):
        for flow in ('"' + "x" * 1000 + '"',) * 50:
            held.append(0 if out._rolled else out.tell())
            yield flow

    monkeypatch.setattr(contract, "flow_texts", watched)
    with SpooledTemporaryFile(10_000) as out:
        contract.Document(out).add(analysis)
    assert 50 == len(held)
    assert max(held) < 12_000


def test_capture_that_fails_leaves_nothing_in_the_document(analysis, monkeypatch):
    document = contract.Document(io.BytesIO())
    document.add(analysis)
    with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr(contract, "flow_texts", lambda _: (str(1 // n) for n in (1, 0)))
        document.add(analysis)
    assert analysis.to_dict() == json.loads(b"".join(document.close()))


def test_flows_in_portions_are_the_flows(analysis, monkeypatch):
    def rounded():  # sums depend on the portion in their last digit
        return json.loads(contract.dumps(analysis.to_dict()), parse_float=lambda text: f"{float(text):.9g}")

    whole, ranked = rounded(), analysis.rank()
    monkeypatch.setattr("tcpfit.analysis.FLOWS_AT_A_TIME", 1)
    assert whole == rounded()
    for table, again in zip(ranked, analysis.rank(), strict=True):
        assert_frame_equal(table, again)
