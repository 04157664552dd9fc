"""Screenshots of the report in docs/how-to/explore.md, by day and by night.

    python docs/screenshots.py

They need Chromium.
"""

from __future__ import annotations

import base64
import io
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))

import wirelessfl as wfl
from benchmarks.explorer import browser, open_page
from wirelessfl.analysis.report.page import write_report

SCENARIO, ROUND, CLIENT = "urban-macro-deadline", 12, "3"
TARGETS = {"charts": "#s0-accuracy", "places": "#s0-map", "life": "#s0-life"}


class Screen(NamedTuple):
    """A screen.

    Attributes:
        infix: in the names of its screenshots.
        width: in pixels of the page.
        heights: of the screenshots.
        density: points of the screen in a pixel of the page.
    """

    infix: str
    width: int
    heights: Mapping[str, int]
    density: int


SCREENS = (
    Screen("", 1100, {"charts": 760, "places": 640, "life": 780}, 1),
    Screen("-phone", 390, {"charts": 720, "places": 620, "life": 720}, 2),
)
_SHOW = """
const slider = document.querySelector("input.round");
slider.value = arguments[0] - 1;
slider.dispatchEvent(new Event("input"));
const search = document.querySelector(".bar .client");
search.value = arguments[1];
search.dispatchEvent(new Event("change"));
"""
_ABOVE = 70
"""Pixels above an element: the bar stays there."""
_TO = """
const { top } = document.querySelector(arguments[0]).getBoundingClientRect();
window.scrollTo(0, top + window.scrollY - arguments[1]);
"""


def main() -> None:
    """All screenshots, beside the page that shows them."""
    folder = Path(__file__).parent / "how-to"
    with tempfile.TemporaryDirectory() as temporary:
        result = wfl.simulate(wfl.load_scenario(SCENARIO), Path(temporary) / "run", pictures=False)
        page = write_report([result.folder])
        driver = browser()
        try:
            driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
            for theme in ("light", "dark"):
                media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
                driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
                for screen in SCREENS:
                    _on(driver, screen, 800)
                    open_page(driver, page)
                    driver.execute_script(_SHOW, ROUND, CLIENT)
                    for name, target in TARGETS.items():
                        file = folder / f"explore-{name}{screen.infix}-{theme}.png"
                        picture(driver, target, screen, screen.heights[name]).save(file, optimize=True)
        finally:
            driver.quit()


def picture(driver: Any, target: str, screen: Screen, height: int) -> Image.Image:
    """What a window of a height shows from an element on."""
    _on(driver, screen, height)
    time.sleep(1.0)
    driver.execute_script(_TO, target, _ABOVE)
    time.sleep(1.0)
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    return Image.open(io.BytesIO(base64.b64decode(shot))).convert("RGB").quantize(255)


def _on(driver: Any, screen: Screen, height: int) -> None:
    metrics = {
        "width": screen.width,
        "height": height,
        "deviceScaleFactor": screen.density,
        "mobile": screen.density > 1,
    }
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


if __name__ == "__main__":
    main()
