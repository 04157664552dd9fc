"""Runs and studies laid over each other: names, numbers, curves, figures, the page, and what is refused."""

from __future__ import annotations

import base64
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

import wirelessfl as wfl
from tests.simulation.scenarios import small
from tests.speed import rest_slow
from tests.summary.reading import assert_readable
from wirelessfl.analysis.compare import compare
from wirelessfl.analysis.report.page import report_html
from wirelessfl.analysis.report.pareto import MOST_NAMES, pareto_figure, place_labels
from wirelessfl.analysis.telling_apart import RunName, distinct_names, leaves, setting_text, telling_keys
from wirelessfl.cli import main
from wirelessfl.errors import InputError
from wirelessfl.study import Study, run_study
from wirelessfl.summary.overlay import COMPARED, Entry, Overlay, run_columns
from wirelessfl.summary.overlay_figure import draw_overlay
from wirelessfl.summary.style import COLUMN_IN, PAGE_IN

PLACES: dict[str, Any] = {"channel__pathloss": {"model": "log_distance"}}
WATTS: dict[str, Any] = {"kind": "digital", "tx_power_dbm": 10}


def made(folder: Path, **changes: Any) -> wfl.Result:
    return wfl.simulate(small(**changes), folder, device="cpu", threads=1, figures="none")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, wfl.Result]:
    """Runs of other lengths, uplinks and modes; joules are known of two of them."""
    folder = tmp_path_factory.mktemp("runs")
    asynchronous = {"aggregation": {"mode": "asynchronous", "buffer": 2}, "evaluate__every": 2, "rounds": 7}
    return {
        "air": made(folder / "air", **PLACES, uplink={"kind": "over_the_air", "tx_power_dbm": 10}),
        "late": made(folder / "late", **PLACES, **asynchronous, name="late", uplink=WATTS),
        "relative": made(folder / "relative", name="relative", rounds=4),
        "ideal": made(folder / "ideal", name="ideal", uplink={"kind": "ideal"}),
    }


def folders(runs: dict[str, wfl.Result], *names: str) -> list[Path]:
    return [runs[name].folder for name in names]


def test_names_say_what_differs() -> None:
    def run(name: str, seed: int = 1, path: str = "x", **settings: Any) -> RunName:
        return RunName(name, seed, settings, Path(path))

    assert distinct_names([run("a"), run("b", 2)]) == ["a", "b"]
    assert distinct_names([run("a"), run("a", 2), run("b")]) == ["a, seed 1", "a, seed 2", "b"]
    differing = [run("a", kind="digital", bits=8), run("a", kind="ideal", bits=8), run("a", kind="air", bits=4)]
    assert distinct_names(differing) == ["a, digital", "a, ideal", "a, air"]
    assert distinct_names([run("a", epochs=1), run("a", epochs=2.5)]) == ["a, epochs=1", "a, epochs=2.5"]
    both = [run("a", seed, kind=kind) for seed in (1, 2) for kind in ("x", "y")]
    assert distinct_names(both) == ["a, x, seed=1", "a, y, seed=1", "a, x, seed=2", "a, y, seed=2"]
    assert distinct_names([run("a", path="one"), run("a", path="two")]) == ["a (one)", "a (two)"]
    assert distinct_names([run("a", path="one"), run("a", path="one")]) == ["a (one)", "a (one), 2"]


def test_keys_that_tell_rows_apart() -> None:
    rows = [{"a": 1, "b": x, "c": y, "d": [x, y]} for x in (1, 2) for y in (1, 2)]
    assert telling_keys(rows) == ["d"]
    assert telling_keys([{key: row[key] for key in "abc"} for row in rows]) == ["b", "c"]
    assert telling_keys(rows[:1]) == [] and telling_keys([]) == []
    assert telling_keys([{"a": 1}, {"b": 1}]) == ["a"]
    assert setting_text({"uplink.rate.model": "fixed", "x.y.z": 2}, ["uplink.rate.model", "x.y.z"]) == "fixed, y.z=2"
    assert leaves({"a": {"b": 1, "c": {}}, "d": None}) == {"a.b": 1, "a.c": {}, "d": None}


