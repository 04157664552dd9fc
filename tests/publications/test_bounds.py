"""The convergence bounds beside real runs of the simulator: they hold in every round, and the printed ones do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import wirelessfl as wfl
from publications.bounds import (
    local_sgd_curve,
    local_sgd_setting,
    models_of,
    problem_of,
    upcycled_curve,
    upcycled_setting,
)
from publications.convergence import (
    local_sgd_bound,
    printed_coefficients,
    printed_local_sgd_bound,
    proven_coefficients,
    upcycled_bound,
)
from publications.studies import STUDIES
from wirelessfl.scenario import Scenario
from wirelessfl.study import load_study

ROUNDS, SEEDS = 12, 3


def scenarios(paper: str, point: int) -> list[Scenario]:
    """A point of the paper's bound study, shortened, at a few seeds."""
    file = STUDIES / paper / "small" / "convergence-bound.yaml"
    design = load_study(file, [f"base.rounds={ROUNDS}", f"seeds={SEEDS}"])
    return [run.scenario for run in design.runs][SEEDS * point : SEEDS * (point + 1)]


def run_all(many: list[Scenario], folder: Path) -> list[Path]:
    traces = []
    for at, scenario in enumerate(many):
        wfl.simulate(scenario, out=folder / str(at))
        traces.append(folder / str(at) / "trace.h5")
    return traces


def surely_below(curves: NDArray[np.float64], bound: NDArray[np.float64]) -> None:
    """The mean over seeds less five standard errors (false alarm 1e-6 for a normal mean) is below the bound."""
    error = curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
    assert np.all(curves.mean(axis=0) - 5 * error <= bound)


@pytest.fixture(scope="module")
def differing(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Devices that differ, one a round, from the minimum."""
    return run_all(scenarios("zcdp-secure-aggregation", 0), tmp_path_factory.mktemp("differing"))


@pytest.fixture(scope="module")
def upcycled(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """λ = 99 μ."""
    return run_all(scenarios("ota-cross-layer-dp", 1), tmp_path_factory.mktemp("upcycled"))


def local_sgd_means(many: list[Scenario], traces: list[Path]) -> NDArray[np.float64]:
    return np.array([local_sgd_curve(scenario, trace) for scenario, trace in zip(many, traces, strict=True)])


@pytest.mark.slow
def test_devices_that_differ_stay_below_the_proven_bound_alone(differing: list[Path]) -> None:
    """The printed theorem leaves room for the noise alone, and the mean is twice that after twelve rounds."""
    count, means = np.arange(1, ROUNDS + 1), local_sgd_means(scenarios("zcdp-secure-aggregation", 0), differing)
    run, problem = local_sgd_setting(scenarios("zcdp-secure-aggregation", 0)[0])
    surely_below(means, local_sgd_bound(count, run, problem))
    assert means.mean(axis=0)[-1] > 2 * printed_local_sgd_bound(count, run, problem)[-1]


@pytest.mark.slow
@pytest.mark.parametrize("point", [1, 2])
def test_all_devices_stay_below_both_bounds(point: int, tmp_path: Path) -> None:
    many, count = scenarios("zcdp-secure-aggregation", point), np.arange(1, ROUNDS + 1)
    means = local_sgd_means(many, run_all(many, tmp_path))
    for bound in (local_sgd_bound, printed_local_sgd_bound):
        surely_below(means, bound(count, *local_sgd_setting(many[0])))


@pytest.mark.slow
def test_upcycled_stays_below_the_proven_bound(upcycled: list[Path]) -> None:
    curves = np.array(
        [
            np.minimum.accumulate(upcycled_curve(scenario, trace))
            for scenario, trace in zip(scenarios("ota-cross-layer-dp", 1), upcycled, strict=True)
        ]
    )
    rounds, clients, gap = upcycled_setting(scenarios("ota-cross-layer-dp", 1)[0], 1 / 200)
    surely_below(curves, upcycled_bound(proven_coefficients(rounds, clients), gap))
    assert np.all(upcycled_bound(printed_coefficients(rounds, clients), gap) < 0)


@pytest.mark.slow
def test_the_runs_are_what_the_constants_take_for_granted(upcycled: list[Path]) -> None:
    """Full power suffices (s_i = 1), no update is clipped, and the noise is σ_c/α_u."""
    dataset, scenario = wfl.open_trace(upcycled[0]), scenarios("ota-cross-layer-dp", 1)[0]
    assert scenario.uplink.clip is not None
    assert np.all(dataset["backoff"].to_numpy() == 1)
    assert np.all(dataset["update_norm_raw"].to_numpy() < scenario.uplink.clip)
    np.testing.assert_allclose(dataset["effective_noise_std"].to_numpy(), 1 / 200)
    dataset.close()


@pytest.mark.slow
def test_the_curve_starts_at_zero_where_gradients_are_known(differing: list[Path]) -> None:
    """At θ = 0 of the contradicting data ∇f vanishes, and every device's gradient does not."""
    assert local_sgd_curve(scenarios("zcdp-secure-aggregation", 0)[0], differing[0])[0] == pytest.approx(0, abs=1e-12)
    scenario, models = scenarios("zcdp-secure-aggregation", 0)[0], models_of(differing[0])
    assert len(models) == ROUNDS + 1
    problem = problem_of(scenario)
    assert (problem.device_gradients(problem.matrix(models[0])) ** 2).sum(axis=(1, 2)).min() > 0.1
