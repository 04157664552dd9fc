"""Gradient corrections of local training, on every path of the cohort engine, against one client after the other."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.learning.plain_loop import RandomPopulation, batch_gradient, train_client
from wirelessfl.learning import (
    SGD,
    Adam,
    ExecutionPlan,
    FlatModel,
    LocalObjective,
    LocalTraining,
    Optimizer,
    train_cohort,
)
from wirelessfl.learning import models as architectures
from wirelessfl.learning.cohort.stacked import compile_program
from wirelessfl.learning.private import PrivateGradients
from wirelessfl.privacy.clipping import Constant, FlatClipping
from wirelessfl.privacy.mechanisms import GaussianMechanism
from wirelessfl.streams import Streams

STREAMS = Streams(5)
POPULATION = RandomPopulation(np.array([11, 6, 17, 6, 9]))
CLIENTS = np.array([3, 0, 4, 2])
PLAN = ExecutionPlan(chunk=3)


class Doubled(nn.Module):
    """A module without closed forms."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 12) / 3)

    def forward(self, inputs: Tensor) -> Tensor:
        return nn.functional.linear(torch.tanh(inputs), 2 * self.weight)


MODELS = {
    "stacked": FlatModel(partial(architectures.mlp, (12,), 3, [5], nn.Tanh), (12,), 3),
    "sample space": FlatModel(partial(architectures.logistic, (12,), 3), (12,), 3),
    "general": FlatModel(Doubled, (12,), 3),
}


def corrections(model: FlatModel, positions: NDArray[np.int64]) -> Tensor:
    """(k, d) of the clients at some positions, another one for each."""
    rows = [np.random.default_rng(int(client)).standard_normal(model.dimension) for client in CLIENTS[positions]]
    return torch.from_numpy(np.array(rows))


def trained(model: FlatModel, training: LocalTraining, transform: PrivateGradients | None, corrected: bool) -> Tensor:
    """(n, d) updates in double precision, with or without corrections."""

    def objective(positions: NDArray[np.int64]) -> LocalObjective:
        return LocalObjective(0.2, corrections(model, positions) if corrected else None)

    start = model.initial(2).double()
    blocks = list(
        train_cohort(
            *(model, start, POPULATION, CLIENTS, training, STREAMS, 3, PLAN, transform),
            objective=objective,
        )
    )
    order = np.argsort(np.concatenate([block.positions for block in blocks]))
    return torch.cat([block.updates for block in blocks])[order]


@pytest.mark.parametrize("path", MODELS)
@pytest.mark.parametrize("optimizer", [SGD(0.5), Adam()], ids=["sgd", "adam"])
def test_every_gradient_is_corrected(path: str, optimizer: Optimizer) -> None:
    model = MODELS[path]
    assert (compile_program(model) is None) == (path == "general")
    training = LocalTraining(optimizer, 0.05, batch_size=4, epochs=2, prox_mu=0.9)
    found = trained(model, training, None, corrected=True)
    for position, client in enumerate(CLIENTS.tolist()):
        parts = list(model.unflatten(corrections(model, np.array([position]))[0]).values())

        def rule(*arguments: object, parts: list[Tensor] = parts) -> list[Tensor]:
            return [g + c for g, c in zip(batch_gradient(*arguments), parts, strict=True)]  # type: ignore[arg-type]

        local = LocalTraining(optimizer, 0.05, batch_size=4, epochs=2, prox_mu=0.2)
        loop = train_client(model, model.initial(2).double(), POPULATION, client, local, STREAMS, 3, rule)
        torch.testing.assert_close(found[position], loop.raw, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("path", ["stacked", "general"])
def test_a_correction_is_added_after_clipping_and_noise(path: str) -> None:
    """With one step of SGD it moves the update by −η c, whatever the clip and the noise."""
    model = MODELS[path]
    private = PrivateGradients(FlatClipping(0.1), GaussianMechanism(Constant(1.3)))
    training = LocalTraining(SGD(), 0.05, batch_size=4, steps=1, sampling="poisson")
    moved = trained(model, training, private, corrected=True) - trained(model, training, private, corrected=False)
    expected = -0.05 * corrections(model, np.arange(len(CLIENTS)))
    torch.testing.assert_close(moved, expected, rtol=1e-6, atol=1e-9)
