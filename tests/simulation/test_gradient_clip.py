"""Gradients clipped in local training under noise of the server: Algorithm 2 of the wavelet paper."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import run, small
from wirelessfl.privacy import HaarNoise, ServerNoiseRelease, gaussian_epsilon, padded_length
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import Simulation


def algorithm_2(changes: dict[str, Any] | None = None, **overrides: Any) -> Scenario:
    """DP-FedAvg whose clients clip gradients and whose server clips nothing."""
    private = {
        "mechanism": "gaussian",
        "unit": "client",
        "clip": None,
        "gradient_clip": 0.02,
        "noise_multiplier": 1.0,
        "sampling": "shuffle",
    }
    values: dict[str, Any] = {
        "uplink": {"kind": "ideal"},
        "model": {"name": "logistic"},
        "training__privacy": private | (changes or {}),
        "training__optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0},
        "training__batch_size": 10,
        "privacy": {"unit": "client", "adversary": "observer"},
        "evaluate__every": 1000,
    }
    return small(**{**values, **overrides})


def norms(scenario: Scenario) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(M, K) norms of the updates."""
    _, rounds, _ = run(scenario)
    return np.stack([this.slots["update_norm_raw"] for this in rounds])


def records(scenario: Scenario) -> tuple[Simulation, list[ServerNoiseRelease]]:
    """The run, and what its rounds left for the ledger."""
    simulation, rounds, _ = run(scenario)
    found = [release for this in rounds for release in this.round.releases]
    assert all(isinstance(release, ServerNoiseRelease) for release in found)
    return simulation, found  # type: ignore[return-value]


def test_clients_train_as_with_clipping_alone_at_sample_level() -> None:
    """The first round's updates are those of DP-SGD without noise, which an independent loop is tested against."""
    ours = norms(algorithm_2(rounds=1))
    local = {"unit": "sample", "clip": 0.02, "gradient_clip": None, "noise_multiplier": 0.0}
    theirs = norms(algorithm_2(local, rounds=1, privacy={"unit": "client", "adversary": "server"}))
    np.testing.assert_array_equal(ours, theirs)
    assert np.all(ours < norms(algorithm_2({"gradient_clip": None}, rounds=1)))


TRAININGS = list(
    itertools.product(
        ("shuffle", "poisson"), (None, {1: 1.0, 3: 0.1}), ((0.0, "fedavg"), (0.5, "fedavg"), (0.5, "fedprox"))
    )
)


@pytest.mark.parametrize(("sampling", "schedule", "descent"), TRAININGS)
def test_no_update_exceeds_the_bound_on_record(
    sampling: str, schedule: dict[int, float] | None, descent: tuple[float, str]
) -> None:
    momentum, algorithm = descent
    scenario = algorithm_2(
        {"sampling": sampling},
        training__optimizer={"name": "sgd", "lr": 0.1, "momentum": momentum},
        training__lr_schedule=schedule,
        training__algorithm={"name": algorithm},
    )
    simulation, rounds, _ = run(scenario)
    for this in rounds:
        (release,) = this.round.releases
        assert isinstance(release, ServerNoiseRelease) and release.clip is not None and release.clipped == "gradients"
        largest = this.slots["update_norm_raw"].max()
        assert largest <= release.clip * (1 + 1e-5)
        assert largest > 0.1 * release.clip
    if schedule is not None and algorithm == "fedavg":
        first, last = (rounds[place].round.releases[0] for place in (0, -1))
        assert last.clip == pytest.approx(0.1 * first.clip)  # type: ignore[attr-defined]
    assert math.isfinite(simulation.ledger.epsilon_accounted())


@pytest.mark.parametrize("mechanism", ["gaussian", "wavelet"])
def test_the_accounted_epsilon_is_that_of_the_bound(mechanism: str) -> None:
    """Six equal clients, all of them in every one of three rounds: three Gaussian mechanisms of multiplier zC/(ηNC)."""
    noise = 200.0 if mechanism == "wavelet" else 2.0
    simulation, found = records(algorithm_2({"mechanism": mechanism, "noise_multiplier": noise}))
    steps, dimension = 2, simulation.deployment.learner.dimension  # 20 samples a client in batches of ten
    assert found[0].noise_std == pytest.approx(noise * 0.02 / 6)
    assert found[0].clip == pytest.approx(0.1 * steps * 0.02)
    root = math.sqrt(padded_length(dimension)) if mechanism == "wavelet" else 1.0
    mu = math.sqrt(3) * 0.1 * steps * root / noise
    assert simulation.ledger.epsilon_accounted() == pytest.approx(float(gaussian_epsilon(mu, 1e-5)), rel=1e-6)
    assert isinstance(found[0].noise, HaarNoise) == (mechanism == "wavelet")
    assert any("up to 0.004" in sentence for sentence in simulation.ledger.why_different())


NOTHING_BOUNDS: dict[str, dict[str, Any]] = {
    "adam": {"training__optimizer": {"name": "adam"}},
    "scaffold": {"training__algorithm": {"name": "scaffold"}},
    "feddyn": {"training__algorithm": {"name": "feddyn"}},
    "a scaled update": {"clients__roles": [{"role": "scaled", "count": 1}]},
}


@pytest.mark.parametrize("changes", NOTHING_BOUNDS.values(), ids=NOTHING_BOUNDS)
def test_where_clipped_gradients_bound_nothing_no_guarantee_holds(changes: dict[str, Any]) -> None:
    simulation, found = records(algorithm_2(rounds=2, **changes))
    assert [release.clip for release in found] == [None, None]
    assert simulation.ledger.epsilon_accounted() == math.inf
    assert math.isfinite(simulation.ledger.epsilon_published())
    assert any("clipped gradients bound one only in" in sentence for sentence in simulation.ledger.why_different())
    clipped, of_updates = records(algorithm_2({"clip": 0.01}, rounds=2, **changes))
    assert [(release.clip, release.clipped) for release in of_updates] == 2 * [(0.01, "updates")]
    assert math.isfinite(clipped.ledger.epsilon_accounted())


def test_noise_is_calibrated_by_the_bound() -> None:
    simulation, found = records(algorithm_2({"noise_multiplier": None, "epsilon": 3.0}))
    assert 2.9 < simulation.ledger.epsilon_accounted() <= 3.0
    assert found[0].published_multiplier < 1  # two steps of η = 0.1 reach a fifth of C