def test_the_table_has_the_numbers_of_the_summaries(runs: dict[str, wfl.Result]) -> None:
    results = [runs[name] for name in ("air", "late", "relative")]
    table = compare(results).table
    assert table.index.tolist() == ["small", "late", "relative"]
    for result, (_, row) in zip(results, table.iterrows(), strict=True):
        for name, value in row.items():
            assert value == pytest.approx(result.summary[str(name)], nan_ok=True)
    assert {"participants_mean", "airtime", "energy", "epsilon_accounted"} <= set(table)


@pytest.mark.parametrize("x", rest_slow(["round", "sim_time", "energy"]))
def test_curves_are_those_of_the_traces(runs: dict[str, wfl.Result], x: str) -> None:
    results = [runs["air"], runs["late"]]
    figure = compare([runs["air"].folder, str(runs["late"].trace)], x).figure
    for result, line in zip(results, figure.axes[0].lines, strict=True):
        with wfl.open_trace(result.trace) as trace:
            evaluated = np.isfinite(trace["test_accuracy"].values)
            place = np.cumsum(trace["energy"].values) if x == "energy" else trace[x].values
            np.testing.assert_allclose(np.asarray(line.get_xdata(), dtype=float), place[evaluated])
            np.testing.assert_allclose(
                np.asarray(line.get_ydata(), dtype=float), 100 * trace["test_accuracy"].values[evaluated]
            )
    assert [axes.get_ylabel() for axes in figure.axes[:2]] == ["test accuracy (%)", "test loss (nat)"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["small", "late"]


@pytest.mark.slow
def test_what_has_no_place_is_said(runs: dict[str, wfl.Result]) -> None:
    found = compare([runs["air"], runs["ideal"]], "epsilon")
    assert found.remarks == ["ideal: not drawn, the accounted ε is ∞"]
    texts = [text.get_text() for text in found.figure.legends[0].get_texts()]
    assert texts == ["small", "ideal: not drawn, the accounted ε is ∞"]
    assert "not drawn" in found._repr_html_() and "<table" in found._repr_html_()
    assert len(found.figure.axes) == 2  # an ε over itself says nothing


@pytest.mark.parametrize(
    ("names", "x", "words"),
    [
        (("ideal",), "epsilon", r"x: epsilon: nothing to draw \(ideal: not drawn, the accounted ε is ∞\)"),
        (("ideal",), "energy", "nothing to draw .*no energy is counted"),
        (("air", "relative"), "energy", r"in units of the noise \(relative\).*uplink.tx_power_dbm"),
        (("air",), "seconds", "x: found 'seconds'; allowed: round, sim_time, energy, epsilon"),
        ((), "round", "results: found none; allowed: a list of runs and studies"),
    ],
)
def test_refusals(runs: dict[str, wfl.Result], names: tuple[str, ...], x: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        compare(folders(runs, *names), x)


def test_what_is_no_run(runs: dict[str, wfl.Result], tmp_path: Path) -> None:
    for wrong, words in (([3], "found int"), ([tmp_path / "nothing"], "not found"), ([tmp_path], "holds neither")):
        with pytest.raises(InputError, match=words):
            compare(wrong)  # type: ignore[arg-type]
    for single, words in ((runs["air"], "found a single Result"), ({"air": runs["air"]}, "found a single dict")):
        with pytest.raises(InputError, match=f"{words}; allowed: a list of runs"):
            compare(single)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"found '.bmp'; allowed: .pdf, .svg, .png"):
        compare([runs["air"]]).save(tmp_path / "x.bmp")


@pytest.mark.slow
@pytest.mark.parametrize("width", [COLUMN_IN, PAGE_IN])
def test_long_names_stay_within_the_figure(runs: dict[str, wfl.Result], tmp_path: Path, width: float) -> None:
    long = "a-run-whose-name-is-as-long-as-people-make-them-who-put-every-setting-of-the-run-into-its-name"
    other = made(tmp_path / "x", **PLACES, name=long, uplink=WATTS)
    found = compare([runs["air"], other, runs["ideal"]], "epsilon", width_in=width)
    FigureCanvasAgg(found.figure)
    found.figure.draw_without_rendering()
    assert_readable(found.figure)
    assert any("".join(text.get_text().split()).startswith(long) for text in found.figure.legends[0].get_texts())


@pytest.mark.slow
def test_bands_of_two_seeds_leave_curves_readable(finished: Study) -> None:
    figure = compare([finished]).figure
    for axes in figure.axes:
        scaled = np.log10 if axes.get_yscale() == "log" else np.asarray
        values = scaled(np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]))
        low, high = scaled(np.array(axes.get_ylim()))
        assert np.ptp(values) >= 0.45 * (high - low), axes.get_ylabel()


