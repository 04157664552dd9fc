"""The report in a real browser: charts that are linked, zoom, map, timeline, tables that sort, a phone, paper."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import pytest

import wirelessfl as wfl
from benchmarks.explorer import browser as start_browser
from benchmarks.explorer import open_page
from tests.simulation.scenarios import small
from wirelessfl.analysis.report import page as page_module
from wirelessfl.analysis.report.page import write_report

actions = pytest.importorskip("selenium.webdriver").ActionChains
CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="no chromium with chromedriver here")
ROUNDS = 12


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    moving = {"scheme": "random_waypoint", "min_speed": 20.0, "max_speed": 30.0}
    scenario = small(
        uplink__jammer={"epsilon": 1.0},
        rounds=ROUNDS,
        faults__availability={"p": 0.8},
        channel__pathloss={"model": "log_distance"},
        channel__placement=moving,
    )
    result = wfl.simulate(scenario, tmp_path_factory.mktemp("runs") / "x", device="cpu", threads=1, pictures=False)
    with h5py.File(result.trace, "r+") as file:  # no scenario has such a name, but a file from somebody else may
        file.attrs.modify("name", "</script><script>alert(1)")
    return write_report([result.folder])


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    driver = start_browser()
    yield driver
    driver.quit()


_AS_OPENED = """
const change = (selector, value) => {
  const choice = document.querySelector(selector);
  if (choice.value === value) return;
  choice.value = value;
  choice.dispatchEvent(new Event("change"));
};
change(".axis", "round");
for (const button of document.querySelectorAll(".reset:enabled")) button.click();
if (!document.querySelector(".life").hidden) document.querySelector(".life .close").click();
document.querySelector(".bar .client").value = "";
"""


@pytest.fixture
def browser(driver: Any, page: Path) -> Iterator[Any]:
    """The page as it is when it has been opened, but for the round under the cursor; no test leaves an error."""
    if driver.current_url != page.as_uri():
        assert open_page(driver, page).errors == ()
    driver.execute_script(_AS_OPENED)
    yield driver
    assert driver.get_log("browser") == []


def plot(browser: Any, name: str) -> Any:
    found = browser.find_element("css selector", f"#s0-{name} .plot")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
    return found


def texts(browser: Any, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)"
    return list(browser.execute_script(script, selector))


def soon(browser: Any, condition: str) -> Any:
    """Value of an expression, once it is true."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 10).until(lambda driver: driver.execute_script(f"return {condition}"))


def shown_rounds(browser: Any) -> list[float]:
    """Labels at the x axis: what part of the rounds is shown, by the places of the cursor at the first and last."""
    script = "return [...document.querySelectorAll('#s0-privacy .cursor')].map((line) => line.hidden)"
    hidden = []
    for at in (0, ROUNDS - 1):
        set_round(browser, at)
        hidden += browser.execute_script(script)
    return hidden


def set_round(browser: Any, position: int) -> None:
    browser.execute_async_script(
        "const slider = document.querySelector('input.round'); slider.value = arguments[0];"
        "slider.dispatchEvent(new Event('input')); const done = arguments[1];"
        "requestAnimationFrame(() => requestAnimationFrame(() => done()))",
        position,
    )


def test_a_name_that_is_a_script_is_a_name(browser: Any) -> None:
    assert browser.find_element("css selector", "h1").text.startswith("</script><script>alert(1)")


def test_no_other_script_runs(browser: Any) -> None:
    browser.execute_script(
        "const script = document.createElement('script'); script.textContent = 'window.foreign = 1';"
        "document.body.append(script);"
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.foreign=2\">')"
    )
    assert browser.execute_script("return window.foreign") is None
    said = [entry["message"] for entry in browser.get_log("browser")]
    assert said and all("Content Security Policy" in message for message in said)
    browser.get("about:blank")  # the next test opens the page anew


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


