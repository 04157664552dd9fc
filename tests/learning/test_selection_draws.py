"""Draws of clients against enumeration: the largest scores, and weighted draws without replacement."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from tests.statistics import assert_mean
from wirelessfl.learning.selection.draws import largest, weighted


@pytest.mark.parametrize("count", [1, 3, 9, 10, 12])
def test_the_largest_are_those_of_a_sort(count: int) -> None:
    generator = np.random.default_rng(1)
    for _ in range(50):
        score = generator.permutation(10).astype(float)
        chosen = largest(score, count, generator)
        wanted = sorted(sorted(range(10), key=lambda client: -score[client])[:count])
        assert chosen.clients.tolist() == wanted and chosen.clients.dtype == np.int64
        assert chosen.score is not None
        np.testing.assert_array_equal(chosen.score, score[wanted])


def test_equal_scores_at_the_edge_are_drawn_evenly() -> None:
    """Of scores 2, 1, 1, 1, 0 three clients: the first always, each of the next three with probability 2/3."""
    score, generator, draws = np.array([2.0, 1.0, 1.0, 1.0, 0.0]), np.random.default_rng(2), 4000
    hits = np.zeros((draws, 5))
    for draw in range(draws):
        hits[draw, largest(score, 3, generator).clients] = 1
    assert hits[:, 0].all() and not hits[:, 4].any()
    for client in (1, 2, 3):
        assert_mean(hits[:, client], 2 / 3, np.sqrt(2) / 3)
    unknown = largest(np.full(4, np.inf), 2, generator)  # nothing is known yet
    assert len(unknown.clients) == 2


def test_weighted_draws_have_the_law_of_successive_ones() -> None:
    """Inclusion of each client by the sum over all orders of p_a p_b/(1 − p_a) …, of 3 of 5 clients."""
    weights, draws, generator = np.array([1.0, 2.0, 3.0, 5.0, 9.0]), 8000, np.random.default_rng(3)
    expected = np.zeros(5)
    for order in permutations(range(5), 3):
        probability, left = 1.0, weights.sum()
        for client in order:
            probability *= weights[client] / left
            left -= weights[client]
        expected[list(order)] += probability
    hits = np.zeros((draws, 5))
    for draw in range(draws):
        chosen = weighted(weights, 3, generator)
        assert len(chosen) == 3 and np.all(np.diff(chosen) > 0)
        hits[draw, chosen] = 1
    for client, share in enumerate(expected):
        assert_mean(hits[:, client], share, np.sqrt(share * (1 - share)))
    assert weighted(weights, 5, generator).tolist() == [0, 1, 2, 3, 4] and not len(weighted(weights, 0, generator))
