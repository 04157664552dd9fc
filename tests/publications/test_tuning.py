"""Tuning: equal budgets, a choice on validation samples alone, and studies that say what was chosen."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from publications import commands, studies, tuning_runs
from publications.catalogue import PAPERS
from publications.noted import unwatched
from publications.provenance import current_commit
from publications.results import read_results, size_folder
from publications.sweeps import SWEEPS, find_sweep
from publications.tuning import Score, Sweep, Trial, TunedMethod, at_the_edge, scores, winner
from publications.tuning_command import tune_paper
from publications.tuning_page import (
    _shown,
    choice_rows,
    draw_sweep,
    tuned_rows,
    tuning_lines,
    write_sweep_figure,
)
from publications.tuning_runs import read_trials, run_sweep, tuned_file, tuned_study, tuning_design, write_trials
from tests.speed import rest_slow
from wirelessfl.errors import ScenarioError

RESULTS = Path(__file__).resolve().parents[2] / "results"
LR, BATCH = "training.optimizer.lr", "training.batch_size"
ALL = [(paper, sweep) for paper, sweeps in SWEEPS.items() for sweep in sweeps]
NAMES = [f"{paper}-{sweep.name}-{sweep.size}" for paper, sweep in ALL]

every_sweep = pytest.mark.parametrize(("paper", "sweep"), ALL, ids=NAMES)


def method(**grid: tuple[float, ...]) -> TunedMethod:
    """A method that is tuned in these keys, from the first value of each on."""
    return TunedMethod("m", {"p": {"clip": 1.0}}, grid, {key: values[0] for key, values in grid.items()})


def test_a_grid_of_the_budget_is_tried_in_full() -> None:
    tried = method(a=(1, 2), b=(3, 4)).settings(4)
    assert tried == ({"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4})


def test_a_larger_grid_is_tried_at_sobol_points() -> None:
    """By hand: the sequence is (½, ½), (¾, ¼), (¼, ¾), and each axis has four equal shares."""
    tried = method(a=(0, 1, 2, 3), b=(0, 1, 2, 3)).settings(4)
    assert tried == ({"a": 0, "b": 0}, {"a": 2, "b": 2}, {"a": 3, "b": 1}, {"a": 1, "b": 3})


def test_a_smaller_grid_is_refused() -> None:
    with pytest.raises(ValueError, match="found a grid of 4 settings; allowed: at least the budget, 5"):
        method(a=(1, 2), b=(3, 4)).settings(5)


def test_a_start_lies_on_the_grid() -> None:
    with pytest.raises(ValueError, match="a=3"):
        TunedMethod("m", {}, {"a": (1, 2)}, {"a": 3})


def test_a_tuned_key_changes_a_mapping_and_leaves_the_method() -> None:
    one = TunedMethod(
        "m", {"p": {"name": "x", "clip": 1.0}}, {"p.clip": (1.0, 2.0), "q": (1, 2)}, {"p.clip": 1.0, "q": 1}
    )
    assert one.at({"p.clip": 2.0, "q": 2}) == {"p": {"name": "x", "clip": 2.0}, "q": 2}
    assert one.setting_in(one.at({"p.clip": 2.0, "q": 2})) == {"p.clip": 2.0, "q": 2}
    assert one.fixed == {"p": {"name": "x", "clip": 1.0}}


def test_methods_with_other_keys_do_not_share_a_study() -> None:
    with pytest.raises(ValueError, match="differ in their keys"):
        Sweep("s", "", "small", "x", 2, (method(a=(1, 2)), method(b=(1, 2))), {}, {})


def test_the_best_mean_wins_and_a_diverged_run_counts_as_zero() -> None:
    one = method(a=(1, 2, 3))
    sweep = Sweep("s", "", "small", "x", 3, (one,), {}, {}, seeds=(8, 9))
    numbers = {(0, 8): (0.7, 0.6), (0, 9): (0.7, 0.6), (1, 8): (0.9, 0.1), (1, 9): (math.nan, math.nan)}
    numbers |= {(2, 8): (0.6, 0.5), (2, 9): (0.8, 0.5)}
    trials = [Trial("m", at, seed, *found, 1.0, "") for (at, seed), found in numbers.items()]
    found = scores(sweep, one, trials)
    assert [score.accuracy for score in found] == pytest.approx([0.7, 0.45, 0.7])
    assert found[1].loss == math.inf
    assert (found[2].low, found[2].high) == (0.6, 0.8)
    assert winner(found).setting == 2  # equally accurate as the first, at a smaller loss
    with pytest.raises(ValueError, match="setting 2: found seeds"):
        scores(sweep, one, trials[:-1])


def test_of_equal_settings_the_earlier_wins() -> None:
    assert winner([Score(at, {}, 0.5, 0.5, 0.5, 0.5) for at in range(3)]).setting == 0


def test_the_table_of_tuned_methods_names_them_and_shows_no_keys() -> None:
    paper = PAPERS["ota-cross-layer-dp"]
    tables = read_results(paper, RESULTS)["small"]
    rows = tuned_rows(paper, "tuned-algorithms", "small", tables)
    assert [row["method"] for row in rows] == ["FedAvg", "FedProx", "Upcycled", "one gradient step"]
    assert list(rows[0]) == ["method", "accuracy", "ε published", "ε accounted"]


def test_a_choice_at_the_edge_is_told() -> None:
    assert at_the_edge(method(a=(1, 2, 3), b=(1, 2, 3)), {"a": 3, "b": 2}) == ("a",)


@every_sweep
def test_every_method_of_a_comparison_has_the_same_budget(paper: str, sweep: Sweep) -> None:
    for one in sweep.methods:
        tried = one.settings(sweep.budget)
        assert len({tuple(setting.items()) for setting in tried}) == sweep.budget
        assert tried[0] == one.start
        for setting in tried:
            assert all(value in one.grid[key] for key, value in setting.items())


@every_sweep
def test_no_seed_of_tuning_is_reported(paper: str, sweep: Sweep) -> None:
    for file in (studies.STUDIES / paper / sweep.size).glob("*.yaml"):
        seeds = yaml.safe_load(file.read_text(encoding="utf-8")).get("seeds", 1)
        reported = set(range(1, seeds + 1)) if isinstance(seeds, int) else set(seeds)  # a base has seed 1
        assert not reported & set(sweep.seeds)
    assert not set(range(1, sweep.reported + 1)) & set(sweep.seeds)


@pytest.mark.parametrize("paper", rest_slow(SWEEPS))
def test_every_setting_is_a_scenario_with_validation_samples_and_noise_of_its_own(paper: str) -> None:
    for sweep in SWEEPS[paper]:
        if sweep.size == "small":
            for one in sweep.methods:
                runs = tuning_design(paper, sweep, one).runs
                assert {run.scenario.seed for run in runs} == set(sweep.seeds)
                assert all(run.scenario.data.validation for run in runs)
                privacy = [run.scenario.training.privacy.model_dump() for run in runs]
                if "epsilon" in one.at(one.start).get("training.privacy", {}):
                    assert all(settings.get("noise_multiplier") is None for settings in privacy)


@every_sweep
def test_tuned_studies_are_what_the_sweeps_chose(paper: str, sweep: Sweep) -> None:
    trials = read_trials(size_folder(RESULTS, PAPERS[paper], sweep.size), sweep)
    file = tuned_file(paper, sweep)
    assert file.exists() == bool(trials and sweep.reported)
    assert len(trials) in {0, sweep.runs}
    if file.exists():
        assert file.read_text(encoding="utf-8") == tuned_study(paper, sweep, trials)


def test_adult_is_tuned_below_one_accounted_epsilon() -> None:
    """Noise is calibrated to ε = 10 for 20 rounds of every device; a device that missed some has spent a little less.

    With noise that did not follow the batch the ε of the largest would be a multiple of that of the smallest.
    """
    for sweep in SWEEPS["zcdp-secure-aggregation"]:
        folder = size_folder(RESULTS, PAPERS["zcdp-secure-aggregation"], sweep.size)
        for one in read_trials(folder, sweep):
            assert 8.5 < one.epsilon <= 10


# --- a sweep from its runs to its study --------------------------------------------------------------------------


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sweep]:
    """A sweep of two methods on digits that takes seconds, known as a paper's."""
    folder = tmp_path / "studies"
    (folder / "example" / "small").mkdir(parents=True)
    (folder / "example" / "base.yaml").write_text(
        "{name: e, rounds: 1, data: {partition: {scheme: iid}}, clients: {count: 3}, model: {name: logistic}, "
        "training: {steps: 4, epochs: null}, uplink: {kind: ideal}, trace: {events: false, models: none}}",
        encoding="utf-8",
    )
    (folder / "example" / "small" / "first.yaml").write_text(
        f"{{base: ../base.yaml, set: {{{LR}: 7.0}}, zip: {{training.steps: [1, 2]}}, seeds: 3}}", encoding="utf-8"
    )
    grid = {LR: (0.0001, 0.5)}
    methods = tuple(TunedMethod(name, {BATCH: batch}, grid, {LR: 0.0001}) for name, batch in (("few", 5), ("many", 20)))
    sweep = Sweep("one", "Digits", "small", "first", 2, methods, {}, {LR: "rate"}, seeds=(1001, 1002), reported=3)
    monkeypatch.setattr(tuning_runs, "STUDIES", folder)
    monkeypatch.setitem(SWEEPS, "example", (sweep,))
    yield sweep


