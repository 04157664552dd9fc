"""The zCDP paper's studies: their noise is that of Theorem 1, and the case against it stands."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wirelessfl as wfl
from publications.catalogue import PAPERS
from publications.claims import Outcome, judge
from publications.effects import MissingRuns
from publications.gradients import GRADIENT_NORM
from publications.joint_curves import CurveRow
from publications.runner import load_designs
from publications.tables import RunRow, StudyTable, Tables, matches, value_of
from publications.zcdp import ZCDP
from publications.zcdp_curves import falls_at_first, gradient_norms_apart, logistic_rises_again
from publications.zcdp_measured import FIRST_DROP, LOSS_RISE, first_drop, loss_rise
from publications.zcdp_points import (
    EPSILONS,
    KINDS,
    LEVELS,
    METHODS,
    NOISE,
    PAPER_LEVELS,
    PAPER_NOISES,
    STEPS,
    convergence_point,
    method_point,
    trade_off_point,
)
from publications.zcdp_sum import NOISE_STD, SAMPLES, epsilon_of_sum, published_epsilon, uploads
from wirelessfl.api import make_plan
from wirelessfl.privacy import zcdp_epsilon
from wirelessfl.study.factors import values_at


@pytest.mark.parametrize("size", ["small", "full"])
def test_the_studies_hold_the_points_that_claims_ask_for(size: str) -> None:
    """Also: the noise in the files is that of Theorem 1, which `method_point` and `trade_off_point` compute."""
    designs = load_designs(PAPERS["zcdp-secure-aggregation"], "small" if size == "small" else "full")
    points = {
        name: [
            {key: value_of(value) for key, value in values_at(design.factors, run.levels).items()}
            for run in design.runs
        ]
        for name, design in designs.items()
    }
    wanted = [
        (f"against-dp-sgd-{kind}", method_point(size, kind, method)) for kind in KINDS for method in range(len(METHODS))
    ]
    wanted += [
        (f"trade-off-{kind}", trade_off_point(size, kind, epsilon, uplink))
        for kind in KINDS
        for epsilon in EPSILONS
        for uplink in ("secure_aggregation", "ideal")
    ]
    wanted += [
        convergence_point(kind, noise, steps)
        for kind, (noises, many) in LEVELS.items()
        for noise in noises
        for steps in many
    ]
    wanted += [
        convergence_point(kind, noise, steps)
        for kind, (noises, many) in PAPER_LEVELS.items()
        for noise in noises
        for steps in many
        if size == "full"
    ]
    wanted += [
        convergence_point(kind, noise, steps)
        for kind, (_, many) in LEVELS.items()
        for noise in PAPER_NOISES[size, kind]
        for steps in many
    ]
    for study, point in wanted:
        assert any(matches(found, point) for found in points[study]), (study, point)


def test_theorem_1_gives_back_the_epsilon() -> None:
    """By hand: C = 20 · 10/16 = 12.5, τ = 10, r = 10, n_i = 500, γ = 50."""
    sigma = method_point("small", "logistic", 0)["training.privacy"]["noise_std"]
    assert zcdp_epsilon(2 * 12.5 * 10 / (10 * 500 * 50 * sigma**2), 1e-4) == pytest.approx(10, rel=1e-4)


@pytest.mark.parametrize(
    ("scaled", "raw", "outcome", "remark"),
    [
        ((0.1, 0.11, 0.12), (0.2, 0.21, 0.22), Outcome.CONFIRMED, ""),
        ((-0.1, -0.11, -0.12), (-0.2, -0.21, -0.22), Outcome.CONTRADICTED, ""),
        ((0.1, 0.11, 0.12), (-0.1, -0.11, -0.12), Outcome.UNDECIDED, "it depends on scaling"),
        ((0.1, 0.11, 0.12), (0.1, 0.2, 0.3), Outcome.UNDECIDED, "not sure at every scaling"),  # 0.2 ± 0.248
    ],
)
def test_a_loss_rises_again_if_that_is_sure_seed_by_seed_at_either_scaling(
    scaled: tuple[float, ...], raw: tuple[float, ...], outcome: Outcome, remark: str
) -> None:
    """What lies between the two windows does not count: their places are not chosen by the curve."""
    found = logistic_rises_again(_with_rises(scaled, raw))
    assert (found.outcome, found.remark) == (outcome, remark)
    assert found.effect is not None
    for part, rises in zip(found.effect.parts, (scaled, raw), strict=True):
        assert part.value == pytest.approx(np.mean(rises))
        half = stats.t.ppf(1 - 0.05 / 4, 2) * np.std(rises, ddof=1) / np.sqrt(3)  # each at half of the 5 %
        assert (part.high - part.low) / 2 == pytest.approx(half)
    assert found.numbers.count("least in rounds 45-52 (6)") == 2


def test_a_rise_is_not_judged_before_round_100_or_without_the_seeds() -> None:
    claim = logistic_rises_again(_with_rises((0.1, 0.2), (0.1, 0.2), rounds=99))
    assert claim.outcome is Outcome.NOT_TESTED
    with pytest.raises(MissingRuns):
        logistic_rises_again(_with_rises((0.1, math.nan), (0.1, 0.2)))


def _with_rises(scaled: tuple[float, ...], raw: tuple[float, ...], rounds: int = 100) -> Tables:
    """Runs with these rises; the mean loss is 9 before round 45, 6 for eight rounds, and 7 to the end."""
    point = {NOISE: "0.001", STEPS: "40"}
    losses = {at: 9.0 if at < 45 else 6.0 if at < 53 else 7.0 for at in range(1, rounds + 1)}
    rows = tuple(CurveRow(point, at, mean, 0.1, 5, "train_loss") for at, mean in losses.items())
    tables = {}
    for name, rises in (("convergence-logistic", scaled), ("unscaled-logistic", raw)):
        runs = tuple(RunRow(point, seed, rounds, {LOSS_RISE: rise}) for seed, rise in enumerate(rises, start=1))
        tables[name] = StudyTable(name, (NOISE, STEPS), runs, rows)
    return Tables({}, tables)


def test_the_rise_and_the_drop_of_a_run(tmp_path: Path) -> None:
    """Of a run, from its own loss; the first model's accuracy by a run of one round that learns nothing."""
    base: dict[str, Any] = {
        "name": "two-clouds",
        "rounds": 100,
        "data": {"dataset": {"name": "publications.clouds:overlapping"}, "partition": {"scheme": "iid"}},
        "model": {"name": "mlp", "hidden": [16, 8]},
        "clients": {"count": 2},
        "training": {"steps": 20, "batch_size": 20, "optimizer": {"lr": 1.0}},
        "uplink": {"kind": "ideal"},
        "trace": {"models": "every 50"},
    }
    result = wfl.simulate(base, out=tmp_path / "run")
    losses = result.to_dataframe()["train_loss"].to_numpy()
    scenario = wfl.load_scenario(base)
    wanted = sum(losses[92:100]) / 8 - sum(losses[36:44]) / 8
    assert loss_rise(scenario, tmp_path / "run" / "trace.h5") == pytest.approx(wanted, abs=1e-12)
    still = wfl.simulate(
        {**base, "rounds": 1, "training": {**base["training"], "optimizer": {"lr": 1e-12}}}, out=tmp_path / "still"
    )
    before = still.to_dataframe()["test_accuracy"].iloc[0]
    after = result.to_dataframe()["test_accuracy"].iloc[0]
    assert before != after
    assert first_drop(scenario, tmp_path / "run" / "trace.h5") == pytest.approx(before - after, abs=1e-12)


