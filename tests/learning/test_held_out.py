"""Samples held out of the clients' shares."""

from __future__ import annotations

import numpy as np
import pytest

from wirelessfl.errors import DataError
from wirelessfl.learning.held_out import hold_out
from wirelessfl.learning.partition import Partition, power_law_partition

SHARES = power_law_partition(3000, 40, 0.7, np.random.default_rng(1))


def test_every_share_is_divided_and_nothing_is_lost() -> None:
    left, (validation, test) = hold_out(SHARES, [0.1, 0.25], np.random.default_rng(2))
    for client in range(40):
        rows, kept = SHARES.rows(client), left.rows(client)
        parts = [np.intersect1d(rows, part.rows) for part in (validation, test)]
        assert all(
            set(part.rows[part.owners == client]) == set(own)
            for part, own in zip((validation, test), parts, strict=True)
        )
        assert [len(part) for part in parts] == [round(0.1 * len(rows)), round(0.25 * len(rows))]
        assert kept.tolist() == [row for row in rows.tolist() if row in set(kept.tolist())]  # in their order
        assert sorted([*kept, *parts[0], *parts[1]]) == sorted(rows)


def test_which_samples_follows_the_generator_alone() -> None:
    one, same, other = (hold_out(SHARES, [0.2], np.random.default_rng(seed))[1][0].rows for seed in (3, 3, 4))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("sizes", "fraction", "says"),
    [((3, 1), 0.9, "client 0 has 3 samples and none is left to train on"), ((4, 4), 0.1, "allowed: larger fractions")],
)
def test_shares_that_are_too_small_are_refused(sizes: tuple[int, ...], fraction: float, says: str) -> None:
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    with pytest.raises(DataError, match=says):
        hold_out(Partition(offsets, np.arange(offsets[-1])), [fraction], np.random.default_rng(0))
