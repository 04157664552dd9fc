"""Convolutions of batches of which clients fill different parts: nothing is computed for the absent samples."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from typing_extensions import override

from tests.learning import test_direct, test_winograd
from tests.learning.narrow_kernels import without_avx512
from tests.learning.plain_loop import RandomPopulation
from tests.learning.test_cohort import SIZES, STREAMS, collect
from wirelessfl.learning import Examples, direct, winograd
from wirelessfl.learning.batches import Sampling
from wirelessfl.learning.cohort import ExecutionPlan, LocalTraining, gram, train_cohort
from wirelessfl.learning.cohort.block import Batch
from wirelessfl.learning.cohort.stacked import program
from wirelessfl.learning.cohort.stacked.convolution import Conv2d
from wirelessfl.learning.direct import DirectSums
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.models import cnn_cifar10, cnn_mnist, mlp
from wirelessfl.learning.optimizers import SGD
from wirelessfl.learning.private import PrivateGradients
from wirelessfl.learning.sample_counts import address_of_counts
from wirelessfl.learning.winograd import MinimalFiltering
from wirelessfl.privacy.clipping import Constant, FlatClipping, moo_clipping
from wirelessfl.privacy.mechanisms import GaussianMechanism

Case = test_direct.Case | test_winograd.Case
Compiled = DirectSums | MinimalFiltering

CASES: list[Case] = [*test_direct.CASES, *test_winograd.CASES]


def compiled_of(case: Case, library: ctypes.CDLL | None = None) -> Compiled:
    if isinstance(case, test_direct.Case):
        return case.sums(library)
    found = case.filtering()
    return found if library is None else replace(found, library=library)


def counts_of(case: Case, seed: int) -> Tensor:
    """From 0 to all samples; with seed 0 none, with 1 all."""
    if seed < 2:
        return torch.full((case.clients,), seed * case.samples)
    return torch.randint(case.samples + 1, (case.clients,), generator=torch.Generator().manual_seed(seed))


def absent(numbers: Tensor, counts: Tensor) -> Tensor:
    """(B, k · n, H, W) bool: what belongs to an absent sample."""
    of_clients = torch.arange(len(numbers))[:, None] >= counts
    return of_clients.repeat_interleave(numbers.shape[1] // len(counts), dim=1)[:, :, None, None].expand_as(numbers)


available = pytest.mark.skipif(
    direct.kernel() is None, reason="the kernels were not compiled, or not for this processor"
)


@available
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_numbers_of_present_samples_are_those_of_whole_batches(case: Case, seed: int) -> None:
    """Bit for bit, whatever lies where the others would be; and theirs are zero."""
    counts, whole = counts_of(case, seed), compiled_of(case)
    some = replace(whole, counts=counts)
    images, delta = case.images, case.delta
    of_images, of_outputs = absent(images, counts), absent(delta, counts)
    zeroed, holes = delta.masked_fill(of_outputs, 0), delta.masked_fill(of_outputs, torch.nan)
    seen = images.masked_fill(of_images, torch.nan)

    outputs = whole.convolved(images, case.kernels, case.biases).masked_fill(of_outputs, 0)
    assert torch.equal(some.convolved(seen, case.kernels, case.biases), outputs)
    by_images = whole.image_derivatives(zeroed, case.kernels, case.image)
    assert torch.equal(some.image_derivatives(holes, case.kernels, case.image), by_images)
    assert not by_images[of_images].any()
    for by_sample in (False, True):
        by_kernels = whole.kernel_derivatives(images, zeroed, case.clients, by_sample=by_sample)
        found = some.kernel_derivatives(seen, holes, case.clients, by_sample=by_sample)
        assert torch.equal(found, by_kernels)


@available
@pytest.mark.parametrize("longest", [1, 7, 50])
@pytest.mark.parametrize("case", test_direct.CASES[:11], ids=str)
def test_running_sums_end_where_those_of_whole_batches_end(case: test_direct.Case, longest: int) -> None:
    counts = counts_of(case, 5)
    whole = replace(case.sums(), longest=longest)
    zeroed = case.delta.masked_fill(absent(case.delta, counts), 0)
    expected = whole.kernel_derivatives(case.images, zeroed, case.clients)
    assert torch.equal(replace(whole, counts=counts).kernel_derivatives(case.images, zeroed, case.clients), expected)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> dict[type[Case], ctypes.CDLL]:
    """Both kernels as processors without AVX-512 run them."""
    return {
        test_direct.Case: without_avx512(direct.LIBRARY, tmp_path_factory.mktemp("direct"), direct.FUNCTIONS),
        test_winograd.Case: without_avx512(winograd.LIBRARY, tmp_path_factory.mktemp("winograd"), winograd.FUNCTIONS),
    }


@available
@pytest.mark.parametrize("case", [*test_direct.CASES[:12], *test_winograd.CASES], ids=str)
def test_both_kinds_of_processors_skip_the_same(case: Case, narrow: dict[type[Case], ctypes.CDLL]) -> None:
    counts = counts_of(case, 2)
    one, other = (replace(compiled_of(case, library), counts=counts) for library in (None, narrow[type(case)]))
    for by_sample in (False, True):
        settings = case.images, case.delta, case.clients
        of_one = one.kernel_derivatives(*settings, by_sample=by_sample)
        assert torch.equal(of_one, other.kernel_derivatives(*settings, by_sample=by_sample))
    outputs = one.convolved(case.images, case.kernels, None)
    assert torch.equal(outputs, other.convolved(case.images, case.kernels, None))
    by_images = one.image_derivatives(case.delta, case.kernels, case.image)
    assert torch.equal(by_images, other.image_derivatives(case.delta, case.kernels, case.image))


@available
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("case", [case for case in test_direct.CASES[:7] if case.geometry.size != (1, 1)], ids=str)
def test_a_layer_forms_gradients_of_some_samples_as_of_all(case: test_direct.Case, seed: int) -> None:
    """Bit for bit, and nothing is read of absent samples."""
    counts = counts_of(case, seed)
    layer, weights = Conv2d(case.channels, case.filters, case.geometry, True), [case.kernels, case.biases]
    _, saved = layer.forward(weights, case.images)
    zeroed = case.delta.masked_fill(absent(case.delta, counts), 0)
    expected = layer.sample_gradients(saved, zeroed, slice(None))
    some, seen = replace(layer, counts=counts), case.images.masked_fill(absent(case.images, counts), torch.nan)
    for at_once in (1, 2, case.samples):
        parts = (slice(first, min(first + at_once, case.samples)) for first in range(0, case.samples, at_once))
        formed = [some.sample_gradients((seen, *saved[1:]), zeroed, part) for part in parts]
        for whole, found in zip(expected, zip(*formed, strict=True), strict=True):
            assert torch.equal(torch.cat(found, dim=1), whole)


@available
def test_counts_that_do_not_fit_are_refused() -> None:
    case = test_direct.CASES[0]
    for counts in (torch.ones(4).long(), torch.ones(case.clients), torch.ones(2 * case.clients).long()[::2]):
        with pytest.raises(ValueError, match=r"counts: expected \(5,\) int64"):
            replace(case.sums(), counts=counts).convolved(case.images, case.kernels, None)
    assert address_of_counts(None, 3) == 0


@available
def test_more_than_all_samples_are_all_and_fewer_than_none_are_none() -> None:
    for case in (test_direct.CASES[1], test_winograd.CASES[1]):
        found, few = (
            replace(compiled_of(case), counts=torch.full((case.clients,), count)) for count in (case.samples + 5, -3)
        )
        expected = compiled_of(case).convolved(case.images, case.kernels, case.biases)
        assert torch.equal(found.convolved(case.images, case.kernels, case.biases), expected)
        assert not few.convolved(case.images, case.kernels, case.biases).any()
        assert not few.kernel_derivatives(case.images, case.delta, case.clients).any()


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "cnn_mnist": (partial(cnn_mnist, (1, 20, 20), 3), (1, 20, 20)),
    "cnn_cifar10": (partial(cnn_cifar10, (3, 12, 12), 3), (3, 12, 12)),
    "group norm": (
        lambda: nn.Sequential(
            *(nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1)),
            *(nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16 * 16, 3)),
        ),
        (3, 8, 8),
    ),
    "large layer": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 900), nn.ReLU(), nn.Linear(900, 3)
        ),
        (1, 8, 8),
    ),
}

RULES = {
    "no privacy": None,
    "flat": PrivateGradients(FlatClipping(0.5), GaussianMechanism(Constant(1.0))),
    "MOO": PrivateGradients(moo_clipping(0.5, "published", "sample", 0.1, 0.1), GaussianMechanism(Constant(1.0))),
}


@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", MODELS)
def test_training_is_bit_for_bit_that_of_whole_batches(
    name: str, rule: str, sampling: Sampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of clients of very different sizes; and some batches are not full."""
    build, shape = MODELS[name]
    model, population = FlatModel(build, shape, 3), RandomPopulation(SIZES, shape)
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=2, sampling=sampling)

    def train() -> Tensor:
        blocks = train_cohort(
            *(model, model.initial(2), population, np.arange(len(SIZES)), training, STREAMS, 3),
            *(ExecutionPlan(chunk=4), RULES[rule]),
        )
        return collect(list(blocks), len(SIZES))[0]

    asked, handed = [], []
    of_batch = program.Program.of_batch

    def noted(counts: Tensor | None, clients: int) -> int:
        handed.append(counts)
        return address_of_counts(counts, clients)

    for package in (direct, winograd, gram):
        monkeypatch.setattr(package, "address_of_counts", noted)

    def watched(self: program.Program, batch: Batch) -> program.Program:
        asked.append(batch.counts)
        return of_batch(self, batch)

    monkeypatch.setattr(program.Program, "of_batch", watched)
    found = train()
    assert direct.kernel() is None or any(counts is not None for counts in handed)
    counts = [counts for counts in asked if counts is not None]
    assert counts and all(len(set(own.tolist())) > 1 for own in counts)
    assert len(counts) < len(asked) or sampling == "poisson"
    monkeypatch.setattr(program.Program, "of_batch", lambda self, batch: self)
    assert torch.equal(train(), found) and found.isfinite().all()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("eps", [0.0, 1e-46])
