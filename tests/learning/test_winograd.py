"""Minimal filtering against torch's convolutions and their derivatives in double precision, alone and in modules.

Errors are of the norm of all numbers, in relation to it: direct sums in single precision are some 2⁻²² off, and minimal
filtering four times as much. A fault in any of the numbers is far above 2⁻¹⁸.
"""

import ctypes
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.learning.narrow_kernels import without_avx512
from wirelessfl.learning.cohort.stacked.convolution import Conv2d
from wirelessfl.learning.cohort.stacked.program import Program, Record, StackedSampleGradients
from wirelessfl.learning.kernel_geometry import KernelGeometry
from wirelessfl.learning.winograd import FUNCTIONS, LIBRARY, MinimalFiltering, kernel, minimal_filtering

compiled_only = pytest.mark.skipif(kernel() is None, reason="the kernel was not compiled, or not for this processor")

TOLERANCE = 2.0**-18
aten = torch.ops.aten


class Case(NamedTuple):
    """Images, kernels and derivatives by outputs of k clients."""

    size: int
    padding: tuple[int, int]
    clients: int
    samples: int
    image: tuple[int, int]
    channels: int
    filters: int

    @property
    def geometry(self) -> KernelGeometry:
        return KernelGeometry((self.size, self.size), (1, 1), self.padding, (1, 1))

    @property
    def images(self) -> Tensor:
        return self.normal(1, self.samples, self.clients * self.channels, *self.image)

    @property
    def kernels(self) -> Tensor:
        return self.normal(2, self.clients, self.filters, self.channels, self.size, self.size)

    @property
    def biases(self) -> Tensor:
        return self.normal(3, self.clients, self.filters)

    @property
    def delta(self) -> Tensor:
        positions = self.geometry.positions(self.image)
        return self.normal(4, self.samples, self.clients * self.filters, *positions)

    def filtering(self) -> MinimalFiltering:
        library = kernel()
        assert library is not None
        return MinimalFiltering(library, self.size, self.padding)

    def normal(self, seed: int, *shape: int) -> Tensor:
        numbers = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
        return numbers.contiguous(memory_format=torch.channels_last) if len(shape) == 4 else numbers

    def by_torch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs and derivatives by images and by kernels, in double precision."""
        images, kernels = self.images.double(), self.kernels.double().flatten(0, 1)
        settings = (1, 1), self.padding, (1, 1)
        outputs = functional.conv2d(images, kernels, self.biases.double().flatten(), *settings, self.clients)
        by_images, by_kernels, _ = aten.convolution_backward(
            self.delta.double(), images, kernels, None, *settings, False, (0, 0), self.clients, (True, True, False)
        )
        return outputs, by_images, by_kernels.view(self.kernels.shape)

    def by_filtering(self, filtering: MinimalFiltering) -> tuple[Tensor, Tensor, Tensor]:
        return (
            filtering.convolved(self.images, self.kernels, self.biases),
            filtering.image_derivatives(self.delta, self.kernels, self.image),
            filtering.kernel_derivatives(self.images, self.delta, self.clients),
        )


CASES = [
    Case(3, (1, 1), 1, 1, (4, 4), 16, 16),  # one tile
    Case(3, (0, 0), 2, 3, (6, 6), 32, 16),
    Case(3, (2, 1), 3, 2, (5, 11), 16, 48),  # tiles that lie partly off the outputs
    Case(3, (1, 0), 1, 7, (9, 3), 48, 80),  # outputs in panels of 64 and 16
    Case(3, (1, 1), 2, 9, (13, 10), 16, 112),  # more tiles than one block, the last not full
    Case(3, (1, 1), 1, 3, (8, 8), 256, 192),  # several panels, blocks of 48
    Case(5, (2, 2), 1, 1, (2, 2), 16, 16),
    Case(5, (0, 0), 2, 3, (7, 6), 32, 16),
    Case(5, (4, 1), 3, 2, (5, 9), 16, 48),
    Case(5, (2, 3), 2, 5, (14, 13), 48, 80),
    Case(5, (2, 2), 1, 2, (6, 6), 144, 160),
]


def error(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@compiled_only
@pytest.mark.parametrize("case", CASES, ids=str)
def test_outputs_and_derivatives_are_those_of_torch(case: Case) -> None:
    for found, expected in zip(case.by_filtering(case.filtering()), case.by_torch(), strict=True):
        assert found.shape == expected.shape
        assert error(found, expected) < TOLERANCE


@compiled_only
@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_kinds_of_processors_give_the_same_bits(case: Case, narrow: ctypes.CDLL) -> None:
    filtering = MinimalFiltering(narrow, case.size, case.padding)
    for one, other in zip(case.by_filtering(filtering), case.by_filtering(case.filtering()), strict=True):
        assert torch.equal(one, other)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return without_avx512(LIBRARY, tmp_path_factory.mktemp("winograd"), FUNCTIONS)


@compiled_only
def test_clients_do_not_depend_on_each_other() -> None:
    case = Case(3, (1, 1), 3, 5, (8, 7), 32, 48)
    outputs, by_images, by_kernels = case.by_filtering(case.filtering())
    for client in range(case.clients):
        of_inputs, of_outputs = (slice(client * n, (client + 1) * n) for n in (case.channels, case.filters))
        images, delta, kernels = case.images[:, of_inputs], case.delta[:, of_outputs], case.kernels[client, None]
        filtering = case.filtering()
        assert torch.equal(filtering.convolved(images, kernels, case.biases[client, None]), outputs[:, of_outputs])
        assert torch.equal(filtering.image_derivatives(delta, kernels, case.image), by_images[:, of_inputs])
        assert torch.equal(filtering.kernel_derivatives(images, delta, 1)[0], by_kernels[client])


@compiled_only
def test_any_memory_is_taken() -> None:
    """Kernels and biases within a matrix of parameters, or turned around; images that are contiguous."""
    case = Case(3, (1, 1), 3, 5, (8, 7), 32, 48)
    outputs, *derivatives = case.by_filtering(case.filtering())
    kernels, biases = case.kernels, case.biases
    matrix = torch.cat([biases, kernels.flatten(1), biases], dim=1)
    of_matrix = matrix[:, case.filters : -case.filters].view(kernels.shape), matrix[:, -case.filters :]
    turned = kernels.transpose(1, 2).contiguous().transpose(1, 2), biases.T.contiguous().T
    for images in case.images, case.images.contiguous():
        for pair in of_matrix, turned:
            found = case.filtering().convolved(images, *pair)
            assert torch.equal(found, outputs) and found.is_contiguous(memory_format=torch.channels_last)
    delta = case.delta.contiguous()
    assert torch.equal(case.filtering().image_derivatives(delta, turned[0], case.image), derivatives[0])
    assert torch.equal(case.filtering().kernel_derivatives(case.images.contiguous(), delta, 3), derivatives[1])


@compiled_only
def test_a_pixel_that_is_not_finite_stays_within_its_tiles() -> None:
    case = Case(3, (1, 1), 1, 2, (12, 12), 16, 16)
    images = case.images
    images[0, 3, 5, 5] = torch.inf
    outputs = case.filtering().convolved(images, case.kernels, None)
    assert not outputs[0, :, 4:7, 4:7].isfinite().any()
    assert outputs[1].isfinite().all() and outputs[0, :, 8:].isfinite().all() and outputs[0, :, :, 8:].isfinite().all()


@compiled_only
@pytest.mark.parametrize(
    "changed",
    [
        {"stride": (2, 1)},
        {"dilation": (1, 2)},
        {"size": (3, 5)},
        {"size": (1, 1)},
        {"size": (7, 7)},
        {"padding": (3, 1)},
    ],
    ids=str,
)
def test_other_geometries_are_left_to_torch(changed: dict[str, tuple[int, int]]) -> None:
    settings = {"size": (3, 3), "stride": (1, 1), "padding": (1, 1), "dilation": (1, 1)}
    assert minimal_filtering(KernelGeometry(**settings), 20, (16, 16), 64, 64) is not None
    assert minimal_filtering(KernelGeometry(**settings | changed), 20, (16, 16), 64, 64) is None


@compiled_only
@pytest.mark.parametrize(
    ("samples", "image", "channels", "filters"),
    [
        (20, (16, 16), 3, 64),
        (20, (16, 16), 64, 40),
        (20, (2, 2), 64, 64),  # tiles that are mostly empty
        (1, (4, 4), 64, 64),  # one tile for a transform of the kernels
    ],
)
def test_what_would_not_be_faster_is_left_to_torch(
    samples: int, image: tuple[int, int], channels: int, filters: int
) -> None:
    geometry = KernelGeometry((3, 3), (1, 1), (1, 1), (1, 1))
    assert minimal_filtering(geometry, samples, image, channels, filters) is None


@compiled_only
@pytest.mark.parametrize("case", [CASES[4], CASES[9]], ids=str)
def test_a_layer_takes_it_with_all_its_derivatives(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, weights = Conv2d(case.channels, case.filters, case.geometry, True), [case.kernels, case.biases]
    assert layer.filters_minimally(case.images) is not None
    assert layer.filters_minimally(case.images.double()) is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer.filters_minimally(case.images) is None
    outputs, saved = layer.forward(weights, case.images)
    into = [torch.full_like(weight, 2.0) for weight in weights]
    layer.add_gradient(saved, [case.delta, case.delta], into, 0.5)
    by_images = layer.backward(weights, saved, case.delta)
    expected = case.by_torch()
    assert error(outputs, expected[0]) < TOLERANCE and error(by_images, expected[1]) < TOLERANCE
    assert error(into[0], expected[2] + 1) < TOLERANCE
    of_samples = layer.sample_gradients(saved, case.delta, slice(None))
    assert error(of_samples[0].sum(1), expected[2]) < TOLERANCE
    for norm, gradients in zip(layer.squared_norms(saved, case.delta), of_samples, strict=True):
        torch.testing.assert_close(norm, gradients.flatten(2).square().sum(2))
    products = sum(layer.inner_products(saved, case.delta, weights))
    expected_products = sum(
        torch.einsum("kb...,k...->kb", each, weight) for each, weight in zip(of_samples, weights, strict=True)
    )
    assert isinstance(products, Tensor) and isinstance(expected_products, Tensor)
    torch.testing.assert_close(products, expected_products, rtol=1e-4, atol=1e-2)


@compiled_only
@pytest.mark.parametrize(("side", "filters"), [(12, 32), (8, 512)], ids=["held", "formed twice"])
@pytest.mark.parametrize("pixel", [1.0, 1e7])
def test_a_clipped_gradient_is_not_longer_than_the_clip(pixel: float, side: int, filters: int) -> None:
    """Also where one pixel, whose derivative is zero, is far larger than all others of its tile."""
    case = Case(3, (1, 1), 4, 8, (side, side), 32, filters)
    layer, weights = Conv2d(case.channels, case.filters, case.geometry, False), [case.kernels]
    images, delta = case.images, torch.zeros_like(case.delta)
    delta[:, :, 4, 4], images[:, :, 7, 7] = case.delta[:, :, 4, 4], pixel
    _, saved = layer.forward(weights, images)
    assert saved[3] is not None
    held = layer.held_gradients(saved, delta)
    assert (held is None) == (filters == 512)
    norms = layer.squared_norms(saved, delta)[0].sqrt() if held is None else held[0].rows.norm(dim=2)
    for sample in range(case.samples):
        only = torch.zeros(case.clients, case.samples)
        only[:, sample] = 1 / norms[:, sample]
        into = [torch.empty_like(case.kernels)]
        if held is None:
            layer.add_weighted_gradients(saved, delta, [only], into, 0.0)
        else:
            into = [held[0].weighted_sum(only)]
        assert (into[0].flatten(1).norm(dim=1) - 1).abs().max() < 1e-5


@compiled_only
def test_gradients_that_are_formed_after_their_norms_have_these_norms() -> None:
    """As where one sample of a batch is not finite, and the others are summed one by one."""
    case = Case(3, (1, 1), 2, 5, (12, 12), 32, 32)
    layer, images, delta = Conv2d(case.channels, case.filters, case.geometry, True), case.images, case.delta.zero_()
    delta[:, :, 4, 4], images[:, :, 7, 7], images[1, 0, 0, 0] = 1.0, 1e7, torch.nan
    _, saved = layer.forward([case.kernels, case.biases], images)
    dimension = case.filters * (case.channels * 9 + 1)
    present = torch.ones(case.clients, case.samples, dtype=torch.bool)
    record = Record(layer, 0, saved, delta)
    gradients = StackedSampleGradients(Program(()), dimension, [record], present, torch.zeros(present.shape))
    norms = gradients.squared_norms().sum(-1)
    (formed,) = (part for _, part in gradients.formed())
    torch.testing.assert_close(formed.square().sum(-1), norms, equal_nan=True, rtol=1e-5, atol=0.0)
    assert norms[:, 0].isfinite().all() and not norms[0, 1].isfinite()


@compiled_only
def test_inner_products_are_direct_sums() -> None:
    case = Case(3, (1, 1), 2, 5, (12, 12), 32, 32)
    layer, images, delta = Conv2d(case.channels, case.filters, case.geometry, False), case.images, case.delta.zero_()
    delta[:, :, 4, 4], images[:, :, 7, 7] = 1.0, 1e7
    _, saved = layer.forward([case.kernels], images)
    (found,) = layer.inner_products(saved, delta, [case.kernels])
    (of_samples,) = layer.sample_gradients(saved, delta, slice(None))
    expected = torch.einsum("kb...,k...->kb", of_samples.double(), case.kernels.double()).float()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@compiled_only
@pytest.mark.parametrize("case", [CASES[4], CASES[9]], ids=str)
def test_gradients_of_samples_add_up_to_that_of_their_batch(case: Case) -> None:
    of_samples = case.filtering().kernel_derivatives(case.images, case.delta, case.clients, by_sample=True)
    _, _, expected = case.by_torch()
    assert error(of_samples.sum(1), expected) < TOLERANCE
    for sample in range(case.samples):
        images, delta = case.images[sample, None], case.delta[sample, None]
        assert torch.equal(case.filtering().kernel_derivatives(images, delta, case.clients), of_samples[:, sample])


@compiled_only
def test_many_tiles_do_not_lose_more() -> None:
    case = Case(5, (2, 2), 1, 32, (40, 40), 16, 16)
    found = case.filtering().kernel_derivatives(case.images, case.delta, 1)
    assert error(found, case.by_torch()[2]) < TOLERANCE
