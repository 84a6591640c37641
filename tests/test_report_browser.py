"""Does a report work in a browser: headless Chromium, opened from a file, without a network?"""

from __future__ import annotations

import json
import shutil
from importlib import resources, util
from pathlib import Path

import captures
import polars as pl
import pytest
from captures import Transfer

import tcpfit

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="Chromium and its driver are not installed"),
    pytest.mark.skipif(util.find_spec("selenium") is None, reason="selenium is not installed"),
]

# Chromium's own services look for a network as soon as it starts; what the page asks for is in the log.
OFFLINE = (
    "--headless=new",
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-device-scale-factor=1",
    "--window-size=1280,900",
)

MARKS = """
const found = [];
const walk = (item, x, y) => {
  if (item.marktype) {
    if (item.role !== 'mark' && item.role !== 'frame' && item.role !== 'scope') return;
    for (const each of item.items) walk(each, x, y);
  } else {
    const [left, top] = [x + (item.x || 0), y + (item.y || 0)];
    for (const inner of item.items || []) walk(inner, left, top);
    if (item.mark.marktype === 'symbol' && item.datum?.cause)
      found.push({ cause: item.datum.cause, frame: item.datum.frame, x: left, y: top });
  }
};
const view = tcpfit.drawn.get(arguments[0]).view;
const { left, top } = view.padding();
walk(view.scenegraph().root, view.origin()[0] + left, view.origin()[1] + top);
return found;
"""
"""The symbols that stand for events in the chart's scene graph, with their places from the chart's corner."""

DOMAIN = "return ['x', 'y'].map((scale) => tcpfit.drawn.get(arguments[0]).view.scale(scale).domain());"

RUN_AXE = (
    "const done = arguments[0]; axe.run({ resultTypes: ['violations'] }).then(done, (error) => done(String(error)));"
)


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = CHROMIUM
    for argument in OFFLINE:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    """Three flows; the largest has losses. The file's name is markup."""
    path = tmp_path_factory.mktemp("browser") / "<img src=x onerror=alert(1)> <script>alert(2)<\u2215script>.pcap"
    packets = Transfer(segments=300, lost=frozenset(range(50, 300, 37))).run()
    packets += Transfer(segments=60, sport=40001, start_s=0.2, v6=True).run()
    packets += Transfer(segments=90, sport=40002, start_s=0.1).run()
    path.write_bytes(captures.pcap(sorted(packets, key=lambda packet: packet.time_ns)))
    return tcpfit.analyze(path, segments=True)


