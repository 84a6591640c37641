"""Does `tcpfit predict` parse what people write, agree with the library, and say which defaults it took?"""

from __future__ import annotations

import csv
import io
import json
import sys

import click
import numpy as np
import pytest
from tcpfit.cli.main import main
from tcpfit.cli.quantities import quantity
from test_cli import assert_sentence, tcpfit

from tcpfit import InvalidParameter
from tcpfit.models import Model, Parameter, catalogue, get
from tcpfit.models.pftk_full import PFTKFull
from tcpfit.report import figures, predicted


def predict(capsys, *arguments):
    main.main(["predict", *arguments], standalone_mode=False)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("100ms", "s", 0.1),
        ("100 ms", "s", 0.1),
        ("0.1", "s", 0.1),
        ("250us", "s", 250e-6),
        ("250µs", "s", 250e-6),
        ("2min", "s", 120),
        ("1%", "1", 0.01),
        ("1e-4", "1", 1e-4),
        (".5", "1", 0.5),
        ("20", "segments", 20),
        ("20segments", "segments", 20),
        ("14600B", "segments", 10),
        ("1460kB", "segments", 1000),
        ("1460KB", "segments", 1000),
        ("1MB", "segments", 1e6 / 1460),
        ("1MiB", "segments", 2**20 / 1460),
        ("64KiB", "segments", 65536 / 1460),
        ("none", "segments", np.inf),
        ("inf", "segments", np.inf),
        ("11.68Mbit/s", "segments/s", 1000),
        ("1segments/s", "segments/s", 1),
        ("0.4", "segments/s^3", 0.4),
    ],
)
def test_quantities(text, unit, value):
    assert value == pytest.approx(quantity(text, unit, 1460))


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("abc", "s"),
        ("", "s"),
        ("100", "x"),
        ("1ms", "1"),
        ("100MB", "s"),
        ("1s", "segments"),
        ("1%", "s"),
        ("nan", "1"),
        ("1e", "1"),
        ("10 Mbit/s", "segments"),
        ("1ms2", "s"),
    ],
)
def test_what_is_no_such_quantity_is_refused(text, unit):
    if (text, unit) == ("100", "x"):
        assert 100 == quantity(text, unit, 1460)
        return
    with pytest.raises(click.UsageError, match="is not a"):
        quantity(text, unit, 1460)


def test_the_table_fits_and_names_its_defaults():
    run = tcpfit("predict", "--p", "0.01", "--rtt", "100ms")
    assert (0, "") == (run.returncode, run.stderr)
    assert max(map(len, run.stdout.splitlines())) <= 80
    flat = " ".join(run.stdout.split())
    assert "p 0.01, rtt 100 ms, MSS 1460 B (default)" in flat
    assert "mathis throughput 1.43 122" in flat
    assert "rto was not given: 400 ms, max(200 ms, 4 RTT)" in flat
    assert "q was not given: 0.01, p: losses are independent" in flat
    assert "b was not given: 2, the default of pftk-simple, pftk-approx" in flat
    assert "reordering-goodput: needs w_max (limit of the congestion window), a_h" in flat
    assert "p is taken for loss events by mathis" in flat
    assert "; for loss indications by pftk-simple" in flat


def test_numbers_are_the_library_s(capsys):
    arguments = (
        "--p 1% --rtt 80ms --rto 300ms --b 1 --w-max 64KiB --q 5% --mss 1448 --set a_h=2s --set d=5 --format json"
    )
    document = json.loads(predict(capsys, *arguments.split()))
    values = {"p": 0.01, "rtt": 0.08, "rto": 0.3, "b": 1.0, "w_max": 65536 / 1448, "q": 0.05, "a_h": 2.0, "d": 5.0}
    assert set(catalogue()) >= {answer["model"] for answer in document["models"]}
    for answer in document["models"]:
        model = get(answer["model"])
        if model.predicts != "throughput" or answer["reason"]:
            continue
        known = {name: value for name, value in values.items() if model._takes(name)}
        rate = float(model.predict(**known))
        assert rate == pytest.approx(answer["rate_segments_per_s"])
        assert rate * 1448 * 8 == pytest.approx(answer["rate_bps"])
        assert {answer["origin"][name] for name in known} == {"given"}
    assert document["mss_bytes"] == 1448


