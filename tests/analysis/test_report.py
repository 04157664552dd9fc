"""The report: statistics, fronts, bands, and a page that stands alone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.analysis.replay.recording import open_recording
from wirelessfl.analysis.report.channel import (
    KOLMOGOROV_1_PERCENT,
    PowerLaw,
    channel_statistics,
    gamma_density,
    gamma_distribution,
    kolmogorov_distance,
    power_law,
    rician_density,
    rician_distribution,
)
from wirelessfl.analysis.report.page import report_html, write_report
from wirelessfl.analysis.report.pareto import pareto_front
from wirelessfl.analysis.report.study import open_study_data, panels, study_figures, study_points
from wirelessfl.assembly.objects import make_object
from wirelessfl.errors import InputError, OutputError, TraceError
from wirelessfl.radio import Rician
from wirelessfl.streams import NodeStream, Streams
from wirelessfl.summary import epsilon_text
from wirelessfl.summary.axes import XAxis

SCENARIO = small(uplink__jammer={"epsilon": 1.0}, faults__availability={"p": 0.8})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> wfl.Result:
    return wfl.simulate(SCENARIO, tmp_path_factory.mktemp("runs") / "x", device="cpu", threads=1, pictures=False)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a study: 2 × 2 points, 3 seeds, 5 rounds, whose numbers are known in closed form."""
    folder = tmp_path_factory.mktemp("study")
    rows, runs = [], []
    for snr in (0.0, 10.0):
        for name in ("a", "b"):
            for seed in range(3):
                run = f"{snr:g}{name}{seed}"
                runs.append({"run": run, "status": "complete", "error": None})
                for round_index in range(1, 6):
                    accuracy = 0.1 * round_index + 0.01 * seed + 0.02 * snr + 0.05 * (name == "b")
                    rows.append(
                        {
                            **{"run": run, "uplink.snr_db": snr, "model.name": name, "seed": seed},
                            **{"round": round_index, "test_accuracy": accuracy, "test_loss": 1.0},
                            "participants": 4 + (name == "b"),
                            **{"epsilon_published": 1.0, "epsilon_accounted": 2.0 + snr, "sim_time": 1.0},
                            **{"airtime": 0.5, "energy": 1.0 + (name == "b"), "jammer_energy": np.nan},
                        }
                    )
    runs.append({"run": "lost", "status": "failed", "error": "<b>no data</b>"})
    pd.DataFrame(rows).to_parquet(folder / "study.parquet")
    (folder / "study.json").write_text(json.dumps({"name": "made up", "runs": runs}))
    return folder


