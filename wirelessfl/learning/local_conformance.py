"""Checks for a model, dataset, partition or local optimizer of your own: what engine and ledger rely on.

Call them from a test: they return nothing where all is well and raise `wirelessfl.errors.CheckFailed` with the first
broken promise. The package's own members are tested with them.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from wirelessfl.errors import CheckFailed, DataError, instance_of, require
from wirelessfl.learning.data.examples import Dataset, Examples
from wirelessfl.learning.flat import check_module
from wirelessfl.learning.optimizers import Optimizer
from wirelessfl.learning.partition import Partition, check_shares

_EXACT = 1e-12  # relative error that double precision may leave


def check_model(build: Callable[..., nn.Module], feature_shape: Sequence[int], num_classes: int) -> None:
    """Checks a model: logits of one sample that depend neither on other samples nor on chance, and equal shapes anew.

    Args:
        build: From (feature_shape, num_classes) to the module.
        feature_shape: Shape of one input.
        num_classes: C.

    Raises:
        CheckFailed: With what was promised and what was found.
    """
    first, again = (build(feature_shape, num_classes) for _ in range(2))
    require(isinstance(first, nn.Module), f"{instance_of(type(first))} is no torch.nn.Module")
    try:
        check_module(first, feature_shape, num_classes)
    except ValueError as error:
        raise CheckFailed(f"not conforming: {error}") from error
    shapes, others = ([(name, tuple(p.shape)) for name, p in one.named_parameters()] for one in (first, again))
    require(shapes == others, f"built twice, it has the parameters {shapes} and {others}")


def check_dataset(dataset: Dataset) -> None:
    """Checks a dataset: finite inputs, and what ``check_samples`` asks for.

    Raises:
        CheckFailed: With what was promised and what was found.
    """
    check_samples(dataset)
    for half, examples in (("train", dataset.train), ("test", dataset.test)):
        require(bool(examples.inputs.isfinite().all()), f"{half} has inputs that are not finite")


def check_samples(dataset: Dataset) -> None:
    """Checks what a run builds on: labels 0 … C−1, inputs of one shape, samples in both halves, an owner a sample.

    Inputs and labels are plain tensors: dense, and without gradients. Inputs that are not finite end in updates that
    are not finite, which a run counts and survives.

    Raises:
        CheckFailed: With what was promised and what was found.
    """
    for half, examples in (("train", dataset.train), ("test", dataset.test)):
        require(isinstance(examples, Examples), f"{half} is {instance_of(type(examples))}, not Examples")
        require(len(examples) > 0, f"{half} holds no sample")
        for what, tensor in (("inputs", examples.inputs), ("targets", examples.targets)):
            plain = tensor.layout == torch.strided and not tensor.requires_grad
            require(plain, f"{half} has {what} that are sparse or require gradients; plain tensors do")
        shape = tuple(examples.inputs.shape[1:])
        require(shape == dataset.feature_shape, f"{half} has inputs {shape}, train {dataset.feature_shape}")
        low, high = int(examples.targets.min()), int(examples.targets.max())
        require(
            0 <= low <= high < dataset.num_classes,
            f"{half} has labels {low} to {high} for {dataset.num_classes} classes",
        )
    for name, owners, examples in (
        ("owners", dataset.owners, dataset.train),
        ("test_owners", dataset.test_owners, dataset.test),
    ):
        if owners is None:
            continue
        require(isinstance(owners, np.ndarray), f"{name} are a {type(owners).__name__}, not a NumPy array")
        expected = (len(examples),)
        require(owners.shape == expected, f"{name} have shape {owners.shape}, not {expected}, one a sample")
        whole = np.issubdtype(owners.dtype, np.integer) and np.can_cast(owners.dtype, np.int64)
        require(whole, f"{name} are {owners.dtype}, not whole numbers that int64 has")


def check_partition(
    divide: Callable[[Dataset, int, np.random.Generator], Partition],
    clients: int = 7,
    samples: int = 400,
    seed: int = 0,
) -> None:
    """Checks a division of samples: disjoint shares, nobody without, random by the generator alone.

    Args:
        divide: The rule's ``divide``.
        clients: K of the trial.
        samples: Samples of the trial, of five classes and ten owners.
        seed: Seed of the trial.

    Raises:
        CheckFailed: With what was promised and what was found.
    """
    targets = torch.arange(samples) % 5
    examples = Examples(torch.nn.functional.one_hot(targets, 5).float(), targets)
    dataset = Dataset("example", examples, examples, tuple("abcde"), np.arange(samples) // 5 % 10)
    try:
        first, again = (divide(dataset, clients, np.random.default_rng(seed)) for _ in range(2))
        check_shares(first, samples, clients)
    except (TypeError, ValueError, DataError) as error:
        raise CheckFailed(f"not conforming: {error}") from error
    same = np.array_equal(first.order, again.order) and np.array_equal(first.offsets, again.offsets)
    require(same, "an equal generator gives other shares; all randomness must come from the generator")


def check_optimizer(optimizer: Optimizer, dimension: int = 12, steps: int = 4, seed: int = 0) -> None:
    """Checks an optimizer: a client's row depends on its own gradients alone, and on no earlier training.

    Args:
        optimizer: The optimizer to check.
        dimension: d.
        steps: Steps of a round.
        seed: Seed of the example gradients.

    Raises:
        CheckFailed: With what was promised and what was found.
    """
    require(isinstance(optimizer, Optimizer), "it needs decay, linear, start and step")
    require(0 <= optimizer.decay < 1, f"decay is {optimizer.decay}, not in [0, 1)")
    gradients = torch.randn(steps, 5, dimension, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    whole = _stepped(optimizer, gradients)
    again, of_two, twice = (_stepped(optimizer, some) for some in (gradients, gradients[:, :2], 2 * gradients))
    for holds, found in (
        (bool(whole.isfinite().all()), "parameters are not finite after a few steps"),
        (bool((whole != 0).any(1).all()), "a step moves nothing: parameters are updated in place"),
        (torch.equal(again, whole), "a second round with equal gradients ends elsewhere: is there hidden state?"),
        (_close(of_two, whole[:2]), "a client's parameters depend on the other clients' gradients"),
        (
            not optimizer.linear or _close(twice, 2 * whole),
            "it is declared linear, and twice the gradients do not move it twice as far",
        ),
    ):
        require(holds, found)


def _close(some: torch.Tensor, others: torch.Tensor) -> bool:
    return torch.allclose(some, others, rtol=_EXACT, atol=_EXACT)


def _stepped(optimizer: Optimizer, gradients: torch.Tensor) -> torch.Tensor:
    # (k, d) parameters after steps (T, k, d) from zero.
    parameters = torch.zeros_like(gradients[0])
    accumulated, state = torch.zeros_like(parameters), optimizer.start(parameters)
    for index, gradient in enumerate(gradients):
        accumulated = optimizer.decay * accumulated + gradient
        optimizer.step(parameters, accumulated.clone(), state, 0.1, index)
    return parameters
