"""Patches under kernels: against torch's unfold and fold, and the kernel in C against torch, bit for bit."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learning.plain_loop import RandomPopulation
from wirelessfl.learning.cohort import ExecutionPlan, LocalTraining, patches, train_cohort
from wirelessfl.learning.cohort.patches import kernel, patches_of, sums_over_patches
from wirelessfl.learning.cohort.stacked import convolution
from wirelessfl.learning.cohort.stacked.convolution import Conv2d
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.kernel_geometry import KernelGeometry
from wirelessfl.learning.optimizers import SGD
from wirelessfl.learning.private import PrivateGradients
from wirelessfl.privacy.clipping import Constant, SampleMooClipping
from wirelessfl.privacy.mechanisms import GaussianMechanism
from wirelessfl.streams import Streams

CLIENTS, SAMPLES, IMAGE = 3, 2, (13, 12)
GEOMETRIES = [
    KernelGeometry(size=size, stride=stride, padding=padding, dilation=dilation)
    for size, stride, padding, dilation in (
        ((1, 1), (1, 1), (0, 0), (1, 1)),
        ((3, 3), (1, 1), (1, 1), (1, 1)),
        ((8, 8), (2, 2), (0, 0), (1, 1)),
        ((4, 4), (2, 2), (1, 1), (1, 1)),
        ((2, 2), (3, 3), (0, 0), (1, 1)),
        ((3, 2), (2, 1), (1, 2), (1, 3)),
        ((2, 4), (1, 3), (0, 3), (3, 1)),
        ((13, 12), (1, 1), (0, 0), (1, 1)),
    )
]
CHANNELS = [1, 2, 8, 16, 32, 64, 65]
ORDERS = {"by client": (0, 1, 2, 3, 4), "interleaved": (1, 2, 3, 0, 4), "as samples come": (0, 1, 4, 2, 3)}


def images_of(channels: int, order: str, dtype: torch.dtype = torch.float32) -> Tensor:
    """(k, B, H, W, C) normal numbers in the ``order`` of memory."""
    shape = (CLIENTS, SAMPLES, *IMAGE, channels)
    axes = ORDERS[order]
    generator = torch.Generator().manual_seed(channels)
    in_memory = torch.randn([shape[axis] for axis in axes], generator=generator).to(dtype)
    return in_memory.permute([axes.index(axis) for axis in range(5)])


def unfolded(geometry: KernelGeometry, images: Tensor) -> Tensor:
    """(k, B, P, kh · kw · C) by torch's unfold."""
    settings = geometry.size, geometry.dilation, geometry.padding, geometry.stride
    columns = functional.unfold(images.flatten(0, 1).permute(0, 3, 1, 2), *settings)  # (k · B, C · kh · kw, P)
    by_place = columns.view(CLIENTS, SAMPLES, images.shape[-1], -1, columns.shape[-1])
    return by_place.permute(0, 1, 4, 3, 2).flatten(3)


def folded(geometry: KernelGeometry, values: Tensor) -> Tensor:
    """(k, B, H, W, C) sums over patches by torch's fold, of values (k, B, P, kh · kw, C)."""
    settings = geometry.size, geometry.dilation, geometry.padding, geometry.stride
    columns = values.permute(0, 1, 4, 3, 2).flatten(2, 3).flatten(0, 1)
    images: Tensor = functional.fold(columns, IMAGE, *settings).view(CLIENTS, SAMPLES, -1, *IMAGE)
    return images.permute(0, 1, 3, 4, 2)


