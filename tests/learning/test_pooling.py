"""Pooling by the kernel in C: against torch, value by value and bit for bit, alone and in networks that train."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learning.plain_loop import RandomPopulation
from wirelessfl.learning.cohort import ExecutionPlan, LocalTraining, pooling, train_cohort
from wirelessfl.learning.cohort.pooling import CompiledPool, Maxima, Means, kernel, kernel_for
from wirelessfl.learning.cohort.stacked import compile_program
from wirelessfl.learning.cohort.stacked.pooling import Pool
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.kernel_geometry import KernelGeometry
from wirelessfl.learning.models import TemperedSigmoid
from wirelessfl.learning.optimizers import SGD
from wirelessfl.learning.private import PrivateGradients
from wirelessfl.privacy.clipping import Constant, SampleMooClipping
from wirelessfl.privacy.mechanisms import GaussianMechanism
from wirelessfl.streams import Streams

compiled_only = pytest.mark.skipif(kernel() is None, reason="the kernel was not compiled")

SAMPLES, IMAGE = 3, (13, 12)
WINDOWS = [
    KernelGeometry(size=size, stride=stride, padding=padding, dilation=dilation)
    for size, stride, padding, dilation in (
        ((1, 1), (1, 1), (0, 0), (1, 1)),
        ((2, 2), (2, 2), (0, 0), (1, 1)),
        ((2, 2), (1, 1), (0, 0), (1, 1)),
        ((3, 3), (2, 2), (1, 1), (1, 1)),
        ((2, 2), (3, 3), (0, 0), (1, 1)),
        ((3, 2), (2, 1), (1, 0), (1, 1)),
        ((3, 2), (2, 1), (1, 1), (2, 3)),
        ((13, 12), (1, 1), (0, 0), (1, 1)),
    )
]
CHANNELS = [1, 5, 16, 31, 32, 64, 100, 160]  # tiles of 64, of 32 and shorter ones, with what is left
POOLS: list[Callable[[ctypes.CDLL, KernelGeometry, bool], CompiledPool]] = [Maxima, Means]


def images_of(channels: int, last: bool = True) -> Tensor:
    """(B, C, H, W) normal numbers, some of them alike, zero or infinite."""
    images = torch.randn(SAMPLES, channels, *IMAGE, generator=torch.Generator().manual_seed(channels)).mul(4).round()
    images[0, 0, 0, 0], images[0, 0, 6, 6], images[0, 0, 3, :2] = torch.inf, -torch.inf, -0.0
    return images.contiguous(memory_format=torch.channels_last) if last else images


def by_torch(pool: Callable[..., CompiledPool], windows: KernelGeometry, images: Tensor) -> Tensor:
    """The values of the windows as a user of torch takes them."""
    settings = windows.size, windows.stride, windows.padding
    if pool is Maxima:
        return functional.max_pool2d(images, *settings, windows.dilation)
    return functional.avg_pool2d(images, *settings)


@compiled_only
@pytest.mark.parametrize("rectified", [False, True], ids=["bare", "rectified"])
@pytest.mark.parametrize(
    ("pool", "windows"),
    [(pool, at) for pool in POOLS for at in WINDOWS if pool is Maxima or at.dilation == (1, 1)],
    ids=str,
)
def test_values_and_derivatives_are_those_of_torch_bit_for_bit(
    pool: Callable[[ctypes.CDLL, KernelGeometry, bool], CompiledPool], windows: KernelGeometry, rectified: bool
) -> None:
    for channels, last in product(CHANNELS, (True, False)):
        images = images_of(channels, last)
        library = kernel()
        assert library is not None
        before = images_of(channels).requires_grad_()
        expected = by_torch(pool, windows, functional.relu(before) if rectified else before)
        delta = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
        (derivative,) = torch.autograd.grad(expected, before, delta.contiguous(memory_format=torch.channels_last))
        compiled = pool(library, windows, rectified)
        values, kept = compiled.pooled(images)
        torch.testing.assert_close(values, expected, rtol=0, atol=0, equal_nan=True)  # the mean of ∞ and −∞
        assert values.permute(0, 2, 3, 1).is_contiguous()
        for given in (delta, delta.contiguous(memory_format=torch.channels_last)):
            assert torch.equal(compiled.derivative(given, kept), derivative)


@compiled_only
@pytest.mark.parametrize("rectified", [False, True], ids=["bare", "rectified"])
@pytest.mark.parametrize("pool", POOLS)
def test_what_is_not_a_number_stays_so(
    pool: Callable[[ctypes.CDLL, KernelGeometry, bool], CompiledPool], rectified: bool
) -> None:
    windows = KernelGeometry((2, 2), (2, 2), (0, 0), (1, 1))
    images = images_of(40)
    images[1, 7, 3, 4] = images[1, 7, 2, 4] = images[2, 39, 0, 0] = torch.nan
    library = kernel()
    assert library is not None
    before = images.clone(memory_format=torch.channels_last).requires_grad_()
    expected = by_torch(pool, windows, functional.relu(before) if rectified else before)
    (derivative,) = torch.autograd.grad(expected, before, torch.ones_like(expected))
    compiled = pool(library, windows, rectified)
    values, kept = compiled.pooled(images)
    assert int(values.isnan().sum()) == 2
    torch.testing.assert_close(values, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(compiled.derivative(torch.ones_like(expected), kept), derivative)


@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), nn.AvgPool2d(2), nn.MaxPool2d(2, ceil_mode=True)], ids=str)
@pytest.mark.parametrize("compiled", [True, False])
def test_images_in_full_precision_take_derivatives_of_convolutions_in_reduced_precision(
    pool: nn.Module, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Group norm gives float32 where convolutions before and behind it are in bfloat16."""
    monkeypatch.setattr(pooling, "_FEWEST_CHANNELS", 1)
    if not compiled:
        monkeypatch.setattr(pooling, "kernel", lambda: None)

    def build() -> nn.Module:
        before = nn.Conv2d(2, 8, 3), nn.GroupNorm(2, 8), nn.ReLU()
        return nn.Sequential(*before, pool, nn.Conv2d(8, 8, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 3 * 3, 4))

    model = FlatModel(build, (2, 10, 10), 4)
    population = RandomPopulation(np.array([8, 5, 8]), (2, 10, 10), 4)
    training = LocalTraining(SGD(0.5), 0.1, batch_size=4, epochs=1)
    cohort = model.initial(1), population, np.arange(3), training, Streams(3), 1
    exact, rounded = (
        torch.cat([block.updates for block in train_cohort(model, *cohort, ExecutionPlan(precision=precision))])
        for precision in ("fp32", "bf16")
    )
    # What plans in bfloat16 are allowed on any device, see benchmarks/gpu/agreement.py
    assert torch.linalg.vector_norm(rounded - exact) < 0.05 * torch.linalg.vector_norm(exact)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_have_no_kernel(dtype: torch.dtype) -> None:
    assert kernel_for(images_of(100), WINDOWS[0]) is kernel()
    assert kernel_for(images_of(100).to(dtype), WINDOWS[0]) is None