def test_a_run_that_is_too_short_or_holds_no_model_has_no_number(tmp_path: Path) -> None:
    base: dict[str, Any] = {
        "name": "short",
        "rounds": 99,
        "model": {"name": "mlp"},
        "trace": {"models": "none"},
        "evaluate": {"every": 1},
    }
    base |= {
        "data": {"dataset": {"name": "publications.clouds:overlapping"}, "partition": {"scheme": "iid"}},
        "clients": {"count": 2},
    }
    base |= {"training": {"steps": 1}, "uplink": {"kind": "ideal"}}
    wfl.simulate(base, out=tmp_path / "run")
    scenario = wfl.load_scenario(base)
    assert math.isnan(loss_rise(scenario, tmp_path / "run" / "trace.h5"))
    assert math.isnan(first_drop(scenario, tmp_path / "run" / "trace.h5"))


@pytest.mark.parametrize(
    ("apart", "outcome"),
    [
        ((0.05, 0.02, 0.03), Outcome.CONFIRMED),
        ((0.05, 0.0, 0.03), Outcome.UNDECIDED),  # the mean over ε is surely above 0
        ((0.05, -0.02, 0.03), Outcome.CONTRADICTED),  # here too
    ],
)
def test_always_is_judged_at_each_epsilon(apart: tuple[float, float, float], outcome: Outcome) -> None:
    runs = []
    for epsilon, difference in zip(EPSILONS, apart, strict=True):
        for uplink in ("secure_aggregation", "ideal"):
            where = trade_off_point("full", "logistic", epsilon, uplink)
            point = {key: value_of(value) for key, value in where.items()}
            for seed in (1, 2, 3):
                more = difference + 0.001 * (seed == 1) if uplink == "secure_aggregation" else 0.0
                runs.append(RunRow(point, seed, 20, {"test_accuracy": 0.7 + more}))
    table = StudyTable("trade-off-logistic", tuple(runs[0].point), tuple(runs))
    claim = next(one for one in ZCDP.claims if "always" in one.text and one.text.startswith("Logistic"))
    found = judge(claim, Tables({"size": "full"}, {table.name: table}))
    assert found.outcome is outcome
    assert [f"ε = {epsilon}: " in found.numbers for epsilon in EPSILONS] == [True] * 3


