"""Clipping of symbols against brute force: amplitudes, phases, and that it moves no two updates apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from wirelessfl.radio import limit_amplitude
from wirelessfl.radio.superposition import row_norms

values = st.floats(-100, 100, allow_subnormal=False)


@st.composite
def pairs_of_updates(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shape = (draw(st.integers(1, 4)), draw(st.integers(1, 9)))
    limits = draw(arrays(np.float64, shape[0], elements=st.floats(1e-3, 200)))
    return draw(arrays(np.float64, shape, elements=values)), draw(arrays(np.float64, shape, elements=values)), limits


def symbols(update: np.ndarray, iq_packing: bool) -> np.ndarray:
    """Complex symbols of one update."""
    if not iq_packing:
        return update + 0j
    padded = np.append(update, np.zeros(len(update) % 2))
    return padded[0::2] + 1j * padded[1::2]


@given(drawn=pairs_of_updates(), iq_packing=st.booleans())
def test_symbol_by_symbol(drawn: tuple[np.ndarray, ...], iq_packing: bool) -> None:
    updates, _, limits = drawn
    found = limit_amplitude(updates, limits, iq_packing)
    for row, passed, limit in zip(updates, found, limits, strict=True):
        for before, after in zip(symbols(row, iq_packing), symbols(passed, iq_packing), strict=True):
            expected = before if abs(before) <= limit else before * limit / abs(before)
            assert after == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(drawn=pairs_of_updates(), iq_packing=st.booleans())
def test_no_sensitivity_grows(drawn: tuple[np.ndarray, ...], iq_packing: bool) -> None:
    """‖C(u) − C(v)‖ <= ‖u − v‖ and ‖C(u)‖ <= ‖u‖: the ledger's bounds hold for what is sent."""
    one, other, limits = drawn
    limited = [limit_amplitude(update, limits, iq_packing) for update in (one, other)]
    assert np.all(row_norms(limited[0] - limited[1]) <= row_norms(one - other) * (1 + 1e-12) + 1e-12)
    assert np.all(row_norms(limited[0]) <= row_norms(one) * (1 + 1e-12))


@pytest.mark.parametrize("iq_packing", [False, True])
def test_torch_gives_the_same_and_leaves_the_updates_alone(iq_packing: bool) -> None:
    updates, limits = np.random.default_rng(3).standard_normal((5, 11)), np.linspace(0.1, 3, 5)
    tensor = torch.tensor(updates, dtype=torch.float32)
    found = limit_amplitude(tensor, limits, iq_packing)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy(), limit_amplitude(updates, limits, iq_packing), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(tensor.numpy(), updates.astype(np.float32))
    np.testing.assert_allclose(row_norms(tensor), np.linalg.norm(updates, axis=1), rtol=1e-6)


def test_the_power_that_is_left_of_a_gaussian_signal() -> None:
    """E min(|x|, 1)² of x ~ N(0, 1), by quadrature."""
    drawn = np.random.default_rng(4).standard_normal((1, 400_000))
    passed = limit_amplitude(drawn, np.ones(1))
    grid = np.linspace(-9, 9, 200_001)
    density = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    expected = np.trapezoid(np.minimum(np.abs(grid), 1.0) ** 2 * density, grid)
    # Standard error of a bounded square below 1/2 over 400,000 draws, at six of them.
    assert np.mean(passed**2) == pytest.approx(expected, abs=6 * 0.5 / np.sqrt(400_000))
