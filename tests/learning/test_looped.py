"""Clients one after the other on a CPU: which models, and the same results as the independent plain loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learning.plain_loop import RandomPopulation, batch_gradient, train_client
from tests.learning.private.test_exact import compare as compare_privately
from tests.learning.test_cohort import STREAMS, collect
from tests.learning.test_cohort import compare as compare_plainly
from wirelessfl.learning import models
from wirelessfl.learning.algorithms import FedAvg, LocalObjective
from wirelessfl.learning.cohort import ClientDemand, ExecutionPlan, LocalTraining, train_cohort
from wirelessfl.learning.cohort.looped import trains_client_by_client
from wirelessfl.learning.cohort.stacked import compile_program
from wirelessfl.learning.data.examples import Examples
from wirelessfl.learning.evaluation import evaluate
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.layout import image_format
from wirelessfl.learning.optimizers import SGD, Adam, Optimizer

IMAGE, TEXT = (3, 8, 8), (5,)


class Residual(nn.Module):
    """A module of linear layers alone, without closed forms."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(12, 12), nn.Linear(12, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        return cast(Tensor, self.outer(inputs + torch.tanh(self.inner(inputs))))


class Viewed(nn.Module):
    """Convolutions whose images are flattened by ``view``, as one may write it."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.outer = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4 * 16, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        pooled = functional.max_pool2d(torch.relu(self.convolution(inputs)), 2)
        return cast(Tensor, self.outer(pooled.view(len(inputs), -1)))


class Unused(Viewed):
    """The same with a parameter that nothing depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.ones(2))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "resnet_gn": (partial(models.resnet_gn, IMAGE, 3, 8), IMAGE),
    "mobilenet_gn": (partial(models.mobilenet_gn, IMAGE, 3, 0.25), IMAGE),
    "lstm": (partial(models.lstm, TEXT, 3, 9, 4, 6, 2), TEXT),
    "transformer": (partial(models.transformer, TEXT, 3, 9, 8, 2, 1), TEXT),
    "viewed": (Viewed, IMAGE),
}


class Letters(RandomPopulation):
    """The same with letters for inputs."""

    def _examples(self, client: int, count: int) -> Examples:
        examples = super()._examples(client, count)
        return Examples(examples.inputs.abs().mul(3).floor().clamp(max=8), examples.targets)


def make(name: str) -> tuple[FlatModel, RandomPopulation]:
    build, shape = MODELS[name]
    kind = Letters if shape == TEXT else RandomPopulation
    return FlatModel(build, shape, 3), kind(np.array([7, 12, 1, 5]), shape)


@pytest.mark.parametrize(
    ("build", "shape", "looped"),
    [
        *((*MODELS[name], True) for name in MODELS),
        (partial(models.resnet18_gn, IMAGE, 3), IMAGE, True),
        (Residual, (12,), False),
    ],
)
def test_models_with_more_than_linear_layers_are_looped(
    build: Callable[[], nn.Module], shape: tuple[int, ...], looped: bool
) -> None:
    model = FlatModel(build, shape, 3)
    assert compile_program(model) is None
    assert trains_client_by_client(model) == looped


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("optimizer", [SGD(0.5), pytest.param(Adam(eps=1e-3), marks=pytest.mark.slow)], ids=repr)
def test_training_is_that_of_the_plain_loop(name: str, optimizer: Optimizer) -> None:
    model, population = make(name)
    training = LocalTraining(optimizer, 0.02, batch_size=4, epochs=1, sampling="poisson", prox_mu=0.1, clip=0.5)
    compare_plainly(model, population, training, ExecutionPlan(chunk=3, threads=2), [2, 0, 3, 1])


LONG = ("resnet_gn", "mobilenet_gn", "transformer")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in MODELS])
def test_private_training_is_that_of_the_plain_loop(name: str) -> None:
    model, population = make(name)
    training = LocalTraining(SGD(0.5), 0.05, batch_size=3, steps=2, sampling="poisson", prox_mu=0.1)
    for rule in ("flat", "per_layer"):
        compare_privately(model, population, training, rule, "gaussian", [2, 0, 3])


