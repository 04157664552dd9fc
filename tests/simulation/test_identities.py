"""Limits in which the whole simulation must give something known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.learning import ExecutionPlan
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.learner import Learner

# float32 parameters around 0.1, some tens of steps: rounding stays a factor of 50 below this.
ROUNDING = 2e-6


def final(scenario: Scenario, plan: ExecutionPlan = PLAN) -> NDArray[np.float32]:
    """The global model at the end."""
    return run(scenario, plan)[0].state.parameters


def noiseless(**overrides: object) -> Scenario:
    """Over the air with unit channels, no back-off and a noise of 1e-10 a coordinate."""
    return small(
        channel__fading={"model": "static"},
        uplink={"kind": "over_the_air", "snr_db": 250.0, "clip": 100.0, "power_control": {"server_gain": 1e12}},
        **overrides,
    )


def federated_averaging(scenario: Scenario) -> NDArray[np.float32]:
    """FedAvg written by hand: one client after the other, torch.nn and torch.optim; batches of all samples."""
    learner = build_simulation(scenario, PLAN).deployment.learner
    assert isinstance(learner, Learner)
    model, population = learner.model, learner.population
    start = torch.from_numpy(learner.initial_state(0).parameters)
    sizes = population.sizes
    for _ in range(scenario.rounds):
        mean = torch.zeros_like(start)
        for client in range(len(sizes)):
            shard = population.shards(np.array([client]))
            rows = shard.index[0]
            net = model.module
            with torch.no_grad():
                torch.nn.utils.vector_to_parameters(start.clone(), net.parameters())
            optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.5)
            for _ in range(3):
                optimizer.zero_grad()
                loss: Any = cross_entropy(net(shard.inputs[rows]), shard.targets[rows])
                loss.backward()
                optimizer.step()
            trained = torch.nn.utils.parameters_to_vector(net.parameters()).detach()
            mean += float(sizes[client] / sizes.sum()) * (trained - start)
        start = start + mean
    return start.numpy()


def test_without_noise_the_air_gives_federated_averaging() -> None:
    scenario = noiseless(training__steps=3, training__epochs=None, training__batch_size=1000)
    np.testing.assert_allclose(final(scenario), federated_averaging(scenario), rtol=0, atol=ROUNDING)


def test_the_ideal_uplink_gives_federated_averaging() -> None:
    scenario = small(uplink={"kind": "ideal"}, training__steps=3, training__epochs=None, training__batch_size=1000)
    np.testing.assert_allclose(final(scenario), federated_averaging(scenario), rtol=0, atol=ROUNDING)


def test_upcycling_with_infinite_lambda_is_fedprox() -> None:
    upcycled = noiseless(training__algorithm={"name": "upcycled", "mu": 0.1, "lambda": 1e15})
    fedprox = noiseless(training__algorithm={"name": "fedprox", "mu": 0.1})
    np.testing.assert_allclose(final(upcycled), final(fedprox), rtol=0, atol=ROUNDING)
    upcycled = noiseless(training__algorithm={"name": "upcycled", "mu": 0.1, "lambda": 0.1})
    assert np.abs(final(upcycled) - final(fedprox)).max() > 100 * ROUNDING


def test_fedprox_without_its_term_is_fedavg() -> None:
    fedprox = noiseless(training__algorithm={"name": "fedprox", "mu": 0.0})
    np.testing.assert_array_equal(final(fedprox), final(noiseless()))


def test_iq_packing_changes_nothing_with_perfect_channel_knowledge_but_the_airtime() -> None:
    packed = small(uplink__iq_packing=True, uplink__jammer={"epsilon": 1.0})
    plain = small(uplink__jammer={"epsilon": 1.0})
    (one, packed_rounds, _), (other, plain_rounds, _) = run(packed), run(plain)
    np.testing.assert_allclose(one.state.parameters, other.state.parameters, rtol=0, atol=ROUNDING)
    assert packed_rounds[0].values["airtime"] == pytest.approx(plain_rounds[0].values["airtime"] / 2, rel=1e-2)


def test_the_same_seed_gives_the_same_bits_and_another_does_not() -> None:
    scenario = small(uplink__jammer={"epsilon": 1.0})
    np.testing.assert_array_equal(final(scenario), final(scenario))
    assert not np.array_equal(final(scenario), final(small(uplink__jammer={"epsilon": 1.0}, seed=12)))


@pytest.mark.parametrize("plan", [ExecutionPlan(threads=1, chunk=1), ExecutionPlan(threads=2, chunk=3)])
def test_chunks_and_threads_change_only_the_rounding(plan: ExecutionPlan) -> None:
    scenario = small(uplink__jammer={"epsilon": 1.0})
    np.testing.assert_allclose(final(scenario, plan), final(scenario), rtol=0, atol=ROUNDING)


def test_who_else_is_registered_does_not_change_a_clients_channel() -> None:
    few, many = small(), small(clients__count=12)
    _, rounds_few, _ = run(few)
    _, rounds_many, _ = run(many)
    for name in ("channel_re", "channel_im"):
        np.testing.assert_array_equal(rounds_few[2].slots[name], rounds_many[2].slots[name][:6])


def test_a_jammer_changes_no_other_draw() -> None:
    _, without, _ = run(small())
    _, with_one, _ = run(small(uplink__jammer={"epsilon": 1.0}))
    for name in ("channel_re", "channel_im", "compute_time"):
        np.testing.assert_array_equal(without[1].slots[name], with_one[1].slots[name])