@pytest.mark.slow
def test_a_sweep_becomes_a_study(example: Sweep, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "results"
    tune_paper("example", "small", (), folder, tmp_path / "work", workers=1, resume=False, quiet=True)
    trials = read_trials(folder, example)
    assert len(trials) == example.runs == 8
    assert {one.provenance.commit for one in trials} == {current_commit()}
    assert all(one.provenance.kept and one.provenance.seconds > 0 for one in trials)
    study = yaml.safe_load(tuned_file("example", example).read_text(encoding="utf-8"))
    assert study["zip"] == {BATCH: [5, 20], LR: [0.5, 0.5]}  # a rate of 0.0001 learns nothing in one round
    assert study["set"] == {"data.validation": {"fraction": 0.1}}  # the study's own rate is gone
    assert study["seeds"] == 3
    assert capsys.readouterr().out == ""

    before = sorted((tmp_path / "work").rglob("trace.h5"), key=str)
    stamps = [file.stat().st_mtime_ns for file in before]
    again = run_sweep("example", example, tmp_path / "work", current_commit(), unwatched, workers=1, resume=True)
    assert [file.stat().st_mtime_ns for file in before] == stamps
    write_trials(folder, example, again)
    assert read_trials(folder, example) == trials

    first = (folder / "tuning-one.svg").read_bytes()
    write_sweep_figure(folder, "example", example, trials)
    assert (folder / "tuning-one.svg").read_bytes() == first
    rows = choice_rows(example, trials)
    assert rows[0]["chosen"].startswith("rate 0.5: ")
    assert rows[0]["at the edge of the grid"] == "rate"
    lines = tuning_lines("example", "one", folder)
    assert lines[0].endswith("(example/tuning-one.svg#only-light)")
    assert lines[-1].startswith("| many | 2 × 2 |")


def test_a_sweep_whose_rates_other_studies_take_writes_none(
    example: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = replace(example, reported=0)
    monkeypatch.setitem(SWEEPS, "example", (taken,))
    found = [
        Trial(one.name, at, seed, 0.5, 1.0, 1.0, "") for one in taken.methods for at in (0, 1) for seed in taken.seeds
    ]
    monkeypatch.setattr("publications.tuning_command.run_sweep", lambda *settings, **rest: found)
    tune_paper("example", "small", (), tmp_path, tmp_path, workers=1, resume=False, quiet=False)
    assert read_trials(tmp_path, taken) == found
    assert not tuned_file("example", taken).exists()
    said = capsys.readouterr().out
    assert "chosen: rate 0.0001: 50.00 %" in said and "study" not in said


def test_what_a_sweep_writes_does_not_change_the_commit_of_the_next(
    example: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The study that the first writes is a file that numbers follow from."""
    sweeps = tuple(replace(example, name=name) for name in ("one", "two"))
    monkeypatch.setitem(SWEEPS, "example", sweeps)
    monkeypatch.setattr(
        "publications.tuning_command.current_commit", lambda: "+" if tuned_file("example", example).exists() else ""
    )
    commits = []

    def found(paper: str, sweep: Sweep, work: Path, commit: str, *rest: object, **options: object) -> list[Trial]:
        commits.append(commit)
        settings = itertools.product(sweep.methods, (0, 1), sweep.seeds)
        return [Trial(method.name, at, seed, 0.5, 1.0, 1.0, "") for method, at, seed in settings]

    monkeypatch.setattr("publications.tuning_command.run_sweep", found)
    tune_paper("example", "small", (), tmp_path, tmp_path, workers=1, resume=False, quiet=True)
    assert tuned_file("example", sweeps[1]).exists() and commits == ["", ""]


def test_what_is_not_run_says_its_command(example: Sweep, tmp_path: Path) -> None:
    assert tuning_lines("example", "one", tmp_path) == [
        "*Not run yet: `python -m publications tune example --size small`, 8 runs.*"
    ]
    with pytest.raises(ValueError, match="found no sweep 'two'; allowed: one"):
        tuning_lines("example", "two", tmp_path)
    with pytest.raises(ValueError, match="found size full; allowed: small"):
        tuning_lines("example", "one", tmp_path, "full")


def test_an_unknown_sweep(example: Sweep, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="found two; allowed: one"):
        tune_paper("example", "small", ("two",), tmp_path, tmp_path, workers=1, resume=False, quiet=True)
    with pytest.raises(ScenarioError, match="no sweep in size full"):
        tune_paper("example", "full", (), tmp_path, tmp_path, workers=1, resume=False, quiet=True)


def test_the_command_is_there() -> None:
    assert {option.name for option in commands.command.commands["tune"].params} >= {"name", "size", "only", "resume"}


def test_a_sweep_of_many_keys_stands_in_three_rows() -> None:
    """Multi-objective clipping has eight tuned keys; a method without a key is absent from its panel."""
    sweep = find_sweep("moo-adaptive-clipping", "clipping", "small")
    trials = [
        Trial(method.name, at, seed, 0.5 + 0.01 * at, 1.0, 3.61, "")
        for method in sweep.methods
        for at in range(sweep.budget)
        for seed in sweep.seeds
    ]
    figure = draw_sweep(sweep, trials)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    keys = ["learning rate", "C", "batch", "ratio of C", "ratio of z", "T", "κ", "η_C"]
    assert [axes.get_xlabel() for axes in shown] == keys
    assert len({round(axes.get_position().y0, 3) for axes in shown}) == 3
    assert "tempered sigmoid" in {line.get_label() for line in shown[5].lines}
    assert "DP-SGD" not in {line.get_label() for line in shown[5].lines}


def test_points_of_many_methods_stay_at_their_values() -> None:
    """They stand apart by less than a tenth of their value; their names are all within the picture."""
    methods = tuple(TunedMethod(f"dynamic, σ = {at}.5", {"p": at}, {"a": (1.0, 2.0)}, {"a": 1.0}) for at in range(9))
    sweep = Sweep("s", "", "small", "x", 2, methods, {}, {}, seeds=(8,))
    trials = [Trial(one.name, at, 8, 0.5 + 0.01 * at, 1.0, 1.0, "") for one in methods for at in (0, 1)]
    figure = draw_sweep(sweep, trials)
    drawn = [np.atleast_1d(np.asarray(line.get_xdata())) for line in figure.axes[0].lines]
    places = np.stack([one for one in drawn if len(one) == 2])
    assert len(np.unique(places[:, 0])) == 9 and np.abs(np.log(places / [1.0, 2.0])).max() < math.log(1.1)
    figure.canvas.draw()
    legend, whole = figure.legends[0].get_window_extent(), figure.bbox
    assert legend.x0 >= whole.x0 and legend.x1 <= whole.x1


def test_values_that_lie_close_together_do_not_write_over_each_other() -> None:
    """Grids of two methods on one axis, with 0.2 in one of them and 0.25 in the other; both ends have a label."""
    grids = (0.0125, 0.05, 0.2), (0.25, 30.0, 32.0)
    methods = tuple(TunedMethod(str(at), {"p": at}, {"a": grid}, {"a": grid[0]}) for at, grid in enumerate(grids))
    sweep = Sweep("s", "", "small", "x", 3, methods, {}, {}, seeds=(8,))
    trials = [Trial(one.name, at, 8, 0.5 + 0.01 * at, 1.0, 1.0, "") for one in methods for at in range(3)]
    axes = draw_sweep(sweep, trials).axes[0]
    assert axes.get_xticks() == pytest.approx([*grids[0], *grids[1]])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.0125", "0.05", "0.2", "", "", "32"]


def test_what_won_is_seen_of_every_method() -> None:
    """A method far below the others, as one gradient step over the air, is not cut off; nor are they pressed flat."""
    good, bad = (TunedMethod(name, {"p": name}, {"a": (1.0, 2.0, 4.0)}, {"a": 1.0}) for name in ("good", "bad"))
    sweep = Sweep("s", "", "small", "x", 3, (good, bad), {}, {}, seeds=(8,))
    trials = [Trial("good", at, 8, 0.85 + 0.001 * at, 1.0, 1.0, "") for at in range(3)]
    trials += [Trial("bad", at, 8, (0.1, 0.7, 0.6)[at], 1.0, 1.0, "") for at in range(3)]
    low, high = draw_sweep(sweep, trials).axes[0].get_ylim()
    assert 60.0 < low < 70.0 and 85.2 < high < 90.0


def test_accuracies_are_not_below_0_and_the_caption_tells_what_is_cut_off(example: Sweep, tmp_path: Path) -> None:
    for least, cut in ((0.02, False), (0.68, True)):
        good, bad = (TunedMethod(name, {"p": name}, {"a": (1.0, 2.0, 4.0)}, {"a": 1.0}) for name in ("good", "bad"))
        sweep = replace(example, methods=(good, bad), seeds=(8,))
        trials = [Trial("good", at, 8, 0.7, 1.0, 1.0, "") for at in range(3)]
        trials += [Trial("bad", at, 8, (0.01, least, least)[at], 1.0, 1.0, "") for at in range(3)]
        assert draw_sweep(sweep, trials).axes[0].get_ylim()[0] >= 0
        assert ("far below are cut off" in "".join(_shown(sweep, trials, ""))) == cut
        assert "range of the seeds" not in choice_rows(sweep, trials)[0]


def test_levels_in_the_names_of_methods_have_a_panel_each() -> None:
    names = ("plain, z = 1", "wavelet, z = 1", "plain, z = 3", "wavelet, z = 3")
    methods = tuple(TunedMethod(name, {"p": name}, {"a": (1.0, 2.0)}, {"a": 1.0}) for name in names)
    sweep = Sweep("s", "", "small", "x", 2, methods, {}, {}, seeds=(8,))
    trials = [Trial(name, at, 8, 0.5 + 0.01 * at, 1.0, 1.0, "") for name in names for at in (0, 1)]
    panels = draw_sweep(sweep, trials).axes
    assert [axes.get_title() for axes in panels] == ["z = 1", "z = 3"]
    assert [axes.get_legend_handles_labels()[1] for axes in panels] == [["plain", "wavelet"]] * 2
