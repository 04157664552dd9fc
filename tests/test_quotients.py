"""Quotients by the kernel against torch's passes, to the last bit."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from wirelessfl import quotients
from wirelessfl.quotients import add_quotient, inner_products

compiled_only = pytest.mark.skipif(quotients.kernel() is None, reason="the kernel was not compiled")

SHAPES = [(1, 1), (4, 1001), (3, 16), (0, 5), (2, 0), (5, 2**17 + 3)]
NUMBERS = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e-45, -1e-40, 3e38, 1.0])


def matrix(shape: tuple[int, int], seed: int, special: bool) -> Tensor:
    """Rows apart in a wider matrix; with numbers in them whose quotients are not finite, or denormal."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(shape[0], shape[1] + 7, generator=generator)[:, 2:-5]
    if special and shape[1] > 500:
        for row, own in enumerate(rows):
            own[row : row + len(NUMBERS)] = NUMBERS.roll(row + seed)
    return rows


def divisors(rows: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(100 + seed)
    return torch.cat([torch.tensor([20.0, 1e-3]), torch.rand(rows, generator=generator) * 30])[:rows]


def same(found: Tensor, expected: Tensor) -> bool:
    """Whether they have the same bits, a NaN for a NaN."""
    numbers = ~expected.isnan()
    bits = (each.contiguous().view(torch.int32) for each in (found, expected))
    left, right = (each[numbers] for each in bits)
    return torch.equal(found.isnan(), ~numbers) and torch.equal(left, right)


def as_ever(into: Tensor, value: Tensor, divisor: Tensor, decay: float) -> Tensor:
    mean = value / divisor[:, None]
    return mean if decay == 0 else into * decay + mean


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_quotient_is_added_to_the_same_bits(shape: tuple[int, int], decay: float, special: bool) -> None:
    into, value, by = matrix(shape, 1, special), matrix(shape, 2, special), divisors(shape[0], 1)
    expected = as_ever(into, value, by, decay)
    if decay == 0:
        into.fill_(torch.nan)  # what was there does not matter
    assert into._base is not None
    around = into._base.clone()
    add_quotient(into, value, by, decay)
    assert same(into, expected)
    assert torch.equal(into._base[:, :2], around[:, :2])
    assert torch.equal(into._base[:, -5:], around[:, -5:])


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_inner_products_of_quotients_have_the_same_bits(shape: tuple[int, int], special: bool) -> None:
    one, other = matrix(shape, 1, special), matrix(shape, 2, special)
    first, second, third = (divisors(shape[0], seed) for seed in (1, 2, 3))
    rows = [((a / b) * (c / d / e)).sum() for a, b, c, d, e in zip(one, first, other, second, third, strict=True)]
    found = inner_products(one, first, other, second, third)
    assert found.shape == (shape[0],)
    for each, row in zip(found, rows, strict=True):
        torch.testing.assert_close(each, row, rtol=1e-5, atol=1e-5, equal_nan=True)


@compiled_only
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_both_ways_agree(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = matrix(shape, 1, True), matrix(shape, 2, True)
    by = [divisors(shape[0], seed) for seed in (1, 2, 3)]
    compiled = inner_products(one, by[0], other, *by[1:])
    monkeypatch.setattr(quotients, "kernel", lambda: None)
    assert same(compiled, inner_products(one, by[0], other, *by[1:]))


def taken(monkeypatch: pytest.MonkeyPatch, call: Callable[[], None]) -> bool:
    """Whether the library is used in a call, which is done by torch all the same."""
    asked: list[None] = []
    monkeypatch.setattr(quotients, "kernel", lambda: asked.append(None))
    call()
    return bool(asked)


def test_what_the_kernel_cannot_read_is_for_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, by = torch.rand(3, 8), torch.rand(3) + 1
    for into, value, divisor, fits in (
        (plain.clone(), plain, by, True),
        (plain.double(), plain.double(), by.double(), False),
        (torch.rand(8, 3).mT, plain, by, False),
        (plain.clone(), torch.rand(3, 16)[:, ::2], by, False),
        (plain.clone(), plain, (torch.rand(6) + 1)[::2], False),
        (plain.clone(), torch.rand(8), by, False),
        (plain.clone(), torch.rand(8).expand(3, -1), by, True),
    ):
        expected = as_ever(into, value, divisor, 0.5)
        assert taken(monkeypatch, partial(add_quotient, into, value, divisor, 0.5)) == fits
        torch.testing.assert_close(into, expected)
    with pytest.raises(RuntimeError):  # several rows in one place
        add_quotient(torch.rand(8).expand(3, -1), plain, by, 0.5)


@compiled_only
@pytest.mark.parametrize("absent", ["wirelessfl_add_quotients", "wirelessfl_multiply_quotients"])
def test_a_library_that_gives_other_numbers_is_not_taken(absent: str) -> None:
    class Wrong:
        def __getattr__(self, name: str) -> Callable[..., None]:
            library: ctypes.CDLL | None = quotients.kernel()
            return (lambda *_: None) if name == absent else getattr(library, name)

    assert not quotients._compiled_agrees(Wrong())  # type: ignore[arg-type]
