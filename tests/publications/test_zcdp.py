"""The zCDP paper's studies: their noise is that of Theorem 1, and the case against it stands."""

from __future__ import annotations

import numpy as np
import pytest

from publications.catalogue import PAPERS
from publications.claims import Outcome, judge
from publications.gradients import GRADIENT_NORM
from publications.runner import load_designs
from publications.tables import CurveRow, RunRow, StudyTable, Tables, matches, value_of
from publications.zcdp import ZCDP
from publications.zcdp_curves import falls_at_first, gradient_norms_apart, rises_again
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
    ("turn", "end", "outcome"),
    [
        (7.0, 7.2, Outcome.CONFIRMED),
        (7.0, 7.1, Outcome.UNDECIDED),  # by less than √2 · 0.1
        (7.0, 6.9, Outcome.UNDECIDED),
        (7.0, 6.8, Outcome.CONTRADICTED),  # falls to the end
    ],
)
def test_a_loss_rises_again_if_its_last_rounds_surely_lie_above_those_of_the_turn(
    turn: float, end: float, outcome: Outcome
) -> None:
    """Half widths of 0.1 each. What lies between the two does not count: the place is not chosen by the curve."""
    found = rises_again("convergence-logistic", 1e-3, 40, _with_losses({37: turn, 93: end}, between=6.0))
    assert found.outcome is outcome
    assert found.effect is not None
    assert found.effect.value == pytest.approx(end - turn)
    assert (found.effect.high - found.effect.low) / 2 == pytest.approx(0.1 * np.sqrt(2))
    assert "least in rounds 45-52 (6)" in found.numbers
    assert "not paired by seed" in found.reason


def test_a_rise_is_not_judged_before_round_100() -> None:
    tables = _with_losses({37: 7.0}, between=6.0, rounds=99)
    assert rises_again("convergence-logistic", 1e-3, 40, tables).outcome is Outcome.NOT_TESTED


def _with_losses(eights: dict[int, float], between: float, rounds: int = 100) -> Tables:
    """Training losses by the first of eight rounds, 9 before round 37 and ``between`` elsewhere."""
    point = {NOISE: "0.001", STEPS: "40"}
    losses = {at: 9.0 if at < 37 else between for at in range(1, rounds + 1)}
    losses |= {at: loss for first, loss in eights.items() for at in range(first, first + 8)}
    rows = tuple(CurveRow(point, at, mean, 0.1, 5, "train_loss") for at, mean in losses.items())
    table = StudyTable("convergence-logistic", (NOISE, STEPS), (RunRow(point, 1, rounds, {}),), rows)
    return Tables({}, {table.name: table})


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


def test_the_fall_before_the_first_round_is_not_tested() -> None:
    """Accuracy after round 1 is known; that of the first model is not."""
    point = {NOISE: "0.01", STEPS: "20"}
    rows = tuple(CurveRow(point, at, mean, 0.01, 5) for at, mean in enumerate((0.76, 0.75, 0.8), start=1))
    table = StudyTable("convergence-network", (NOISE, STEPS), (RunRow(point, 1, 3, {}),), rows)
    found = falls_at_first(Tables({}, {table.name: table}))
    assert found.outcome is Outcome.NOT_TESTED
    assert "falls by 1.0 points at most below that of round 1 (76.0 %)" in found.reason


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
