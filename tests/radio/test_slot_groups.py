"""Random groups of clients: sizes, and what one learns of another."""

from __future__ import annotations

import numpy as np
from scipy import stats

from wirelessfl.radio.slot_groups import slot_groups
from wirelessfl.streams import Streams


def drawn(clients: int, groups: int, rounds: int) -> np.ndarray:
    """(rounds, clients) groups."""
    streams, nodes = Streams(3), np.arange(clients)
    return np.stack([slot_groups(streams.nodes("group_of_slot", m, nodes), groups) for m in range(1, rounds + 1)])


def test_sizes_differ_by_one_at_most() -> None:
    for clients, groups in ((1, 1), (7, 3), (12, 4), (5, 5), (50, 7)):
        for row in drawn(clients, groups, 20):
            sizes = np.bincount(row, minlength=groups)
            assert sizes.sum() == clients
            assert sizes.max() - sizes.min() <= 1


def test_every_client_is_in_every_group_alike_and_meets_every_other() -> None:
    """Pearson's test at 1e-4 for each, and the chance of two to meet, (K/G − 1)/(K − 1), within four deviations."""
    found = drawn(12, 4, 4000)
    for column in found.T:
        assert stats.chisquare(np.bincount(column, minlength=4)).pvalue > 1e-4 / 12
    meet = (found[:, 0] == found[:, 1]).mean()
    chance = (12 / 4 - 1) / (12 - 1)
    assert abs(meet - chance) < 4 * np.sqrt(chance * (1 - chance) / len(found))


def test_rounds_are_divided_anew() -> None:
    found = drawn(12, 4, 50)
    assert len({row.tobytes() for row in found}) == 50
