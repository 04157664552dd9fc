"""Three rounds of the study niid-bench on fewer samples, against a loop over clients in plain torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.simulation.scaffold import train_locally
from tests.simulation.scenarios import run
from tests.simulation.test_federated_algorithms import Loop, fednova, scaffold
from wirelessfl.learning.models import lenet
from wirelessfl.scenario import Scenario
from wirelessfl.study import load_study

SAMPLES = 300


def fedavg(loop: Loop, clients: list[int], number: int, mu: float = 0.0) -> None:
    """The mean of the clients' models, weighted by their samples."""
    shares, start = loop.shares(clients), loop.model
    for client, share in zip(clients, shares / shares.sum(), strict=True):
        update, _ = train_locally(loop.learner, start, client, number, torch.zeros_like(start), mu)
        loop.model = loop.model + share * update


ROUND: dict[str, Any] = {
    "fedavg": fedavg,
    "scaffold": lambda loop, clients, number: scaffold(loop, clients, number, momentum=0.9),
    "fedprox": lambda loop, clients, number: fedavg(loop, clients, number, 0.01),
    "fednova": lambda loop, clients, number: fednova(loop, clients, number, momentum=0.9),
}


def scenario_of(dataset: str, algorithm: str, changes: list[str], data: Path) -> Scenario:
    """The first run of the study with this data set and this algorithm."""
    root = data / {"mnist": "MNIST", "fashion_mnist": "FashionMNIST"}[dataset]
    plan = load_study("niid-bench", [*changes, "seeds=1", f"base.data.dataset.root={root}"])
    scenarios = [one.scenario for one in plan.runs]
    return next(
        one for one in scenarios if (one.training.algorithm.name, one.data.dataset.name) == (algorithm, dataset)
    )


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["mnist", "fashion_mnist"])
@pytest.mark.parametrize("algorithm", ROUND)
def test_three_rounds_are_those_of_a_plain_loop(algorithm: str, dataset: str, shared_data: Path) -> None:
    changes = ["base.rounds=3", "base.evaluate.every=3", f"base.data.limit={SAMPLES}"]
    scenario = scenario_of(dataset, algorithm, changes, shared_data)
    simulation, rounds, _ = run(scenario)
    loop = Loop(simulation.deployment.learner)
    for this in rounds:
        ROUND[algorithm](loop, this.clients.tolist(), this.round.index)
    assert [len(this.clients) for this in rounds] == [10, 10, 10]
    off = np.abs(simulation.state.parameters - loop.model.numpy())
    # Where single and double precision lie on two sides of a kink of the network, a sample's gradient is another one,
    # on some processors: some coordinates are then 10⁻⁵ off, and the median 3 · 10⁻⁷. Without c of SCAFFOLD the median
    # is 7 · 10⁻⁵ and the largest 9 · 10⁻³, without μ of FedProx 1.2 · 10⁻⁶ and 2 · 10⁻⁴.
    assert np.median(off) < 6e-7
    assert off.max() < 1e-4
    moved = loop.model - torch.from_numpy(loop.learner.initial_state(0).parameters).double()
    assert float(moved.norm()) > 0.1


def test_the_network_is_that_of_the_baseline() -> None:
    """Its layers as the paper names them: 6 and 16 filters of 5 by 5, stride 1."""
    (scenario, *_) = (one.scenario for one in load_study("niid-bench").runs)
    assert scenario.model.name == "lenet"
    layers = [one for one in lenet((1, 28, 28), 10) if isinstance(one, nn.Conv2d | nn.Linear)]
    assert [(one.out_channels, one.kernel_size, one.stride) for one in layers if isinstance(one, nn.Conv2d)] == [
        (6, (5, 5), (1, 1)),
        (16, (5, 5), (1, 1)),
    ]
    assert [one.in_features for one in layers if isinstance(one, nn.Linear)] == [256, 120, 84]