def test_one_model_with_a_convention(capsys):
    text = predict(
        capsys, *"--model pftk-full --p 2% --rtt 100ms --rto 1s --set variant=throughput --format json".split()
    )
    (answer,) = json.loads(text)["models"]
    expected = PFTKFull(variant="throughput").predict(p=0.02, rtt=0.1, rto=1.0)
    assert float(expected) == pytest.approx(answer["rate_segments_per_s"])
    assert answer["quantity"] == "throughput"


def test_a_convention_goes_to_the_models_that_know_its_value(capsys):
    document = json.loads(predict(capsys, *"--p 2% --rtt 100ms --set variant=exact --format json".split()))
    of = {answer["model"]: answer for answer in document["models"]}
    assert of["pftk-simple"]["rate_segments_per_s"] == pytest.approx(
        float(get("pftk-simple").predict(p=0.02, rtt=0.1, variant="exact"))
    )
    assert of["pftk-full"]["quantity"] == "send-rate"


def test_a_sweep_is_the_library_s(capsys):
    text = predict(
        capsys, *"--model mathis --model pftk-full --rtt 100ms --sweep p=1e-4:0.1:log:7 --format csv".split()
    )
    rows = list(csv.DictReader(io.StringIO(text)))
    assert 14 == len(rows)
    p = np.geomspace(1e-4, 0.1, 7)
    np.testing.assert_allclose([float(row["p"]) for row in rows[:7]], p)
    expected = get("pftk-full").predict(p=p, rtt=0.1, rto=0.4)
    np.testing.assert_allclose([float(row["rate_segments_per_s"]) for row in rows[7:]], expected)


def test_a_default_follows_the_sweep(capsys):
    arguments = "--model pftk-full --p 1% --sweep rtt=10ms:1s:log:5 --format json"
    (answer,) = json.loads(predict(capsys, *arguments.split()))["models"]
    np.testing.assert_allclose(answer["parameters"]["rto"], np.maximum(0.2, 4 * np.geomspace(0.01, 1, 5)))
    assert answer["origin"]["rto"] == "default of tcpfit"