@pytest.fixture(scope="module")
def path(analysis, tmp_path_factory):
    return analysis.write_html(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def page(browser, path):
    """The page, opened anew; when the test is over, nothing has been complained about or asked for."""
    browser.get("about:blank")
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(path.as_uri())
    yield browser
    complaints = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
    assert [] == complaints
    assert {path.as_uri()} == {url for url in asked if not url.startswith("data:")}


def flow_of(page, number):
    return page.find_element("id", f"flow-{number}")


def wait(page, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(page, 120).until(condition)


def opened(page, number, kind="time-sequence"):
    """A flow's section opened, and one of its charts, drawn and in sight."""
    page.execute_script("arguments[0].open = true", flow_of(page, number))
    chart = page.find_element("id", f"flow-{number}-{kind}")
    page.execute_script("arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })", chart)
    wait(page, lambda _: page.execute_script("return tcpfit.drawn.has(arguments[0])", chart))
    page.execute_script("arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })", chart)
    return chart


def shown_flows(page):
    rows = page.find_elements("css selector", "table.flows tbody tr")
    return [int(row.find_element("css selector", "th").text.split()[0]) for row in rows if row.is_displayed()]


def pointed_at(page, chart, mark):
    """The mouse over a mark."""
    from selenium.webdriver.common.action_chains import ActionChains

    size = chart.size
    surface = chart.find_element("css selector", "canvas, svg")
    left, top = (surface.location[key] - chart.location[key] for key in ("x", "y"))
    x, y = left + mark["x"] - size["width"] / 2, top + mark["y"] - size["height"] / 2
    mouse = ActionChains(page)
    mouse.move_to_element_with_offset(chart, round(x) - 3, round(y) - 3)
    return mouse.move_to_element_with_offset(chart, round(x), round(y))


def test_it_opens_with_nothing_drawn(page, path):
    assert path.name in page.current_url
    assert not page.execute_script("return tcpfit.drawn.size")
    assert page.execute_script("return !window.vegaEmbed")
    assert "alert" in page.title, "the capture's name is shown as it is"


@pytest.mark.parametrize("kind", ["time-sequence", "rate"])
def test_a_figure_takes_the_width_that_it_has(page, analysis, kind):
    chart = opened(page, analysis.largest()[0], kind)
    drawing = chart.find_element("css selector", "canvas, svg")
    assert 0.9 * chart.size["width"] <= drawing.size["width"] <= chart.size["width"]


def test_sort(page, analysis):
    by_size = analysis.largest()
    assert by_size == shown_flows(page)
    heading = page.find_element("css selector", "table.flows th:nth-child(6)")
    assert "bytes" in heading.text
    heading.find_element("tag name", "button").click()
    assert ("descending", by_size) == (heading.get_attribute("aria-sort"), shown_flows(page))
    heading.find_element("tag name", "button").send_keys(" ")  # by keyboard
    assert ("ascending", by_size[::-1]) == (heading.get_attribute("aria-sort"), shown_flows(page))
    assert 1 == len(page.find_elements("css selector", "[aria-sort]"))


def test_filter(page, analysis):
    status = page.find_element("id", "shown")
    page.find_element("id", "search").send_keys("fd00::1 40001")
    six = analysis.flows.filter(pl.col("src") == "fd00::1")["flow"].to_list()
    assert six == shown_flows(page)
    assert "Showing 1 of 3 flows." == status.text
    page.find_element("css selector", ".filters [type=reset]").click()
    wait(page, lambda _: status.text == "Showing 3 flows.")
    page.find_element("id", "search").send_keys("nothing like it")
    assert ([], "Showing 0 of 3 flows.") == (shown_flows(page), status.text)


def test_a_link_of_the_table_opens_the_flow(page, analysis):
    number = analysis.largest()[-1]
    page.find_element("css selector", f'a[href="#flow-{number}"]').click()
    wait(page, lambda _: flow_of(page, number).get_attribute("open"))
    wait(page, lambda _: page.switch_to.active_element.tag_name == "summary")


def test_marks_are_as_many_as_events(page, analysis):
    """What the scene graph holds, against the table of events, of every flow and kind."""
    for number in analysis.largest():
        drawn = page.execute_script(MARKS, opened(page, number))
        events = analysis.events.filter(pl.col("flow") == number)
        assert events.filter(pl.col("kind") == "loss").height == sum(mark["cause"] == "lost" for mark in drawn)
        resent = {"fast retransmit", "resent in recovery", "timeout", "resent after timeout", "tail loss probe"}
        resent |= {"resent, already there", "resent, cause unknown"}
        assert events.filter(pl.col("kind") == "retransmission").height == sum(m["cause"] in resent for m in drawn)
    assert analysis.events.filter(pl.col("kind") == "loss").height > 0


def test_hover_names_the_frame_and_a_click_copies_its_filter(page, analysis):
    chart = opened(page, analysis.largest()[0])
    mark = next(mark for mark in page.execute_script(MARKS, chart) if mark["frame"])
    mouse = pointed_at(page, chart, mark)
    mouse.perform()
    tooltip = wait(page, lambda _: page.find_element("css selector", "#vg-tooltip-element.visible"))
    assert str(mark["frame"]) in tooltip.text
    assert "frame" in tooltip.text
    mouse.click().perform()
    live = page.find_element("id", "live")
    wait(page, lambda _: f"frame.number == {mark['frame']}" in live.text)


def test_zoom_changes_the_axes(page, analysis):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
    from selenium.webdriver.common.keys import Keys

    chart = opened(page, analysis.largest()[0])
    whole = page.execute_script(DOMAIN, chart)
    button = chart.find_element("xpath", "..//button[text()='Zoom in']")
    button.send_keys(Keys.ENTER)
    wait(page, lambda _: page.execute_script(DOMAIN, chart)[0] != whole[0])
    (low, high), _ = page.execute_script(DOMAIN, chart)
    assert high - low == pytest.approx((whole[0][1] - whole[0][0]) / 2)
    chart.find_element("xpath", "..//button[text()='Whole']").click()
    wait(page, lambda _: page.execute_script(DOMAIN, chart) == whole)

    origin = ScrollOrigin.from_element(chart)
    ActionChains(page).scroll_from_origin(origin, 0, -40).perform()
    assert whole == page.execute_script(DOMAIN, chart), "the wheel alone scrolls the page"
    page.execute_script("arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })", chart)
    ActionChains(page).key_down(Keys.SHIFT).scroll_from_origin(origin, 0, -120).key_up(Keys.SHIFT).perform()
    wait(page, lambda _: page.execute_script(DOMAIN, chart) != whole)


def test_filters_are_copied_and_announced(page, analysis):
    number = analysis.largest()[0]
    opened(page, number)
    button = flow_of(page, number).find_element("css selector", "button.copy")
    button.click()
    wait(page, lambda _: button.get_attribute("data-filter") in page.find_element("id", "live").text)


def test_theme(page):
    background = "return getComputedStyle(document.body).backgroundColor"
    button = page.find_element("id", "theme")
    seen = []
    for _ in range(3):
        button.click()
        seen.append((button.text, page.execute_script(background)))
    assert ["Theme: light", "Theme: dark", "Theme: as the system"] == [text for text, _ in seen]
    assert seen[0][1] != seen[1][1]
    assert seen[0][1] == seen[2][1]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible(page, analysis, theme):
    pytest.importorskip("axe_core_python", reason="axe-core is not installed")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
    opened(page, analysis.largest()[0])
    opened(page, analysis.largest()[0], "ranking")
    page.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    page.execute_script(resources.files("axe_core_python").joinpath("axe.min.js").read_text())
    result = page.execute_async_script(RUN_AXE)
    assert isinstance(result, dict), result
    found = [(each["impact"], each["id"], each["nodes"][0]["html"][:200]) for each in result["violations"]]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert [] == found


LEGENDS = """
return [...tcpfit.drawn].filter(([chart]) => chart.clientWidth).map(([chart, { view }]) => {
  let right = 0;
  const walk = (item, x) => {
    if (item.marktype) {
      for (const each of item.items || []) walk(each, x);
    } else {
      if (item.mark?.role === 'legend') right = Math.max(right, x + item.bounds.x2);
      for (const inner of item.items || []) walk(inner, x + (item.x || 0));
    }
  };
  walk(view.scenegraph().root, view.origin()[0] + view.padding().left);
  return [chart.closest('.figure').dataset.kind, right - chart.clientWidth];
});
"""
"""How far the legends of each figure go beyond its chart, in pixels."""

DRAWN_TO_WIDTH = "const [chart] = arguments; return tcpfit.drawn.get(chart)?.width === chart.clientWidth;"


@pytest.mark.parametrize("width", [320, 390, 600])
def test_legends_are_whole_on_a_phone(page, analysis, width):
    phone = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    number = analysis.largest()[0]
    opened(page, number)
    for chart in flow_of(page, number).find_elements("css selector", ".chart"):
        page.execute_script("arguments[0].scrollIntoView()", chart)
        wait(page, lambda _, chart=chart: page.execute_script(DRAWN_TO_WIDTH, chart))
    assert {} == {kind: beyond for kind, beyond in page.execute_script(LEGENDS) if beyond > 0}
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_table_that_goes_on_beside_the_page_has_a_shade_there(page, analysis):
    """At the edge, where nothing of the table's own covers it."""
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    opened(page, analysis.largest()[0])
    wider = "[...document.querySelectorAll('.scroll')].filter((each) => each.scrollWidth > each.clientWidth)"
    styles = page.execute_script(f"return {wider}.map((each) => getComputedStyle(each).backgroundAttachment)")
    assert {"local, local, scroll, scroll"} == set(styles)
    heading = "getComputedStyle(document.querySelector('.flow thead th')).backgroundColor"
    assert "rgba(0, 0, 0, 0)" == page.execute_script(f"return {heading}")
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_fits_a_phone(page, analysis):
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    chart = opened(page, analysis.largest()[0])
    wait(page, lambda _: chart.size["width"] <= 390)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_prints_what_is_opened(page, analysis):
    number, *others = analysis.largest()
    opened(page, number)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert flow_of(page, number).is_displayed()
    assert not flow_of(page, others[0]).is_displayed()
    assert not page.find_element("id", "print").is_displayed()
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_without_a_report_there_is_nothing_to_test(path):
    assert isinstance(path, Path)
    assert path.stat().st_size < 3_000_000