class Page(HTMLParser):
    """Collects what a browser would load, the ids, and whether every element is closed."""

    VOID = ("meta", "link", "br", "img", "use", "path", "image", "rect", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.open: list[str] = []
        self.svgs = self.rows = 0
        self.charts: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.svgs += tag == "svg"
        if values.get("class", "").split()[:1] == ["chart"]:
            self.charts.add(values["id"].split("-", 1)[1])
        self.rows += tag == "tr"
        self.ids += [values["id"]] if "id" in values else []
        for name in ("src", "href", "xlink:href", "srcset", "action"):
            if name in values:
                (self.references if values[name].startswith("#") else self.loads).append(values[name])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_page_stands_alone(run: wfl.Result, study: Path) -> None:
    text = report_html([run.folder, run.trace, study])
    page = Page(text)
    assert page.open == []
    assert all(address.startswith("data:") for address in page.loads), page.loads
    assert len(page.ids) == len(set(page.ids))
    assert {reference[1:] for reference in page.references} <= set(page.ids)
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(page.ids)
    assert "@import" not in text and not re.search(r"url\((?!#)", re.sub(r"<script.*?</script>", "", text, flags=re.S))
    assert page.svgs == 2  # of the study: accuracy against ε and energy
    # Two tables of 3 rounds, one of 4 points, the comparison of 2 runs and 4 points, each with a head.
    assert page.rows == 2 * (3 + 1) + (4 + 1) + (2 + 4 + 1)
    assert {f"s2-curves-{panel}-test-accuracy" for panel in (0, 1)} <= set(page.ids)


def test_the_numbers_and_reasons_are_there(run: wfl.Result) -> None:
    text = report_html([run.trace])
    summary = run.summary
    assert f"{summary['test_accuracy']:.1%}" in text
    assert f"{epsilon_text(summary['epsilon_accounted'])} at δ = 1e\N{NON-BREAKING HYPHEN}05" in text
    for reason in summary["why_different"]:
        assert reason.split(".")[0] in text.replace("&#39;", "'")
    assert "hidden: [8]" in text or "hidden:" in text


def test_numbers_that_are_not_known_are_said_to_be_so(run: wfl.Result, tmp_path: Path) -> None:
    copy = Path(shutil.copy(run.trace, tmp_path / "copy.h5"))
    with h5py.File(copy, "r+") as file:
        for name in ("test_accuracy", "test_loss"):
            file[name][...] = np.nan
    facts = re.findall("<dt>(test .*?)</dt><dd>(.*?)</dd>", report_html([copy]))
    assert facts == [("test accuracy", "not known"), ("test loss", "not known")]


@pytest.mark.slow
def test_the_same_run_gives_the_same_page(run: wfl.Result) -> None:
    assert report_html([run.trace]) == report_html([run.trace])


def test_texts_are_escaped(run: wfl.Result, study: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(run.trace, tmp_path / "copy.h5"))
    with h5py.File(copy, "r+") as file:
        file.attrs.modify("name", "<script>alert(1)</script>")
        file.attrs.modify("why_different", '["<img src=x onerror=alert(2)>"]')
    text = report_html([copy, study])
    assert "<script>alert" not in text and "&lt;script&gt;alert(1)" in text
    assert "<img" not in text and "<b>no data" not in text and "&lt;b&gt;no data" in text


@pytest.mark.parametrize(
    "fading",
    [
        {"model": "rayleigh"},
        {"model": "rician", "k_db": 3.0},
        {"model": "nakagami", "m": 0.7},
    ],
)
def test_the_law_is_that_of_the_draws(fading: dict[str, Any]) -> None:
    scenario = small(channel__fading=fading)
    law = power_law(scenario)
    assert isinstance(law, PowerLaw)
    draws = make_object("channel.fading.model", scenario.channel.fading).draw(
        Streams(5).nodes("test", 1, np.arange(20_000))
    )
    # At a false-alarm rate of 1e-6 Kolmogorov's distance stays below √(ln(2/1e-6)/2n) (Massart's inequality).
    distance = stats.kstest(np.abs(draws) ** 2, law.distribution).statistic
    assert distance < np.sqrt(np.log(2 / 1e-6) / (2 * len(draws)))
    grid = np.linspace(0.5, 3.0, 6)
    slope = (law.distribution(grid + 1e-5) - law.distribution(grid - 1e-5)) / 2e-5
    np.testing.assert_allclose(law.density(grid), slope, rtol=1e-6)


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        ({"fading": {"model": "static"}}, "1 on every link"),
        ({"fading": {"model": "recorded", "file": "gains.h5"}}, "recorded"),
        ({"fading": {"model": "tests.analysis.test_report:Fading"}}, "Fading does not state its density"),
        ({"pathloss": {"model": "tr38901", "scenario": "uma"}}, "line of sight"),
    ],
)
def test_without_a_density_the_report_says_why(channel: dict[str, Any], words: str) -> None:
    law = power_law(small(**{f"channel__{key}": value for key, value in channel.items()}))
    assert isinstance(law, str) and words in law


class Fading:
    """A fading model from outside: Rician with K = 3, which nothing but itself knows."""

    def draw(self, stream: NodeStream) -> NDArray[np.complex128]:
        return Rician(3.0).draw(stream)


def test_a_fading_model_from_outside_has_no_curve(tmp_path: Path) -> None:
    model = f"{__name__}:Fading"
    scenario = small(channel__fading={"model": model})
    wfl.simulate(scenario, tmp_path, pictures=False, device="cpu")
    page = report_html([tmp_path])
    assert f"not known: {model} does not state its density" in page and "; 1 expected" not in page
    assert "Rayleigh" not in re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL)


def test_the_critical_distance_is_kolmogorovs() -> None:
    assert stats.kstwobign.sf(KOLMOGOROV_1_PERCENT) == pytest.approx(0.01, rel=1e-3)


