"""Tests of the noise itself: sound noise passes at the rate stated, broken noise does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.statistics import shifted
from wirelessfl.analysis.audit.noise import NoiseRecord, noise_faults
from wirelessfl.analysis.audit.noise_records import haar_whitened, kept_coordinates, spread
from wirelessfl.privacy.mechanisms import haar_server_noise

EVENTS, DIMENSION = 120, 200
Values = NDArray[np.float64]


def record(values: Values, gaussian: bool = True) -> NoiseRecord:
    """Events of 2 seeds and 3 clients, in as many rounds as it takes."""
    number = np.arange(len(values))
    labels = {"seed": number // (len(values) // 2), "client": number % 3, "round": number // 3 % (len(values) // 6)}
    return NoiseRecord("of a test", values, labels, gaussian)


def normal(seed: int, events: int = EVENTS, dimension: int = DIMENSION) -> Values:
    """White noise of size 1."""
    return np.random.default_rng(shifted(seed)).standard_normal((events, dimension))


@pytest.mark.slow
def test_sound_noise_fails_no_more_often_than_stated() -> None:
    """At a rate of 20 % over 300 records; more than 20 % of failures would be the bounds' fault."""
    failures = sum(bool(noise_faults(record(normal(1000 + trial)), 0.2)) for trial in range(300))
    assert failures <= stats.binom(300, 0.2).isf(1e-6)


@pytest.mark.parametrize("scale", [1.0, 1.7])
@pytest.mark.parametrize("shape", [(2, 3), (60, 1), (6, 5000), (600, 20)])
def test_sound_noise_of_any_shape_passes(shape: tuple[int, int], scale: float) -> None:
    assert noise_faults(record(scale * normal(3, *shape)) if shape[0] > 5 else single(normal(4, *shape)), 1e-6) == []


def single(values: Values) -> NoiseRecord:
    return NoiseRecord("of a test", values, {"round": np.arange(len(values))}, gaussian=True)


def test_noise_of_different_sizes_passes_where_the_record_is_a_bound() -> None:
    sizes = np.linspace(1, 4, DIMENSION) * np.linspace(1, 3, EVENTS)[:, None]
    assert noise_faults(record(sizes * normal(5), gaussian=False), 1e-6) == []


def tiled(noise: Values) -> Values:
    return np.hstack([noise[:, : DIMENSION // 2]] * 2)


def permuted(noise: Values) -> Values:
    """Half of the coordinates get the noise of others, in random order."""
    half = np.random.default_rng(0).permutation(DIMENSION)
    out = noise.copy()
    out[:, half[: DIMENSION // 2]] = noise[:, half[DIMENSION // 2 :]]
    return out


def mixed(noise: Values) -> Values:
    """A little of the event before is left in every one."""
    out = noise.copy()
    out[3:] = np.sqrt(1 - 0.25**2) * noise[3:] + 0.25 * noise[:-3]
    return out


def every_second(noise: Values) -> Values:
    return noise * (np.arange(DIMENSION) % 2)


BROKEN: dict[str, tuple[Callable[[Values], Values], str]] = {
    "one noise for all events": (lambda noise: np.repeat(noise[:1], len(noise), axis=0), "used again"),
    "the opposite noise in the next event": (lambda noise: np.vstack([noise[:3], -noise[:3], noise[6:]]), "used again"),
    "a little of the event before": (mixed, "not independent from one round to the next"),
    "one number for all coordinates": (lambda noise: np.repeat(noise[:, :1], DIMENSION, axis=1), "distance of"),
    "the second half of the coordinates as the first": (tiled, "distance of 100 coordinates"),
    "half of the coordinates as others": (permuted, "same on different coordinates: on"),
    "none on every second coordinate": (every_second, "100 of 200 coordinates"),
    "half on one coordinate": (lambda noise: noise * np.where(np.arange(DIMENSION) == 7, 0.5, 1), "number 7"),
    "none in one event": (lambda noise: noise * (np.arange(EVENTS) != 4)[:, None], "1 of 120 events"),
    "a tenth less": (lambda noise: 0.9 * noise, "smaller than recorded:"),
    "no noise": (np.zeros_like, "0 of its variance"),
    "uniform noise": (lambda noise: np.sqrt(12) * (stats.norm.cdf(noise) - 0.5), "not normal"),
    "rounded noise": (np.rint, "not normal"),
}


@pytest.mark.parametrize(("spoil", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_noise_is_caught(spoil: Callable[[Values], Values], words: str) -> None:
    found = noise_faults(record(spoil(normal(6))), 1e-6)
    assert any(words in fault.words for fault in found), [fault.words for fault in found]


def test_haar_noise_becomes_white() -> None:
    generator = np.random.default_rng(shifted(8))
    noise = np.stack([haar_server_noise(150, 2.0, generator) for _ in range(EVENTS)])
    white = haar_whitened(noise) / 2.0
    # 150 = 128 + 16 + 4 + 2 elements hold 127 + 15 + 3 + 1 details, and no last mean of the 256 padded ones.
    assert white.shape == (EVENTS, 146)
    assert noise_faults(record(white), 1e-6) == []
    assert noise_faults(record(noise / 2.0), 1e-6)
    assert haar_whitened(np.ones((1, 64))).shape == (1, 64)


def test_long_vectors_are_recorded_in_stretches_from_all_over() -> None:
    assert np.array_equal(kept_coordinates(1000), np.arange(1000))
    kept = kept_coordinates(11_000_000)
    assert kept[0] == 0 and kept[-1] == 10_999_999 and len(kept) <= 2**17
    # Halves that are alike are seen in both: some coordinate is half a vector away from another.
    assert np.isin(kept + 5_500_000, kept).any()


def test_rounds_are_the_first_and_the_last() -> None:
    assert spread([2, 3, 5, 7, 11], 9) == [2, 3, 5, 7, 11]
    assert spread(list(range(1, 101)), 5) == [1, 2, 3, 99, 100]
