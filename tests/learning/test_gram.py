"""Squared norms by Gram matrices against those of gradients that torch forms in double precision.

Errors are of all norms of a case, in relation to them: sums of some hundred products in single precision are 2⁻²² off.
A fault in any of the numbers is far above 2⁻¹⁹.
"""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.learning import test_direct
from tests.learning.narrow_kernels import without_avx512
from tests.learning.test_absent_samples import absent, counts_of
from tests.learning.test_direct import ONE, TOLERANCE, Case
from tests.learning.test_winograd import error
from wirelessfl.learning.cohort import gram
from wirelessfl.learning.cohort.stacked.convolution import Conv2d
from wirelessfl.learning.cohort.stacked.spatial import split_channels

compiled_only = pytest.mark.skipif(
    gram.kernel() is None, reason="the kernel was not compiled, or not for this processor"
)

FUNCTIONS = {"wirelessfl_gram_squared_norms": 5}

CASES = [
    Case((3, 3), ONE, ONE, ONE, 3, 4, (4, 4), 64, 128),  # the last convolution of cnn_cifar10
    Case((3, 2), ONE, ONE, ONE, 2, 3, (5, 7), 5, 9),  # runs that are no multiples of eight
    Case((5, 5), ONE, (2, 2), ONE, 1, 2, (9, 9), 24, 12),  # products of two running sums
    Case((3, 3), ONE, (0, 0), ONE, 2, 2, (3, 3), 33, 7),  # one position
    *test_direct.CASES,
]


def norms(case: Case, images: Tensor, delta: Tensor, counts: Tensor | None = None) -> Tensor:
    library = gram.kernel()
    assert library is not None
    return gram.squared_norms(library, case.geometry, images, delta, case.clients, counts)


def gradients(case: Case) -> Tensor:
    """(k, B, O, n) in double precision, of unfolded images."""
    images = split_channels(case.images.double(), case.clients).flatten(0, 1)
    at = case.geometry
    patches = functional.unfold(images, at.size, at.dilation, at.padding, at.stride)
    delta = split_channels(case.delta.double(), case.clients).flatten(0, 1).flatten(2)
    formed = delta @ patches.transpose(1, 2)
    return formed.view(case.samples, case.clients, *formed.shape[1:]).transpose(0, 1)


@compiled_only
@pytest.mark.parametrize("case", CASES, ids=str)
def test_norms_are_those_of_gradients_that_are_formed(case: Case) -> None:
    expected = gradients(case).square().sum((2, 3))
    found = norms(case, case.images, case.delta)
    assert found.shape == expected.shape
    assert error(found, expected) < TOLERANCE or not (expected.any() or found.any())


@compiled_only
@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_kinds_of_processors_give_the_same_bits(case: Case, narrow: ctypes.CDLL) -> None:
    """And any order of memory."""
    expected = norms(case, case.images, case.delta)
    found = gram.squared_norms(narrow, case.geometry, case.images, case.delta, case.clients, None)
    assert torch.equal(found, expected)
    wide = functional.pad(case.images, (1, 2, 3, 4))[:, :, 3:-4, 1:-2]
    for images, delta in (case.images.contiguous(), case.delta.contiguous()), (wide, case.delta):
        assert torch.equal(norms(case, images, delta), expected)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return without_avx512(gram.LIBRARY, tmp_path_factory.mktemp("gram"), FUNCTIONS)


@compiled_only
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("case", CASES[:16], ids=str)
def test_absent_samples_have_none(case: Case, seed: int) -> None:
    """Whatever lies where they would be; those of others are the same to the last bit."""
    counts = counts_of(case, seed)
    images = case.images.masked_fill(absent(case.images, counts), torch.nan)
    delta = case.delta.masked_fill(absent(case.delta, counts), torch.nan)
    expected = norms(case, case.images, case.delta)
    expected[torch.arange(case.samples) >= counts[:, None]] = 0
    assert torch.equal(norms(case, images, delta, counts), expected)


