"""The zCDP paper's studies: their noise is that of Theorem 1, and the case against it stands."""

from __future__ import annotations

import numpy as np
import pytest

from publications.catalogue import PAPERS
from publications.claims import Outcome
from publications.gradients import GRADIENT_NORM
from publications.runner import load_designs
from publications.tables import CurveRow, RunRow, StudyTable, Tables, matches, value_of
from publications.zcdp_claims import gradient_norms_apart, turning
from publications.zcdp_points import (
    EPSILONS,
    KINDS,
    LEVELS,
    METHODS,
    NOISE,
    PAPER_LEVELS,
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
    for study, point in wanted:
        assert any(matches(found, point) for found in points[study]), (study, point)


def test_theorem_1_gives_back_the_epsilon() -> None:
    """By hand: C = 20 · 10/16 = 12.5, τ = 10, r = 10, n_i = 500, γ = 50."""
    sigma = method_point("small", "logistic", 0)["training.privacy"]["noise_std"]
    assert zcdp_epsilon(2 * 12.5 * 10 / (10 * 500 * 50 * sigma**2), 1e-4) == pytest.approx(10, rel=1e-4)


@pytest.mark.parametrize(
    ("losses", "outcome"),
    [
        ([9.0, 7.0, 8.0], Outcome.CONFIRMED),
        ([9.0, 8.0, 7.0], Outcome.CONTRADICTED),  # falls to the end
        ([9.0, 7.0, 7.15], Outcome.CONTRADICTED),  # within what it varies
        ([7.0, 8.0, 9.0], Outcome.CONTRADICTED),  # least at the beginning
        ([9.0, 7.0], Outcome.NOT_TESTED),  # ends before round 100
    ],
)
def test_a_loss_turns_if_it_surely_ends_above_a_minimum_in_the_middle(losses: list[float], outcome: Outcome) -> None:
    point = {NOISE: "0.001", STEPS: "40"}
    rows = [CurveRow(point, at, mean, 0.1, 5, "train_loss") for at, mean in zip((10, 50, 100), losses, strict=False)]
    runs = (RunRow(point, 1, 100, {}),)
    table = StudyTable("convergence-logistic", (NOISE, STEPS), runs, tuple(rows))
    assert turning(Tables({}, {table.name: table})).outcome is outcome


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
