"""Per-sample gradients and the transform's place in a step, against loops over samples."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.learning.plain_loop import RandomPopulation, train_client
from tests.learning.test_cohort import MODELS, SIZES, STREAMS, collect, make
from wirelessfl.learning.batches import Sampling
from wirelessfl.learning.cohort import (
    ExecutionPlan,
    LocalTraining,
    PrivateStep,
    SampleGradients,
    StepContext,
    TransformState,
    train_cohort,
)
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.models import resnet18_gn
from wirelessfl.learning.optimizers import SGD, AdaGrad, Adam, Optimizer

CLIP, NOISE = 0.7, 0.3


def noise_row(round_index: int, client: int, step: int, dimension: int) -> Tensor:
    generator = torch.Generator().manual_seed(STREAMS.torch_seed(f"noise/{step}", round_index, client))
    return torch.randn(dimension, generator=generator, dtype=torch.float64)


@dataclass
class FlatGaussian:
    """DP-SGD: flat clipping, Gaussian noise; counts a client's steps and reports the share clipped."""

    dimension: int
    per_layer: bool = False
    in_place: bool = True
    seen: list[tuple[int, list[int]]] = field(default_factory=list)

    def start(self, clients: NDArray[np.int64], like: Tensor) -> TransformState:
        return {"steps": torch.zeros(len(clients), device=like.device)}

    def __call__(
        self, gradients: SampleGradients, state: TransformState, context: StepContext, into: Tensor, decay: float
    ) -> PrivateStep:
        squared = gradients.squared_norms()
        norms = (squared if self.per_layer else squared.sum(-1)).sqrt()
        weights = (CLIP / norms).clamp(max=1.0)
        rows = [noise_row(context.round_index, int(c), context.step, self.dimension) for c in context.clients]
        noise = NOISE * torch.stack(rows)
        divisor = context.divisor[:, None]
        if self.in_place:
            mean = weights / (divisor[..., None] if self.per_layer else divisor)
            assert gradients.weighted_sum(mean, into, decay) is into
            into += noise / divisor
        else:
            into.mul_(decay).add_((gradients.weighted_sum(weights) + noise) / divisor)
        self.seen.append((context.step, context.clients.tolist()))
        clipped = ((squared.sum(-1).sqrt() > CLIP) & gradients.present).sum(1)
        return PrivateStep({"steps": state["steps"] + 1}, {"clipped": clipped})


@dataclass
class LoopGaussian:
    """The same by a loop over samples."""

    round_index: int
    per_layer: bool = False

    def __call__(
        self, module: nn.Module, inputs: Tensor, targets: Tensor, divisor: float, client: int, step: int
    ) -> list[Tensor]:
        parameters = list(module.parameters())
        total = [torch.zeros_like(parameter) for parameter in parameters]
        for sample, target in zip(inputs, targets, strict=True):
            loss = nn.functional.cross_entropy(module(sample[None]), target[None])
            gradient = torch.autograd.grad(loss, parameters)
            norm = torch.stack([part.norm() for part in gradient]).norm()
            for into, part in zip(total, gradient, strict=True):
                into += part * min(1.0, CLIP / float(part.norm() if self.per_layer else norm))
        noise = noise_row(self.round_index, client, step, sum(parameter.numel() for parameter in parameters))
        pieces = torch.split(noise, [parameter.numel() for parameter in parameters])
        return [(into + NOISE * piece.view_as(into)) / divisor for into, piece in zip(total, pieces, strict=True)]


def compare(
    model: FlatModel, population: RandomPopulation, training: LocalTraining, per_layer: bool, chunk: int
) -> None:
    start = model.initial(2).double()
    clients = np.array([4, 1, 3, 0, 5, 2])
    transform = FlatGaussian(model.dimension, per_layer, in_place=chunk == 4)
    plan = ExecutionPlan(chunk=chunk)
    blocks = list(train_cohort(model, start, population, clients, training, STREAMS, 3, plan, transform))
    updates, numbers = collect(blocks, len(clients))
    for client, update, loss in zip(clients, updates, numbers[:, 2], strict=True):
        rule = LoopGaussian(3, per_layer)
        expected = train_client(model, start, population, int(client), training, STREAMS, 3, rule)
        torch.testing.assert_close(update, expected.update, rtol=1e-9, atol=1e-10)
        assert loss == pytest.approx(expected.train_loss, rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("per_layer", [False, True])
def test_every_model_equals_the_loop_over_samples(name: str, per_layer: bool) -> None:
    model, population = make(name)
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=1, sampling="poisson", prox_mu=0.1, clip=2.0)
    compare(model, population, training, per_layer, chunk=4)


