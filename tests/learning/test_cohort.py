"""The cohort engine against one client at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.learning.plain_loop import RandomPopulation, train_client
from wirelessfl.learning.batches import Sampling
from wirelessfl.learning.cohort import CohortBlock, ExecutionPlan, LocalTraining, train_cohort
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.models import TemperedSigmoid, cnn_cifar10, cnn_mnist, logistic, mlp, resnet18_gn
from wirelessfl.learning.optimizers import SGD, AdaGrad, Adam, Optimizer
from wirelessfl.streams import Streams

STREAMS = Streams(5)
SIZES = np.array([7, 30, 12, 1, 19, 12])
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "logistic": (lambda: logistic((12,), 3), (12,)),
    "mlp": (lambda: mlp((12,), 3, hidden=(9,)), (12,)),
    "mlp_deep_tanh": (lambda: mlp((3, 4), 3, hidden=(8, 6), activation=nn.Tanh), (3, 4)),
    "mlp_tempered": (lambda: mlp((12,), 3, hidden=(9,), activation=TemperedSigmoid), (12,)),
    "cnn_mnist": (lambda: cnn_mnist((1, 20, 20), 3), (1, 20, 20)),
    "cnn_cifar10": (lambda: cnn_cifar10((3, 8, 8), 3), (3, 8, 8)),
}
OPTIMIZERS: list[tuple[Optimizer, float]] = [
    (SGD(), 0.1),
    (SGD(0.5), 0.1),
    (Adam(eps=1e-3), 0.01),
    (AdaGrad(1e-3), 0.05),
]


def make(name: str) -> tuple[FlatModel, RandomPopulation]:
    build, shape = MODELS[name]
    return FlatModel(build, shape, 3), RandomPopulation(SIZES, shape)


def collect(blocks: list[CohortBlock], count: int) -> tuple[Tensor, NDArray[np.float64]]:
    """(n, d) updates and (n, 3) norms before and after and losses, in the order asked for."""
    positions = np.concatenate([block.positions for block in blocks])
    np.testing.assert_array_equal(np.sort(positions), np.arange(count))
    back = np.argsort(positions)
    numbers = np.concatenate([np.stack([b.norm_raw, b.norm, b.train_loss], axis=1) for b in blocks])
    return torch.cat([block.updates for block in blocks])[back], numbers[back]


def compare(
    model: FlatModel, population: RandomPopulation, training: LocalTraining, plan: ExecutionPlan, clients: list[int]
) -> None:
    start = model.initial(2).double()
    blocks = list(train_cohort(model, start, population, np.array(clients), training, STREAMS, 3, plan))
    updates, numbers = collect(blocks, len(clients))
    for client, update, (norm_raw, norm, loss) in zip(clients, updates, numbers, strict=True):
        expected = train_client(model, start, population, client, training, STREAMS, 3)
        # Both in double precision, where only a wrong formula can make a difference above 1e-9.
        torch.testing.assert_close(update, expected.update, rtol=1e-9, atol=1e-11)
        assert norm_raw == pytest.approx(float(expected.raw.norm()), rel=1e-9)
        assert norm == pytest.approx(float(expected.update.norm()), rel=1e-9)
        assert loss == pytest.approx(expected.train_loss, rel=1e-9)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
def test_every_model_equals_the_plain_loop(name: str, sampling: Sampling) -> None:
    model, population = make(name)
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=2, sampling=sampling, prox_mu=0.1)
    compare(model, population, training, ExecutionPlan(chunk=4), [4, 1, 3, 0, 5, 2])


@pytest.mark.slow
def test_resnet_equals_the_plain_loop() -> None:
    model = FlatModel(lambda: resnet18_gn((3, 8, 8), 3), (3, 8, 8), 3)
    population = RandomPopulation(np.array([3, 2]), (3, 8, 8))
    compare(model, population, LocalTraining(SGD(0.5), 0.01, batch_size=2, epochs=1), ExecutionPlan(chunk=2), [1, 0])


@pytest.mark.parametrize(("optimizer", "lr"), OPTIMIZERS, ids=repr)
@pytest.mark.parametrize("prox_mu", [0.0, 0.3])
@pytest.mark.parametrize("clip", [None, 0.05])
def test_every_optimizer_equals_the_plain_loop(
    optimizer: Optimizer, lr: float, prox_mu: float, clip: float | None
) -> None:
    model, population = make("mlp")
    training = LocalTraining(optimizer, lr, batch_size=5, steps=9, prox_mu=prox_mu, clip=clip)
    compare(model, population, training, ExecutionPlan(chunk=16), [0, 1, 2, 3, 4, 5])


def test_single_precision_differs_by_rounding_only() -> None:
    """As far from double precision as the plain loop in single precision is, within a factor of 4."""
    model, population = make("mlp")
    training = LocalTraining(SGD(0.5), 0.1, batch_size=5, epochs=4)
    start = model.initial(2)
    blocks = train_cohort(model, start, population, np.arange(6), training, STREAMS, 3, ExecutionPlan(chunk=4))
    updates, _ = collect(list(blocks), 6)
    assert updates.dtype == torch.float32
    exact, single = (
        torch.stack(
            [train_client(model, start, population, i, training, STREAMS, 3, dtype=dtype).raw for i in range(6)]
        )
        for dtype in (torch.float64, torch.float32)
    )
    assert (updates - exact).abs().max() <= 4 * (single - exact).abs().max()


def test_the_chunk_changes_rounding_only() -> None:
    model, population = make("mlp")
    training = LocalTraining(SGD(0.5), 0.1, batch_size=5, epochs=3, clip=0.5)
    results = [
        collect(list(train_cohort(model, model.initial(2), population, np.arange(6), training, STREAMS, 0, plan)), 6)
        for plan in (ExecutionPlan(chunk=1), ExecutionPlan(chunk=4), ExecutionPlan(chunk=100))
    ]
    for updates, numbers in results[1:]:
        torch.testing.assert_close(updates, results[0][0], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(numbers, results[0][1], rtol=1e-5)


def test_the_same_plan_gives_the_same_bits() -> None:
    model, population = make("mlp")
    training = LocalTraining(SGD(0.5), 0.1, batch_size=5, epochs=3)
    first, second = (
        collect(list(train_cohort(model, model.initial(2), population, np.arange(6), training, STREAMS, 0, plan)), 6)
        for plan in (ExecutionPlan(chunk=4), ExecutionPlan(chunk=4))
    )
    assert torch.equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


def test_one_full_batch_step_is_gradient_descent() -> None:
    """FedSGD: Δ = −η ∇L, with the gradient from autograd alone."""
    model, population = make("mlp")
    training = LocalTraining(SGD(), 0.1, batch_size=64, epochs=1)
    start = model.initial(2)
    blocks = list(train_cohort(model, start, population, np.arange(6), training, STREAMS, 0, ExecutionPlan()))
    updates, _ = collect(blocks, 6)
    for client, update in enumerate(updates):
        data = population.of_client(client)
        at = start.clone().requires_grad_()
        loss = nn.functional.cross_entropy(model.logits(at, data.inputs), data.targets)
        (gradient,) = torch.autograd.grad(loss, at)
        torch.testing.assert_close(update, -0.1 * gradient, rtol=1e-4, atol=1e-6)


def test_a_clip_bounds_the_norm_and_keeps_the_direction() -> None:
    model, population = make("mlp")
    training = LocalTraining(SGD(), 0.5, batch_size=5, epochs=2)
    arguments = (model, model.initial(2), population, np.arange(6))
    free, numbers = collect(list(train_cohort(*arguments, training, STREAMS, 0, ExecutionPlan())), 6)
    clip = float(np.median(numbers[:, 0]))
    clipped, bounded = collect(
        list(train_cohort(*arguments, replace(training, clip=clip), STREAMS, 0, ExecutionPlan())), 6
    )
    np.testing.assert_allclose(bounded[:, 0], numbers[:, 0])
    np.testing.assert_allclose(bounded[:, 1], np.minimum(numbers[:, 0], clip), rtol=1e-6)
    assert np.any(numbers[:, 0] < clip) and np.any(numbers[:, 0] > clip)
    scale = torch.from_numpy(np.minimum(1.0, clip / numbers[:, 0])).float()
    torch.testing.assert_close(clipped, free * scale[:, None])


@pytest.mark.parametrize("clip", [None, 1.0])
def test_divergence_is_reported_and_concerns_one_client(clip: float | None) -> None:
    model = FlatModel(lambda: mlp((12,), 3), (12,), 3)

    class Poisoned(RandomPopulation):
        def _examples(self, client: int, count: int) -> object:  # type: ignore[override]
            examples = super()._examples(client, count)
            if client == 1:
                examples.inputs[0, 0] = math.inf
            return examples

    training = LocalTraining(SGD(0.5), 0.1, batch_size=8, epochs=2, clip=clip)
    start = model.initial(1)
    results = [
        collect(list(train_cohort(model, start, population, np.arange(6), training, STREAMS, 0, ExecutionPlan())), 6)
        for population in (RandomPopulation(SIZES), Poisoned(SIZES))
    ]
    (healthy, healthy_numbers), (updates, numbers) = results
    others = [0, 2, 3, 4, 5]
    assert torch.equal(updates[others], healthy[others])
    np.testing.assert_array_equal(numbers[others], healthy_numbers[others])
    assert not math.isfinite(numbers[1, 0]) and not math.isfinite(numbers[1, 2])
    if clip is None:
        assert not math.isfinite(numbers[1, 1]) and not torch.isfinite(updates[1]).all()
    else:
        assert numbers[1, 1] == 0.0 and torch.equal(updates[1], torch.zeros(model.dimension))


def test_nobody_to_train() -> None:
    model, population = make("mlp")
    nobody = np.array([], dtype=np.int64)
    training = LocalTraining(SGD(), 0.1, batch_size=5, epochs=1)
    assert not list(train_cohort(model, model.initial(0), population, nobody, training, STREAMS, 0, ExecutionPlan()))


def test_a_client_without_samples_sends_nothing() -> None:
    model = FlatModel(lambda: mlp((12,), 3), (12,), 3)
    population = RandomPopulation(np.array([4, 0]))
    training = LocalTraining(SGD(), 0.1, batch_size=5, epochs=1)
    blocks = train_cohort(model, model.initial(0), population, np.arange(2), training, STREAMS, 0, ExecutionPlan())
    updates, numbers = collect(list(blocks), 2)
    assert torch.equal(updates[1], torch.zeros(model.dimension)) and numbers[1, 0] == 0.0
    assert math.isnan(numbers[1, 2])


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": None},
        {"steps": 3},
        {"epochs": 0},
        {"batch_size": 0},
        {"learning_rate": 0.0},
        {"learning_rate": math.inf},
        {"prox_mu": -1.0},
        {"prox_mu": math.nan},
        {"clip": 0.0},
        {"clip": math.inf},
        {"sampling": "bootstrap"},
    ],
)
def test_local_training_refuses(change: dict[str, object]) -> None:
    sound = LocalTraining(SGD(), 0.1, batch_size=5, epochs=1)
    with pytest.raises(ValueError, match=next(iter(change))):
        replace(sound, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [{"threads": 0}, {"chunk": 0}, {"precision": "fp8"}])
def test_execution_plan_refuses(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        ExecutionPlan(**change)  # type: ignore[arg-type]
