"""Which clients are asked: the laws, and a cost that does not follow the registered."""

from __future__ import annotations

import numpy as np
import pytest

from tests.statistics import assert_mean
from wirelessfl.simulation.selection import SelectAll, Selection, SelectPoisson, SelectUniform
from wirelessfl.streams import Streams

STREAMS = Streams(5)


@pytest.mark.parametrize("selection", [SelectAll(), SelectUniform(4), SelectPoisson(0.3)])
def test_ascending_and_without_repetition(selection: Selection) -> None:
    for round_index in range(1, 20):
        clients = selection.select(12, round_index, STREAMS)
        assert np.all(np.diff(clients) > 0)
        assert np.all((clients >= 0) & (clients < 12))
        np.testing.assert_array_equal(clients, selection.select(12, round_index, STREAMS))


def test_uniform_gives_every_client_the_same_chance() -> None:
    rounds, registered, count = 4000, 10, 3
    share = count / registered
    hits = np.zeros((rounds, registered))
    for index in range(rounds):
        hits[index, SelectUniform(count).select(registered, index + 1, STREAMS)] = 1
    assert np.all(hits.sum(axis=1) == count)
    for client in range(registered):
        assert_mean(hits[:, client], share, np.sqrt(share * (1 - share)))


def test_poisson_counts_follow_the_binomial_law() -> None:
    rounds, registered, rate = 4000, 40, 0.2
    counts = np.array([len(SelectPoisson(rate).select(registered, m + 1, STREAMS)) for m in range(rounds)])
    assert_mean(counts.astype(float), registered * rate, np.sqrt(registered * rate * (1 - rate)))


def test_a_million_registered_are_not_looked_at() -> None:
    clients = SelectUniform(50).select(10**12, 1, STREAMS)
    assert len(clients) == 50 and clients.max() > 10**9
