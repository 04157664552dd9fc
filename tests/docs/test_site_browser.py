"""The site in a real browser: search without and with a web server, and room for everything on a phone."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def served(built_site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(built_site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()
    server.server_close()


def errors(browser: Any) -> list[str]:
    """What the console has as errors; a half-typed query may be a warning of the theme's."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def search(browser: Any, word: str) -> list[Any]:
    """The links found for a word that is typed into the field of the page that is open."""
    from selenium.webdriver.support.ui import WebDriverWait

    field = browser.find_element("css selector", ".md-search__input")
    field.click()
    field.send_keys(word)
    found: list[Any] = WebDriverWait(browser, 10).until(
        lambda _: browser.find_elements("css selector", ".md-search-result__link")
    )
    return found


@pytest.mark.parametrize("word", ["back-off", "epsilon", "jammer"])
@pytest.mark.slow
def test_search_works_from_a_folder(browser: Any, built_site: Path, word: str) -> None:
    browser.get("about:blank")
    browser.get((built_site / "how-to" / "replay.html").as_uri())
    browser.get_log("browser")
    found = search(browser, word)[0]
    target = found.get_attribute("href").partition("?")[0]
    found.click()
    assert browser.current_url.startswith(target) and target.startswith(built_site.as_uri())
    assert word in browser.find_element("css selector", "main").text.lower()
    assert errors(browser) == []


def test_search_works_with_a_server(browser: Any, served: str) -> None:
    browser.get(served)
    browser.get_log("browser")
    assert search(browser, "jammer")[0].get_attribute("href").startswith(served.removesuffix("index.html"))
    assert browser.execute_script("return document.querySelectorAll('iframe').length") == 0
    assert errors(browser) == []


def test_nothing_is_loaded_from_elsewhere(browser: Any, built_site: Path) -> None:
    browser.get((built_site / "index.html").as_uri())
    names = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert [name for name in names if not name.startswith(("file:", "data:"))] == []


def wait_for_width(browser: Any, width: int) -> None:
    """Waits until the page is laid out at a width: an emulated screen may reach it after its load event."""
    from selenium.webdriver.support.ui import WebDriverWait

    laid_out = f"return innerWidth === {width} && document.documentElement.clientWidth === {width}"
    WebDriverWait(browser, 20).until(lambda _: browser.execute_script(laid_out))


WIDER = """
const scrolls = (element) => {
  for (let box = element.parentElement; box && box !== document.body; box = box.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return true;
  return false;
};
const wide = [...document.querySelectorAll(".md-content *")].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.width > 0 && (box.right > 390.5 || box.left < -0.5) && !scrolls(element);
});
return [document.documentElement.scrollWidth, wide.map((element) => element.outerHTML.slice(0, 90))];
"""


@pytest.mark.slow
def test_nothing_is_wider_than_a_phone(browser: Any, built_site: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        for page in sorted(built_site.rglob("*.html")):
            browser.get(page.as_uri())
            wait_for_tables(browser)
            wait_for_width(browser, 390)
            for scheme in ("light", "dark"):
                media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
                browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
                assert browser.execute_script(WIDER) == [390, []], (page.relative_to(built_site), scheme)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_wide_formula_can_be_read_to_its_ends(browser: Any, built_site: Path) -> None:
    """Where a formula scrolls, its first sign is at the beginning and its last can be reached."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE | {"width": 320})
    try:
        browser.get((built_site / "explanation" / "privacy.html").as_uri())
        wait_for_width(browser, 320)
        hidden, reached = browser.execute_script(
            "const wide = (part) => part.scrollWidth > part.clientWidth;"
            "const parts = [...document.querySelectorAll('.formula .part')].filter(wide);"
            "const left = (e) => e.getBoundingClientRect().left, right = (e) => e.getBoundingClientRect().right;"
            "const hidden = parts.filter((p) => left(p.querySelector('math')) < left(p) - 0.5).length;"
            "parts.forEach((part) => { part.scrollLeft = 1e6 });"
            "return [hidden, parts.map((part) => right(part.querySelector('math')) < right(part) + 0.5)]"
        )
        assert hidden == 0 and reached and all(reached)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def wait_for_tables(browser: Any) -> None:
    """Waits until the theme's script has made room to scroll around every table."""
    from selenium.webdriver.support.ui import WebDriverWait

    free = "return document.querySelectorAll('.md-typeset table:not([class])').length"
    inside = "return document.querySelectorAll('.md-typeset__table table').length"
    WebDriverWait(browser, 10).until(lambda _: browser.execute_script(free) <= browser.execute_script(inside))
