"""Large linear layers behind convolutions in the coordinates of their inputs: the same updates as the plain loop."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from tests.learning.plain_loop import RandomPopulation
from tests.learning.test_cohort import STREAMS, collect, compare
from wirelessfl.learning import models
from wirelessfl.learning.algorithms import FedAvg, Scaffold
from wirelessfl.learning.batches import Sampling
from wirelessfl.learning.cohort import ClientDemand, ExecutionPlan, LocalTraining, train_cohort
from wirelessfl.learning.cohort.stacked import ActivationSpace, Program, activation_space, compile_program
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.optimizers import SGD, Adam

SHAPE = (2, 8, 8)


def network(hidden: int = 300, bias: bool = True) -> nn.Sequential:
    """Two layers that are large beside few samples, and a small one."""
    return nn.Sequential(
        *(nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(96, hidden, bias), nn.Tanh(), nn.Linear(hidden, 200), nn.ReLU(), nn.Linear(200, 3)),
    )


def program_of(model: FlatModel) -> Program:
    program = compile_program(model)
    assert program is not None
    return program


@pytest.mark.parametrize(
    ("sampling", "bias", "momentum"),
    [
        ("shuffle", True, 0.5),
        ("poisson", False, 0.5),
        pytest.param("poisson", True, 0.0, marks=pytest.mark.slow),
        pytest.param("shuffle", False, 0.0, marks=pytest.mark.slow),
    ],
)
def test_updates_are_those_of_the_plain_loop(
    sampling: Sampling, bias: bool, momentum: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients with different numbers of steps, smaller last batches, empty ones, the proximal term and a clip."""
    monkeypatch.setattr(activation_space, "_LARGE", 0)
    model = FlatModel(partial(network, bias=bias), SHAPE, 3)
    population = RandomPopulation(np.array([7, 1, 9, 4]), SHAPE)
    training = LocalTraining(SGD(momentum), 0.05, 4, epochs=2, sampling=sampling, prox_mu=0.3, clip=0.5)
    assert ActivationSpace.of(program_of(model), 4, 6) is not None
    used = []
    of = ActivationSpace.models

    def noted(self: ActivationSpace, *arguments: object) -> object:
        used.append(self.chosen)
        return of(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ActivationSpace, "models", noted)
    compare(model, population, training, ExecutionPlan(chunk=3, threads=2), [2, 0, 3, 1])
    assert used, "no block was trained in these coordinates"


def test_only_large_layers_behind_convolutions_are_chosen() -> None:
    femnist = FlatModel(partial(models.cnn_femnist, (1, 28, 28), 10), (1, 28, 28), 10)
    chosen = ActivationSpace.of(program_of(femnist), 20, 5)
    assert chosen is not None and chosen.chosen == (6,)  # images, twice a convolution and a pool, flattening, this one
    assert ActivationSpace.of(program_of(femnist), 20, 500) is None  # as many rows as weights a row
    dense = FlatModel(lambda: models.mlp((784,), 10, hidden=(2048, 2048)), (784,), 10)
    assert ActivationSpace.of(program_of(dense), 20, 5) is None
    small = FlatModel(partial(models.cnn_mnist, (1, 28, 28), 10), (1, 28, 28), 10)
    assert ActivationSpace.of(program_of(small), 20, 5) is None


def test_their_memory_is_planned_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large layer the update, the inputs of all steps, the coefficients and their accumulated gradient."""
    monkeypatch.setattr(activation_space, "_LARGE", 10_000)
    model = FlatModel(network, SHAPE, 3)
    population = RandomPopulation(np.array([8, 8]), SHAPE)
    training = LocalTraining(SGD(), 0.1, 4, epochs=1)
    taken, private = (
        ClientDemand.of(model, training, population, FedAvg(), private=private).nbytes for private in (False, True)
    )
    large = 96 * 300 + 300 * 200
    rows = 8 * (96 + 2 * 300 + 300 + 2 * 200)
    assert private - taken == 4 * (2 * large - rows)  # clipping needs the gradients by the weights themselves


@pytest.mark.parametrize(("batch", "shared"), [(1, 100), (3, 34), (4, 25), (8, 13), (50, 13)])
def test_clients_share_weights_there_and_only_there(batch: int, shared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred rows of a product, of clients that have eight samples."""
    monkeypatch.setattr(activation_space, "_LARGE", 10_000)
    model, population = FlatModel(network, SHAPE, 3), RandomPopulation(np.array([8, 8]), SHAPE)
    training = LocalTraining(SGD(), 0.1, batch, epochs=1)
    assert ClientDemand.of(model, training, population, FedAvg()).together == shared
    assert ClientDemand.of(model, training, population, FedAvg(), private=True).together == 1
    assert ClientDemand.of(model, training, population, Scaffold()).together == 1
    assert ClientDemand.of(model, replace(training, optimizer=Adam()), population, FedAvg()).together == 1
    uneven = RandomPopulation(np.array([8] * 19 + [17]), SHAPE)  # rows are those of the largest client for all
    assert ClientDemand.of(model, training, uneven, FedAvg()).together == 1
    monkeypatch.setattr(activation_space, "_LARGE", 1_000_000)
    assert ClientDemand.of(model, training, population, FedAvg()).together == 1


def test_an_activation_in_place_changes_no_input() -> None:
    """ReLU overwrites what a layer with parameters made, and neither the samples nor what a pooling layer keeps."""
    module = nn.Sequential(nn.ReLU(), nn.Conv2d(2, 3, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(27, 3))
    model = FlatModel(lambda: module, SHAPE, 3)
    population = RandomPopulation(np.array([5, 5]), SHAPE)
    compare(model, population, LocalTraining(SGD(), 0.1, 5, epochs=2), ExecutionPlan(), [0, 1])
    program, inputs = program_of(model), torch.randn(1, 2, *SHAPE)
    before = inputs.clone()
    program.forward(program.weights([model.initial(0)[None]]), inputs)
    assert torch.equal(inputs, before)


def test_products_in_bf16_give_about_the_same_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a later step, whose outputs are those of the layer before the round and what steps have added.

    Within the tolerance of the guide for bf16.
    """
    monkeypatch.setattr(activation_space, "_LARGE", 0)
    model, population = FlatModel(network, SHAPE, 3), RandomPopulation(np.array([8, 6]), SHAPE)
    training = LocalTraining(SGD(0.5), 0.02, batch_size=4, epochs=1)
    start, clients = model.initial(0), np.arange(2)
    exact, rough = (
        collect(list(train_cohort(model, start, population, clients, training, STREAMS, 0, plan)), 2)[0]
        for plan in (ExecutionPlan(), ExecutionPlan(precision="bf16"))
    )
    error = float((rough - exact).norm() / exact.norm())
    assert rough.dtype == torch.float32 and 1e-5 < error < 0.05
