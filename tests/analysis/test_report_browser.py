"""The report in a real browser: no error, figures that are seen, tables that sort, room on a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.analysis.report.page import write_report

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="no chromium with chromedriver here")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenario = small(uplink__jammer={"epsilon": 1.0}, rounds=12, faults__availability={"p": 0.8})
    result = wfl.simulate(scenario, tmp_path_factory.mktemp("runs") / "x", device="cpu", threads=1, pictures=False)
    return write_report([result.folder])


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1100,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    from selenium.webdriver.chrome.service import Service

    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.get(page.as_uri())
    yield driver
    driver.quit()


def test_no_word_on_the_console(browser: Any) -> None:
    assert browser.get_log("browser") == []


def test_nothing_is_loaded(browser: Any) -> None:
    names = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert [name for name in names if not name.startswith("data:")] == []


def test_every_chart_is_drawn(browser: Any) -> None:
    shares = browser.execute_script(
        "return [...document.querySelectorAll('figure.chart canvas')].map((canvas) => {"
        " const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        " return data.filter((value, at) => at % 4 === 3 && value > 0).length / (canvas.width * canvas.height) })"
    )
    assert len(shares) == 11
    assert all(share > 0.005 for share in shares)


def column(browser: Any, number: int) -> list[float]:
    texts = browser.execute_script(
        "const rows = [...document.querySelector('table.sortable').tBodies[0].rows];"
        f"return rows.map((row) => row.cells[{number}].dataset.value)"
    )
    return [float(text) for text in texts]


def test_the_table_sorts(browser: Any) -> None:
    heads = browser.find_elements("css selector", "table.sortable th button")
    before = column(browser, 2)
    heads[2].click()
    assert column(browser, 2) == sorted(before) != before
    assert browser.find_elements("css selector", "table.sortable th")[2].get_attribute("aria-sort") == "ascending"
    heads[2].click()
    assert column(browser, 2) == sorted(before, reverse=True)
    heads[0].click()
    assert column(browser, 0) == list(range(1, 13))
    assert column(browser, 2) == before


def test_night_and_day_differ_in_paper_and_ink(browser: Any) -> None:
    looks = []
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        looks.append(
            browser.execute_script(
                "const text = document.querySelector('figcaption');"
                "return [getComputedStyle(document.body).backgroundColor, getComputedStyle(text).color,"
                " getComputedStyle(document.body).color]"
            )
        )
    (day_paper, day_ink, day_text), (night_paper, night_ink, night_text) = looks
    assert day_paper == "rgb(255, 255, 255)" and day_text != night_text
    assert night_paper != day_paper and night_ink != day_ink


def test_a_phone_does_not_scroll_sideways(browser: Any) -> None:
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_prints(browser: Any) -> None:
    import base64

    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF") and len(pdf) > 20_000
