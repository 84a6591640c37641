"""How large is a report, what does it cost to make, and how soon does it open: `report.py [PACKETS FLOWS]`.

Makes a capture with `generate.py` (a million packets, 20 flows), writes its report in a process of its own, and opens
it in headless Chromium, where that is installed: once to the load event, once to the first flow's first figure.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from generate import generate

WRITE = "import sys, tcpfit; tcpfit.analyze(sys.argv[1], segments=True).write_html(sys.argv[2])"

OPEN_FIRST = """
document.querySelector('details.flow').open = true;
const chart = document.querySelector('.flow .chart');
chart.scrollIntoView();
return chart;
"""

PATIENCE_S = 60


def opened(page: Path) -> tuple[float, float] | None:
    """Seconds from the start of navigation to the load event, and from opening a flow to its first figure."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        return None
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        browser.get(page.as_uri())
        loaded = browser.execute_script("return performance.timing.loadEventEnd - performance.timing.navigationStart")
        start = time.monotonic()
        chart = browser.execute_script(OPEN_FIRST)
        while not browser.execute_script("return tcpfit.drawn.has(arguments[0])", chart):
            if time.monotonic() - start > PATIENCE_S:
                sys.exit(f"the first figure was not drawn in {PATIENCE_S} s")
            time.sleep(0.01)
        return loaded / 1000, time.monotonic() - start
    finally:
        browser.quit()


def main(packets: int = 1_000_000, flows: str = "20") -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        capture, page = Path(folder) / "capture.pcap", Path(folder) / "report.html"
        print(generate(str(capture), packets, flows, 1))
        start = time.monotonic()
        subprocess.run([sys.executable, "-c", WRITE, str(capture), str(page)], check=True)
        took, memory = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"written in {took:.1f} s with {memory:,.0f} MiB; {page.stat().st_size / 1e6:.2f} MB")
        if (times := opened(page)) is None:
            print("Chromium and its driver are not installed: not opened")
        else:
            print(f"open in {times[0]:.2f} s; a flow's first figure {times[1]:.2f} s after it is opened")


if __name__ == "__main__":
    main(*(int(sys.argv[1]), sys.argv[2]) if len(sys.argv) == 3 else ())
