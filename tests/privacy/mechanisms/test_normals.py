"""The fast normals: their law, and what a row depends on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from tests.statistics import assert_follows, assert_probability, assert_uncorrelated, assert_variance_gaussian, shifted
from wirelessfl.privacy.mechanisms.normals import _Tile, add_normal
from wirelessfl.streams import Streams


def draw(
    rows: int, dimension: int, *, seed: int = 1, purpose: str = "noise", round_index: int = 2, step: int = 3
) -> Tensor:
    out = torch.zeros(rows, dimension)
    return add_normal(out, torch.ones(rows), Streams(seed), purpose, round_index, np.arange(rows), step)


def test_the_law_is_standard_normal_in_every_part_of_a_row() -> None:
    values = draw(40, 50_001, seed=shifted(1)).double().numpy()
    for part in (values[:, :25_000], values[:, 25_001:]):
        assert_follows(part[:, ::5], stats.norm.cdf)
        assert_variance_gaussian(part, 1.0)
    for bound in (3.0, 4.0, 5.0):
        assert_probability(int((np.abs(values) > bound).sum()), values.size, 2 * stats.norm.sf(bound))
    assert np.isfinite(values).all()


def test_numbers_are_uncorrelated_within_and_between_rows() -> None:
    values = draw(2, 1_000_000, seed=shifted(2)).double().numpy()
    first, second = values
    assert_uncorrelated(first, second)
    assert_uncorrelated(first[:500_000], first[500_000:])  # the two of one Box-Muller pair
    assert_uncorrelated(first[:500_000] ** 2, first[500_000:] ** 2)
    assert_uncorrelated(first[:-1], first[1:])
    assert_uncorrelated(first[:-4], first[4:])  # one block of the cipher apart


def test_the_extreme_words_give_finite_numbers() -> None:
    extremes = torch.tensor([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1], dtype=torch.int32)
    radius, angle = torch.meshgrid(extremes, extremes, indexing="ij")
    length, cosine, sine = _Tile(1, 72).box_muller(radius.reshape(1, 36), angle.reshape(1, 36))
    out = torch.cat([length * cosine, length * sine])
    assert torch.isfinite(out).all()
    assert float(out.abs().max()) == pytest.approx(np.sqrt(2 * np.log(2.0**32)), rel=1e-6)


@pytest.mark.parametrize("dimension", [1, 2, 7, 1000, 70_000, 200_001])
def test_a_row_does_not_depend_on_the_others(dimension: int) -> None:
    streams = Streams(4)
    clients = np.array([7, 2**40 + 1, 3])

    def noise(out: Tensor, members: NDArray[np.int64]) -> Tensor:
        return add_normal(out, torch.ones(len(members)), streams, "noise", 5, members, 1)

    together = noise(torch.zeros(3, dimension), clients)
    for row, client in zip(together, clients, strict=True):
        assert torch.equal(row, noise(torch.zeros(1, dimension), np.array([client]))[0])
    wide = torch.zeros(3, dimension + 5, dtype=torch.float64)
    assert torch.equal(noise(wide[:, 2:-3], clients).float(), together)
    assert not wide[:, :2].any() and not wide[:, -3:].any()


def test_noise_is_scaled_by_row_and_added() -> None:
    clients, std = np.arange(3), torch.tensor([0.0, 2.0, 0.5])
    base = torch.randn(3, 1000)
    noise = add_normal(torch.zeros(3, 1000), torch.ones(3), Streams(1), "noise", 1, clients, 0)
    found = add_normal(base.clone(), std, Streams(1), "noise", 1, clients, 0)
    torch.testing.assert_close(found, base + std[:, None] * noise)
    assert torch.equal(found[0], base[0])


def test_rows_differ_by_seed_purpose_round_client_and_step() -> None:
    rows = [
        draw(2, 50)[0],
        draw(2, 50)[1],
        draw(1, 50, seed=2)[0],
        draw(1, 50, purpose="other")[0],
        draw(1, 50, round_index=3)[0],
        draw(1, 50, step=4)[0],
    ]
    assert len({tuple(row.tolist()) for row in rows}) == len(rows)