@pytest.mark.parametrize(
    ("drops", "outcome"),
    [
        ({5: (0.05, 0.0505), 20: (0.07, 0.071)}, Outcome.CONFIRMED),
        ({5: (0.05, 0.0505), 20: (-0.07, -0.071)}, Outcome.CONTRADICTED),  # on average
        ({5: (0.05, 0.0505), 20: (-0.07, 0.071)}, Outcome.UNDECIDED),
    ],
)
def test_an_accuracy_falls_at_first_if_round_1_surely_costs_some_on_average_over_the_steps(
    drops: dict[int, tuple[float, ...]], outcome: Outcome
) -> None:
    points = {steps: {NOISE: "0.01", STEPS: str(steps)} for steps in drops}
    runs = [
        RunRow(points[steps], seed, 3, {FIRST_DROP: drop})
        for steps, two in drops.items()
        for seed, drop in enumerate(two, start=1)
    ]
    ends = {5: 0.76, 20: 0.78}
    rows = [
        CurveRow(point, at, mean, 0.01, 2)
        for steps, point in points.items()
        for at, mean in enumerate((0.7, 0.6, ends[steps]), start=1)
    ]
    table = StudyTable("convergence-network", (NOISE, STEPS), tuple(runs), tuple(rows))
    found = falls_at_first(Tables({}, {table.name: table}))
    assert found.outcome is outcome
    assert "the mean is least in round 2, and rises from round 1 to the last by 6.0 to 8.0 points" in found.numbers


def test_a_first_fall_needs_the_noise_of_the_paper() -> None:
    point = {NOISE: "0.5", STEPS: "20"}
    table = StudyTable("convergence-network", (NOISE, STEPS), (RunRow(point, 1, 3, {}),))
    assert falls_at_first(Tables({}, {table.name: table})).outcome is Outcome.NOT_TESTED


@pytest.mark.parametrize(
    ("ours", "outcome"), [(0.5, Outcome.CONFIRMED), (1.5, Outcome.CONTRADICTED), (1.1, Outcome.UNDECIDED)]
)
def test_gradient_norms_are_told_apart_by_the_intervals_of_two_means(ours: float, outcome: Outcome) -> None:
    """Half widths of 0.1 each: means must differ by more than 0.14."""
    study, keys = "against-dp-sgd-network", tuple(method_point("small", "network", 0))
    points = [
        {key: value_of(value) for key, value in method_point("small", "network", method).items()} for method in (0, 1)
    ]
    runs = tuple(RunRow(point, 1, 16, {}) for point in points)
    rows = [CurveRow(point, 16, mean, 0.1, 5, GRADIENT_NORM) for point, mean in zip(points, (ours, 1.0), strict=True)]
    table = StudyTable(study, keys, runs, tuple(rows))
    assert gradient_norms_apart(Tables({"size": "small"}, {study: table})).outcome is outcome
    empty = StudyTable(study, keys, runs)
    assert gradient_norms_apart(Tables({"size": "small"}, {study: empty})).outcome is Outcome.NOT_TESTED


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_full_size_publishes_the_epsilon_that_it_states(kind: str) -> None:
    """Devices in turn: nobody has more rounds than the noise is set for, whether the sum hides one in ten or in one."""
    design = load_designs(PAPERS["zcdp-secure-aggregation"], "full")[f"trade-off-{kind}"]
    for run in design.runs:
        if run.scenario.seed == 1:
            point = values_at(design.factors, run.levels)
            found = make_plan(run.scenario, overrides={"data.dataset.source": "synthetic"}).forecast.epsilon_published
            assert found <= point["training.privacy.epsilon"], point
            assert found == pytest.approx(point["training.privacy.epsilon"], rel=1e-3), point


def test_the_canary_moves_the_upload_for_all_steps_after_it() -> None:
    """Met at step t (from 0) it decides the τ − t steps from then on, unless noise alone has left the flat part first.

    Noise alone leaves it with probability 4 Φ(−0.5/(σ √τ)) = 2.5 % at most, by reflection.
    """
    up, down = uploads(1, 4_000), uploads(-1, 4_000)
    mean = (SAMPLES + 1) / 2
    assert NOISE_STD * np.sqrt(SAMPLES) == pytest.approx(0.2)
    assert np.mean(up) == pytest.approx(mean, rel=0.08)
    assert np.mean(down) == pytest.approx(-mean, rel=0.08)


def test_the_sum_alone_refutes_theorem_1() -> None:
    """PRIVACY: at r = 62,500 the theorem publishes 1.80."""
    assert published_epsilon(62_500) == pytest.approx(1.797, abs=1e-3)
    assert epsilon_of_sum(62_500, trials=400) > 5
