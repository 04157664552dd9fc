"""Path loss of distance, shadowing and line of sight."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.statistics import assert_follows, assert_probability, assert_variance_gaussian, shifted
from wirelessfl.radio.propagation.path_loss import (
    free_space_path_loss_db,
    line_of_sight,
    log_distance_path_loss_db,
    path_gain,
    shadowing_db,
)
from wirelessfl.streams import NodeStream, Streams

COUNT = 100_000
DISTANCE = np.array([0.5, 1.0, 10.0, 100.0, 1234.5])


def stream() -> NodeStream:
    return Streams(shifted(51)).nodes("shadowing", 0, np.arange(COUNT))


def test_free_space_is_friis() -> None:
    """Received over transmitted power of isotropic antennas is (λ/4πd)²; 1 km at 1 GHz is the textbook 92.4 dB."""
    wavelength = 299_792_458.0 / 2.4e9
    np.testing.assert_allclose(
        path_gain(free_space_path_loss_db(DISTANCE, 2.4e9)), (wavelength / (4 * np.pi * DISTANCE)) ** 2
    )
    assert free_space_path_loss_db(np.array([1000.0]), 1e9)[0] == pytest.approx(92.45, abs=0.005)


def test_log_distance_leaves_free_space_at_the_reference() -> None:
    loss = log_distance_path_loss_db(DISTANCE, 3.7, 10.0, 2.4e9)
    free = free_space_path_loss_db(DISTANCE, 2.4e9)
    np.testing.assert_allclose(loss[:3], free[:3])
    np.testing.assert_allclose(loss[3:] - free[2], 37.0 * np.log10(DISTANCE[3:] / 10.0))
    np.testing.assert_allclose(log_distance_path_loss_db(DISTANCE, 2.0, 10.0, 2.4e9), free)


def test_shadowing_is_gaussian_in_decibels() -> None:
    drawn = shadowing_db(7.82, stream())
    assert_follows(drawn, stats.norm(scale=7.82).cdf)
    assert_variance_gaussian(drawn, 7.82**2)
    np.testing.assert_array_equal(shadowing_db(0.0, stream()), np.zeros(COUNT))


def test_each_link_has_its_own_shadowing_spread() -> None:
    spread = np.where(np.arange(COUNT) % 2, 4.0, 6.0)
    drawn = shadowing_db(spread, stream())
    assert_variance_gaussian(drawn[1::2], 16.0)
    assert_variance_gaussian(drawn[0::2], 36.0)


@pytest.mark.parametrize("probability", [0.0, 0.3477, 1.0])
def test_line_of_sight_is_as_frequent_as_stated(probability: float) -> None:
    seen = line_of_sight(np.full(COUNT, probability), stream())
    assert_probability(int(seen.sum()), COUNT, probability)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        free_space_path_loss_db(np.array([0.0]), 1e9)
    with pytest.raises(ValueError, match="positive"):
        free_space_path_loss_db(np.array([1.0]), 0.0)
    with pytest.raises(ValueError, match="exponent"):
        log_distance_path_loss_db(DISTANCE, 0.0, 1.0, 1e9)
    with pytest.raises(ValueError, match="std_db"):
        shadowing_db(-1.0, stream())