def test_a_result_is_plotted(runs: dict[str, wfl.Result]) -> None:
    figure = runs["late"].plot(x="sim_time", y="test_loss")
    assert isinstance(figure, Figure) and figure._repr_png_().startswith(b"\x89PNG")
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("simulated time (s)", "test loss (nat)")
    with pytest.raises(InputError, match="y: found 'accuracy'; allowed: sim_time"):
        runs["late"].plot(y="accuracy")
    with pytest.raises(InputError, match="x: found 'loss'"):
        runs["late"].plot(x="loss")
    with pytest.raises(InputError, match="y: personal_accuracy_mean: nothing to draw"):
        runs["late"].plot(y="personal_accuracy_mean")


def numbers(text: str) -> NDArray[np.float64]:
    return np.frombuffer(base64.b64decode(text), dtype="<f8")


@pytest.mark.slow
def test_the_page_shows_three_runs_over_each_other(runs: dict[str, wfl.Result]) -> None:
    text = report_html(folders(runs, "air", "late", "ideal"), "sim_time")
    assert text.index('id="comparison"') < text.index('id="s0"') < text.index('id="s2"')
    found = re.search(r'<script type="application/json" id="comparison-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    accuracy = data["charts"][0]
    assert data["axis"] == "sim_time" and [curve["label"] for curve in accuracy["curves"]] == ["small", "late", "ideal"]
    assert set(accuracy["curves"][2]["x"]) == {"round", "sim_time"}
    assert "ideal: not drawn, the accounted ε is ∞" in data["missing"]["epsilon"]
    assert "ideal: not drawn, no energy is counted" in accuracy["caption"]
    late = accuracy["curves"][1]
    with wfl.open_trace(runs["late"].trace) as trace:
        evaluated = np.isfinite(trace["test_accuracy"].values)
        for x, values in (("sim_time", trace["sim_time"].values), ("energy", np.cumsum(trace["energy"].values))):
            places = numbers(late["x"][x])
            assert np.all(places[1:] >= places[:-1])  # as scripts look places up
            inside = np.isfinite(places)
            np.testing.assert_allclose(places[inside], values[evaluated])
            np.testing.assert_allclose(numbers(late["y"])[inside], 100 * trace["test_accuracy"].values[evaluated])


@pytest.mark.slow
def test_energies_of_two_units_leave_the_axis_of_the_page_empty(runs: dict[str, wfl.Result]) -> None:
    text = report_html(folders(runs, "air", "relative"))
    assert "in units of the noise (relative)" in text


@pytest.mark.slow
def test_runs_of_one_name_have_headings_of_their_own(runs: dict[str, wfl.Result], tmp_path: Path) -> None:
    other = made(tmp_path / "x", **PLACES, uplink=WATTS)
    text = report_html([runs["air"].folder, other.folder])
    assert "<h2>small, over_the_air</h2>" in text and "<h2>small, digital</h2>" in text


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Two points, two seeds."""
    from tests.study.conftest import work_inline
    from tests.study.studies import InlineWorkers, design

    folder = tmp_path_factory.mktemp("study")
    plan = design(folder, grid={"uplink.snr_db": [0, 10]}, seeds=2)
    with pytest.MonkeyPatch.context() as patch:
        work_inline(patch, InlineWorkers())
        return run_study(plan, folder / "out", threads=1, figures="none")


@pytest.mark.slow
def test_a_study_gives_a_curve_a_point(runs: dict[str, wfl.Result], finished: Study) -> None:
    found = compare([runs["relative"], finished], "energy")
    assert found.table.index.tolist() == ["relative", "small-study: uplink.snr_db=0", "small-study: uplink.snr_db=10"]
    mean = finished.final("test_accuracy")
    assert found.table["test_accuracy"].iloc[1:].tolist() == pytest.approx(
        [float(one.mean[0]) for one in mean.values()]
    )
    assert len(found.figure.axes[0].lines) == 3
    assert compare([finished]).table.index.tolist() == ["uplink.snr_db=0", "uplink.snr_db=10"]
    text = report_html([runs["relative"].folder, finished.path])
    assert (
        "small-study: uplink.snr_db=10" in text
        and "Mean over the seeds with its 95 % confidence interval; of ε the geometric mean" in text
    )


@pytest.mark.slow
def test_the_command_draws_the_comparison_and_says_what_is_missing(runs: dict[str, wfl.Result], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    paths = [str(path) for path in folders(runs, "air", "ideal")]
    arguments = ["report", *paths, "--x", "epsilon", "--out", str(page), "--figures", "pdf", "--width", "column"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.stderr
    assert "note: over epsilon, ideal: not drawn, the accounted ε is ∞" in result.stderr
    picture = tmp_path / "comparison.pdf"
    assert str(picture) in "".join(result.stdout.split())
    assert picture.read_bytes().startswith(b"%PDF") and b"/Type /Font" in picture.read_bytes()


@pytest.mark.parametrize(("names", "x"), [(("air", "relative"), "energy"), (("ideal",), "epsilon"), (("air",), "time")])
def test_the_command_refuses(runs: dict[str, wfl.Result], tmp_path: Path, names: tuple[str, ...], x: str) -> None:
    page = tmp_path / "page.html"
    paths = [str(path) for path in folders(runs, *names)]
    result = CliRunner().invoke(main, ["report", *paths, "--x", x, "--out", str(page)])
    assert result.exit_code == 2 and "Traceback" not in result.stderr and not page.exists()


def test_labels_overlap_neither_each_other_nor_points() -> None:
    random = np.random.default_rng(5)
    for count in (1, 4, 8, 30):
        axes = Figure(figsize=(5, 3.4), layout="constrained").subplots()
        axes.set(xscale="log", xlim=(0.1, 1000), ylim=(0, 100))
        names = [str(at) if count > MOST_NAMES else f"uplink number {at}" for at in range(count)]
        wanted = [(10 ** random.uniform(0, 2), random.uniform(10, 90), name) for name in names]
        texts = place_labels(axes, wanted, np.zeros((0, 2)))
        boxes = [text.get_window_extent() for text in texts]
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
        points = axes.transData.transform([(x, y) for x, y, _ in wanted])
        assert not any(box.contains(*point) for box in boxes for point in points)


def test_the_front_of_the_picture() -> None:
    cost, gain = np.array([1.0, 2.0, 4.0, 8.0, np.inf, 0.0]), np.array([0.5, 0.4, 0.7, 0.6, 0.9, 0.9])
    names = ["a", "b", "c", "d", "e", "f"]
    few = pareto_figure("p", "Title", "ε accounted", cost, gain, np.full(6, np.nan), names)
    assert "On the front: a: 50.0% at 1; c: 70.0% at 4." in few.caption
    assert "2 points without a finite positive value" in few.caption
    for name in names[:4]:
        assert f">{name}</text>" in few.svg
    many = pareto_figure("p", "T", "x", np.arange(1.0, 21), np.linspace(0.2, 0.9, 20), np.zeros(20), list("x" * 20))
    assert ">20</text>" in many.svg and "numbers in the table of points" in many.caption


def test_ticks_of_a_front_read_as_those_of_other_figures() -> None:
    cost = np.array([2e3, 4e4, 5e6])
    drawn = pareto_figure("p", "T", "energy (J)", cost, np.array([0.2, 0.5, 0.9]), np.full(3, np.nan), ["a", "b", "c"])
    assert ">10⁶<" in drawn.svg and "e+0" not in drawn.svg


@pytest.mark.parametrize("width_in", [COLUMN_IN, PAGE_IN])
def test_a_figure_says_what_its_bands_are(width_in: float, runs: dict[str, wfl.Result]) -> None:
    air, ideal = (columns_of_run(runs[name]) for name in ("air", "ideal"))
    several = draw_overlay(Overlay((Entry("both", (air, ideal)),)), "round", COMPARED, width_in)
    assert "95 %" in " ".join(text.get_text() for text in several.texts)
    assert_readable(several)
    single = draw_overlay(Overlay((Entry("one", (air,)),)), "round", COMPARED, width_in)
    assert not single.texts


def columns_of_run(run: wfl.Result) -> dict[str, NDArray[np.float64]]:
    with wfl.open_trace(run.folder / "trace.h5") as trace:
        return run_columns(trace)