def test_channel_statistics_count_what_was_recorded(run: wfl.Result) -> None:
    recording = open_recording(run.trace)
    statistics = channel_statistics(recording.dataset, recording.scenario)
    assert statistics is not None and statistics.distance is not None
    assert len(statistics.power) == recording.dataset["participants"].values.sum()
    assert statistics.below_tenth_expected == pytest.approx(1 - np.exp(-0.1))
    powers = np.sort(statistics.power)
    steps = np.arange(len(powers) + 1) / len(powers)
    law = 1 - np.exp(-powers)
    assert statistics.distance == pytest.approx(max((steps[1:] - law).max(), (law - steps[:-1]).max()))


def test_a_run_without_a_radio_channel(tmp_path: Path) -> None:
    result = wfl.simulate(
        small(uplink={"kind": "ideal"}, trace__events=False), tmp_path / "x", device="cpu", pictures=False
    )
    page = Page(report_html([result.folder]))
    assert page.charts == {"accuracy", "loss", "privacy", "outcomes", "airtime"}


def brute_force(cost: NDArray[np.float64], gain: NDArray[np.float64]) -> set[int]:
    """By definition, over all pairs."""
    known = np.isfinite(cost) & np.isfinite(gain)

    def beaten(a: int) -> bool:
        better = (cost <= cost[a]) & (gain >= gain[a]) & ((cost < cost[a]) | (gain > gain[a])) & known
        return bool(better.any())

    return {a for a in range(len(cost)) if known[a] and not beaten(a)}


@pytest.mark.parametrize("seed", range(20))
def test_the_front_is_that_of_the_definition(seed: int) -> None:
    generator = np.random.default_rng(seed)
    cost = generator.integers(1, 8, 30).astype(np.float64)
    gain = generator.integers(1, 8, 30).astype(np.float64)
    cost[generator.random(30) < 0.1] = np.inf
    gain[generator.random(30) < 0.1] = np.nan
    front = pareto_front(cost, gain)
    assert set(front.tolist()) == brute_force(cost, gain)
    assert np.all(np.diff(cost[front]) >= 0)


def test_points_of_a_study(study: Path) -> None:
    points = study_points(open_study_data(study))
    assert [point.label for point in points] == [
        f"uplink.snr_db={snr}, model.name={name}" for snr in (0, 10) for name in "ab"
    ]
    last = points[3]
    assert last.runs == 3
    assert last.last["test_accuracy"] == pytest.approx(0.5 + 0.01 + 0.2 + 0.05)
    assert last.last["energy"] == pytest.approx(10.0) and last.last["epsilon_accounted"] == 12.0
    assert last.accuracy_half_width == pytest.approx(stats.t.ppf(0.975, 2) * 0.01 / np.sqrt(3))


def test_figures_of_a_study(study: Path) -> None:
    points = study_points(open_study_data(study))
    assert [(panel.title, panel.labels) for panel in panels(points)] == [
        (first, ["model.name=a", "model.name=b"]) for first in ("uplink.snr_db=0", "uplink.snr_db=10")
    ]
    diagonal = [points[0], points[-1]]  # as of keys that move together: one curve for each level is no comparison
    assert [(panel.title, panel.labels) for panel in panels(diagonal)] == [
        ("", ["uplink.snr_db=0", "uplink.snr_db=10"])
    ]
    titles = [figure.title for figure in study_figures("s", points)]
    assert titles == ["Accuracy against accounted ε", "Accuracy against energy"]
    same = [replace(point, last={**point.last, "energy": 3.0}) for point in points]
    assert [figure.title for figure in study_figures("s", same)] == titles[:-1]


def test_a_point_has_the_last_values_of_its_runs(study: Path, tmp_path: Path) -> None:
    """Each run's own last evaluation, with the interval of these, where one run was shorter and one not evaluated."""
    rows = pd.read_parquet(study / "study.parquet")
    rows = rows[(rows["run"] != "0a1") | (rows["round"] <= 2)]
    rows.loc[(rows["run"] == "0a2") & (rows["round"] == 5), ["test_accuracy", "test_loss"]] = np.nan
    rows.to_parquet(tmp_path / "study.parquet")
    shutil.copy(study / "study.json", tmp_path)
    point = study_points(open_study_data(tmp_path))[0]
    ends = np.array([0.5, 0.2 + 0.01, 0.4 + 0.02])
    assert point.last["test_accuracy"] == pytest.approx(ends.mean()) and point.last["test_loss"] == 1.0
    assert point.accuracy_half_width == pytest.approx(stats.t.ppf(0.975, 2) * stats.sem(ends))
    assert f"{ends.mean():.1%} ± {100 * point.accuracy_half_width:.1f}" in report_html([tmp_path])