def test_the_cursor_is_in_all_charts_and_says_the_values(browser: Any) -> None:
    place = plot(browser, "privacy")
    actions(browser).move_to_element(place).perform()
    soon(browser, "document.querySelector('input.round').value < 11")
    position = int(browser.execute_script("return document.querySelector('input.round').value"))
    with wfl.open_trace(page_trace(browser)) as trace:
        expected = float(trace["epsilon_accounted"][position])
    (words,) = texts(browser, "#s0-privacy .note")
    assert f"round: {position + 1}" in words and f"accounted: {expected:.4g}" in words
    lines = browser.execute_script("return [...document.querySelectorAll('.cursor')].map((line) => line.hidden)")
    assert lines.count(False) >= 10  # all over rounds, and the timeline if the round is shown


def page_trace(browser: Any) -> Path:
    return Path(browser.current_url.removeprefix("file://")).parent / "trace.h5"


@pytest.mark.slow
def test_a_drag_zooms_all_linked_charts_and_a_button_shows_all_again(browser: Any) -> None:
    place = plot(browser, "accuracy")
    actions(browser).move_to_element(place).click_and_hold().move_by_offset(80, 0).release().perform()
    assert shown_rounds(browser) == [True, True]
    browser.find_element("css selector", ".bar .reset").click()
    assert shown_rounds(browser) == [False, False]


def test_keys_step_and_zoom(browser: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    place = plot(browser, "loss")
    place.send_keys(Keys.HOME)
    assert texts(browser, ".bar .number") == ["1 of 12"]
    place.send_keys(Keys.ARROW_RIGHT)
    assert texts(browser, ".bar .number") == ["2 of 12"]
    assert texts(browser, ".bar .spoken")[0].startswith("round 2: ")
    place.send_keys("+")
    assert shown_rounds(browser)[0] is True
    place.send_keys("0")
    assert shown_rounds(browser) == [False, False]


@pytest.mark.parametrize("name", ["clients", "map", "timeline"])
def test_keys_choose_a_client_and_open_its_life(browser: Any, name: str) -> None:
    from selenium.webdriver.common.keys import Keys

    place, note = plot(browser, name), f"#s0-{name} .note"
    place.send_keys(Keys.HOME, Keys.ARROW_DOWN)
    assert texts(browser, note)[0].startswith("client 0")  # the first one, at the top
    place.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ARROW_RIGHT)
    soon(browser, f"document.querySelector('#s0-{name} .spot').hidden === false")
    assert texts(browser, note)[0].startswith("client 1")
    assert texts(browser, ".bar .number") == ["2 of 12"]
    assert texts(browser, ".bar .spoken")[0].startswith("client 1")
    place.send_keys(Keys.ENTER)
    soon(browser, "document.querySelector('#s0-life').hidden === false")
    assert texts(browser, ".who") == ["Client 1"]
    place.send_keys(Keys.ESCAPE)
    soon(browser, f"document.querySelector('{note}').hidden && document.querySelector('#s0-{name} .spot').hidden")


@pytest.mark.parametrize("name", ["clients", "timeline", "loss"])
def test_what_the_keys_choose_is_within_the_part_that_is_shown(browser: Any, name: str) -> None:
    from selenium.webdriver.common.keys import Keys

    plot(browser, name).send_keys(Keys.HOME, "+", "+", "+", Keys.ARROW_DOWN, Keys.END)
    mark = "cursor" if name == "loss" else "spot"
    soon(browser, f"document.querySelector('#s0-{name} .{mark}').hidden === false")


