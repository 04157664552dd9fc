"""What an ε leaves out is said where it is printed, and holds."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from wirelessfl.cli import main
from wirelessfl.normals.portable import radii
from wirelessfl.summary.numbers import NOT_COVERED


def test_floating_point_noise_is_named_where_an_epsilon_is_printed() -> None:
    for text in (NOT_COVERED, " ".join(CliRunner().invoke(main, ["privacy", "--help"]).stdout.split())):
        assert "floating" in text and "Mironov 2012" in text


def test_how_far_normals_on_gradients_reach() -> None:
    """The page on privacy gives the end of their range and the probability beyond it: √(−2 ln 2⁻³²), of both tails."""
    furthest = float(radii(np.zeros(1, dtype=np.uint32))[0])
    assert furthest == pytest.approx(np.sqrt(64 * np.log(2)), rel=1e-6) == pytest.approx(6.7, abs=0.05)
    assert 2 * stats.norm.sf(furthest) == pytest.approx(3e-11, rel=0.2)


def test_floating_point_noise_tells_neighbours_apart() -> None:
    """Mironov's gap: sums of 32-bit noise with two neighbouring values reach different numbers."""
    noise = (np.random.default_rng(3).standard_normal(2_000) * 0.001).astype(np.float32)
    one, other = noise + np.float32(0.0), noise + np.float32(1.0)
    grid = np.spacing(np.float32(1.0)) / 2
    assert np.all(other % grid == 0)  # above ½ the lowest bits of the noise are gone
    assert np.mean(one % grid == 0) < 0.01
