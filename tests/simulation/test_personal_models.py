"""Personal models of Ditto and of fine-tuning in runs, against plain loops over clients."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scaffold import train_locally
from tests.simulation.scenarios import run, small
from tests.simulation.test_federated_algorithms import MOMENTUM, UPLINKS
from wirelessfl.errors import ScenarioError
from wirelessfl.learning.algorithms import Ditto, FineTune
from wirelessfl.learning.conformance import check_algorithm
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.learner import Learner
from wirelessfl.trace import Status

LAMBDA = 0.7


def personal(**changes: Any) -> Scenario:
    """Half of the clients a round, with test samples of their own."""
    setting: dict[str, Any] = {
        "training__algorithm": {"name": "ditto", "lambda": LAMBDA},
        "training__epochs": 2,
        "training__batch_size": 6,
        "training__optimizer": {"name": "sgd", "lr": 0.05, "momentum": MOMENTUM},
        "clients__selection": {"scheme": "uniform", "count": 3},
        "data__partition": {"scheme": "sizes", "exponent": 0.5},
        "data__test": {"fraction": 0.25},
        "rounds": 4,
    }
    return small(**setting | changes)


def accuracy(learner: Learner, model: Tensor, client: int) -> float:
    """Of a model (d,) on the test samples of a client, by its module."""
    module = learner.model.replica(torch.device("cpu")).module.double()
    torch.nn.utils.vector_to_parameters(model, module.parameters())
    owners = learner.population.test_owners
    assert owners is not None
    test = learner.population.test.take(np.flatnonzero(owners == client))
    return float((module(test.inputs.double()).argmax(1) == test.targets).double().mean())


@pytest.mark.parametrize("uplink", UPLINKS)
def test_ditto_is_that_of_the_paper_step_by_step(uplink: str) -> None:
    """Algorithm 1: w by federated averaging; v of those that take part by steps of ∇F(v) + λ(v − w)."""
    simulation, rounds, _ = run(personal(uplink=UPLINKS[uplink]))
    learner, kept = simulation.deployment.learner, simulation.deployment.personal
    assert kept is not None
    model = torch.from_numpy(learner.initial_state(0).parameters).double()
    own: dict[int, Tensor] = {}
    for finished in rounds:
        heard = finished.status == Status.PARTICIPATED  # outages have no part
        clients, nothing = finished.clients[heard].tolist(), torch.zeros_like(model)
        if not clients:
            continue
        share = learner.population.sizes[clients] / learner.population.sizes[clients].sum()
        updates = [train_locally(learner, model, one, finished.index, nothing)[0] for one in clients]
        for one in clients:
            begin = own.get(one, model)
            moved, _ = train_locally(learner, model, one, finished.index, nothing, LAMBDA, begin=begin)
            own[one] = model + moved
        model = model + torch.from_numpy(share) @ torch.stack(updates)
        accuracies = {one: accuracy(learner, row, one) for one, row in own.items()}
        assert finished.values["personal_accuracy_mean"] == pytest.approx(np.mean(list(accuracies.values())))
        np.testing.assert_allclose(finished.slots["personal_accuracy"][heard], [accuracies[one] for one in clients])
    assert sorted(own) == kept.kept.clients.tolist() and len(own) > 3
    for one, row in own.items():
        np.testing.assert_allclose(kept.kept.by_client[one], row.numpy(), atol=5e-5)
    np.testing.assert_allclose(simulation.state.parameters, model.numpy(), atol=5e-5)


@pytest.mark.parametrize("tuning", [{"steps": 5}, {"epochs": 2}], ids=str)
def test_fine_tuning_tests_the_global_model_after_local_steps(tuning: dict[str, int]) -> None:
    simulation, rounds, _ = run(personal(training__algorithm={"name": "fine_tune", **tuning}))
    learner = simulation.deployment.learner
    model = torch.from_numpy(simulation.state.parameters).double()
    last = []
    for one in range(6):
        per_epoch = -(-int(learner.population.sizes[one]) // 6)
        taken = tuning["steps"] if "steps" in tuning else per_epoch * tuning["epochs"]
        longer = run_of(learner, taken)
        moved, _ = train_locally(longer, model, one, 0, torch.zeros_like(model), taken=taken)
        last.append(accuracy(learner, model + moved, one))
    assert rounds[-1].values["personal_accuracy_mean"] == pytest.approx(np.mean(last))
    assert rounds[-1].values["personal_accuracy_worst10"] == pytest.approx(min(last))


def run_of(learner: Learner, steps: int) -> Learner:
    """The learner with so many local steps."""
    return replace(learner, training=replace(learner.training, epochs=None, steps=steps))


@pytest.mark.parametrize("algorithm", [{"name": "ditto"}, {"name": "fine_tune"}], ids=lambda one: str(one["name"]))
def test_nothing_of_personal_models_reaches_global_model_or_ledger(algorithm: dict[str, Any]) -> None:
    """Bit for bit federated averaging, also under noise, of which ε is the same."""
    noise = {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.0}
    ours, theirs = (
        run(personal(training__algorithm=one, training__privacy=noise))[0] for one in (algorithm, {"name": "fedavg"})
    )
    np.testing.assert_array_equal(ours.state.parameters, theirs.state.parameters)
    assert ours.ledger.epsilon_accounted() == theirs.ledger.epsilon_accounted() < math.inf


def test_a_run_goes_on_with_its_personal_models(tmp_path: Path) -> None:
    whole, rest = (played.simulation for played in goes_on_to_the_same_bits(personal(), tmp_path))
    assert whole.deployment.personal is not None and rest.deployment.personal is not None
    ours, theirs = whole.deployment.personal.kept.by_client, rest.deployment.personal.kept.by_client
    assert ours.keys() == theirs.keys()
    for client, row in ours.items():
        np.testing.assert_array_equal(row, theirs[client])


def test_two_models_take_twice_the_time_and_free_riders_have_none() -> None:
    roles = [{"role": "free_rider", "count": 2}]
    simulation, rounds, _ = run(personal(clients__selection={"scheme": "all"}, clients__roles=roles, rounds=1))
    plain = run(personal(clients__selection={"scheme": "all"}, training__algorithm={"name": "fedavg"}, rounds=1))[1]
    times, roles_of = rounds[0].round.compute_time, rounds[0].round.roles
    assert roles_of is not None and simulation.deployment.personal is not None
    honest = np.flatnonzero(roles_of == 0)
    np.testing.assert_allclose(times[honest], 2 * plain[0].round.compute_time[honest])
    np.testing.assert_array_equal(simulation.deployment.personal.kept.clients, honest)
    assert np.isnan(rounds[0].slots["personal_accuracy"][roles_of > 0]).all()


def test_rounds_without_a_test_have_no_personal_accuracy() -> None:
    _, rounds, _ = run(personal(evaluate__every=2, rounds=3))
    assert ["personal_accuracy_mean" in one.values for one in rounds] == [False, True, True]


def test_they_are_algorithms_and_need_test_samples_of_clients() -> None:
    for one in (Ditto(0.5), FineTune(steps=2)):
        check_algorithm(one)
    for wrong in (lambda: Ditto(-1.0), lambda: FineTune(), lambda: FineTune(steps=1, epochs=1)):
        with pytest.raises(ValueError, match=r"must|needs"):
            wrong()
    with pytest.raises(ScenarioError, match="belong to no client"):
        run(personal(data__test=None))
    with pytest.raises(ScenarioError, match="steps"):
        personal(training__algorithm={"name": "fine_tune", "steps": 0})
