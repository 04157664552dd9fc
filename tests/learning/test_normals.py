"""The fast normals: their law, and what a row depends on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from tests.statistics import assert_follows, assert_probability, assert_uncorrelated, assert_variance_gaussian, shifted
from wirelessfl.learning.cohort.normals import _Tile, fill_normal
from wirelessfl.streams import Streams


def draw(
    rows: int, dimension: int, *, seed: int = 1, purpose: str = "noise", round_index: int = 2, step: int = 3
) -> Tensor:
    out = torch.empty(rows, dimension)
    return fill_normal(out, Streams(seed), purpose, round_index, np.arange(rows), step)


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
    out = torch.empty(1, 72)
    _Tile(1, 72).box_muller(radius.reshape(1, 36), angle.reshape(1, 36), out)
    assert torch.isfinite(out).all()
    assert float(out.abs().max()) == pytest.approx(np.sqrt(2 * np.log(2.0**32)), rel=1e-6)


@pytest.mark.parametrize("dimension", [1, 2, 7, 1000, 70_000, 200_001])
def test_a_row_does_not_depend_on_the_others(dimension: int) -> None:
    streams = Streams(4)
    clients = np.array([7, 2**40 + 1, 3])
    together = fill_normal(torch.empty(3, dimension), streams, "noise", 5, clients, 1)
    for row, client in zip(together, clients, strict=True):
        alone = fill_normal(torch.empty(1, dimension), streams, "noise", 5, np.array([client]), 1)
        assert torch.equal(row, alone[0])
    wide = torch.empty(3, dimension + 5, dtype=torch.float64)
    assert torch.equal(fill_normal(wide[:, 2:-3], streams, "noise", 5, clients, 1).float(), together)


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
