"""Weighted sums and energies by ranges of coordinates: against double precision, and the kernel against NumPy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from wirelessfl.radio import Superposition, coordinate_ranges, range_energies
from wirelessfl.radio.weighted_sums import add_weighted, kernel

ROUNDING = float(np.finfo(np.float32).eps)


def drawn(clients: int, ranges: int, length: int, outputs: int) -> tuple[NDArray[np.float32], ...]:
    """Sums that are not zero, updates whose rows are further apart than they are long, and weights."""
    numbers = np.random.default_rng(7)
    out = numbers.standard_normal((ranges, outputs, length), dtype=np.float32)
    wide = numbers.standard_normal((clients, ranges * length + 5), dtype=np.float32)
    return out, wide[:, 2:-3], numbers.standard_normal((ranges, outputs, clients), dtype=np.float32)


@pytest.mark.parametrize(("clients", "ranges"), [(1, 1), (3, 2), (4, 1), (5, 7), (11, 3)])
@pytest.mark.parametrize("length", [1, 15, 16, 17, 40, 4095, 4113])
@pytest.mark.parametrize("outputs", [1, 2])
def test_sums_and_energies_are_those_of_double_precision(
    clients: int, ranges: int, length: int, outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, updates, weights = drawn(clients, ranges, length, outputs)
    parts = updates.astype(np.float64).reshape(clients, ranges, length)
    exact = before + np.einsum("nok,knl->nol", weights.astype(np.float64), parts)
    size = np.abs(before) + np.einsum("nok,knl->nol", np.abs(weights), np.abs(parts))
    found = before.copy()
    energies = add_weighted(found, updates, weights)
    assert np.all(np.abs(found - exact) <= (clients + 1) * ROUNDING * size), "a rounding for each addition at most"
    np.testing.assert_allclose(energies, (parts**2).sum(axis=2), rtol=(4096 / 16 + 5) * ROUNDING)

    monkeypatch.setattr("wirelessfl.radio.weighted_sums.kernel", lambda: None)
    slowly = before.copy()
    np.testing.assert_array_equal(add_weighted(slowly, updates, weights), energies)
    np.testing.assert_array_equal(slowly, found)


def test_what_does_not_fit_is_refused() -> None:
    out, updates, weights = drawn(3, 2, 4, 1)
    with pytest.raises(ValueError, match="do not fit"):
        add_weighted(out, updates[:, 1:], weights)
    with pytest.raises(ValueError, match="do not fit"):
        add_weighted(out, updates[1:], weights)
    with pytest.raises(ValueError, match="side by side"):
        add_weighted(out, np.asfortranarray(updates), weights)
    with pytest.raises(ValueError, match="in a row"):
        add_weighted(np.asfortranarray(out), updates, weights)


def test_a_kernel_that_gives_other_numbers_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if kernel() is None:
        pytest.skip("the kernel was not compiled")
    kernel.cache_clear()
    monkeypatch.setattr("wirelessfl.radio.weighted_sums._add_compiled", lambda *_: None)
    assert kernel() is None
    kernel.cache_clear()


def test_without_a_library_there_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> ctypes.CDLL:
        raise OSError

    kernel.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert kernel() is None
    kernel.cache_clear()


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize(("dimension", "pieces"), [(23, 4), (1001, 7), (64, 64)])
def test_a_slot_is_that_of_matrix_products(dimension: int, pieces: int, packing: bool) -> None:
    """Single precision in one pass, over blocks of clients, against double precision range by range."""
    if packing:
        dimension *= 2
    numbers = np.random.default_rng(3)
    updates = numbers.standard_normal((9, dimension), dtype=np.float32)
    gains = numbers.standard_normal((9, pieces, 1, 2)) @ np.array([1.0, 1j])
    once, double = (Superposition(dimension, packing, pieces) for _ in range(2))
    energies = [
        once.add(torch.from_numpy(updates[mine]), gains[mine]) for mine in (slice(0, 5), slice(5, 6), slice(6, 9))
    ]
    assert double.add(updates.astype(np.float64), gains) is None
    np.testing.assert_allclose(once.received(), double.received(), atol=2e-5)
    known = [block for block in energies if block is not None]
    expected = range_energies(updates.astype(np.float64), coordinate_ranges(dimension, pieces, packing))
    np.testing.assert_allclose(np.concatenate(known), expected, rtol=1e-5)


def test_ranges_of_two_lengths_are_both_measured() -> None:
    updates = torch.arange(10, dtype=torch.float32)[None]
    air = Superposition(10, pieces=4)
    np.testing.assert_array_equal(air.add(updates, np.ones((1, 4, 1), dtype=np.complex128)), [[5, 50, 85, 145]])
    np.testing.assert_array_equal(air.received(), np.arange(10))


@pytest.mark.parametrize("rows", [slice(0, 3), slice(3, 4)])
def test_blocks_whose_coordinates_lie_apart_are_the_same(rows: slice) -> None:
    """Before and after blocks that lie in a row, from torch and from NumPy."""
    numbers = np.random.default_rng(8)
    updates = numbers.standard_normal((4, 30), dtype=np.float32)
    gains = numbers.standard_normal((4, 5, 1)).astype(np.complex128)
    apart, side_by_side = Superposition(30, pieces=5), Superposition(30, pieces=5)
    others = np.delete(np.arange(4), np.arange(4)[rows])
    for mine, columns in ((np.arange(4)[rows], True), (others, False)):
        block = np.asfortranarray(updates[mine]) if columns else updates[mine]
        energies = apart.add(torch.from_numpy(block), gains[mine])
        np.testing.assert_array_equal(energies, side_by_side.add(updates[mine], gains[mine]))
    np.testing.assert_array_equal(apart.received(), side_by_side.received())


def test_one_range_has_no_energies_and_keeps_its_matrix_product() -> None:
    updates = torch.randn(4, 50, generator=torch.Generator().manual_seed(1))
    air = Superposition(50)
    assert air.add(updates, np.ones(4, dtype=np.complex128)) is None
    assert torch.equal(air.received(), torch.ones(4) @ updates)