@pytest.mark.parametrize("optimizer", [SGD(), Adam(eps=1e-3), AdaGrad(1e-3)], ids=repr)
@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
def test_every_optimizer_takes_the_noised_gradient(optimizer: Optimizer, sampling: Sampling) -> None:
    model, population = make("mlp")
    compare(model, population, LocalTraining(optimizer, 0.02, batch_size=8, steps=5, sampling=sampling), False, 16)


@pytest.mark.slow
def test_resnet_equals_the_loop_over_samples() -> None:
    model = FlatModel(lambda: resnet18_gn((3, 8, 8), 3), (3, 8, 8), 3)
    population = RandomPopulation(np.array([2, 2]), (3, 8, 8))
    start = model.initial(2).double()
    training = LocalTraining(SGD(), 0.01, batch_size=2, epochs=1)
    blocks = train_cohort(
        model, start, population, np.array([1]), training, STREAMS, 3, ExecutionPlan(), FlatGaussian(model.dimension)
    )
    updates, _ = collect(list(blocks), 1)
    expected = train_client(model, start, population, 1, training, STREAMS, 3, LoopGaussian(3))
    torch.testing.assert_close(updates[0], expected.update, rtol=1e-8, atol=1e-10)


def test_formed_gradients_agree_with_norms_and_sums() -> None:
    class Probe(FlatGaussian):
        def __call__(
            self, gradients: SampleGradients, state: TransformState, context: StepContext, into: Tensor, decay: float
        ) -> PrivateStep:
            formed = torch.cat([part for _, part in gradients.formed()], dim=1)
            squared = gradients.squared_norms()
            torch.testing.assert_close(squared.sum(-1), formed.square().sum(-1))
            weights = torch.rand(gradients.present.shape, dtype=formed.dtype)
            expected = torch.einsum("kb,kbd->kd", weights * gradients.present, formed)
            torch.testing.assert_close(gradients.weighted_sum(weights), expected)
            assert gradients.losses.shape == gradients.present.shape == squared.shape[:2]
            return super().__call__(gradients, state, context, into, decay)

    model, population = make("mlp")
    training = LocalTraining(SGD(), 0.05, batch_size=8, epochs=1)
    start = model.initial(2).double()
    plan = ExecutionPlan(chunk=3)
    assert (
        len(
            list(
                train_cohort(model, start, population, np.arange(6), training, STREAMS, 1, plan, Probe(model.dimension))
            )
        )
        == 2
    )


def test_state_and_statistics_follow_each_clients_own_steps() -> None:
    model, population = make("mlp")
    training = LocalTraining(SGD(), 0.05, batch_size=8, epochs=2)
    start = model.initial(2).double()
    clients = np.array([4, 1, 3, 0, 5, 2])
    transform = FlatGaussian(model.dimension)
    before = {"steps": torch.arange(6.0) * 100}
    plan = ExecutionPlan(chunk=4)
    expected_steps = 2 * -(-SIZES[clients] // 8)
    for block in train_cohort(model, start, population, clients, training, STREAMS, 1, plan, transform, before):
        own = expected_steps[block.positions]
        np.testing.assert_array_equal(block.transform_state["steps"].numpy(), block.positions * 100 + own)
        clipped = block.statistics["clipped"]
        assert clipped.shape == (len(own), own.max())
        np.testing.assert_array_equal(np.isfinite(clipped), np.arange(own.max()) < own[:, None])
    assert before["steps"].tolist() == [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]
    trained = [client for _, active in transform.seen for client in active]
    np.testing.assert_array_equal(np.bincount(trained), 2 * -(-SIZES // 8))
