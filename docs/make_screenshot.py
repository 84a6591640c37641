"""Write docs/report.png, the top of a report in headless Chromium; without Chromium the picture stays as it is."""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from pathlib import Path

import tcpfit

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "sample-traces" / "slow-reader.pcap.gz"
WIDTH, HEIGHT = 1000, 1950
LAST = "flow-0-window"
"""The chart after which the picture may be taken."""


def main() -> None:
    """Take the picture."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        sys.exit("docs/report.png is left as it is: Chromium and its driver are not installed")
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait

    options = Options()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    with tempfile.TemporaryDirectory() as folder:
        page = tcpfit.analyze(SAMPLE, segments=True).write_html(Path(folder) / "report.html")
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 0.8, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.get(page.as_uri())
            drawn = f"return tcpfit.drawn.has(document.getElementById('{LAST}'))"
            WebDriverWait(browser, 60).until(lambda _: browser.execute_script(drawn))
            taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": False})
        finally:
            browser.quit()
    (ROOT / "docs" / "report.png").write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    main()