def test_corrections_are_added_to_every_gradient() -> None:
    model, population = make("resnet_gn")
    clients, start = np.array([3, 0, 1]), model.initial(2).double()
    rows = torch.randn(3, model.dimension, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    training = LocalTraining(SGD(0.5), 0.05, batch_size=4, steps=2)
    blocks = train_cohort(
        *(model, start, population, clients, training, STREAMS, 3, ExecutionPlan(chunk=2)),
        objective=lambda positions: LocalObjective(0.0, rows[positions]),
    )
    found, _ = collect(list(blocks), 3)
    for position, client in enumerate(clients.tolist()):
        parts = list(model.unflatten(rows[position]).values())

        def rule(*arguments: object, parts: list[Tensor] = parts) -> list[Tensor]:
            return [g + c for g, c in zip(batch_gradient(*arguments), parts, strict=True)]  # type: ignore[arg-type]

        loop = train_client(model, start, population, client, training, STREAMS, 3, rule)
        torch.testing.assert_close(found[position], loop.raw, rtol=1e-6, atol=1e-9)


def test_a_parameter_that_is_not_used_stays() -> None:
    _, population = make("viewed")
    model = FlatModel(Unused, IMAGE, 3)
    training = LocalTraining(SGD(0.5), 0.05, batch_size=4, epochs=1)
    (block,) = train_cohort(model, model.initial(2), population, np.arange(2), training, STREAMS, 1, ExecutionPlan())
    update = model.unflatten(block.updates)
    assert not update["unused"].any() and update["outer.weight"].any()


def test_neither_threads_nor_blocks_change_a_bit() -> None:
    model, population = make("mobilenet_gn")
    training = LocalTraining(SGD(0.5), 0.05, batch_size=4, epochs=1)

    def updates(plan: ExecutionPlan) -> Tensor:
        return collect(
            list(train_cohort(model, model.initial(2), population, np.arange(4), training, STREAMS, 1, plan)), 4
        )[0]

    once = updates(ExecutionPlan(chunk=1))
    assert torch.equal(once, updates(ExecutionPlan(chunk=1, threads=3)))
    torch.testing.assert_close(once, updates(ExecutionPlan(chunk=4)), rtol=1e-4, atol=1e-6)


def test_images_are_channels_last_where_the_model_is_narrow_and_takes_them() -> None:
    last, contiguous = torch.channels_last, torch.contiguous_format
    wanted = {"resnet_gn": last, "mobilenet_gn": last, "lstm": contiguous, "transformer": contiguous}
    for name, layout in {**wanted, "viewed": contiguous}.items():
        assert image_format(make(name)[0]) == layout, name
    wide = FlatModel(partial(models.resnet18_gn, IMAGE, 3), IMAGE, 3)
    assert image_format(wide) == contiguous


@pytest.mark.parametrize("name", MODELS)
def test_evaluation_is_that_of_the_module(name: str) -> None:
    """More samples than a chunk and no multiple of the images that go through at once."""
    model, population = make(name)
    examples, parameters = population._examples(0, 1100), model.initial(1)
    found = evaluate(model, parameters, examples, threads=2)
    logits = torch.cat([model.logits(parameters, part) for part in torch.split(examples.inputs, 550)])
    assert (found.correct == (logits.argmax(1) == examples.targets).numpy()).mean() > 0.999  # but for ties
    expected = functional.cross_entropy(logits.double(), examples.targets).item()
    assert found.loss == pytest.approx(expected, rel=1e-5)


def test_no_patches_are_planned_for_where_convolutions_see_the_images() -> None:
    """A client takes its parameters, gradient and update, and what the layers of one batch give."""
    model, population = make("viewed")
    outputs = 4 * 64 + 3  # of the layers; what the functions between them give is not seen
    samples = 80 * int(np.quantile(population.sizes, 0.9)) + 12 * 192 * int(np.quantile(population.sizes, 0.9))
    expected = 4 * (3 * model.dimension + 10 * (192 + outputs)) + samples
    assert ClientDemand.of(model, LocalTraining(SGD(), 0.1, 10, epochs=1), population, FedAvg()).nbytes == expected
