"""Does the page of a corpus work in a browser, and can everybody read it?"""

from __future__ import annotations

import json
from importlib import resources

import pytest
from corpora import SAMPLES
from test_report_browser import RUN_AXE, browser, pytestmark

from tcpfit import corpus
from tcpfit.corpus.summary import overview
from tcpfit.report.corpus import page

__all__ = ["browser", "pytestmark"]

UNDRAWN = "return [...document.querySelectorAll('.chart')].filter((each) => !each.querySelector('canvas, svg')).length"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The page of some samples of two sites, with something that was not analysed."""
    folder = tmp_path_factory.mktemp("corpus")
    samples = [
        SAMPLES / f"{name}.pcap.gz" for name in ("slow-reader", "timeouts", "newreno-loss", "reordering-receiver")
    ]
    rows = [f"{path},{'AB'[number % 2]}" for number, path in enumerate(samples)]
    (folder / "list.csv").write_text("\n".join(["path,site", *rows, f"{folder}/<img src=x>.pcap,A"]))
    (folder / "<img src=x>.pcap").write_text("words")
    corpus.run([folder / "list.csv"], folder / "out", workers=1)
    data = corpus.open(folder / "out")
    (folder / "page.html").write_text(page.render(overview(data, by="site").to_dict()))
    return folder / "page.html"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_drawn_and_accessible(browser, path, theme):
    pytest.importorskip("axe_core_python", reason="axe-core is not installed")
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get_log("browser"), browser.get_log("performance")
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    )
    browser.get(path.as_uri())
    for chart in browser.find_elements("css selector", ".chart"):
        browser.execute_script("arguments[0].scrollIntoView()", chart)
        WebDriverWait(browser, 120).until(lambda _, chart=chart: chart.find_elements("css selector", "canvas, svg"))
    assert 0 == browser.execute_script(UNDRAWN)
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    browser.execute_script(resources.files("axe_core_python").joinpath("axe.min.js").read_text())
    result = browser.execute_async_script(RUN_AXE)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert isinstance(result, dict), result
    assert [] == [(each["id"], each["nodes"][0]["html"][:200]) for each in result["violations"]]
    assert [] == [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
    assert {path.as_uri()} == {url for url in asked if not url.startswith("data:")}


def test_fits_a_phone(browser, path):
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    browser.get(path.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_long_names_do_not_push_the_remedies_out_of_the_page(browser, path):
    """In a window of 1200 pixels the table of the dearest flows is whole."""
    browser.set_window_size(1200, 900)
    browser.get(path.as_uri())
    name = "uplink-of-the-northern-site-2026-11-23/" + "capture-of-a-host-with-a-long-name-" * 2 + "0001.pcap.gz"
    browser.execute_script("document.querySelector('#worst tbody th').textContent = arguments[0]", name)
    table = "document.querySelector('#worst .scroll')"
    shown, wide = browser.execute_script(f"return [{table}.clientWidth, {table}.scrollWidth]")
    assert wide <= shown