def test_group_norm_that_takes_no_zeros_gets_whole_batches(rule: str, eps: float) -> None:
    """Zeros have no variance, and without ``eps`` nothing to divide by."""
    shape = (3, 8, 8)
    layers = nn.Conv2d(3, 16, 3), nn.GroupNorm(4, 16, eps=eps), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 3)
    model = FlatModel(lambda: nn.Sequential(*layers), shape, 3)
    training = LocalTraining(SGD(), 0.05, batch_size=8, epochs=2, sampling="poisson")
    blocks = train_cohort(
        *(model, model.initial(2), RandomPopulation(SIZES, shape), np.arange(len(SIZES)), training, STREAMS, 3),
        *(ExecutionPlan(chunk=4), RULES[rule]),
    )
    assert collect(list(blocks), len(SIZES))[0].isfinite().all()


class FirstIsMissing(RandomPopulation):
    """Of whose clients the first sample has no value."""

    @override
    def of_client(self, client: int) -> Examples:
        own = super().of_client(client)
        own.inputs[0] = torch.nan
        return own


def test_a_sample_that_is_not_finite_counts_as_nothing_where_it_fills_up_a_batch() -> None:
    """Of a client whose batch is smaller than others of its block: padding repeats its first sample."""
    model, population = FlatModel(partial(mlp, (12,), 3, hidden=(9,)), (12,), 3), FirstIsMissing(SIZES)
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=2, sampling="poisson")
    for chunk in (1, 4):
        blocks = train_cohort(
            *(model, model.initial(2), population, np.arange(len(SIZES)), training, STREAMS, 3),
            *(ExecutionPlan(chunk=chunk), RULES["flat"]),
        )
        assert collect(list(blocks), len(SIZES))[0].isfinite().all()