@pytest.fixture(params=["compiled", "portable"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel in C, where there is one, and torch."""
    if request.param == "portable":
        monkeypatch.setattr(patches, "kernel", lambda: None)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("channels", CHANNELS)
def test_patches_are_those_of_unfold(geometry: KernelGeometry, channels: int) -> None:
    for order, dtype in product(ORDERS, (torch.float32, torch.float64)):
        images = images_of(channels, order, dtype)
        found = patches_of(geometry, images)
        assert found.dtype == dtype
        assert found.is_contiguous()
        assert torch.equal(found, unfolded(geometry, images)), order


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("channels", CHANNELS)
def test_sums_over_patches_are_those_of_fold(geometry: KernelGeometry, channels: int) -> None:
    size = (CLIENTS, SAMPLES, *geometry.positions(IMAGE), *geometry.size, channels)
    values = torch.randn(size, generator=torch.Generator().manual_seed(1))
    expected = folded(geometry, values.double().flatten(2, 3).flatten(3, 4))
    torch.testing.assert_close(sums_over_patches(geometry, values.double(), IMAGE), expected, rtol=1e-12, atol=1e-12)
    found = sums_over_patches(geometry, values, IMAGE)
    torch.testing.assert_close(found, expected.float(), rtol=1e-5, atol=1e-5)
    assert found.permute(1, 2, 3, 0, 4).is_contiguous()


@pytest.mark.skipif(kernel() is None, reason="the kernel was not compiled")
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("channels", CHANNELS)
def test_the_kernel_gives_the_numbers_of_torch_bit_for_bit(
    geometry: KernelGeometry, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (CLIENTS, SAMPLES, *geometry.positions(IMAGE), *geometry.size, channels)
    values = torch.randn(size, generator=torch.Generator().manual_seed(2))
    compiled = sums_over_patches(geometry, values, IMAGE)
    turned = sums_over_patches(geometry, values.transpose(0, 1).contiguous().transpose(0, 1), IMAGE)
    monkeypatch.setattr(patches, "kernel", lambda: None)
    assert torch.equal(compiled, sums_over_patches(geometry, values, IMAGE))
    assert torch.equal(turned, compiled)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, int, int]]] = {
    "padding before many filters": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.GroupNorm(8, 32), nn.Conv2d(32, 64, 3, padding=1), nn.Flatten(),
            nn.Linear(1024, 4),
        ),
        (3, 4, 4),
    ),
    "a kernel as wide as the image": (
        lambda: nn.Sequential(nn.Conv2d(31, 8, (4, 6), (2, 3), (1, 0)), nn.Flatten(), nn.Linear(32, 4)),
        (31, 9, 6),
    ),
}  # fmt: skip


def updates_of(build: Callable[[], nn.Module], shape: tuple[int, int, int], private: bool) -> Tensor:
    """(3, d) updates of three clients, with MOO clipping where they train privately."""
    model = FlatModel(build, shape, 4)
    population = RandomPopulation(np.array([8, 5, 8]), shape, 4)
    training = LocalTraining(SGD(0.5), 0.1, batch_size=4, epochs=1)
    transform = PrivateGradients(SampleMooClipping(0.5, 0.1, 1e-2), GaussianMechanism(Constant(1.0)))
    plan = ExecutionPlan(chunk=2, threads=1)
    cohort = model.initial(1), population, np.arange(3), training, Streams(3), 1, plan
    return torch.cat([block.updates for block in train_cohort(model, *cohort, transform if private else None)])


@pytest.mark.skipif(kernel() is None, reason="the kernel was not compiled")
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("private", [False, True], ids=["plain", "private"])
def test_networks_train_to_the_same_bits_without_the_kernel(
    name: str, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = updates_of(*NETWORKS[name], private)
    monkeypatch.setattr(patches, "kernel", lambda: None)
    assert torch.equal(updates_of(*NETWORKS[name], private), compiled)


def test_gradients_that_are_held_spare_the_second_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four filters at sixteen positions: held on a CPU. Where they are not, a pass for each sum gives the same."""
    passes = 0

    def counted(layer: Conv2d, *arguments: Any) -> None:
        nonlocal passes
        passes += 1
        add_gradient(layer, *arguments)

    def network() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Flatten(), nn.Linear(64, 4))

    add_gradient = Conv2d.add_gradient
    monkeypatch.setattr(Conv2d, "add_gradient", counted)
    held = updates_of(network, (3, 4, 4), private=True)
    assert passes == 0
    monkeypatch.setattr(convolution, "holds", lambda _: False)
    torch.testing.assert_close(updates_of(network, (3, 4, 4), private=True), held, rtol=1e-4, atol=1e-6)
    assert passes > 0


@pytest.mark.skipif(kernel() is None, reason="the kernel was not compiled")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_default_of_torch_does_not_matter(dtype: torch.dtype) -> None:
    images = images_of(3, "interleaved")
    expected = patches_of(GEOMETRIES[1], images)
    kernel.cache_clear()
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        assert kernel() is not None
        assert torch.equal(patches_of(GEOMETRIES[1], images), expected)
    finally:
        torch.set_default_dtype(before)


def test_a_kernel_that_gives_other_numbers_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if kernel() is None:
        pytest.skip("the kernel was not compiled")
    kernel.cache_clear()
    monkeypatch.setattr(patches, "_copy_compiled", lambda library, geometry, images: torch.zeros(1))
    assert kernel() is None
    kernel.cache_clear()


def test_without_a_library_there_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> ctypes.CDLL:
        raise OSError

    kernel.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert kernel() is None
    kernel.cache_clear()
