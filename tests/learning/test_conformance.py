"""The conformance checks of the families of learning: the package's own members pass, wrong ones are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.simulation import outside
from wirelessfl.errors import CheckFailed
from wirelessfl.learning import SGD, AdaGrad, Adam, Dataset, Examples, Optimizer, Partition, models
from wirelessfl.learning.data import load_digits, load_synthetic
from wirelessfl.learning.local_conformance import check_dataset, check_model, check_optimizer, check_partition
from wirelessfl.learning.optimizers import OptimizerState
from wirelessfl.learning.partition import (
    classes_partition,
    dirichlet_partition,
    iid_partition,
    natural_partition,
    power_law_partition,
)

Divide = Callable[[Dataset, int, np.random.Generator], Partition]
DIVISIONS: dict[str, Divide] = {
    "iid": lambda data, count, generator: iid_partition(len(data.train), count, generator),
    "sizes": lambda data, count, generator: power_law_partition(len(data.train), count, 1.0, generator),
    "classes": lambda data, count, generator: classes_partition(data.train.targets.numpy(), count, 2, generator),
    "dirichlet": lambda data, count, generator: dirichlet_partition(data.train.targets.numpy(), count, 0.5, generator),
    "natural": lambda data, count, generator: natural_partition(data.owners, count),
    "from outside": outside.RoundRobin().divide,
}


@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions_conform(name: str) -> None:
    check_partition(DIVISIONS[name])


@pytest.mark.parametrize(
    ("divide", "words"),
    [
        (outside.OneForAll().divide, "rows must be different numbers"),
        (lambda data, count, generator: [0], "allowed: a learning.Partition"),
        (lambda data, count, generator: iid_partition(len(data.train), count - 1, generator), "do not cut"),
        (lambda data, count, generator: iid_partition(400, count, np.random.default_rng()), "randomness must come"),
        (lambda data, count, generator: natural_partition(data.owners, 99), "at most 10, the natural owners"),
    ],
)
def test_a_wrong_division_is_named(divide: Any, words: str) -> None:
    with pytest.raises(CheckFailed, match=words):
        check_partition(divide)


@pytest.mark.parametrize("optimizer", [SGD(), SGD(0.9), Adam(), AdaGrad(), outside.Signs()])
def test_optimizers_conform(optimizer: Optimizer) -> None:
    check_optimizer(optimizer)


class Stateful(Optimizer):
    """Goes on from what it did before."""

    def __init__(self) -> None:
        self.calls = 0

    def step(
        self, parameters: Tensor, accumulated: Tensor, state: OptimizerState, learning_rate: float, step: int
    ) -> None:
        self.calls += 1
        parameters.sub_(accumulated, alpha=learning_rate * self.calls)


class Idle(Optimizer):
    """Does not work in place."""

    def step(
        self, parameters: Tensor, accumulated: Tensor, state: OptimizerState, learning_rate: float, step: int
    ) -> None:
        parameters = parameters - learning_rate * accumulated


class SaysLinear(outside.Signs):
    """Is not."""

    linear = True


@pytest.mark.parametrize(
    ("optimizer", "words"),
    [
        (outside.Averaging(), "depend on the other clients' gradients"),
        (Stateful(), "hidden state"),
        (Idle(), "updated in place"),
        (SaysLinear(), "declared linear"),
        (outside.RoundRobin(), "it needs decay"),
    ],
)
def test_a_wrong_optimizer_is_named(optimizer: Any, words: str) -> None:
    with pytest.raises(CheckFailed, match=words):
        check_optimizer(optimizer)


@pytest.mark.parametrize("build", [models.mlp, models.logistic, models.resnet18_gn, models.cnn_mnist, outside.Linear])
def test_models_conform(build: Any) -> None:
    check_model(build, (1, 28, 28), 4)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda shape, classes: nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.BatchNorm1d(3)), "mixes the samples"),
        (lambda shape, classes: nn.Sequential(nn.Flatten(), nn.Linear(64, 2)), "not \\(3, 3\\)"),
        (lambda shape, classes: 3, "is no torch.nn.Module"),
        (
            lambda shape, classes: nn.Sequential(nn.Flatten(), nn.LSTM(64, 3)),
            "the model gives a tuple, not a tensor of logits",
        ),
    ],
)
def test_a_wrong_model_is_named(build: Any, words: str) -> None:
    with pytest.raises(CheckFailed, match=words):
        check_model(build, (1, 8, 8), 3)


def test_datasets_conform() -> None:
    for dataset in (load_digits(), load_synthetic(), outside.owned()):
        check_dataset(dataset)
        facts = dataset.facts()
        assert (facts.num_classes, facts.samples) == (dataset.num_classes, len(dataset.train))
    assert outside.owned(owners=4).facts().owners == 4 and load_digits().facts().owners is None


def test_a_wrong_dataset_is_named() -> None:
    infinite = Examples(torch.full((3, 2), torch.inf), torch.zeros(3, dtype=torch.int64))
    other = Examples(torch.zeros(3, 4), torch.zeros(3, dtype=torch.int64))
    nobody = Examples(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64))
    for wrong, words in (
        (outside.mislabelled(), "labels 0 to 5 for 2 classes"),
        (outside.misowned(), "owners have shape"),
        (Dataset("x", infinite, infinite, ("a",)), "not finite"),
        (Dataset("x", other, Examples(torch.zeros(3, 5), other.targets), ("a",)), "test has inputs"),
        (Dataset("x", other, nobody, ("a",)), "test holds no sample"),
        (Dataset("x", other, other, ("a",), np.zeros(3)), "not whole numbers"),  # type: ignore[arg-type]
        (Dataset("x", other, other, ("a",), [0, 1, 2]), "owners are a list, not a NumPy array"),  # type: ignore[arg-type]
        (Dataset("x", other, other, ("a",), np.zeros(3, np.uint64)), "uint64, not whole numbers that int64 has"),
        (
            Dataset("x", other, other, ("a",), np.zeros(3, int), np.zeros(2, int)),
            r"test_owners have shape \(2,\), not \(3,\)",
        ),
        (
            Dataset("x", other, Examples(other.inputs.to_sparse(), other.targets), ("a",)),
            "test has inputs that are sparse",
        ),
        (
            Dataset("x", Examples(other.inputs + torch.zeros(1, requires_grad=True), other.targets), other, ("a",)),
            "train",
        ),
    ):
        with pytest.raises(CheckFailed, match=words):
            check_dataset(wrong)