def test_images_of_few_channels_have_no_kernel() -> None:
    assert [kernel_for(images_of(channels), WINDOWS[1]) for channels in (31, 32)] == [None, kernel()]


def test_windows_of_more_places_than_a_byte_counts_have_no_kernel() -> None:
    images = torch.zeros(1, 40, 20, 20)
    at = (1, 1), (0, 0), (1, 1)
    assert kernel_for(images, KernelGeometry((16, 16), *at)) is None
    assert kernel_for(images, KernelGeometry((15, 17), *at)) is kernel()


def test_windows_that_may_lie_off_the_image_have_no_kernel() -> None:
    """Of such a window torch gives −∞, also behind a ReLU."""
    images = torch.zeros(1, 40, 2, 5)
    assert functional.max_pool2d(images, (2, 1), 1, (1, 0), (3, 1)).isneginf().all()
    assert kernel_for(images, KernelGeometry((2, 1), (1, 1), (1, 0), (3, 1))) is None


class Network(NamedTuple):
    """Layers before the last, their pools, and the ReLUs among these."""

    layers: Callable[[], list[nn.Module]]
    pools: int
    rectified: int


NETWORKS = {
    "maxima and means behind ReLUs": Network(
        lambda: [
            *(nn.Conv2d(2, 9, 3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(9, 40, 2), nn.ReLU(), nn.AvgPool2d(2)),
        ],
        pools=2,
        rectified=2,
    ),
    "other activations": Network(
        lambda: [nn.Conv2d(2, 9, 3), nn.Tanh(), nn.MaxPool2d(3, 2, 1), TemperedSigmoid(), nn.AvgPool2d((1, 2))],
        pools=2,
        rectified=0,
    ),
    "pools before the first layer that is trained": Network(
        lambda: [nn.MaxPool2d(2), nn.Conv2d(2, 9, 2), nn.ReLU()], pools=1, rectified=0
    ),
    "a ReLU on the samples, and pools one after the other": Network(
        lambda: [nn.ReLU(), nn.AvgPool2d(2, 1), nn.MaxPool2d(2, 1), nn.Conv2d(2, 9, 2), nn.GroupNorm(3, 9), nn.ReLU()],
        pools=2,
        rectified=0,
    ),
    "adaptive means of whole windows": Network(
        lambda: [
            *(nn.Conv2d(2, 32, (3, 2)), nn.ReLU(), nn.AdaptiveAvgPool2d((4, 2))),
            *(nn.Conv2d(32, 32, 1), nn.Tanh(), nn.AdaptiveAvgPool2d(1)),
        ],
        pools=2,
        rectified=1,
    ),
    "adaptive means of other windows": Network(
        lambda: [
            *(nn.Conv2d(2, 32, (3, 2)), nn.ReLU(), nn.AdaptiveAvgPool2d((3, 8)), nn.ReLU()),
            *(nn.AdaptiveAvgPool2d((6, 6)), nn.AdaptiveAvgPool2d(2), nn.AdaptiveAvgPool2d((4, 3))),
        ],
        pools=0,
        rectified=0,
    ),
    "what the kernel leaves to torch": Network(
        lambda: [
            *(nn.Conv2d(2, 9, 3), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True), nn.ReLU()),
            *(nn.AvgPool2d(3, 1, 1, count_include_pad=False), nn.ReLU(), nn.AvgPool2d(2, ceil_mode=True)),
        ],
        pools=0,
        rectified=0,
    ),
}
SHAPE = (2, 10, 9)