def test_the_table_of_a_sweep_fits(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = predict(capsys, *"--rtt 100ms --sweep p=1e-4:0.1:50".split())
    assert max(map(len, text.splitlines())) <= 80
    assert "20 of 50 values; --format csv has all" in text
    headings = " ".join(line for line in text.splitlines() if line.lstrip().startswith("p  "))
    assert all(name in headings for name in catalogue() if get(name).predicts == "throughput" and name[:4] == "pftk")


class Latency(Model):
    """A handshake and size/window round trips."""

    name = "latency"
    title = "window a round trip"
    paper = "nobody"
    predicts = "transfer-time"
    p_definition = None
    parameters = (
        Parameter("segments", "segments", "size of the transfer", column="segments", low=1.0),
        Parameter("rtt", "s", "round-trip time", column="rtt", positive=True),
    )
    assumptions = ()
    fittable = {}

    def _time(self, **a):
        return a["rtt"] * (1 + a["segments"] / 10)


def test_transfer_times_beside_rates():
    models = [Latency(), get("mathis")]
    answer = predicted.predict(models, {"rtt": 0.1, "p": 0.01}, size=45.0)
    latency, mathis = answer.models
    assert latency.time_s == pytest.approx(0.55)
    assert latency.rate == pytest.approx(45 / 0.55)
    assert mathis.time_s == pytest.approx(45 / mathis.rate)
    (lacking, _) = predicted.predict(models, {"rtt": 0.1, "p": 0.01}).models
    assert lacking.reasons == ["needs segments (size of the transfer)"]
    sweep = predicted.Sweep("size", np.array([10.0, 20.0]))
    (swept,) = predicted.predict([Latency()], {"rtt": 0.1}, sweep=sweep).models
    assert list(swept.time_s) == pytest.approx([0.2, 0.3])


def test_a_size_in_bytes_is_whole_segments(capsys):
    document = json.loads(predict(capsys, *"--p 1% --rtt 100ms --size 64KB --format json".split()))
    assert document["size_segments"] == 44
    assert document["models"][0]["time_s"] == pytest.approx(44 / document["models"][0]["rate_segments_per_s"])


@pytest.mark.parametrize(
    "arguments",
    ["--p 1% --rtt 1e9s --b 1e-3", "--rtt 100ms --p 1e-300 --size 1e30B", "--p 1 --rtt 1ns --w-max none --set p_to=1"],
)
@pytest.mark.filterwarnings("error")
def test_extremes_are_answered(capsys, arguments):
    for form in ("table", "json", "csv"):
        assert predict(capsys, *arguments.split(), "--format", form)


def test_what_has_no_number_says_why(capsys):
    text = " ".join(
        predict(capsys, *"--model mathis --model hysteresis --p 0.97 --rtt 100ms --size 64KB".split()).split()
    )
    assert "hysteresis: outside its domain: p is 0.97, not 0 to 0.95" in text
    text = " ".join(predict(capsys, *"--model mathis --p 0 --rtt 100ms".split()).split())
    assert "mathis: no limit: infinite" in text
    (answer,) = json.loads(predict(capsys, *"--model mathis --p 0 --rtt 0.1 --format json".split()))["models"]
    assert answer["rate_bps"] is None and answer["reason"] == "no limit: infinite"
    text = predict(capsys, *"--model cardwell-2000 --p 0.7 --rtt 100ms --size 10segments".split())
    assert "cardwell-2000: infinite: the transfer never ends" in text


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("", ["give what is known of the path"]),
        ("--model vegas --p 1%", ["There is no model 'vegas'"]),
        ("--p abc --rtt 1s", ["'abc' is not a number; write 0.01 or 1%"]),
        ("--rtt 100MB --p 1%", ["'100MB' is not a time; write 100ms"]),
        ("--model mathis --rto 1s", ["mathis takes no 'rto'; known are b, losses, p, rtt"]),
        ("--p 1% --set nothing=1", ["no model takes 'nothing'"]),
        ("--p 1% --set nothing=much", ["no model takes 'nothing'"]),
        ("--p 1% --set =1", ["--set =1: write NAME=VALUE"]),
        ("--p 1% --rtt 1s --set p_to=often", ["p_to: 'often' is not a number"]),
        ("--p 1% --rtt 1s --set p=2%", ["--set p=2%: p is given already"]),
        ("--p 1% --set variant=send --set variant=send", ["--set variant=send: variant is given already"]),
        ("--p 1% --set nothing", ["--set nothing: write NAME=VALUE"]),
        ("--p 1% --set variant=best", ["variant is one of leading, exact"]),
        ("--p 1% --set free=b", ["no model has a convention 'free'"]),
        ("--p 1% --rtt 1s --q 1% --set q_from=homogeneous", ["no model takes 'q'"]),
        ("--p 2 --rtt 100ms", ["p must be at least 0 and at most 1, got 2"]),
        ("--p 1% --rtt 0s", ["rtt must be at least 1e-09 and at most 1e+09, got 0"]),
        ("--p 1% --size 64000", ["'64000' has no unit; write 64000B for bytes or 64000segments"]),
        ("--p 1% --size 0B", ["a transfer has at least a byte"]),
        ("--p 1% --size none", ["a transfer has at least a byte"]),
        ("--p 1% --mss 0", ["a segment has 1 to 65535 bytes"]),
        ("--p 1% --mss 100%", ["'100%' is not a number of bytes", "1460B"]),
        ("--p 1% --mss B", ["'B' is not a number of bytes"]),
        ("--sweep p=0.1:0.01", ["FROM has to be below TO"]),
        ("--sweep p=0:0.1:log", ["a logarithmic sweep starts above 0"]),
        ("--sweep p=0:0.1:1", ["N has to be 2 to 10000"]),
        ("--sweep p", ["write NAME=FROM:TO"]),
        ("--sweep x=1:2", ["no model takes 'x'"]),
        ("--p 1% --sweep p=0.1:0.2", ["p is swept, so it cannot be given as well"]),
        ("--p 1% --rtt 1s --plot out.gif", ["has to end in .html, .svg, .png"]),
        ("--p 1% --plot out.svg", ["there is nothing to draw"]),
        ("--p 1% --rtt 1s --plot /nowhere/at/all.svg", ["/nowhere/at/all.svg", "No such file or directory"]),
    ],
)
def test_bad_arguments_are_sentences(arguments, parts):
    if "nothing to draw" in parts[0] or "/nowhere" in parts[0]:
        pytest.importorskip("altair")
        pytest.importorskip("vl_convert")
    assert_sentence(tcpfit("predict", *arguments.split()), 2, *parts)