@compiled_only
@pytest.mark.parametrize("shift", [0, 2, 6, 14])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_beside_room_and_norms_is_written(case: Case, shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Tensor, Tensor]] = []

    def between_guards(_: Tensor, *shape: int) -> Tensor:
        size, first = torch.Size(shape).numel(), 1024 + shift
        whole = torch.full((size + 2048,), 7.0)
        made.append((whole, whole[first : first + size]))
        return made[-1][1].view(shape)

    images, delta = case.images, case.delta
    monkeypatch.setattr(Tensor, "new_empty", between_guards)
    norms(case, images, delta)
    monkeypatch.undo()
    assert len(made) == 2
    for whole, inside in made:
        inside.zero_()
        assert whole.sum() == 7 * 2048


@compiled_only
def test_a_sample_that_is_not_finite_has_no_norm_and_others_keep_theirs() -> None:
    case = CASES[0]
    expected = norms(case, case.images, case.delta)
    for broken in torch.nan, torch.inf:
        images, delta = case.images, case.delta
        images[1, 64, 3, 3] = broken
        delta[2, 5, 0, 0] = broken
        found = norms(case, images, delta)
        assert not found[1, 1].isfinite() and not found[0, 2].isfinite()
        found[1, 1], found[0, 2] = expected[1, 1], expected[0, 2]
        assert torch.equal(found, expected)


@compiled_only
def test_numbers_of_other_types_are_refused() -> None:
    case = CASES[0]
    for images, delta in (case.images.double(), case.delta), (case.images, case.delta.bfloat16()):
        with pytest.raises(TypeError, match="float32"):
            norms(case, images, delta)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("case", [CASES[0], test_direct.CASES[1], test_direct.FEW_OF_BOTH], ids=str)
def test_layers_take_them_in_single_precision(
    case: Case, compiled: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Any] = []
    own = gram.squared_norms

    def noted(*arguments: Any) -> Tensor:
        taken.append(arguments)
        return own(*arguments)

    monkeypatch.setattr(gram, "squared_norms", noted)
    if not compiled:
        monkeypatch.setattr(gram, "kernel", lambda: None)
    counts = counts_of(case, 2)
    layer = Conv2d(case.channels, case.filters, case.geometry, True, counts)
    weights = [case.kernels.to(dtype), case.biases.to(dtype)]
    _, saved = layer.forward(weights, case.images.to(dtype))
    delta = case.delta.to(dtype).masked_fill(absent(case.delta, counts), 0)
    of_kernel, of_bias = layer.squared_norms(saved, delta)
    expected = gradients(case).square().sum((2, 3))
    present = torch.arange(case.samples) < counts[:, None]
    assert error(of_kernel, expected.where(present, 0.0)) < TOLERANCE
    sums = split_channels(delta.double(), case.clients).sum((3, 4)).square().sum(2).T
    assert error(of_bias, sums) < TOLERANCE
    assert len(taken) == (compiled and dtype == torch.float32 and gram.kernel() is not None)
    assert all(arguments[-1] is counts for arguments in taken)


def test_layers_leave_one_and_two_positions_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which a vector would hold little."""
    monkeypatch.setattr(gram, "squared_norms", None)
    for image in (3, 3), (4, 3):
        case = Case((3, 3), ONE, (0, 0), ONE, 2, 3, image, 32, 64)
        layer = Conv2d(case.channels, case.filters, case.geometry, False)
        _, saved = layer.forward([case.kernels], case.images)
        (found,) = layer.squared_norms(saved, case.delta)
        assert error(found, gradients(case).square().sum((2, 3))) < TOLERANCE


@pytest.mark.skipif(not gram.LIBRARY.exists(), reason="the kernel was not compiled")
@pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() not in {"AVX2", "AVX512"}, reason="not for this processor")
def test_the_kernel_is_taken() -> None:
    """Else a kernel with other numbers would leave every test of it out."""
    assert gram.kernel() is not None


@compiled_only
def test_many_products_do_not_lose_more() -> None:
    """Of one sign: in one running sum they would be 2⁻²² off."""
    case = Case((7, 7), ONE, (0, 0), ONE, 1, 30, (10, 10), 128, 64)
    images, delta = case.images.abs_(), case.delta.abs_()
    patches = functional.unfold(images.double().contiguous(), case.size)
    expected = (delta.flatten(2).double() @ patches.transpose(1, 2)).square().sum((1, 2))
    assert error(norms(case, images, delta), expected[None]) < 2.0**-23