@pytest.mark.parametrize(
    ("own", "asked", "first"),
    [(None, None, "round"), (["sim_time", "round"], None, "sim_time"), (["sim_time"], "epsilon", "epsilon")],
)
def test_a_study_opens_at_its_own_axis(
    study: Path, tmp_path: Path, own: list[str] | None, asked: XAxis | None, first: str
) -> None:
    shutil.copy(study / "study.parquet", tmp_path)
    record = json.loads((study / "study.json").read_text())
    (tmp_path / "study.json").write_text(json.dumps(record if own is None else {**record, "x": own}))
    text = report_html([tmp_path], asked)
    assert re.search(rf'<option value="{first}" selected>', text) and text.count(" selected>") == 1


def test_a_study_of_an_unknown_axis(study: Path, tmp_path: Path) -> None:
    shutil.copy(study / "study.parquet", tmp_path)
    record = json.loads((study / "study.json").read_text())
    for wrong in (["seconds"], [], 3):
        (tmp_path / "study.json").write_text(json.dumps({**record, "x": wrong}))
        with pytest.raises(InputError):
            report_html([tmp_path])


def test_a_study_without_a_finished_run(study: Path, tmp_path: Path) -> None:
    pd.read_parquet(study / "study.parquet").iloc[:0].to_parquet(tmp_path / "study.parquet")
    shutil.copy(study / "study.json", tmp_path)
    assert "No run has ended well" in report_html([tmp_path])


@pytest.mark.slow
def test_where_the_page_goes(run: wfl.Result, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert write_report([run.folder]) == run.folder / "report.html"
    assert write_report([run.trace]) == run.folder / "report.html"
    assert write_report([study]) == study / "report.html"
    monkeypatch.chdir(tmp_path)
    assert write_report([run.folder, study]) == Path("report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_target_that_cannot_be_written(run: wfl.Result, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="does not exist"):
        write_report([run.trace], tmp_path / "nowhere" / "page.html")
    with pytest.raises(OutputError, match="found a folder; allowed: a file"):
        write_report([run.trace], tmp_path)


def test_what_is_neither_run_nor_study(study: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not found"):
        report_html([tmp_path / "nothing"])
    with pytest.raises(InputError, match=r"neither trace\.h5 nor study\.parquet"):
        report_html([tmp_path])
    (tmp_path / "trace.h5").write_text("nothing")
    with pytest.raises(TraceError, match="not an HDF5 file"):
        report_html([tmp_path])
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(InputError, match=r"found no study\.parquet, .* go on with resume=True$"):
        report_html([tmp_path])
    shutil.copy(study / "study.parquet", tmp_path)
    with pytest.raises(InputError, match="no readable study"):
        report_html([tmp_path])


@pytest.mark.parametrize("factor", [0.0, 0.3, 8.0, 1e3])
def test_the_rician_law_is_that_of_another_implementation(factor: float) -> None:
    power = np.abs(1.0 + np.linspace(-3.0, 3.0, 41) * np.sqrt(2 * factor + 1) / (factor + 1))
    law = stats.ncx2(2, 2 * factor, scale=1 / (2 * (factor + 1)))
    np.testing.assert_allclose(rician_density(factor, power), law.pdf(power), rtol=1e-10)
    np.testing.assert_allclose(rician_distribution(factor, power), law.cdf(power), atol=1e-12)


@pytest.mark.parametrize("m", [0.5, 1.0, 3.3])
def test_the_gamma_law_is_that_of_another_implementation(m: float) -> None:
    power, law = np.linspace(0.01, 6.0, 50), stats.gamma(m, scale=1 / m)
    np.testing.assert_allclose(gamma_density(m, power), law.pdf(power), rtol=1e-12)
    np.testing.assert_allclose(gamma_distribution(m, power), law.cdf(power), atol=1e-14)
    sample = law.rvs(size=200, random_state=1)
    assert kolmogorov_distance(sample, law.cdf) == pytest.approx(stats.kstest(sample, law.cdf).statistic)


@pytest.mark.slow
def test_a_page_over_runs_imports_no_more_than_it_needs() -> None:
    heavy = ("torch", "scipy.stats", "matplotlib", "simpy")
    code = f"import sys, wirelessfl.analysis.report.page; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