def model_of(name: str) -> FlatModel:
    """The network with a linear layer at its end."""

    def build() -> nn.Module:
        layers = NETWORKS[name].layers()
        size = nn.Sequential(*layers)(torch.zeros(1, *SHAPE)).numel()
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(size, 4))

    return FlatModel(build, SHAPE, 4)


def updates_of(name: str, private: bool) -> Tensor:
    """(3, d) updates of three clients, with MOO clipping where they train privately."""
    model = model_of(name)
    population = RandomPopulation(np.array([8, 5, 8]), SHAPE, 4)
    training = LocalTraining(SGD(0.5), 0.1, batch_size=4, epochs=1)
    transform = PrivateGradients(SampleMooClipping(0.5, 0.1, 1e-2), GaussianMechanism(Constant(1.0)))
    plan = ExecutionPlan(chunk=2, threads=1)
    cohort = model.initial(1), population, np.arange(3), training, Streams(3), 1, plan
    return torch.cat([block.updates for block in train_cohort(model, *cohort, transform if private else None)])


@pytest.mark.parametrize("name", NETWORKS)
def test_pools_take_the_relu_before_them(name: str) -> None:
    program = compile_program(model_of(name))
    assert program is not None
    pools = [step.layer for step in program.steps if isinstance(step.layer, Pool)]
    assert (len(pools), sum(pool.relu is not None for pool in pools)) == NETWORKS[name][1:]


@compiled_only
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("private", [False, True], ids=["plain", "private"])
def test_networks_train_to_the_same_bits_without_the_kernel(
    name: str, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooling, "_FEWEST_CHANNELS", 1)
    compiled = updates_of(name, private)
    monkeypatch.setattr(pooling, "kernel", lambda: None)
    assert torch.equal(updates_of(name, private), compiled)
