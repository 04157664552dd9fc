"""Quotients by the kernel against torch's passes, to the last bit."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

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


def products_as_ever(operands: list[Tensor]) -> Tensor:
    """The inner products by whole passes, of as many rows at a time as torch has added up ever since."""
    rows = max(1, 2**18 // max(1, operands[0].shape[1]))
    parts = zip(*(torch.split(each, rows) for each in operands), strict=True)
    found = [((a / b[:, None]) * (c / d[:, None]).div_(e[:, None])).sum(1) for a, b, c, d, e in parts]
    return torch.cat(found) if found else operands[0].new_zeros(0)


def operands(shape: tuple[int, int], special: bool) -> list[Tensor]:
    by = [divisors(shape[0], seed) for seed in (1, 2, 3)]
    return [matrix(shape, 1, special), by[0], matrix(shape, 2, special), *by[1:]]


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=compiled_only), False])
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_inner_products_of_quotients_have_the_same_bits(
    shape: tuple[int, int], special: bool, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = operands(shape, special)
    if compiled:
        monkeypatch.setattr(quotients, "_multiply_by_torch", pytest.fail)
    else:
        monkeypatch.setattr(quotients, "kernel", lambda: None)
    assert same(inner_products(*given), products_as_ever(given))


@pytest.mark.parametrize("decay", [0.0, 0.9, 1.0])
def test_without_a_library_quotients_are_the_same(decay: float, monkeypatch: pytest.MonkeyPatch) -> None:
    into, value, by = matrix((4, 1001), 1, True), matrix((4, 1001), 2, True), divisors(4, 1)
    found = into.clone()
    monkeypatch.setattr(quotients, "kernel", lambda: None)
    add_quotient(found, value, by, decay)
    assert same(found, as_ever(into, value, by, decay))


@compiled_only
@pytest.mark.parametrize("decay", [0.0, 0.9, 1])
def test_the_library_is_taken(decay: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotients, "_add_by_torch", pytest.fail)
    into = torch.ones(2, 3)
    add_quotient(into, torch.ones(2, 3), torch.full((2,), 4.0), decay)
    assert torch.equal(into, torch.full((2, 3), decay + 0.25))


def test_what_the_kernel_cannot_read_is_for_torch() -> None:
    plain, by = torch.rand(3, 8), torch.rand(3) + 1
    fitting = [plain, by, plain + 1, by, by]
    assert quotients._library_for([plain, plain], [by]) is quotients.kernel()
    for wrong in (
        plain.double(),
        torch.rand(8, 3).mT,
        torch.rand(3, 16)[:, ::2],
        torch.rand(8),
        torch.rand(3, 7),
        torch.rand(2, 8),
        torch.rand(3, 8, 1),
        torch.rand(3, 8).requires_grad_(),
        torch.zeros(3, 8, dtype=torch.complex64).conj().imag,
    ):
        assert quotients._library_for([plain, wrong], [by]) is None
    for wrong in (by.double(), (torch.rand(6) + 1)[::2], torch.rand(2), torch.rand(()), torch.rand(3, 1)):
        assert quotients._library_for([plain, plain], [by, wrong]) is None
    for out in (torch.rand(8).expand(3, -1), torch.rand(3, 4, 5)):  # several rows in one place; no matrix
        assert quotients._library_for([out, out], [by]) is None
    for into, value, divisor in ((plain.clone(), torch.rand(8), by), (plain.double(), plain.double(), by.double())):
        expected = as_ever(into, value, divisor, 0.5)
        add_quotient(into, value, divisor, 0.5)
        torch.testing.assert_close(into, expected)
    with pytest.raises(RuntimeError):
        add_quotient(torch.rand(8).expand(3, -1), plain, by, 0.5)
    for at in range(5):
        with pytest.raises((RuntimeError, ValueError, IndexError)):
            inner_products(*(torch.rand(5, 9) if at == place else each for place, each in enumerate(fitting)))


@compiled_only
@pytest.mark.parametrize("absent", ["wirelessfl_add_quotients", "wirelessfl_multiply_quotients"])
def test_a_library_that_gives_other_numbers_is_not_taken(absent: str) -> None:
    class Wrong:
        def __getattr__(self, name: str) -> Callable[..., None]:
            library: ctypes.CDLL | None = quotients.kernel()
            return (lambda *_: None) if name == absent else getattr(library, name)

    assert not quotients._compiled_agrees(Wrong())  # type: ignore[arg-type]