def drawn(tmp_path, name, *arguments):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    path = tmp_path / name
    run = tcpfit("predict", *arguments, "--plot", path)
    assert (0, "") == (run.returncode, run.stderr)
    assert [path] == list(tmp_path.iterdir()), "nothing is left beside it"
    return path.read_bytes()


def test_svg_has_every_model(tmp_path):
    text = drawn(tmp_path, "rates.svg", "--rtt", "100ms", "--sweep", "p=1e-4:0.1:log").decode()
    assert text.startswith("<svg")
    assert all(f">{name}<" in text for name in ("mathis", "pftk-full", "newreno-full", "sikdar-sack"))
    assert "rtt 100 ms" in text


def test_html_needs_no_network(tmp_path):
    text = drawn(tmp_path, "rates.html", "--rtt", "100ms", "--p", "1%").decode()
    assert "mathis" in text
    assert "<script src" not in text and "cdn." not in text


def test_png_is_an_image(tmp_path):
    assert drawn(tmp_path, "rates.PNG", "--rtt", "100ms", "--p", "1%").startswith(b"\x89PNG")


def test_times_have_a_panel_of_their_own():
    pytest.importorskip("altair")
    answer = predicted.predict([Latency(), get("mathis")], {"rtt": 0.1, "p": 0.01}, size=45.0)
    spec = figures.predictions(answer).to_dict()
    assert ["Mbit/s", "transfer time (s)"] == sorted(part["encoding"]["x"]["title"] for part in spec["vconcat"])


def test_without_altair_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    answer = predicted.predict([get("mathis")], {"rtt": 0.1, "p": 0.01})
    with pytest.raises(InvalidParameter, match=r"pip install 'tcpfit\[plot\]'"):
        figures.predictions(answer)


def test_a_default_that_some_models_do_not_use_names_those_that_do():
    run = tcpfit("predict", "--p", "1%", "--rtt", "10ms", "--model", "tfrc", "--model", "pftk-approx")
    assert "simplifies it (pftk-approx)" in " ".join(run.stdout.split())


def test_a_rate_without_limit_gives_no_time():
    path = ("--p", "0", "--rtt", "100ms", "--w-max", "10", "--size", "100segments")
    run = tcpfit("predict", *path, "--model", "mathis", "--model", "padhye-short")  # of which one has a time
    row = next(line for line in run.stdout.splitlines() if line.startswith("  mathis  "))
    assert ["-", "-", "-"] == row.split()[-3:]
