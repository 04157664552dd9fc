"""Path loss of distance, shadowing and line of sight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.statistics import assert_follows, assert_probability, assert_variance_gaussian, shifted
from wirelessfl.errors import ScenarioError
from wirelessfl.radio import UniformDisc
from wirelessfl.radio.propagation import DistanceGain, Draws, Moment, Standing
from wirelessfl.radio.propagation.path_loss import (
    LogDistance,
    free_space_path_loss_db,
    log_distance_path_loss_db,
    path_gain,
)
from wirelessfl.streams import Streams

COUNT = 100_000
DISTANCE = np.array([0.5, 1.0, 10.0, 100.0, 1234.5])


@dataclass(frozen=True)
class Law(LogDistance):
    """Free space with a probability of sight and a spread of the shadowing for each link."""

    probability: float = 1.0
    spread: tuple[float, ...] = (0.0,)

    def line_of_sight_probability(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full(len(distance), self.probability)

    def shadowing_std_db(self, line_of_sight: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.resize(self.spread, len(line_of_sight))


def drawn(**law: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Shadowing in dB of links, and which of them have a line of sight."""
    draws, model = Draws(Streams(shifted(51))), Law(1e9, 2.0, 1.0, **law)
    gains = DistanceGain(Standing(UniformDisc(2.0, 1.0), draws), model, 1.0, draws)
    nodes = np.arange(COUNT)
    found = gains.gains(nodes, Moment(1, 0.0))
    loss = model.loss_db(gains.last_distances(nodes), found.line_of_sight)
    return -10 * np.log10(found.path_gain) - loss, found.line_of_sight


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
    shadowing, _ = drawn(spread=(7.82,))
    assert_follows(shadowing, stats.norm(scale=7.82).cdf)
    assert_variance_gaussian(shadowing, 7.82**2)
    np.testing.assert_allclose(drawn()[0], np.zeros(COUNT), atol=1e-9)


def test_each_link_has_its_own_shadowing_spread() -> None:
    shadowing, _ = drawn(spread=(6.0, 4.0))
    assert_variance_gaussian(shadowing[1::2], 16.0)
    assert_variance_gaussian(shadowing[0::2], 36.0)


@pytest.mark.parametrize("probability", [0.0, 0.3477, 1.0])
def test_line_of_sight_is_as_frequent_as_stated(probability: float) -> None:
    _, seen = drawn(probability=probability)
    assert_probability(int(seen.sum()), COUNT, probability)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        free_space_path_loss_db(np.array([0.0]), 1e9)
    with pytest.raises(ValueError, match="positive"):
        free_space_path_loss_db(np.array([1.0]), 0.0)
    with pytest.raises(ValueError, match="exponent"):
        log_distance_path_loss_db(DISTANCE, 0.0, 1.0, 1e9)
    with pytest.raises(ScenarioError, match=r"shadowing_std_db returned numbers from -1\.0"):
        drawn(spread=(-1.0,))