def test_all_shows_all_clients_again(browser: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    place = plot(browser, "clients")
    place.send_keys("+", "+", "+")
    browser.find_element("css selector", ".bar .reset").click()
    place.send_keys(Keys.HOME, Keys.ARROW_DOWN)
    first = browser.execute_script("return document.querySelector('#s0-clients .spot').offsetTop")
    place.send_keys(*[Keys.ARROW_DOWN] * 5)
    last = browser.execute_script("return document.querySelector('#s0-clients .spot').offsetTop")
    assert last - first > 0.6 * place.size["height"]
    assert not browser.find_element("css selector", ".bar .reset").is_enabled()


def test_bands_of_clients_are_shown_whole(browser: Any) -> None:
    script = """
    const curve = {x: {round: [1, 2]}, y: [0, 1], low: [-9, -5], high: [4, 8]};
    const chart = {curves: [curve], off: new Set(), xOf: (each) => each.x.round};
    const range = (fitsBands) => CurveChart.prototype.yRange.call(
      {...chart, data: {log: false, low: null, high: null, fitsBands}}, [1, 2]);
    return [range(true), range(false)];
    """
    whole, part = browser.execute_script(f"{alone('numbers', 'curves')} {script}")
    assert whole[0] < -9
    assert whole[1] > 8
    assert -1 < part[0] < part[1] < 2


@pytest.mark.parametrize(
    "axis", ["sim_time", *(pytest.param(each, marks=pytest.mark.slow) for each in ("energy", "epsilon"))]
)
def test_the_axis_is_the_readers_choice(browser: Any, axis: str) -> None:
    set_round(browser, 5)
    before = browser.execute_script("return document.querySelector('#s0-accuracy .cursor').style.left")
    browser.execute_script(
        "const choice = document.querySelector('.axis'); choice.value = arguments[0];"
        "choice.dispatchEvent(new Event('change'))",
        axis,
    )
    assert texts(browser, ".bar .number") == ["6 of 12"]
    after = browser.execute_script("return document.querySelector('#s0-accuracy .cursor').style.left")
    assert before != after


def test_a_search_opens_the_life_of_a_client(browser: Any) -> None:
    search = browser.find_element("css selector", ".bar .client")
    search.send_keys("4\n")
    soon(browser, "document.querySelectorAll('#s0-life .events tbody tr').length > 0")
    assert texts(browser, ".who") == ["Client 4"]
    browser.find_element("css selector", ".life .close").click()
    assert browser.execute_script("return document.querySelector('.life').hidden")
    search.send_keys("\n")  # the same number again
    assert soon(browser, "!document.querySelector('.life').hidden")
    for words in ("99", "0x1", "1.0", "-1", "1e0"):
        search.clear()
        search.send_keys(f"{words}\n")
        said = browser.execute_script("return document.querySelector('.bar .client').validationMessage")
        assert "no client" in said, words
    assert texts(browser, ".who") == ["Client 4"]


def alone(*names: str) -> str:
    """Scripts of the page outside the closure in which they run there."""
    static = Path(page_module.__file__).parent / "static"
    return "".join((static / f"{name}.js").read_text(encoding="utf-8") for name in names)


def test_a_long_life_says_that_its_table_is_thinned(browser: Any) -> None:
    words, rows = browser.execute_script(
        alone("numbers", "columns", "life") + "const rounds = Array.from({ length: 2500 }, (_, at) => at + 1);"
        "const parts = { thinned: document.createElement('p'), rounds: document.createElement('table') };"
        "parts.rounds.createTHead(); parts.rounds.createTBody();"
        "const cells = { columns: [], status: rounds.map(() => 0), statuses: ['participated'] };"
        "const life = Object.assign(Object.create(Life.prototype),"
        " { find: (name) => parts[name], cells, section: { rounds }, mine: rounds.map((_, at) => [at, at]) });"
        "life.showTable(); return [parts.thinned.textContent, parts.rounds.tBodies[0].rows.length];"
    )
    assert words == "One round in 3 is shown, of 2,500." and rows == 834


@pytest.mark.parametrize(
    ("ends", "expected"),
    [((1, 8, 3, "true"), [2, 4, 6, 8]), ((-840, 840, 3, "false"), [-500, 0, 500]), ((1, 2, 3, "true"), [1, 2])],
)
def test_an_axis_has_more_than_one_tick(browser: Any, ends: tuple[Any, ...], expected: list[float]) -> None:
    found = browser.execute_script(alone("numbers") + f"return linearTicks({', '.join(map(str, ends))})")
    assert found == pytest.approx(expected)


def test_what_is_focused_is_not_behind_the_bar(browser: Any) -> None:
    tops = browser.execute_script(
        "document.querySelector('.bar').scrollIntoView();"
        "const box = (element) => element.getBoundingClientRect(), bar = document.querySelector('.bar');"
        "return [...document.querySelectorAll('.plot')].reverse().map((plot) => {"
        " plot.focus(); return [box(plot).top, box(bar).bottom] })"
    )
    assert len(tops) > 10 and all(top >= bottom for top, bottom in tops)


def test_the_first_client_is_at_the_top_as_in_all_pictures(browser: Any) -> None:
    for name, top in (("clients", "client 0"), ("timeline", "server")):
        place = plot(browser, name)
        half = place.size["height"] // 2
        for offset, said in ((16 - half, top), (half - 46, "client 5")):
            actions(browser).move_to_element_with_offset(place, 0, offset).perform()
            found = f"document.querySelector('#s0-{name} .note').textContent.startsWith('{said}')"
            assert soon(browser, found)


@pytest.mark.slow
def test_a_click_in_the_chart_of_clients_opens_that_client(browser: Any) -> None:
    place = plot(browser, "clients")
    actions(browser).move_to_element(place).perform()
    soon(browser, "document.querySelector('#s0-clients .note').hidden === false")
    said = texts(browser, "#s0-clients .note")[0]
    actions(browser).click().perform()
    soon(browser, "document.querySelector('#s0-life').hidden === false")
    assert said.startswith(texts(browser, ".who")[0].lower())
    rows = texts(browser, "#s0-life .rounds tbody tr")
    assert len(rows) == ROUNDS


@pytest.mark.slow
def test_the_timeline_zooms_to_single_messages(browser: Any) -> None:
    set_round(browser, 5)
    place = plot(browser, "timeline")
    browser.find_element("css selector", "#s0-timeline .here").click()
    actions(browser).move_to_element_with_offset(place, -40, -70).click_and_hold().move_by_offset(
        60, 140
    ).release().perform()
    said = []
    for up in range(-60, 61, 20):  # from client to client: some are unavailable in that round
        actions(browser).move_to_element_with_offset(place, 0, up).perform()
        soon(browser, "document.querySelector('#s0-timeline .note').hidden === false")
        said += texts(browser, "#s0-timeline .note")
    assert all(words.startswith("client") and "round 6" in words for words in said)  # the round that was zoomed into
    assert any(" s to " in words for words in said)
    hint = texts(browser, "#s0-timeline .hint")
    assert hint[0].startswith("Each message.")


def test_clients_move_on_the_map(browser: Any) -> None:
    def picture() -> str:
        return str(browser.execute_script("return document.querySelector('#s0-map canvas').toDataURL()"))

    set_round(browser, 0)
    before = picture()
    set_round(browser, ROUNDS - 1)
    assert picture() != before


@pytest.mark.slow
def test_play_steps_through_the_rounds(browser: Any) -> None:
    set_round(browser, 3)
    button = browser.find_element("css selector", ".bar .play")
    button.click()
    soon(browser, "document.querySelector('input.round').value > 4")
    button.click()
    assert button.text == "▶ Play"


def test_charts_say_what_they_show(browser: Any) -> None:
    labels = browser.execute_script(
        "return [...document.querySelectorAll('.plot')].map((plot) => [plot.tabIndex, plot.getAttribute('aria-label'),"
        " plot.querySelector('[aria-label]')?.getAttribute('aria-label')])"
    )
    assert all(tab == 0 and label for tab, label, _ in labels)
    assert sum("from" in (described or "") and "to" in described for _, _, described in labels) >= 10


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
    soon(browser, "document.documentElement.scrollWidth <= 360")  # charts are drawn anew a moment later
    assert browser.execute_script("return document.querySelector('.bar').offsetHeight") < 80  # one line, not five
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.slow
def test_paper_is_white_by_night(browser: Any) -> None:
    night = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", **night})
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    tools = browser.execute_script("return getComputedStyle(document.querySelector('.bar')).display")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    assert paper == "rgb(255, 255, 255)" and tools == "none"


@pytest.mark.slow
def test_it_prints(browser: Any) -> None:
    import base64

    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF") and len(pdf) > 20_000
