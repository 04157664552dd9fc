"""The wavelet paper: its numbers, its claims on made-up runs, and what its ε would have to be."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.special import comb, logsumexp

from publications import wavelet_epsilons
from publications.catalogue import PAPERS
from publications.claims import Outcome, judge
from publications.effects import Difference, MissingRuns, average
from publications.files import read_rows
from publications.joint_curves import CurveRow
from publications.levels import DATASET, common_levels
from publications.results import read_results
from publications.studies import STUDIES
from publications.sweeps import find_sweep
from publications.tables import AuditRow, RunRow, StudyTable, Tables
from publications.tuning import scores, winner
from publications.tuning_runs import read_trials
from publications.wavelet import WAVELET
from publications.wavelet_claims import CLAIMS, STATED
from publications.wavelet_methods import (
    CLIPPED,
    CLIPPED_WAV,
    FEDAVG_DYNAMIC,
    FEDAVG_WAV,
    KEYS,
    MECHANISM,
    ROWS,
    SIGMA,
    gain_rows,
)
from publications.wavelet_numbers import EPSILONS, GAINS, ROUNDS, SIGMAS, least_epsilon, most_affordable_rounds
from publications.wavelet_pictures import LABELS, draw_accuracy, draw_gains, draw_sample_curves
from wirelessfl.study import load_study

SEEDS = range(1, 6)
ROOT = Path(__file__).resolve().parents[2]
DATASETS = ("MNIST", "Fashion-MNIST", "CIFAR-10")
STORED = ROOT / "results" / "papers" / "wavelet-dp-fl"
ACCURACY = {
    ("sample", "gaussian"): 0.70,
    ("sample", "wavelet"): 0.80,
    ("dynamic", ""): 0.72,
    ("weighted", ""): 0.40,
    ("client", "gaussian"): 0.60,
    ("client", "wavelet"): 0.60,
    ("client-dynamic", ""): 0.65,
}


def run(study: str, mechanism: str, sigma: str, seed: int) -> RunRow:
    """A made-up run; wavelets gain more at σ = 3, and seeds shift all methods alike."""
    accuracy = ACCURACY[study, mechanism] + 0.01 * seed + (0.05 if (mechanism, sigma) == ("wavelet", "3") else 0.0)
    accuracy += 0.001 * np.sin(31 * seed + len(study) + len(mechanism))
    point = {DATASET: "mnist", SIGMA: sigma, **({MECHANISM: mechanism} if mechanism else {})}
    numbers = {
        "test_accuracy": accuracy,
        "test_loss": -np.log(accuracy),
        "epsilon_published": 5.0,
        "epsilon_accounted": np.inf if mechanism == "wavelet" else 5.0,
    }
    return RunRow(point, seed, 10, numbers, f"{study}-{seed}")


@pytest.fixture
def tables() -> Tables:
    studies = {}
    for name in dict.fromkeys(study for study, _ in ACCURACY):
        mechanisms = [mechanism for study, mechanism in ACCURACY if study == name]
        runs = [run(name, one, sigma, seed) for one in mechanisms for sigma in ("1", "3") for seed in SEEDS]
        studies[name] = StudyTable(name, tuple(runs[0].point), tuple(runs))
    return Tables({"size": "small", "runs": {name: len(one.runs) for name, one in studies.items()}}, studies)


def outcomes(tables: Tables) -> dict[str, Outcome]:
    return {claim.text: judge(claim, tables).outcome for claim in WAVELET.claims}


@pytest.mark.slow
def test_verdicts_follow_the_runs(tables: Tables) -> None:
    """As in the medium size; in the small one nobody tuned the rates."""
    found = outcomes(replace(tables, about={**tables.about, "size": "medium"}))
    small = outcomes(tables)
    for text in ("DP-SGD-WAV is more accurate than Dyn-DP-SGD.", "DP-FedAvg-WAV is more accurate than DP-FedAvg."):
        assert small[text] is Outcome.UNDECIDED
    expected = {
        "DP-SGD-WAV is more accurate than DP-SGD at the same noise multiplier.": Outcome.CONFIRMED,
        "DP-SGD-WAV has a lower test loss than DP-SGD at the same noise multiplier.": Outcome.CONFIRMED,
        "DP-SGD-WAV is more accurate than Dyn-DP-SGD.": Outcome.CONFIRMED,
        "DP-Adam and DP-AdaGrad are more accurate with wavelets.": Outcome.NOT_TESTED,
        "DP-FedAvg-WAV is more accurate than DP-FedAvg.": Outcome.CONFIRMED,
        "On MNIST the gain over DP-SGD grows with the noise.": Outcome.CONFIRMED,
        "The gains have the size that is stated.": Outcome.NOT_TESTED,
        "The guarantee is that of DP-SGD and DP-FedAvg with the same multiplier.": Outcome.CONTRADICTED,
        "At equal accounted ε, wavelets make DP-SGD more accurate.": Outcome.UNDECIDED,
    }
    assert {text: found[text] for text in expected} == expected


def test_a_finite_accounted_epsilon_would_confirm_the_guarantee(tables: Tables) -> None:
    def mended(table: StudyTable) -> StudyTable:
        runs = tuple(replace(one, numbers={**one.numbers, "epsilon_accounted": 5.0}) for one in table.runs)
        return replace(table, runs=runs)

    honest = replace(tables, studies={name: mended(table) for name, table in tables.studies.items()})
    claim = next(claim for claim in WAVELET.claims if claim.text.startswith("The guarantee"))
    assert judge(claim, honest).outcome is Outcome.CONFIRMED


def test_the_verdict_on_the_guarantee_quotes_the_audit(tables: Tables) -> None:
    point = {DATASET: "mnist", SIGMA: "1", MECHANISM: "wavelet"}
    audit = AuditRow(point, 1, 60, "sample", 5.0, 123.0, np.inf, 1e-5, "a gradient")
    sample = replace(tables.studies["sample"], audits=(audit,))
    claim = next(claim for claim in WAVELET.claims if claim.text.startswith("The guarantee"))
    found = judge(claim, replace(tables, studies={**tables.studies, "sample": sample}))
    assert "published 5, accounted ∞, empirical at least 123" in found.numbers


def test_gains_stand_beside_the_papers(tables: Tables) -> None:
    rows = gain_rows(tables)
    first = next(row for row in rows if row["over"] == "DP-SGD" and row["σ"] == "3")
    assert first["paper, points"] == "+9.16"
    # Made up: 0.10 and 0.05 more, -0.30; each run is off by at most a tenth of a point.
    assert float(first["here at equal σ"].split()[0]) == pytest.approx(15, abs=0.2)
    assert float(first["here at equal accounted ε"].split()[0]) == pytest.approx(-30, abs=0.2)


def test_numbers_of_the_paper_are_complete() -> None:
    assert len(GAINS) == 6
    assert all(len(by_sigma) == 3 for by_data in GAINS.values() for by_sigma in by_data.values())
    assert GAINS["DP-FedAvg"]["fashion_mnist"]["3"] == 27.3
    assert GAINS["DP-AdaGrad"]["cifar10"]["1"] == 4.25
    assert set(KEYS) == {DATASET, SIGMA}


def test_the_stated_epsilon_is_far_below_that_of_the_setting() -> None:
    """Against the central limit for many steps (Bu et al. 2020), μ = q √(T (e^(1/σ²) − 1)), within a fifth."""
    from wirelessfl.privacy import gaussian_epsilon

    for sigma, stated in EPSILONS["mnist"].items():
        steps = 300 * 50 * 600
        mu = np.sqrt(steps * np.expm1(1 / float(sigma) ** 2)) / 600
        found = least_epsilon(float(sigma))
        assert found == pytest.approx(float(gaussian_epsilon(mu, 1e-5)), rel=0.2)
        assert found > 4 * stated


def renyi_epsilon(sigma: float, rate: float, steps: int, delta: float) -> float:
    """ε of sampled Gaussian steps: binomial sums at whole orders (Mironov 2019), as Canonne et al. (2020) convert."""
    found = []
    for order in range(2, 129):
        k = np.arange(order + 1)
        terms = np.log(comb(order, k)) + (order - k) * np.log1p(-rate) + k * np.log(rate) + k * (k - 1) / (2 * sigma**2)
        spent = steps * float(logsumexp(terms)) / (order - 1)
        found.append(spent + np.log1p(-1 / order) - (np.log(delta) + np.log(order)) / (order - 1))
    return float(min(found))


def test_in_how_many_rounds_the_stated_epsilon_is_enough() -> None:
    """In so many each ε is at most the stated one, in one more not; fewer samples of a client afford fewer."""
    stated = EPSILONS["mnist"]

    def affordable(rounds: int) -> bool:
        steps = rounds * 50 * 600
        return all(renyi_epsilon(float(sigma), 1 / 600, steps, 1e-5) <= one for sigma, one in stated.items())

    found = most_affordable_rounds(stated)
    assert affordable(found) and not affordable(found + 1)
    assert most_affordable_rounds(stated, samples=300) < found
    assert most_affordable_rounds(dict.fromkeys(stated, 0.01)) == 0
    assert most_affordable_rounds(dict.fromkeys(stated, 100.0)) == ROUNDS


@pytest.mark.parametrize(
    ("factor", "outcome", "parts"),
    [(1.0, Outcome.UNDECIDED, 2), (0.01, Outcome.CONTRADICTED, 0), (10.0, Outcome.CONFIRMED, 0)],
)
def test_what_300_rounds_cost_depends_on_the_participation(
    factor: float, outcome: Outcome, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = {sigma: factor * one for sigma, one in EPSILONS["mnist"].items()}
    monkeypatch.setattr(wavelet_epsilons, "EPSILONS", {"mnist": stated})
    (claim,) = (one for one in CLAIMS if one.text.startswith("300 rounds of 50 local epochs"))
    verdict = judge(claim, Tables({"size": "small"}, {}))
    assert verdict.outcome is outcome and bool(verdict.remark) == bool(parts)
    assert verdict.effect is not None and len(verdict.effect.parts) == parts
    every = max(least_epsilon(float(sigma)) / one for sigma, one in stated.items())
    assert verdict.effect.value == pytest.approx(every)
    if parts:
        assert verdict.effect.parts[1].value <= 1 < every


def test_learning_curves_have_the_line_without_privacy(tables: Tables) -> None:
    """A panel for each level; what has not run is left out, and without any run there is no picture."""

    def with_curves(table: StudyTable, level: float) -> StudyTable:
        points = {tuple(one.point.items()): one.point for one in table.runs}.values()
        curves = tuple(CurveRow(point, at, level + 0.01 * at, 0.01, 5) for point in points for at in (2, 4))
        return replace(table, curves=curves)

    studies = {name: with_curves(table, 0.5) for name, table in tables.studies.items()}
    bare = StudyTable("baseline", (DATASET,), tuple(RunRow({DATASET: "mnist"}, seed, 10, {}) for seed in SEEDS))
    studies["baseline"] = with_curves(bare, 0.9)
    panels = [axes for axes in draw_sample_curves(replace(tables, studies=studies)).axes if axes.axison]
    assert [axes.get_title() for axes in panels] == ["MNIST σ = 1", "MNIST σ = 3"]
    lines = {str(line.get_label()): line for line in panels[0].lines}
    assert list(lines) == [*LABELS, "no privacy"]
    assert lines["no privacy"].get_linestyle() == "--"
    assert np.asarray(lines["no privacy"].get_ydata()) == pytest.approx([92, 94])
    del studies["dynamic"], studies["baseline"]
    panels = [axes for axes in draw_sample_curves(replace(tables, studies=studies)).axes if axes.axison]
    assert "dynamic" not in {str(line.get_label()) for line in panels[0].lines}
    with pytest.raises(MissingRuns):
        draw_sample_curves(Tables({"size": "small"}, {}))


def test_gains_are_drawn_with_the_papers_own(tables: Tables) -> None:
    first = draw_gains(tables).axes[0]
    paper = next(line for line in first.lines if line.get_label() == "paper")
    assert np.asarray(paper.get_ydata()).tolist() == [
        stated for by_sigma in GAINS["DP-SGD"].values() for stated in by_sigma.values()
    ]
    ours = next(line for line in first.lines if line.get_marker() == "o")
    assert np.asarray(ours.get_xdata(), dtype=float) + 0.15 == pytest.approx([0, 2])  # σ = 1 and 3 of MNIST
    assert first.get_title() == "over DP-SGD"


def test_a_size_in_which_one_method_has_not_ended_has_its_other_gains(tables: Tables) -> None:
    """Plain noise at sample level alone: gains of the client level, and pictures that say what is not there."""
    plain = tuple(one for one in tables.studies["sample"].runs if one.point[MECHANISM] == "gaussian")
    studies = {**tables.studies, "sample": replace(tables.studies["sample"], runs=plain)}
    del studies["weighted"]
    some = replace(tables, studies=studies)
    rows = gain_rows(some)
    assert len(rows) == STATED == 54
    run = [row["over"] for row in rows if row["here at equal σ"] != "not run"]
    assert run == ["DP-FedAvg"] * 2 + ["Dyn-DP-FedAvg"] * 2
    gains = draw_gains(some)
    words = {axes.get_title(): [text.get_text() for text in axes.texts] for axes in gains.axes}
    assert words["over DP-SGD"] == ["not run in this size"] and words["over DP-FedAvg"] == []
    (legend,) = gains.legends
    assert [text.get_text() for text in legend.get_texts()] == ["paper", "here at equal σ"]
    figure = draw_accuracy(some)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(LABELS[:3])
    shown = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title() for axes in shown] == ["SGD, a sample's privacy", "FedAvg, a client's privacy"]
    assert len(shown[0].get_xticks()) == 2
    for axes in shown:  # no whole interval is cut off
        low, high = axes.get_ylim()
        drawn = np.concatenate([np.asarray(line.get_ydata()) for line in axes.lines])
        assert 0 <= low < drawn.min() and drawn.max() < high <= 100
    for make in (draw_gains, draw_accuracy, gain_rows):
        with pytest.raises(MissingRuns):
            make(Tables({"size": "small"}, {}))


def off_by_a_point(tables: Tables, off: float) -> Tables:
    """Wavelets that gain what the paper states over DP-SGD, and ``off`` more at σ = 3; nothing else has run."""
    plain = [one for one in tables.studies["sample"].runs if one.point[MECHANISM] == "gaussian"]
    runs = []
    for one in plain:
        sigma = one.point[SIGMA]
        gain = GAINS["DP-SGD"]["mnist"][sigma] / 100 + (off if sigma == "3" else 0.0) + 1e-4 * one.seed
        numbers = {**one.numbers, "test_accuracy": one.numbers["test_accuracy"] + gain}
        runs.append(replace(one, point={**one.point, MECHANISM: "wavelet"}, numbers=numbers))
    sample = replace(tables.studies["sample"], runs=(*plain, *runs))
    return Tables({**tables.about, "size": "full"}, {"sample": sample})


def test_one_number_that_surely_differs_decides_on_the_stated_gains(tables: Tables) -> None:
    """Whatever has not run; agreement of some decides nothing; the sizes that cut rounds are not compared."""
    claim = next(one for one in WAVELET.claims if one.text == "The gains have the size that is stated.")
    ran = off_by_a_point(tables, 0.05)
    found = judge(claim, ran)
    assert found.outcome is Outcome.CONTRADICTED
    assert found.effect is not None and found.effect.value == pytest.approx(0.05, abs=1e-3)
    assert "DP-SGD MNIST σ = 3" in found.effect.name and "2 of 54 numbers: " in found.numbers
    for off in (0.0, 0.0195, -0.0195):
        agree = judge(claim, off_by_a_point(tables, off))
        assert agree.outcome is Outcome.NOT_TESTED and "52 of 54 numbers have not run" in agree.reason
    assert judge(claim, replace(ran, studies={})).outcome is Outcome.NOT_TESTED
    for size in ("small", "medium"):
        elsewhere = judge(claim, replace(ran, about={**ran.about, "size": size}))
        assert elsewhere.outcome is Outcome.NOT_TESTED and "rounds and local epochs" in elsewhere.reason


@pytest.mark.parametrize(("level", "outcome"), [(0.6, Outcome.CONFIRMED), (0.95, Outcome.CONTRADICTED)])
def test_wavelets_are_held_against_training_without_privacy(tables: Tables, level: float, outcome: Outcome) -> None:
    rows = [RunRow({DATASET: "mnist"}, seed, 10, {"test_accuracy": level + 0.001 * seed}) for seed in SEEDS]
    studies = {**tables.studies, "baseline": StudyTable("baseline", (DATASET,), tuple(rows))}
    claim = next(one for one in WAVELET.claims if "without privacy" in one.text)
    there = replace(tables, studies=studies, about={**tables.about, "size": "medium"})
    assert judge(claim, there).outcome is outcome
    assert judge(claim, replace(tables, studies=studies)).outcome is Outcome.UNDECIDED  # nobody tuned the small size
    assert judge(claim, tables).outcome is Outcome.NOT_TESTED


def test_axes_of_curves_begin_at_the_lowest_curve_after_a_quarter_of_the_rounds(tables: Tables) -> None:
    """Rounds 2 to 20: what the first four have is cut off, and no axis exceeds 100 %."""

    def curves(table: StudyTable, first: float, last: float) -> StudyTable:
        points = {tuple(one.point.items()): one.point for one in table.runs}.values()
        rounds = range(2, 21, 2)
        means = [first, first, *np.linspace(0.9, last, 8)]
        rows = [CurveRow(point, at, mean, 0.2, 5) for point in points for at, mean in zip(rounds, means, strict=True)]
        return replace(table, curves=tuple(rows))

    studies = {"sample": curves(tables.studies["sample"], 0.1, 0.99)}
    (panel, other) = (axes for axes in draw_sample_curves(replace(tables, studies=studies)).axes if axes.axison)
    assert panel.get_ylim() == other.get_ylim()
    low, high = panel.get_ylim()
    assert 85 < low < 90 and 99 < high <= 100
    studies = {"sample": curves(tables.studies["sample"], 0.1, np.nan)}
    assert draw_sample_curves(replace(tables, studies=studies)).axes[0].get_ylim() == (0, 100)


@pytest.mark.slow
def test_medium_has_the_papers_clients_and_data() -> None:
    """Rounds, epochs and seeds are cut, and nothing else."""
    for size, rounds, epochs, seeds in (("medium", 20, 5, 3), ("full", 300, 50, 5)):
        for study in ("sample", "client", "client-gradients", "median", "optimizers", "client-dynamic"):
            design = load_study(STUDIES / "wavelet-dp-fl" / size / f"{study}.yaml")
            found = {(one.scenario.rounds, one.scenario.training.epochs) for one in design.runs}
            assert found == {(rounds, epochs)}
            assert len(design.seeds) == seeds
            assert {one.scenario.clients.count for one in design.runs} == {100}
            assert len({one.scenario.data.dataset.name for one in design.runs}) == 3


def test_medium_takes_the_rates_that_won() -> None:
    sweep = find_sweep("wavelet-dp-fl", "rates", "medium")
    trials = read_trials(STUDIES.parents[1] / "results" / "papers" / "wavelet-dp-fl" / "medium", sweep)
    rates = {one.name: winner(scores(sweep, one, trials)).values["training.optimizer.lr"] for one in sweep.methods}
    for study in ("sample", "dynamic"):
        varied = yaml.safe_load((STUDIES / "wavelet-dp-fl" / "medium" / f"{study}.yaml").read_text("utf-8"))["zip"]
        noises = varied.get("training.privacy.mechanism", ["dynamic"] * 9)
        for noise, sigma, rate in zip(
            noises, varied["training.privacy.noise_multiplier"], varied["training.optimizer.lr"], strict=True
        ):
            name = "plain" if noise == "gaussian" else noise
            assert rate == rates[f"{name}, σ = {sigma:g}"]


@pytest.mark.parametrize(
    ("swept", "study", "symbol"),
    [
        ("client-rates", "client", "z"),
        ("client-rates", "client-dynamic", "z"),
        ("gradient-rates", "client-gradients", "z"),
        ("median-rates", "median", "σ"),
    ],
)
def test_medium_takes_the_settings_that_won(swept: str, study: str, symbol: str) -> None:
    """On all data sets those of MNIST."""
    sweep = find_sweep("wavelet-dp-fl", swept, "medium")
    trials = read_trials(STORED / "medium", sweep)
    won = {one.name: winner(scores(sweep, one, trials)).values for one in sweep.methods}
    varied = yaml.safe_load((STUDIES / "wavelet-dp-fl" / "medium" / f"{study}.yaml").read_text("utf-8"))["zip"]
    sigmas = varied[SIGMA]
    noises = varied.get(MECHANISM, ["dynamic"] * len(sigmas))
    for at, (noise, sigma) in enumerate(zip(noises, sigmas, strict=True)):
        name = f"{'plain' if noise == 'gaussian' else noise}, {symbol} = {sigma:g}"
        assert {key: varied[key][at] for key in won[name]} == won[name], name


def test_optimizers_take_the_rates_that_won() -> None:
    sweep = find_sweep("wavelet-dp-fl", "optimizers", "medium")
    trials = read_trials(STUDIES.parents[1] / "results" / "papers" / "wavelet-dp-fl" / "medium", sweep)
    rates = {one.name: winner(scores(sweep, one, trials)).values["training.optimizer.lr"] for one in sweep.methods}
    varied = yaml.safe_load((STUDIES / "wavelet-dp-fl" / "medium" / "optimizers.yaml").read_text("utf-8"))["zip"]
    keys = ("optimizer.name", "privacy.mechanism", "optimizer.lr")
    found = set(zip(*(varied[f"training.{key}"] for key in keys), strict=True))
    names = {"adam": "Adam", "adagrad": "AdaGrad", "gaussian": "plain", "wavelet": "wavelet"}
    assert {f"{names[optimizer]}, {names[noise]}": rate for optimizer, noise, rate in found} == rates
    assert len(found) == len(rates) == 4


PAGE = (ROOT / "docs" / "papers" / "wavelet-dp-fl.md").read_text("utf-8")


def stored_gains(size: str) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """(ours, paper's) by method and data set, in the order of σ."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in read_rows(STORED / size / "gains.csv"):
        found.setdefault((row["over"], row["data"]), []).append((row["here at equal σ"], row["paper, points"]))
    return found


def test_the_gains_in_the_text_are_the_stored_ones() -> None:
    medium, small = stored_gains("medium"), stored_gains("")
    text = " ".join(PAGE.split())
    gains, papers = zip(*medium["DP-SGD", "MNIST"], strict=True)
    ours = [one.split(" ")[0].replace("-", "−") for one in gains]
    shape = "{}, {} and {} points on MNIST at σ = 1, 1.5 and 3, where it has {}, {} and {};"
    assert shape.format(*ours, *(one.removeprefix("+") for one in papers)) in text

    def beside(over: str, *datas: str) -> list[tuple[float, float]]:
        return [(float(ours.split(" ")[0]), float(paper)) for data in datas for ours, paper in medium[over, data]]

    for over, shapes in {
        "DP-FedAvg": (
            "over DP-FedAvg by {:.1f} to {:.1f} points on MNIST (paper: {:.1f} to {:.0f})",
            "and {:.1f} to {:.1f} on Fashion-MNIST ({:.0f} to {:.0f}), over Dyn",
        ),
        "Dyn-DP-FedAvg": (
            "over Dyn-DP-FedAvg by {:.1f} to {:.1f} ({:.1f} to {:.1f})",
            "and {:.1f} to {:.1f} ({:.1f} to {:.1f})",
        ),
    }.items():
        for data, told in zip(DATASETS, shapes, strict=False):
            here, stated_there = zip(*beside(over, data), strict=True)
            assert told.format(min(here), max(here), min(stated_there), max(stated_there)) in text
        signs = {ours > 0 for ours, _ in beside(over, "CIFAR-10")}
        assert signs == {True, False} and "they have both signs" in text
    others = max(abs(ours - paper) for ours, paper in beside("DP-SGD", "Fashion-MNIST", "CIFAR-10"))
    assert f"differ from its by up to {others:.1f} points" in text
    kinds = (DATASETS[:2], DATASETS[2:])
    quotients = [sorted(ours / paper for ours, paper in beside("Dyn-DP-SGD", *some)) for some in kinds]
    told = "{:.1f} to {:.1f} times the paper's on MNIST and Fashion-MNIST, and {:.1f} to {:.1f} times on CIFAR-10"
    assert told.format(*(end for found in quotients for end in (found[0], found[-1]))) in text
    tables = read_results(WAVELET, STORED.parents[1])["medium"]
    apart = sorted(
        100 * tables.difference(wavelet.at(level), plain.at(level)).mean - GAINS[name][level[DATASET]][level[SIGMA]]
        for name, plain, wavelet, _ in ROWS
        if name in ("DP-Adam", "DP-AdaGrad")
        for level in common_levels(tables, plain, wavelet, KEYS)
    )
    assert f"between {-apart[0]:.1f} points below the paper's and {apart[-1]:.1f} above" in text
    times = [float(one.split(" ")[0]) / float(paper) for one, paper in small["DP-SGD", "MNIST"]]
    assert "the gains over DP-SGD are {:.1f}, {:.1f} and {:.1f} times the paper's".format(*times) in text


def test_gains_over_dynamic_clipping_at_client_level_differ_by_data_as_the_text_says() -> None:
    tables = read_results(WAVELET, STORED.parents[1])["medium"]
    means = {}
    for name, datas in {"tuned": ("mnist", "fashion_mnist"), "not": ("cifar10",)}.items():
        levels = [level for level in common_levels(tables, FEDAVG_WAV, FEDAVG_DYNAMIC, KEYS) if level[DATASET] in datas]
        assert len(levels) == 3 * len(datas)
        found = average([tables.difference(FEDAVG_WAV.at(one), FEDAVG_DYNAMIC.at(one)) for one in levels])
        means[name] = f"{100 * found.mean:+.2f} ± {100 * found.half_width:.2f}".replace("-", "−")
        assert abs(found.mean) > found.half_width
    told = (
        f"is {means['tuned']} points on MNIST and Fashion-MNIST and {means['not']} on CIFAR-10, where nothing is tuned"
    )
    assert told in " ".join(PAGE.split())


def test_adam_and_adagrad_beside_sgd_are_as_the_text_says() -> None:
    keys = ("data.dataset.name", SIGMA, MECHANISM)
    sgd: dict[tuple[str, ...], list[float]] = {}
    for row in read_rows(STORED / "medium" / "sample.runs.csv"):
        sgd.setdefault(tuple(row[key] for key in keys), []).append(100 * float(row["test_accuracy"]))
    rows = read_rows(STORED / "medium" / "optimizers.runs.csv")
    others: dict[str, dict[tuple[str, ...], list[float]]] = {"adam": {}, "adagrad": {}}
    for row in rows:
        levels = others[row["training.optimizer.name"]]
        levels.setdefault(tuple(row[key] for key in keys), []).append(100 * float(row["test_accuracy"]))
    assert {len(found) for levels in (sgd, *others.values()) for found in levels.values()} == {3}
    chance = others["adagrad"]["cifar10", "3", "gaussian"]
    assert f"chance on CIFAR-10 ({sum(chance) / 3:.1f} %)" in " ".join(PAGE.split())
    ahead = {
        name: [(sum(found) - sum(sgd[level])) / 3 for level, found in levels.items()] for name, levels in others.items()
    }
    assert len(ahead["adam"]) == len(ahead["adagrad"]) == 18
    (adam, least), (adagrad, nearest) = ((-min(found), -max(found)) for found in ahead.values())
    assert least < 0 < nearest
    words = f"Adam is up to {-least:.2f} points ahead and up to {adam:.2f} behind, "
    words += f"and AdaGrad {nearest:.2f} to {adagrad:.2f} behind"
    assert words in " ".join(PAGE.split())


def test_the_sweep_at_client_level_says_what_the_text_does() -> None:
    sweep = find_sweep("wavelet-dp-fl", "client-rates", "medium")
    trials = read_trials(STORED / "medium", sweep)
    best = {one.name: winner(scores(sweep, one, trials)) for one in sweep.methods}
    assert len(trials) == 81 == 9 * len(sweep.methods)
    for one in sweep.methods:
        assert all(grid[0] < best[one.name].values[key] < grid[-1] for key, grid in one.grid.items())
    norms = {name: one.values["training.privacy.clip"] for name, one in best.items()}
    assert {name for name, norm in norms.items() if norm == 1} == {"plain, z = 1.5", "plain, z = 3", "wavelet, z = 3"}
    assert set(norms.values()) == {1.0, 2.0}
    gains = [100 * (best[f"wavelet, z = {z}"].accuracy - best[f"plain, z = {z}"].accuracy) for z in ("1", "1.5", "3")]
    words = "{:+.2f}, {:+.2f} and {:+.2f} points ahead of the best of plain noise".format(*gains)
    assert words in " ".join(PAGE.split())


def test_the_sweep_of_algorithm_2_says_what_the_text_does() -> None:
    sweep = find_sweep("wavelet-dp-fl", "gradient-rates", "medium")
    trials = read_trials(STORED / "medium", sweep)
    found = {one.name: scores(sweep, one, trials) for one in sweep.methods}
    norm, rate = "training.privacy.gradient_clip", "training.optimizer.lr"
    accuracy = {
        name: {(one.values[norm], one.values[rate]): 100 * one.accuracy for one in tried}
        for name, tried in found.items()
    }
    best = {name: winner(tried).values for name, tried in found.items()}
    others = {name: (one[norm], one[rate]) for name, one in best.items() if (one[norm], one[rate]) != (0.5, 6.4)}
    assert others == {"wavelet, z = 1": (2, 1.6)}
    assert [max(values) for values in sweep.methods[0].grid.values()] == [2, 6.4]
    assert [min(values) for values in sweep.methods[0].grid.values()] == [0.5, 0.8]
    for z in ("1", "1.5", "3"):
        plain = accuracy[f"plain, z = {z}"]
        assert plain[0.5, 6.4] > plain[1, 3.2] > plain[2, 1.6]
    beyond = [(at, points) for tried in accuracy.values() for at, points in tried.items() if at[0] * at[1] > 3.2]
    learnt = sorted(points for at, points in beyond if points > 11.5)
    assert {at for at, points in beyond if points > 11.5} == {(2, 3.2)} and len(learnt) == 3
    text = " ".join(PAGE.split())
    assert f"three of the six runs have from {learnt[0]:.1f} to {learnt[-1]:.1f} %" in text
    tops = {name: max(tried.values()) for name, tried in accuracy.items()}
    gains = [tops[f"wavelet, z = {z}"] - tops[f"plain, z = {z}"] for z in ("1", "1.5", "3")]
    words = "{:+.2f}, {:+.2f} and {:+.2f} points ahead of the best of plain noise at z = 1, 1.5 and 3."
    assert words.format(*gains).replace("-", "−") in text


def test_the_sweep_with_the_median_norm_says_what_the_text_does() -> None:
    rates: dict[str, dict[str, float]] = {}
    for name in ("rates", "median-rates"):
        sweep = find_sweep("wavelet-dp-fl", name, "medium")
        trials = read_trials(STORED / "medium", sweep)
        best = {one.name: winner(scores(sweep, one, trials)) for one in sweep.methods}
        rates[name] = {method: one.values["training.optimizer.lr"] for method, one in best.items()}
        assert sweep.budget == 4
    for one in sweep.methods:
        (grid,) = one.grid.values()
        assert grid[0] < rates["median-rates"][one.name] < grid[-1]
    times: dict[str, list[float]] = {"plain": [], "wavelet": []}
    for method, rate in rates["median-rates"].items():
        times[method.split(",")[0]].append(rates["rates"][method] / rate)
    plain, wavelet = ((min(found), max(found)) for found in times.values())
    words = "Plain noise wants a rate {:.2g} to {:.2g} times smaller than with a norm of 1, ".format(*plain)
    words += "wavelets one {:.2g} to {:.2g} times smaller.".format(*wavelet)
    assert words in " ".join(PAGE.split())


def test_what_the_text_says_of_the_median_norm() -> None:
    medium, text = read_results(PAPERS["wavelet-dp-fl"], ROOT / "results")["medium"], " ".join(PAGE.split())

    def point(noise: str, data: str, sigma: str) -> dict[str, str]:
        return {MECHANISM: noise, DATASET: data, SIGMA: sigma}

    def accuracy(noise: str, data: str, sigma: str) -> float:
        found = medium.study("median").by_seed("test_accuracy", point(noise, data, sigma))
        assert sorted(found) == [1, 2, 3]
        return 100 * float(np.mean(list(found.values())))

    def told(words: str, *gains: Difference) -> str:
        return words.format(*(one.text().removesuffix(" points").replace("-", "−") for one in gains))

    signs = []
    for data, words in (
        ("mnist", "{}, {} and {} points on MNIST at σ = 1, 1.5 and 3"),
        ("fashion_mnist", "and {}, {} and {} on Fashion-MNIST: all but the first tell the sign"),
    ):
        both = [[("median", point(noise, data, sigma)) for noise in ("wavelet", "gaussian")] for sigma in SIGMAS]
        gains = [medium.difference(wavelet, plain) for wavelet, plain in both]
        assert told(words, *gains) in text, told(words, *gains)
        signs += [one.low > 0 for one in gains]
    assert signs == [False, True, True, True, True, True]
    plain, wavelets = ([accuracy(noise, "cifar10", sigma) for sigma in SIGMAS] for noise in ("gaussian", "wavelet"))
    chance = "plain noise is at chance ({:.1f}, {:.1f} and {:.1f} %), where wavelets have {:.1f}, {:.1f} and {:.1f} %"
    assert chance.format(*plain, *wavelets) in text, chance.format(*plain, *wavelets)
    more: dict[tuple[str, str], Difference] = {}
    for data, sigma in itertools.product(("mnist", "fashion_mnist", "cifar10"), SIGMAS):
        at = point("wavelet", data, sigma)
        more[data, sigma] = medium.difference(("sample", at), ("median", at))
    assert all(one.mean > 0 for one in more.values())
    assert (
        f"by up to {100 * max(one.mean for one in more.values()):.2f} points; on Fashion-MNIST three seeds do not"
        in text
    )
    assert {data for (data, _), one in more.items() if one.low <= 0} == {"fashion_mnist"}
    assert all(one.low <= 0 for (data, _), one in more.items() if data == "fashion_mnist")


def test_where_wavelets_are_ahead_of_no_privacy_is_said() -> None:
    bare = {row["data.dataset.name"]: float(row["accuracy"]) for row in read_rows(STORED / "medium" / "baseline.csv")}
    ahead = {
        (row["data.dataset.name"], row[SIGMA]): 100 * float(row["accuracy"])
        for row in read_rows(STORED / "medium" / "sample.csv")
        if row[MECHANISM] == "wavelet" and float(row["accuracy"]) > bare[row["data.dataset.name"]]
    }
    assert list(ahead) == [("cifar10", "1"), ("cifar10", "1.5")]
    one, other = ahead.values()
    words = f"at σ = 1 and 1.5 ({one:.1f} and {other:.1f} % against {100 * bare['cifar10']:.1f})"
    assert words in " ".join(PAGE.split())
    rounds = [row for row in read_rows(STORED / "medium" / "baseline.rounds.csv") if row["metric"] == "test_accuracy"]
    curve = [float(row["mean"]) for row in rounds if row["data.dataset.name"] == "cifar10"]
    assert curve == sorted(curve)


def test_tuned_clipped_gradients_gain_what_the_text_says() -> None:
    medium, text = read_results(PAPERS["wavelet-dp-fl"], ROOT / "results")["medium"], " ".join(PAGE.split())
    signs, spans = [], []
    rows = read_rows(STORED / "medium" / "client-gradients.csv")
    for name, data, words in (
        ("MNIST", "mnist", "wavelets gain {}, {} and {} points on MNIST at z = 1, 1.5 and 3"),
        ("Fashion-MNIST", "fashion_mnist", ", {}, {} and {} on Fashion-MNIST"),
        ("CIFAR-10", "cifar10", ", and {}, {} and {} on CIFAR-10"),
    ):
        levels = {sigma: {DATASET: data, SIGMA: sigma} for sigma in ("1", "1.5", "3")}
        found = {at: medium.difference(CLIPPED_WAV.at(level), CLIPPED.at(level)) for at, level in levels.items()}
        told = words.format(*(one.text().removesuffix(" points").replace("-", "−") for one in found.values()))
        assert told in text, told
        signs += [f"{name} at z = {at}" for at, one in found.items() if one.low > 0 or one.high < 0]
        ends = sorted(100 * float(row["accuracy"]) for row in rows if row[DATASET] == data)
        spans.append(f"from {ends[0]:.1f} to {ends[-1]:.1f} %")
    assert f"Of these nine two tell the sign: {', '.join(signs)}." in text
    finite = [row for row in rows if float(row["epsilon_accounted"]) < np.inf]
    assert len(rows) == 18 and [row[SIGMA] for row in finite] == ["1", "1.5", "3"]
    assert {(row[MECHANISM], row[DATASET]) for row in finite} == {("gaussian", "cifar10")}
    spent = ["{:,.0f}".format(float(f"{float(row['epsilon_accounted']):.3g}")) for row in finite]
    assert "for plain noise on CIFAR-10, where it is {}, {} and {}.".format(*spent) in text
    moved = {
        row["noise"]: row["a client moves its update by"] for row in read_rows(STORED / "medium" / "algorithm-2.csv")
    }
    assert moved["plain"] == "960 C at most" and "moves its update by up to 960 C, on CIFAR-10 by 160 C" in text
    one = load_study(STUDIES / "wavelet-dp-fl" / "medium" / "client-gradients.yaml").runs[-1].scenario.training
    assert one.epochs is not None and 10_000 // 100 // one.batch_size * one.epochs * one.optimizer.lr == 160
    (judged,) = (row for row in read_rows(STORED / "claims.csv") if "where gradients are clipped" in row["claim"])
    assert judged["outcome"] == "undecided" and judged["size"] == "medium"
    assert f"over data sets and z is {judged['effect'].split(' points')[0]} points, which" in text
    bare = [f"{100 * float(row['accuracy']):.1f}" for row in read_rows(STORED / "medium" / "client-baseline.csv")]
    told = "accuracies are {}, {} and {}, and without privacy {}, {} and {} %".format(*spans, *bare)
    assert told in text, told


def test_clipped_gradients_gain_and_cost_what_the_text_says() -> None:
    rows = {
        (row[MECHANISM], row["data.dataset.name"], row[SIGMA]): row
        for row in read_rows(STORED / "client-gradients.csv")
    }

    small = read_results(PAPERS["wavelet-dp-fl"], ROOT / "results")["small"]
    unsure = []

    def gain(data: str, sigma: str) -> str:
        level = {DATASET: data, SIGMA: sigma}
        found = small.difference(CLIPPED_WAV.at(level), CLIPPED.at(level))
        unsure.extend([(data, sigma)] if found.low < 0 else [])
        return found.text().removesuffix(" points")

    one, middle, three = (gain("mnist", sigma) for sigma in ("1", "1.5", "3"))
    others = f"on Fashion-MNIST {gain('fashion_mnist', '1.5')} and on CIFAR-10 {gain('cifar10', '1.5')} at z = 1.5"
    text = " ".join(PAGE.split())
    assert f"wavelets gain {one}, {middle} and {three} points on MNIST" in text and others in text
    assert unsure == [("mnist", "1"), ("mnist", "1.5"), ("fashion_mnist", "1.5")]
    ends = sorted(100 * float(row["accuracy"]) for row in rows.values())
    assert f"Accuracies are from {ends[0]:.0f} to {ends[-1]:.0f} %" in text
    # What is accounted for runs is what is computed of Algorithm 2 without one
    computed = {
        row["noise"]: row
        for row in read_rows(STORED / "algorithm-2.csv")
        if row["amount of noise"] == "zC/(q_c K), as in the studies here"
    }
    for words, noise in (("plain", "gaussian"), ("wavelets", "wavelet")):
        assert computed[words]["a client moves its update by"] == "0.4 C at most"
        accounted = float(rows[noise, "mnist", "1"]["epsilon_accounted"])
        assert accounted == pytest.approx(float(computed[words]["ε, z = 1"].replace(",", "")), rel=1e-3)
    for row in rows.values():
        assert (float(row["epsilon_accounted"]) < float(row["epsilon_published"])) == (row[MECHANISM] == "gaussian")


def test_what_the_text_says_of_epsilons_and_rounds() -> None:
    later = []
    for size in ("", "medium"):
        rows = [row for row in read_rows(STORED / size / "client.csv") if row[MECHANISM] == "wavelet"]
        assert rows and all(float(row["epsilon_accounted"]) > 4000 for row in rows)
        above = {row["data.dataset.name"] for row in rows if float(row["epsilon_accounted"]) == np.inf}
        assert above <= {"cifar10"}
        for row in read_rows(STORED / size / "convergence.csv"):
            own, plain = (
                row[f"{who}, 95 % of {whose} last accuracy"] for who, whose in (("wavelets", "their"), ("plain", "its"))
            )
            if int(own) > int(plain):
                assert (row["data"], size) == ("CIFAR-10", "medium")
                later.append(f"over {row['method']} at {row['σ']} round {own} against {plain}")
    told = f"With two exceptions (CIFAR-10, medium size: {', '.join(later)}) wavelets have 95 % of their own"
    assert told in " ".join(PAGE.split())
    clipped = read_rows(STORED / "client-gradients.csv")
    bounded = [float(row["epsilon_accounted"]) for row in clipped if row[MECHANISM] == "wavelet"]
    assert max(bounded) < np.inf and f"is from {min(bounded):.0f} to above a million there" in " ".join(PAGE.split())
    dynamic = read_rows(STORED / "dynamic.csv")
    assert len(dynamic) == 5
    assert all(float(row["epsilon_accounted"]) > float(row["epsilon_published"]) for row in dynamic)
    assert {row["epsilon_accounted"] for row in read_rows(STORED / "client-unclipped.csv")} == {"inf"}
    sweep = find_sweep("wavelet-dp-fl", "rates", "medium")
    rounds = yaml.safe_load((STUDIES / "wavelet-dp-fl" / "medium" / "sample.yaml").read_text("utf-8"))["set"]["rounds"]
    assert (sweep.change["rounds"], rounds, len(sweep.seeds), sweep.budget) == (8, 20, 1, 4)
    assert "after 8 of the 20 rounds and has one seed" in " ".join(PAGE.split())
