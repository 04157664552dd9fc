"""Phase errors and late arrivals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.statistics import assert_follows, assert_mean, shifted
from wirelessfl.radio.impairments import phase_errors, timing_offsets
from wirelessfl.streams import NodeStream, Streams

COUNT = 100_000


def stream() -> NodeStream:
    return Streams(shifted(81)).nodes("impairments", 0, np.arange(COUNT))


def test_phase_errors_are_gaussian_and_shrink_the_real_part() -> None:
    rotation = phase_errors(0.3, stream())
    np.testing.assert_allclose(np.abs(rotation), 1.0)
    assert_follows(np.angle(rotation), stats.norm(scale=0.3).cdf)
    variance = (1 + np.exp(-2 * 0.3**2)) / 2 - np.exp(-(0.3**2))
    assert_mean(rotation.real, np.exp(-(0.3**2) / 2), std=float(np.sqrt(variance)))
    np.testing.assert_array_equal(phase_errors(0.0, stream()), np.ones(COUNT))


def test_timing_offsets_are_uniform() -> None:
    assert_follows(timing_offsets(0.4, stream()), stats.uniform(0, 0.4).cdf)


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf])
def test_bad_phases_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="std_rad"):
        phase_errors(bad, stream())


@pytest.mark.parametrize("bad", [-0.1, np.nan, 1.0])
def test_bad_offsets_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="max_offset"):
        timing_offsets(bad, stream())
