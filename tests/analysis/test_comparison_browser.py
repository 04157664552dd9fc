"""Runs and a study of two seeds over each other in a real browser: by day and by night, on a desk and on a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wirelessfl as wfl
from benchmarks.explorer import browser as start_browser
from benchmarks.explorer import open_page
from tests.simulation.scenarios import small
from tests.speed import rest_slow
from tests.study.conftest import work_inline
from tests.study.studies import InlineWorkers, design
from wirelessfl.analysis.report.page import write_report
from wirelessfl.study import run_study

pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="no chromium with chromedriver here")

_PLACES = """
const section = document.querySelector("#comparison");
return [...section.querySelectorAll(".plot")].map((plot) => ({
  width: plot.getBoundingClientRect().width, right: plot.getBoundingClientRect().right,
  drawn: Boolean(plot.querySelector("canvas")),
}));
"""
# Of every chart, as it is drawn again: the part of the height between the least and the largest value of its curves
_SHARES = """
const probe = echarts.init(document.createElement("div"), null, { width: 9, height: 9 }), shares = [];
const kind = Object.getPrototypeOf(probe), { setOption } = kind;
kind.setOption = function (option, ...more) {
  const values = option.series.filter(({ type }) => type === "line").flatMap(({ data }) => data.map(([, y]) => y));
  const inside = this.getDom().closest("#comparison, #s2");
  if (inside) shares.push((Math.max(...values) - Math.min(...values)) / (option.yAxis.max - option.yAxis.min));
  return setOption.call(this, option, ...more);
};
window.dispatchEvent(new Event("beforeprint"));
kind.setOption = setOption;
return shares;
"""
_PAPER_AND_INK = """
const style = getComputedStyle(document.body);
return [style.backgroundColor, style.color].map((words) => words.match(/\\d+/g).slice(0, 3).map(Number));
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    one = wfl.simulate(small(), folder / "one", device="cpu", threads=1, figures="none")
    two = wfl.simulate(small(name="two", rounds=4), folder / "two", device="cpu", threads=1, figures="none")
    with pytest.MonkeyPatch.context() as patch:
        work_inline(patch, InlineWorkers())
        study = run_study(design(folder, grid={"uplink.snr_db": [0, 10]}, seeds=2), folder / "study", figures="none")
    return write_report([one.folder, two.folder, study.path], folder / "page.html", "sim_time")


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    driver = start_browser()
    yield driver
    driver.quit()


@pytest.mark.slow
@pytest.mark.parametrize("theme", rest_slow(["light", "dark"]))
@pytest.mark.parametrize("width", [1100, 390])
def test_the_comparison_is_read_in_any_light_and_width(driver: Any, page: Path, theme: str, width: int) -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert open_page(driver, page).errors == () and driver.get_log("browser") == []
    charts = driver.execute_script(_PLACES)
    assert len(charts) == 3 and all(one["drawn"] and one["right"] <= width for one in charts)
    assert min(one["width"] for one in charts) > 250
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    paper, ink = (sum(colour) / 3 for colour in driver.execute_script(_PAPER_AND_INK))
    assert (paper - ink if theme == "light" else ink - paper) > 150


@pytest.mark.slow
def test_bands_of_two_seeds_flatten_no_curve(driver: Any, page: Path) -> None:
    open_page(driver, page)
    shares = driver.execute_script(_SHARES)
    assert len(shares) == 6 and min(shares) > 0.4
