"""Direct sums against torch's convolutions and their derivatives in double precision, alone and in layers.

Errors are of the norm of all numbers, in relation to it: sums of some hundred products in single precision are 2⁻²²
off, of some thousand 2⁻²¹. A fault in any of the numbers is far above 2⁻¹⁹.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learning.narrow_kernels import without_avx512
from tests.learning.test_winograd import aten, error
from wirelessfl.learning import direct
from wirelessfl.learning.cohort.stacked.compilation import compile_program
from wirelessfl.learning.cohort.stacked.convolution import Conv2d
from wirelessfl.learning.direct import FUNCTIONS, LIBRARY, DirectSums, direct_sums, kernel
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.kernel_geometry import KernelGeometry, Pair

compiled_only = pytest.mark.skipif(kernel() is None, reason="the kernel was not compiled, or not for this processor")

TOLERANCE = 2.0**-19


class Case(NamedTuple):
    """Images, kernels and derivatives by outputs of k clients."""

    size: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    clients: int
    samples: int
    image: Pair
    channels: int
    filters: int

    @property
    def geometry(self) -> KernelGeometry:
        return KernelGeometry(self.size, self.stride, self.padding, self.dilation)

    @property
    def images(self) -> Tensor:
        return normal(1, self.samples, self.clients * self.channels, *self.image)

    @property
    def kernels(self) -> Tensor:
        return normal(2, self.clients, self.filters, self.channels, *self.size)

    @property
    def biases(self) -> Tensor:
        return normal(3, self.clients, self.filters)

    @property
    def delta(self) -> Tensor:
        return normal(4, self.samples, self.clients * self.filters, *self.geometry.positions(self.image))

    def sums(self, library: ctypes.CDLL | None = None) -> DirectSums:
        library = library or kernel()
        assert library is not None
        return DirectSums(library, self.geometry, 384)

    def by_torch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs and derivatives by images and by kernels, in double precision."""
        images, kernels = self.images.double(), self.kernels.double().flatten(0, 1)
        settings = self.stride, self.padding, self.dilation
        outputs = functional.conv2d(images, kernels, self.biases.double().flatten(), *settings, self.clients)
        by_images, by_kernels, _ = aten.convolution_backward(
            self.delta.double(), images, kernels, None, *settings, False, (0, 0), self.clients, (True, True, False)
        )
        return outputs, by_images, by_kernels.view(self.kernels.shape)

    def directly(self, sums: DirectSums, images: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        images = self.images if images is None else images
        return (
            sums.convolved(images, self.kernels, self.biases),
            sums.image_derivatives(self.delta, self.kernels, self.image),
            sums.kernel_derivatives(images, self.delta, self.clients),
        )


def normal(seed: int, *shape: int) -> Tensor:
    numbers = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return numbers.contiguous(memory_format=torch.channels_last) if len(shape) == 4 else numbers


def drawn() -> Iterator[Case]:
    """Geometries without end, each of which has a position at least."""
    draw = np.random.default_rng(7)

    def pair(low: int, high: int) -> Pair:
        first, second = draw.integers(low, high, 2).tolist()
        return first, second

    while True:
        case = Case(
            *(pair(1, 6), pair(1, 4), pair(0, 3), pair(1, 3)),
            *(int(draw.integers(1, 5)), int(draw.integers(1, 8)), pair(1, 14)),
            *(int(draw.choice([1, 2, 3, 5, 16, 17, 32, 48])), int(draw.choice([16, 32, 48, 64]))),
        )
        if min(case.geometry.positions(case.image)) > 0:
            yield case


ONE = (1, 1)
CASES = [
    Case((8, 8), (2, 2), (0, 0), ONE, 5, 4, (28, 28), 1, 16),  # cnn_mnist's first
    Case((4, 4), (2, 2), (0, 0), ONE, 5, 7, (10, 10), 16, 32),  # and second layer, images where they lie
    Case((4, 4), (2, 2), (0, 0), ONE, 64, 2, (10, 10), 16, 32),  # where they would drive each other from the cache
    Case((3, 3), ONE, ONE, ONE, 3, 3, (32, 32), 3, 32),
    Case(ONE, ONE, (0, 0), ONE, 1, 1, ONE, 1, 16),  # a single product
    Case(ONE, (2, 2), (0, 0), ONE, 2, 3, (5, 5), 16, 16),
    Case((3, 3), (1, 3), (4, 5), (2, 1), 2, 3, (3, 4), 7, 16),  # positions wholly in the padding
    Case((3, 4), (2, 2), ONE, (1, 3), 2, 9, (9, 11), 16, 32),  # two places of the kernel at once, wide apart
    Case((3, 4), (1, 3), ONE, (1, 3), 2, 9, (9, 15), 16, 32),  # places that meet in a pixel
    Case((2, 2), ONE, (0, 0), ONE, 6, 2, (3, 3), 32, 48),  # panels of 16 filters
    *islice(drawn(), 40),
]

FEW_OF_BOTH = Case((3, 3), (2, 2), ONE, ONE, 3, 4, (5, 5), 3, 32)


@compiled_only
@pytest.mark.parametrize("case", CASES, ids=str)
def test_outputs_and_derivatives_are_those_of_torch(case: Case) -> None:
    for found, expected in zip(case.directly(case.sums()), case.by_torch(), strict=True):
        assert found.shape == expected.shape
        assert error(found, expected) < TOLERANCE or not (expected.any() or found.any())


@compiled_only
@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_kinds_of_processors_give_the_same_bits(case: Case, narrow: ctypes.CDLL) -> None:
    for one, other in zip(case.directly(case.sums(narrow)), case.directly(case.sums()), strict=True):
        assert torch.equal(one, other)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return without_avx512(LIBRARY, tmp_path_factory.mktemp("direct"), FUNCTIONS)


@compiled_only
@pytest.mark.parametrize("case", CASES[:11], ids=str)
def test_gradients_of_samples_are_those_of_batches_of_one(case: Case) -> None:
    of_samples = case.sums().kernel_derivatives(case.images, case.delta, case.clients, by_sample=True)
    assert error(of_samples.sum(1), case.by_torch()[2]) < TOLERANCE
    for sample in range(case.samples):
        images, delta = case.images[sample, None], case.delta[sample, None]
        assert torch.equal(case.sums().kernel_derivatives(images, delta, case.clients), of_samples[:, sample])


@compiled_only
@pytest.mark.parametrize("case", CASES[:11], ids=str)
def test_any_memory_is_taken(case: Case) -> None:
    """Images in three orders, kernels and biases within a matrix of parameters or turned around."""
    expected = case.directly(case.sums())
    by_client = case.images.view(case.samples, case.clients, -1, *case.image).transpose(0, 1).contiguous()
    wide = functional.pad(case.images, (1, 2, 3, 4))[:, :, 3:-4, 1:-2]
    for images in case.images.contiguous(), wide, by_client.transpose(0, 1).flatten(1, 2):
        assert all(map(torch.equal, case.directly(case.sums(), images), expected))
    kernels, biases = case.kernels, case.biases
    matrix = torch.cat([biases, kernels.flatten(1), biases], dim=1)
    of_matrix = matrix[:, case.filters : -case.filters].view(kernels.shape), matrix[:, -case.filters :]
    turned = kernels.transpose(1, 2).contiguous().transpose(1, 2), biases.T.contiguous().T
    for pair in of_matrix, turned:
        found = case.sums().convolved(case.images, *pair)
        assert torch.equal(found, expected[0]) and found.is_contiguous(memory_format=torch.channels_last)
    found = case.sums().image_derivatives(case.delta.contiguous(), turned[0], case.image)
    assert torch.equal(found, expected[1]) and found.is_contiguous(memory_format=torch.channels_last)


@compiled_only
@pytest.mark.parametrize("case", CASES[:11], ids=str)
def test_clients_do_not_depend_on_each_other(case: Case) -> None:
    outputs, by_images, by_kernels = case.directly(case.sums())
    client = case.clients - 1
    of_inputs, of_outputs = slice(client * case.channels, None), slice(client * case.filters, None)
    images, delta, kernels = case.images[:, of_inputs], case.delta[:, of_outputs], case.kernels[client, None]
    assert torch.equal(case.sums().convolved(images, kernels, case.biases[client, None]), outputs[:, of_outputs])
    assert torch.equal(case.sums().image_derivatives(delta, kernels, case.image), by_images[:, of_inputs])
    assert torch.equal(case.sums().kernel_derivatives(images, delta, 1)[0], by_kernels[client])


@compiled_only
@pytest.mark.parametrize("case", CASES[:11], ids=str)
def test_clients_and_samples_that_are_taken_at_once_change_nothing(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = case.directly(case.sums())
    for cache, positions in (1, 1), (2**14, 30), (2**22, 10**6):
        monkeypatch.setattr(direct, "_CACHE", cache)
        monkeypatch.setattr(direct, "_POSITIONS", positions)
        assert all(map(torch.equal, case.directly(case.sums()), expected))


@compiled_only
def test_nothing_beside_the_numbers_is_written() -> None:
    """Of one channel lanes are more than there are channels, and pixels of the next image lie behind."""
    for case in CASES:
        for images in (
            case.sums().image_derivatives(case.delta, case.kernels, case.image),
            case.sums().convolved(case.images, case.kernels, None),
        ):
            assert images.isfinite().all()
    room = torch.full((3, 40), 7.0)
    case = Case((2, 2), ONE, (0, 0), ONE, 1, 1, (2, 2), 1, 16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(direct, "_empty", lambda *_: room[1, :4].as_strided((1, 1, 2, 2), (4, 1, 2, 1), 40))
        case.sums().image_derivatives(case.delta, case.kernels, case.image)
    assert (room[0] == 7).all() and (room[1, 4:] == 7).all() and not (room[1, :4] == 7).any()


@compiled_only
@pytest.mark.parametrize("shift", [0, 2, 6, 14])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_beside_the_room_is_written(case: Case, shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever in a line of the cache the room begins."""
    planned, rooms, first = DirectSums._plan, [], 1024 + shift

    def between_guards(*arguments: Any, **keys: Any) -> tuple[ctypes.Array[ctypes.c_int64], Tensor]:
        plan, room = planned(*arguments, **keys)
        rooms.append((torch.full((len(room) + 2048,), 7.0), len(room)))
        return plan, rooms[-1][0][first : first + len(room)]

    monkeypatch.setattr(DirectSums, "_plan", between_guards)
    case.directly(case.sums())
    case.sums().kernel_derivatives(case.images, case.delta, case.clients, by_sample=True)
    for whole, size in rooms:
        assert (whole[:first] == 7).all() and (whole[first + size :] == 7).all() and not (whole == 7).all()


@compiled_only
@pytest.mark.parametrize(
    ("size", "stride", "clients", "apart"),
    [(3, 1, 3, False), (3, 1, 21, True), (3, 2, 21, True), (3, 3, 21, False), (1, 1, 21, False), (3, 1, 1, False)],
)
def test_images_far_apart_are_copied_where_a_pixel_is_read_again(
    size: int, stride: int, clients: int, apart: bool
) -> None:
    """12 × 12 pixels of 16 channels are 64 KiB apart with more than seven clients; the room holds the copies."""
    case = Case((size, size), (stride, stride), (0, 0), ONE, clients, 1, (12, 12), 16, 16)
    _, room = case.sums()._plan(case.images, case.kernels, some_samples=1)
    _, without = case.sums()._plan(case.images[..., :size, :size], case.kernels, some_samples=1)
    assert (len(room) - len(without) > clients * 12 * 12 * 16) == apart


@compiled_only
def test_a_pixel_that_is_not_finite_stays_where_the_kernel_lies_on_it() -> None:
    case = Case((3, 3), ONE, ONE, ONE, 1, 2, (12, 12), 3, 16)
    images = case.images
    images[0, 1, 5, 5] = torch.inf
    outputs = case.sums().convolved(images, case.kernels, None)
    outputs[0, :, 4:7, 4:7] = 0
    assert outputs.isfinite().all()
    delta = case.delta
    delta[:, :, 4:7, 4:7] = 0
    gradients = case.sums().kernel_derivatives(images, delta, 1, by_sample=True)
    assert gradients[0, 1].isfinite().all() and gradients[0, 0, :, 1].isnan().any()


@compiled_only
def test_what_it_does_not_take_is_left_to_torch() -> None:
    geometry = CASES[0].geometry
    assert direct_sums(geometry, 20, (28, 28), 1, 16, 384) is not None
    assert direct_sums(geometry, 20, (28, 28), 1, 20, 384) is None
    assert direct_sums(geometry, 20, (7, 28), 1, 16, 384) is None
    assert direct_sums(geometry, 0, (28, 28), 1, 16, 384) is None


@compiled_only
def test_layers_take_them_where_they_are_faster() -> None:
    first, second = (Conv2d(case.channels, case.filters, case.geometry, True) for case in CASES[:2])
    assert first.sums_directly(CASES[0].images) is not None
    assert first.sums_directly(CASES[0].images.double()) is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert first.sums_directly(CASES[0].images) is None
    assert second.sums_directly(CASES[1].images) is not None  # torch would multiply patches
    many_positions = torch.zeros(2, 16, 32, 32)
    assert second.sums_directly(many_positions) is None
    assert second.sums_directly(many_positions, by_sample=True) is not None
    of_one_place = Conv2d(16, 32, KernelGeometry(ONE, ONE, (0, 0), ONE), True)
    assert of_one_place.sums_directly(many_positions, by_sample=True) is None


def test_pixels_that_stay_in_the_cache_are_not_copied() -> None:
    lying, driven_out = (direct._stays_in_cache(case.images, case.channels) for case in CASES[1:3])
    assert lying and not driven_out
    assert direct._stays_in_cache(normal(1, 20, 1, 28, 28).contiguous(), 1)
    assert not direct._stays_in_cache(normal(1, 20, 50, 28, 28), 1)  # pixels of other clients between


@compiled_only
def test_numbers_of_other_types_are_refused() -> None:
    case = CASES[0]
    for images, kernels, biases in (
        (case.images.double(), case.kernels, case.biases),
        (case.images, case.kernels.bfloat16(), case.biases),
        (case.images, case.kernels, case.biases.double()),
    ):
        with pytest.raises(TypeError, match="float32"):
            case.sums().convolved(images, kernels, biases)
    with pytest.raises(TypeError, match="float32"):
        case.sums().image_derivatives(case.delta.double(), case.kernels, case.image)
    with pytest.raises(TypeError, match="float32"):
        case.sums().kernel_derivatives(case.images, case.delta.bfloat16(), case.clients)


@compiled_only
@pytest.mark.parametrize("case", [CASES[0], CASES[1], CASES[3], FEW_OF_BOTH], ids=str)
def test_a_layer_has_all_derivatives(case: Case) -> None:
    layer, weights = Conv2d(case.channels, case.filters, case.geometry, True), [case.kernels, case.biases]
    outputs, saved = layer.forward(weights, case.images)
    assert isinstance(saved[3], DirectSums)
    expected = case.by_torch()
    assert error(outputs, expected[0]) < TOLERANCE
    assert error(layer.backward(weights, saved, case.delta), expected[1]) < TOLERANCE
    into = [torch.full_like(weight, 2.0) for weight in weights]
    layer.add_gradient(saved, [case.delta, case.delta], into, 0.5)
    assert error(into[0] - 1, expected[2]) < TOLERANCE
    of_samples = layer.sample_gradients(saved, case.delta, slice(None))
    for norm, gradients in zip(layer.squared_norms(saved, case.delta), of_samples, strict=True):
        torch.testing.assert_close(norm, gradients.flatten(2).square().sum(2))
    shares = torch.rand(case.clients, case.samples, generator=torch.Generator().manual_seed(5))
    layer.add_weighted_gradients(saved, case.delta, [shares, shares], into, 0.0)
    for found, gradients in zip(into, of_samples, strict=True):
        assert error(found, torch.einsum("kb,kb...->k...", shares.double(), gradients.double())) < TOLERANCE
    weighted = layer.weighted(case.delta, shares)
    sums = layer.sums_directly(case.images)
    assert sums is not None
    assert torch.equal(into[0], sums.kernel_derivatives(case.images, weighted, case.clients))
    held = layer.held_gradients(saved, case.delta)
    assert (held is None) == (case in {CASES[1], FEW_OF_BOTH})  # of few positions
    for gradients, rows in zip(of_samples, held or [], strict=held is not None):
        assert error(rows.arranged(rows.rows), gradients) < TOLERANCE
    products = sum(layer.inner_products(saved, case.delta, weights))
    each = [
        torch.einsum("kb...,k...->kb", one.double(), own.double()) for one, own in zip(of_samples, weights, strict=True)
    ]
    assert isinstance(products, Tensor) and error(products, each[0] + each[1]) < 2.0**-16


@compiled_only
@pytest.mark.parametrize("case", [CASES[0], CASES[1]], ids=str)
@pytest.mark.parametrize("longest", [384, 30, 24])
def test_products_are_added_in_the_order_of_patches(case: Case, longest: int) -> None:
    """One after the other with a single rounding, but in partial sums of which the last two are equally long."""
    patches = functional.unfold(case.images.contiguous().flatten(0, 1)[:, None], case.size, stride=case.stride)
    by_client = patches.view(case.samples, case.clients, case.channels, -1, patches.shape[-1]).permute(1, 0, 4, 3, 2)
    rows = by_client.flatten(3)  # (k, B, P, kh · kw · C)
    kernels = case.kernels.permute(0, 3, 4, 2, 1).flatten(1, 3)
    outputs, first, all_places = case.biases[:, None, None].clone(), 0, rows.shape[3]
    while first < all_places:
        left = all_places - first
        length = longest if left > 2 * longest else -(-left // 2) if left > longest else left
        part = torch.zeros(*rows.shape[:3], case.filters)
        for place in range(first, first + length):
            part = fused(rows[..., place, None], kernels[:, None, None, place], part)
        outputs, first = outputs + part, first + length
    expected = outputs.permute(1, 0, 3, 2).flatten(1, 2)
    sums = replace(case.sums(), longest=longest)
    assert torch.equal(sums.convolved(case.images, case.kernels, case.biases).flatten(2), expected)


@compiled_only
def test_many_products_do_not_lose_more() -> None:
    case = Case((8, 8), (2, 2), (0, 0), ONE, 1, 200, (28, 28), 1, 16)
    found = case.sums().kernel_derivatives(case.images, case.delta, 1)
    assert error(found, case.by_torch()[2]) < 2.0**-20


def fused(one: Tensor, other: Tensor, total: Tensor) -> Tensor:
    """Sum one · other + total, rounded once but in some 2⁻²⁹ of all cases.

    A product of two float32 is exact in double precision. The sum is rounded there, and again to float32.
    """
    return (one.double() * other.double() + total.double()).float()


@compiled_only
def test_first_layers_take_samples_as_they_lie() -> None:
    """A convolution at the front gets images that nobody has put in channels-last memory."""
    for channels, second in ((1, nn.ReLU()), (3, nn.MaxPool2d(2))):
        shape, features = (channels, 13, 13), 16 * (36 if channels == 1 else 9)
        layers = nn.Conv2d(channels, 16, 3, 2), second, nn.Flatten(), nn.Linear(features, 4)
        model = FlatModel(partial(nn.Sequential, *layers), shape, 4)
        program = compile_program(model)
        assert program is not None
        inputs, parameters = torch.rand(3, 5, *shape), torch.stack([model.initial(seed) for seed in range(3)])
        outputs, saved = program.forward(program.weights([parameters]), inputs)
        expected = torch.stack([model.logits(own, samples) for own, samples in zip(parameters, inputs, strict=True)])
        torch.testing.assert_close(outputs, expected, rtol=1e-4, atol=1e-5)
        assert isinstance(saved[1][3], DirectSums)
        assert not saved[1][0].is_contiguous(memory_format=torch.channels_last)
