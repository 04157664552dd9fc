"""The stochastic quantiser: levels, unbiasedness, variance, and payload."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.statistics import assert_mean, shifted
from wirelessfl.learning.compression import RandomRounding

TRIALS = 50_000
UPDATE = np.array([0.8, -0.33, 0.05, -0.799, 0.0])


def repeated(bits: int) -> np.ndarray:
    uniform = np.random.default_rng(shifted(95)).random((TRIALS, len(UPDATE)))
    return np.asarray(RandomRounding(bits).quantise(np.tile(UPDATE, (TRIALS, 1)), uniform))


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_every_coordinate_is_unbiased_with_the_stated_variance(bits: int) -> None:
    step = 2 * 0.8 / max(2**bits - 2, 1)
    for k, drawn in enumerate(repeated(bits).T):
        fraction = (UPDATE[k] + 0.8) / step % 1
        std = step * np.sqrt(fraction * (1 - fraction))
        assert_mean(drawn, UPDATE[k], std=std + 1e-12)
        if std > 1e-6:
            fourth = step**4 * fraction * (1 - fraction) * (1 - 3 * fraction * (1 - fraction))
            assert_mean((drawn - UPDATE[k]) ** 2, std**2, std=float(np.sqrt(fourth - std**4)) + 1e-12)


@pytest.mark.parametrize("bits", [1, 3, 16])
def test_values_lie_on_the_levels_and_the_largest_is_exact(bits: int) -> None:
    found = repeated(bits)[:100]
    steps = max(2**bits - 2, 1)
    level = (found / 0.8 + 1) * steps / 2
    np.testing.assert_allclose(level, np.round(level), atol=1e-9 * 2**bits)
    assert np.all((level > -0.5) & (level < 2**bits - 0.5))
    if bits > 1:
        np.testing.assert_array_equal(found[:, 4], 0.0)
    np.testing.assert_allclose(found[:, 0], 0.8)


def qsgd_error(update: np.ndarray, levels: int) -> float:
    """E‖Q_s(v) − v‖² of QSGD's definition: |v_i|/‖v‖ is rounded to one of its two neighbours among 0, 1/s, …, 1."""
    scale = float(np.abs(update).max())
    total = 0.0
    for value in np.abs(update) / scale:
        lower = min(int(value * levels), levels - 1)
        up = value * levels - lower
        total += (1 - up) * (lower / levels - value) ** 2 + up * ((lower + 1) / levels - value) ** 2
    return total * scale**2


@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_the_error_is_that_of_qsgd(zeros: float, bits: int) -> None:
    """With an even number of levels a half-zero update at 4 bits erred 2.2 times as much."""
    generator = np.random.default_rng(shifted(96))
    update = generator.uniform(-1, 1, 400) * (np.arange(400) >= 400 * zeros)
    error = np.array(
        [
            np.sum((RandomRounding(bits).quantise(update[None], generator.random((1, 400))) - update) ** 2)
            for _ in range(400)
        ]
    )
    assert_mean(error, qsgd_error(update, 2 ** (bits - 1) - 1), std=float(error.std()))
    if zeros == 0.5 and bits == 4:
        even = 2 * np.abs(update).max() / 15
        position = (update / np.abs(update).max() + 1) * 7.5 % 1
        before = float(np.sum(position * (1 - position))) * even**2
        assert before / qsgd_error(update, 7) == pytest.approx(2.2, abs=0.1)


@given(
    update=arrays(np.float32, st.integers(1, 20), elements=st.floats(-1e6, 1e6, width=32, allow_subnormal=False)),
    bits=st.integers(2, 16),
    seed=st.integers(0, 2**32 - 1),
)
def test_zeros_and_signs_are_kept_and_every_value_is_a_neighbour(update: np.ndarray, bits: int, seed: int) -> None:
    uniform = np.random.default_rng(seed).random((1, len(update)), dtype=np.float32)
    found = RandomRounding(bits).quantise(update[None], uniform)[0]
    step = float(np.abs(update).max()) / (2 ** (bits - 1) - 1)
    assert np.all(found[update == 0] == 0)
    assert np.all(found * update >= 0)
    assert np.all(np.abs(found - update) <= step * (1 + 1e-5) + 1e-5 * np.abs(update))


def test_torch_gives_the_same_values() -> None:
    generator = np.random.default_rng(1)
    updates, uniform = generator.standard_normal((7, 30)), generator.random((7, 30))
    quantiser = RandomRounding(5)
    found = quantiser.quantise(torch.tensor(updates), torch.tensor(uniform))
    np.testing.assert_allclose(found.numpy(), quantiser.quantise(updates, uniform), rtol=1e-12)


def test_single_precision_stays_on_the_levels() -> None:
    """The largest random number below 1 must not push the top level over."""
    updates = torch.linspace(-1, 1, 1001, dtype=torch.float32)[None, :]
    uniform = torch.full_like(updates, float(np.nextafter(np.float32(0), np.float32(1))))
    found = RandomRounding(16).quantise(updates, uniform)
    assert found.dtype == torch.float32
    assert float(found.abs().max()) <= 1.0 + 1e-6


def test_a_zero_update_stays_zero() -> None:
    found = RandomRounding(4).quantise(np.zeros((2, 3)), np.full((2, 3), 0.5))
    np.testing.assert_array_equal(found, np.zeros((2, 3)))


def test_the_payload_counts_the_scale() -> None:
    assert RandomRounding(8).bits(650) == 650 * 8 + 32


@pytest.mark.parametrize("bits", [0, 17])
def test_bad_widths_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="bits"):
        RandomRounding(bits)
