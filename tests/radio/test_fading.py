"""Block fading against the named distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.statistics import assert_follows, assert_mean, assert_uncorrelated, assert_variance_gaussian, shifted
from wirelessfl.radio import FadingModel, Rayleigh, Static
from wirelessfl.streams import NodeStream, Streams

COUNT = 200_000


def stream(count: int = COUNT, round_index: int = 0) -> NodeStream:
    return Streams(shifted(3)).nodes("fading", round_index, np.arange(count))


def test_rayleigh_is_circular_gaussian_of_mean_power_one() -> None:
    gains = Rayleigh().draw(stream())
    assert_follows(np.abs(gains), stats.rayleigh(scale=np.sqrt(0.5)).cdf)
    assert_follows(np.angle(gains), stats.uniform(-np.pi, 2 * np.pi).cdf)
    assert_variance_gaussian(gains.real, 0.5)
    assert_variance_gaussian(gains.imag, 0.5)
    assert_uncorrelated(gains.real, gains.imag)
    assert_mean(np.abs(gains) ** 2, 1.0, std=1.0)


def test_rayleigh_blocks_are_independent_from_round_to_round() -> None:
    first, second = (Rayleigh().draw(stream(round_index=m)) for m in (4, 5))
    assert_uncorrelated(first.real, second.real)
    assert_uncorrelated(first.real, second.imag)
    assert_uncorrelated(np.abs(first), np.abs(second))


def test_static_is_one() -> None:
    np.testing.assert_array_equal(Static().draw(stream(5)), np.ones(5))


@pytest.mark.parametrize("model", [Rayleigh(), Static()])
def test_a_gain_does_not_depend_on_who_else_is_active(model: FadingModel) -> None:
    everyone = model.draw(Streams(9).nodes("fading", 1, np.arange(10)))
    some = model.draw(Streams(9).nodes("fading", 1, np.array([7, 2])))
    np.testing.assert_array_equal(some, everyone[[7, 2]])
