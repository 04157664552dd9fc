"""Short sums by the kernel against matrix products in double precision.

Errors are in relation to the sum of the magnitudes of what is added up: of up to 384 products in single precision one
after the other they are below 2⁻²⁰, and a product that is lost, or one too many, is far above.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.learning.narrow_kernels import without_avx512
from tests.learning.test_products import TOLERANCE, error
from wirelessfl import short_sums
from wirelessfl.learning.cohort import products
from wirelessfl.learning.cohort.products import add_product, batched_product

compiled_only = pytest.mark.skipif(
    short_sums.kernel() is None, reason="the kernel was not compiled, or not for this processor"
)

SHAPES = [
    *((3, 10, 20, 784), (2, 1, 1, 1), (4, 33, 7, 50), (2, 19, 384, 5), (1, 196, 20, 35), (2, 3, 0, 20), (0, 4, 5, 6)),
    *((2, rows, 3, 2 * 16 + 16 + 8 + 3) for rows in range(1, 22)),  # all pieces of rows, and of columns
    *((2, 13, 384, 345), (1, 11, 100, 1301)),  # more columns than are taken at once
]


def operands(shape: tuple[int, int, int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """The slice of a wider matrix, NaN around it, and both factors, the left one in another order of memory."""
    clients, rows, terms, columns = shape
    generator = torch.Generator().manual_seed(5)
    wide = torch.full((clients, rows, 7 + columns), torch.nan)
    into = wide[:, :, 3:-4]
    into.copy_(torch.randn(into.shape, generator=generator))
    left = torch.randn(clients, terms, rows, generator=generator).mT
    return into, left, torch.randn(clients, terms, columns + 2, generator=generator)[:, :, 1:-1]


def add_sums(library: ctypes.CDLL | None, into: Tensor, left: Tensor, right: Tensor, decay: float) -> None:
    assert library is not None
    short_sums.add_sums(library, into.numpy(), left.numpy(), right.numpy(), decay)


def around(into: Tensor) -> Tensor:
    """What lies beside a slice of ``operands``."""
    assert into._base is not None
    return torch.cat([into._base[..., :3], into._base[..., -4:]], 2)


@compiled_only
@pytest.mark.parametrize("decay", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_are_those_of_double_precision(shape: tuple[int, int, int, int], decay: float) -> None:
    into, left, right = operands(shape)
    held = into.double()
    if decay == 0:
        into.fill_(torch.nan)  # does not matter
    add_sums(short_sums.kernel(), into, left, right, decay)
    assert into.numel() == 0 or error(into, left, right, decay * held) < TOLERANCE
    assert around(into).isnan().all()


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("short_sums")
    return without_avx512(short_sums.LIBRARY, folder, {"wirelessfl_add_short_sums": 5})


@compiled_only
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_both_kinds_of_processors_give_the_same_bits(shape: tuple[int, int, int, int], narrow: ctypes.CDLL) -> None:
    """And any place in memory, and each client alone."""
    into, left, right = operands(shape)
    found = into.clone()
    library = short_sums.kernel()
    add_sums(narrow, found, left, right, 0.3)
    alone = into.clone()
    for one in range(shape[0]):
        add_sums(library, alone[one : one + 1], left[one : one + 1].contiguous(), right[one : one + 1], 0.3)
    add_sums(library, into, left, right, 0.3)
    assert torch.equal(found, into)
    assert torch.equal(alone, into)


@compiled_only
def test_factors_may_be_shared_by_all_clients() -> None:
    into, left, right = operands((3, 12, 9, 40))
    expected = left[:1] @ right[:1]
    add_product(into, left[:1].expand(3, -1, -1), right[:1].expand(3, -1, -1), 0.0)
    torch.testing.assert_close(into, expected.expand(3, -1, -1))


@compiled_only
def test_what_does_not_fit_is_refused() -> None:
    library = short_sums.kernel()
    into, left, right = operands((2, 3, 4, 5))
    with pytest.raises(TypeError, match="float32"):
        add_sums(library, into, left.double(), right, 0.0)
    for others in ((into, left[:1], right), (into, left[:, :2], right), (into, left[..., :3], right)):
        with pytest.raises(ValueError, match="strides"):
            add_sums(library, *others, 0.0)
    for others in ((into, left, right.mT.contiguous().mT), (into.mT.contiguous().mT, left, right)):
        with pytest.raises(ValueError, match="strides"):
            add_sums(library, *others, 0.0)
    longer = short_sums.LONGEST + 1
    with pytest.raises(ValueError, match="strides"):
        add_sums(library, into, torch.ones(2, 3, longer), torch.ones(2, longer, 5), 0.0)


@compiled_only
def test_who_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel in single precision on the host alone, longer sums where MKL is slow, and never for gradients."""
    taken = []
    monkeypatch.setattr(short_sums, "add_sums", lambda *operands: taken.append(operands))

    def takes(left: Tensor, right: Tensor) -> bool:
        taken.clear()
        batched_product(left, right)
        return len(taken) == 1

    for longest, narrow in ((products.SHORT, False), (short_sums.LONGEST, True)):
        monkeypatch.setattr(products, "_mkl_is_narrow", lambda narrow=narrow: narrow)
        assert takes(torch.ones(2, 3, longest), torch.ones(2, longest, 4))
        assert not takes(torch.ones(2, 3, longest + 1), torch.ones(2, longest + 1, 4))
    monkeypatch.setattr(products, "_mkl_is_narrow", lambda: False)
    monkeypatch.setattr(products, "_mkl_is_wide", lambda: True)
    side, terms = products.LARGE_SIDE, products.SHORT_OF_LARGE
    for rows, columns in ((side, products.LARGE // side), (products.LARGE // side, side)):
        left, right = torch.ones(1, rows, terms + 1), torch.ones(1, terms + 1, columns)
        assert takes(left[..., 1:], right[:, 1:])
        assert not takes(left, right)
        assert not takes(left[:, 1:, 1:], right[:, 1:]) and not takes(left[..., 1:], right[:, 1:, 1:])
        into = torch.ones(1, rows, columns)
        for decay, taken_then in ((0.0, 1), (0.5, 0), (1.0, 0)):
            taken.clear()
            add_product(into, left[..., 1:], right[:, 1:], decay)
            assert len(taken) == taken_then
    thin, wide = torch.ones(1, side // 2, terms), torch.ones(1, terms, 4 * products.LARGE // side)
    assert not takes(thin, wide)
    monkeypatch.setattr(products, "_mkl_is_wide", lambda: False)
    assert not takes(left[..., 1:], right[:, 1:])
    left, right = torch.ones(2, 3, 4), torch.ones(2, 4, 5)
    assert takes(left.mT.contiguous().mT, right)
    assert not takes(left[:, :1], right)
    assert not takes(left.double(), right.double())
    assert not takes(left.to("meta"), right.to("meta"))
    assert not takes(left, right.mT.contiguous().mT)
    assert not takes(left.clone().requires_grad_(), right)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not takes(left, right)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_machine_without_the_kernel_multiplies_too(
    shape: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_sums, "kernel", lambda: None)
    into, left, right = operands(shape)
    held = into.double()
    add_product(into, left, right, 0.5)
    assert into.numel() == 0 or error(into, left, right, 0.5 * held) < TOLERANCE
    assert into.numel() == 0 or error(batched_product(left, right), left, right) < TOLERANCE


def test_a_library_that_multiplies_wrongly_is_not_taken() -> None:
    class Wrong:
        @staticmethod
        def wirelessfl_add_short_sums(*_: object) -> None:
            """Nothing is written."""

    assert not short_sums._compiled_agrees(Wrong)  # type: ignore[arg-type]


def test_memory_that_the_kernel_cannot_step_through_or_write_is_refused() -> None:
    library = short_sums.kernel()
    if library is None:
        pytest.skip("no kernel here")
    left, right = np.ones((1, 1, 3), np.float32), np.ones((1, 3, 64), np.float32)
    apart = np.zeros(3, dtype=[("tag", "u1"), ("values", "f4", (64,))])["values"][None]  # 257 bytes from row to row
    with pytest.raises(ValueError, match="whole floats"):
        short_sums.add_sums(library, np.zeros((1, 1, 64), np.float32), left, apart, 0.0)
    fixed = np.zeros((1, 1, 64), np.float32)
    fixed.setflags(write=False)
    with pytest.raises(ValueError, match="may be written"):
        short_sums.add_sums(library, fixed, left, right, 0.0)
    assert not fixed.any()
