"""Local training that stops at a deadline, against plain loops and closed forms."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scaffold import train_locally
from tests.simulation.scenarios import run, small
from tests.simulation.test_federated_algorithms import LOUD, MOMENTUM, UPLINKS, weights_of_gradients
from wirelessfl import api
from wirelessfl.errors import ScenarioError
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.cell import steps_within
from wirelessfl.trace import Status

STEPS, WITHIN_S = 9, 0.04
ONE_BY_ONE = ("digital", "secure aggregation")


def stragglers(**changes: Any) -> Scenario:
    """Clients of which only some take all of nine steps of four samples within 0.04 s; a step takes at least 2 ms."""
    setting: dict[str, Any] = {
        "training__epochs": None,
        "training__steps": STEPS,
        "training__batch_size": 4,
        "training__partial_work": True,
        "training__optimizer": {"name": "sgd", "lr": 0.05, "momentum": MOMENTUM},
        "data__partition": {"scheme": "sizes", "exponent": 0.5},
        "timing__cpu_hz": [5e8, 2e9],
        "timing__compute_deadline_s": WITHIN_S,
        "timing__straggler_scale": 1.0,
    }
    return small(**setting | changes)


def test_a_client_stops_after_its_last_whole_step() -> None:
    """By hand: ten steps of 100 ticks within 1000, 999, 450, 100 and 50 ticks."""
    planned, duration = np.full(1, 10), np.full(1, 1000)
    assert [int(steps_within(planned, duration, limit)[0]) for limit in (1000, 999, 451, 101, 50)] == [10, 9, 4, 1, 1]
    assert steps_within(np.zeros(2, dtype=np.int64), np.array([0, 5]), 3).tolist() == [0, 0]
    assert steps_within(np.array([4]), np.zeros(1, dtype=np.int64), 0).tolist() == [4]


@pytest.mark.parametrize("uplink", UPLINKS)
def test_stragglers_send_what_they_have_over_every_uplink(uplink: str) -> None:
    """Without partial work and by the same deadline of training they would be cut off."""
    simulation, rounds, _ = run(stragglers(uplink=UPLINKS[uplink], training__algorithm={"name": "fedavg"}, rounds=2))
    learner = simulation.deployment.learner
    model = torch.from_numpy(learner.initial_state(0).parameters).double()
    for finished in rounds:
        this = finished.round
        assert this.local_steps is not None and (this.status == Status.PARTICIPATED).all()
        wanted = np.clip(np.floor(STEPS * WITHIN_S / this.compute_time), 1, STEPS)
        np.testing.assert_array_equal(this.local_steps, wanted)
        np.testing.assert_array_equal(finished.slots["local_steps"], wanted)
        assert (this.worked / 1e12 <= WITHIN_S).all() and 1 <= this.local_steps.min() < STEPS
        share = learner.population.sizes / learner.population.sizes.sum()
        updates = [
            train_locally(learner, model, one, this.index, torch.zeros_like(model), taken=int(this.local_steps[one]))[0]
            for one in range(len(share))
        ]
        model = model + torch.from_numpy(share) @ torch.stack(updates)
    np.testing.assert_allclose(simulation.state.parameters, model.numpy(), atol=2e-5)


def test_the_batched_cohort_equals_a_plain_loop_client_by_client() -> None:
    simulation = run(stragglers(rounds=1))[0]
    learner, clients = simulation.deployment.learner, np.arange(6)
    start, steps = learner.initial_state(0).parameters, np.array([1, 9, 4, 2, 9, 7])
    for block in learner.train(start, learner.initial_state(0), clients, 3, steps):
        for position, update in zip(block.positions.tolist(), block.updates, strict=True):
            model = torch.from_numpy(start).double()
            wanted, _ = train_locally(learner, model, position, 3, torch.zeros_like(model), taken=int(steps[position]))
            np.testing.assert_allclose(update.numpy(), wanted.numpy(), atol=2e-6)


def fednova(share: float, update: torch.Tensor, steps: int, rate: float) -> tuple[float, torch.Tensor]:
    length = sum(abs(weight) for weight in weights_of_gradients(steps, rate, 0.0))
    return share * length, share * update / length


@pytest.mark.parametrize("uplink", [UPLINKS["ideal"], LOUD], ids=["ideal", "air"])
def test_fednova_and_scaffold_see_the_steps_that_were_taken(uplink: dict[str, Any]) -> None:
    simulation, rounds, _ = run(stragglers(uplink=uplink, training__algorithm={"name": "fednova"}, rounds=1))
    learner, steps = simulation.deployment.learner, rounds[0].round.local_steps
    assert steps is not None and len(set(steps.tolist())) > 1
    start = torch.from_numpy(learner.initial_state(0).parameters).double()
    share, nothing = learner.population.sizes / learner.population.sizes.sum(), torch.zeros_like(start)
    updates = [train_locally(learner, start, one, 1, nothing, taken=int(steps[one]))[0] for one in range(6)]
    parts = [fednova(share[one], updates[one], int(steps[one]), 0.05) for one in range(6)]
    wanted = start + sum(length for length, _ in parts) * sum(part for _, part in parts)
    np.testing.assert_allclose(simulation.state.parameters, wanted.numpy(), atol=2e-5)

    simulation, _, _ = run(stragglers(uplink=uplink, training__algorithm={"name": "scaffold"}, rounds=1))
    controls = simulation.state.client_rows["control"]
    lengths = [sum(weights_of_gradients(int(one), 0.05, 0.0)) for one in steps]
    wanted = torch.stack([-update / (length * 0.05) for update, length in zip(updates, lengths, strict=True)])
    np.testing.assert_allclose(controls, wanted.numpy(), atol=2e-4)


PRIVATE: dict[str, dict[str, Any]] = {
    "gaussian": {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.0},
    "poisson": {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.0, "sampling": "poisson"},
    "wavelet": {"mechanism": "wavelet", "clip": 1.0, "noise_multiplier": 1.0, "clip_domain": "weighted"},
    "zcdp": {"mechanism": "zcdp", "clip": 1.0, "noise_std": 0.5},
}


@pytest.mark.parametrize("mechanism", PRIVATE)
def test_fewer_noisy_steps_cost_what_they_are_and_never_more(mechanism: str) -> None:
    """The ledger has the steps that were taken, and ε is at most that of clients that take all."""
    changes: dict[str, Any] = {"training__privacy": PRIVATE[mechanism], "rounds": 2}
    partial, rounds, _ = run(stragglers(**changes))
    whole, _, _ = run(stragglers(timing__compute_deadline_s=10.0, **changes))
    for finished in rounds:
        this = finished.round
        (release,) = this.local_releases
        np.testing.assert_array_equal(release.steps, this.local_steps)  # type: ignore[attr-defined]
    ours, all_of_it = (np.array(one.ledger.client_epsilons()[1]) for one in (partial, whole))
    assert np.isfinite(ours).all() and (ours <= all_of_it + 1e-12).all() and (ours < all_of_it).any()


def test_energy_is_that_of_the_steps_that_were_taken() -> None:
    _, rounds, _ = run(stragglers(timing__switched_capacitance=1e-28, timing__straggler_scale=0.0, rounds=1))
    whole, _ = run(
        stragglers(
            timing__switched_capacitance=1e-28, timing__straggler_scale=0.0, timing__compute_deadline_s=9.0, rounds=1
        )
    )[1:]
    assert rounds[0].round.local_steps is not None
    part = rounds[0].slots["compute_energy_j"] / whole[0].slots["compute_energy_j"]
    np.testing.assert_allclose(part, rounds[0].round.local_steps / STEPS, rtol=1e-9)


def test_who_cannot_finish_one_step_is_late_and_free_riders_never_are() -> None:
    changes: dict[str, Any] = {
        "timing__compute_deadline_s": 0.002,
        "timing__deadline_s": 0.002,
        "clients__roles": [{"role": "free_rider", "count": 2}],
    }
    _, rounds, _ = run(stragglers(**changes, rounds=1))
    this = rounds[0].round
    late = this.compute_time / STEPS > 0.002
    assert late.any() and this.roles is not None
    np.testing.assert_array_equal(this.status == Status.LATE, late)
    assert (this.status[this.roles > 0] == Status.PARTICIPATED).all()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["fedavg", "fednova", "scaffold"])
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(algorithm: str, tmp_path: Path) -> None:
    whole, _ = goes_on_to_the_same_bits(stragglers(training__algorithm={"name": algorithm}, rounds=5), tmp_path)
    assert all((this.slots["local_steps"] < STEPS).any() for this in whole.rounds[3:])


def test_a_run_repeats_to_the_same_bits(tmp_path: Path) -> None:
    scenario = stragglers(rounds=4, training__algorithm={"name": "scaffold"})
    whole = api.simulate(scenario, tmp_path / "whole", pictures=False)
    steps: NDArray[np.float64] = api.open_trace(tmp_path / "whole" / "trace.h5")["local_steps"].values
    again = api.simulate(scenario, tmp_path / "again", pictures=False)
    assert whole.summary["test_loss"] == again.summary["test_loss"] and not math.isnan(steps.min())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"timing__compute_deadline_s": None}, "without a deadline"),
        ({"timing__compute_deadline_s": None, "uplink__kind": "digital"}, "whose uploads take times of their own"),
        ({"training__partial_work": False}, "without training.partial_work"),
        ({"timing__deadline_s": 0.01}, "at most timing.deadline_s"),
        ({"aggregation": {"mode": "asynchronous"}}, "nobody is waited for"),
        ({"training__algorithm": {"name": "scaffold", "payload": 1}}, "unequal numbers of steps"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ScenarioError, match=told):
        stragglers(**changes)
