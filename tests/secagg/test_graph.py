"""The random graph, and the levels its degree and threshold are chosen for."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.statistics import assert_counts, shifted
from wirelessfl.secagg import (
    Neighbourhood,
    SeededBytes,
    choose_neighbourhood,
    complete_neighbourhood,
    correctness_failure,
    harary_graph,
    majority,
    security_failure,
)


@given(st.integers(2, 30), st.integers(1, 40), st.integers(0, 2**32))
def test_the_graph_is_regular_connected_and_keeps_the_names(num_clients: int, degree: int, seed: int) -> None:
    clients = range(100, 100 + 3 * num_clients, 3)
    graph = harary_graph(clients, degree, SeededBytes(seed))
    assert set(graph) == set(clients)
    assert nx.is_connected(graph)
    wanted = min(degree, num_clients - 1)
    if wanted * num_clients % 2 == 0 and wanted > 1:
        assert {d for _, d in graph.degree} == {wanted}
    # Harary: no graph of this connectivity has fewer edges; a path stands in for degree 1
    assert graph.number_of_edges() == max(-(-wanted * num_clients // 2), num_clients - 1)
    if num_clients > wanted + 1 or num_clients == 2:
        assert nx.node_connectivity(graph) == wanted


def test_every_place_is_equally_likely() -> None:
    # In a ring of 6, client 0 has one of 10 equally likely pairs of neighbours.
    pairs = list(itertools.combinations(range(1, 6), 2))
    source, trials = SeededBytes(shifted(5)), 20_000
    drawn = [tuple(sorted(harary_graph(range(6), 2, source)[0])) for _ in range(trials)]
    assert_counts(np.array([drawn.count(pair) for pair in pairs]), np.full(10, 0.1))


@pytest.mark.parametrize(
    ("num_clients", "colluding", "dropouts", "degree", "threshold"),
    [(100, 10, 10, 22, 12), (1000, 100, 100, 54, 29), (50, 20, 10, 30, 20), (30, 5, 0, 29, 16)],
)
def test_bounds_agree_with_scipy(num_clients: int, colluding: int, dropouts: int, degree: int, threshold: int) -> None:
    others = num_clients - dropouts - 1
    surrounded = num_clients * stats.hypergeom.sf(threshold - 1, others, colluding, min(degree, others))
    removed, apart = colluding + dropouts, 0.0
    if degree < num_clients - 1:  # all of k named clients among the removed
        apart = comb(num_clients, 2) * stats.hypergeom.pmf(degree, num_clients, removed, degree)
    found = security_failure(num_clients, colluding, dropouts, degree, threshold)
    assert float(found) == pytest.approx(min(1, surrounded + apart), rel=1e-6, abs=1e-300)
    spare = degree - threshold
    needless = (num_clients - dropouts) * stats.hypergeom.sf(spare + 1, num_clients - 1, dropouts, degree)
    if dropouts:
        needless += dropouts * stats.hypergeom.sf(spare, num_clients - 1, dropouts - 1, degree)
    found = correctness_failure(num_clients, dropouts, degree, threshold)
    assert float(found) == pytest.approx(min(1, needless), rel=1e-6, abs=1e-300)


@pytest.mark.parametrize(("num_clients", "degree"), [(7, 2), (8, 4), (9, 4), (9, 6)])
def test_the_connectivity_bound_covers_every_set_of_removed_clients(num_clients: int, degree: int) -> None:
    """By enumeration: the share of sets whose removal leaves the ring graph in pieces is at most the bound."""
    graph = nx.hkn_harary_graph(degree, num_clients)
    for removed in range(num_clients - 1):
        sets = list(itertools.combinations(range(num_clients), removed))
        broken = sum(not nx.is_connected(graph.subgraph(set(graph) - set(gone))) for gone in sets)
        # a threshold above the degree leaves only the second term of the bound
        bound = security_failure(num_clients, removed, 0, degree, threshold=degree + 1)
        assert Fraction(broken, len(sets)) <= bound


@pytest.mark.parametrize(("colluding", "dropouts"), [(8, 6), (3, 9), (0, 12)])
def test_bounds_hold_in_simulation(colluding: int, dropouts: int) -> None:
    """The true failure rates, by drawing graphs, stay below both bounds (which are far from 1 here)."""
    num_clients, degree, trials = 40, 10, 1_000
    threshold = majority(degree)
    security = float(security_failure(num_clients, colluding, dropouts, degree, threshold))
    correctness = float(correctness_failure(num_clients, dropouts, degree, threshold))
    source, insecure, aborted = SeededBytes(shifted(9)), 0, 0
    corrupt, gone = set(range(colluding)), set(range(colluding, colluding + dropouts))
    for _ in range(trials):
        graph = harary_graph(range(num_clients), degree, source)
        honest = graph.subgraph(set(graph) - corrupt - gone)
        surrounded = any(len(corrupt & set(graph[client])) >= threshold for client in graph)
        insecure += surrounded or not nx.is_connected(honest)
        aborted += any(len(({client} | set(graph[client])) - gone) < threshold for client in graph)
    for failures, bound in ((insecure, security), (aborted, correctness)):
        # fewer failures than the bound allows are fine, more than its binomial quantile are not
        assert failures <= stats.binom(trials, min(bound, 1.0)).isf(1e-6)


@pytest.mark.parametrize(
    ("num_clients", "colluding", "dropouts"), [(100, 10, 10), (1000, 100, 100), (12, 2, 2), (2, 0, 0)]
)
def test_the_choice_meets_both_levels_and_a_smaller_degree_does_not(
    num_clients: int, colluding: int, dropouts: int
) -> None:
    chosen = choose_neighbourhood(num_clients, colluding, dropouts, security_bits=40, correctness_bits=30)

    def meets(degree: int, threshold: int) -> bool:
        return security_failure(num_clients, colluding, dropouts, degree, threshold) <= Fraction(
            1, 2**40
        ) and correctness_failure(num_clients, dropouts, degree, threshold) <= Fraction(1, 2**30)

    assert meets(chosen.num_neighbours, chosen.threshold)
    for degree in range(2, chosen.num_neighbours, 2):
        assert not any(meets(degree, threshold) for threshold in range(majority(degree), degree + 2))
    below = range(majority(chosen.num_neighbours), chosen.threshold)
    assert not any(meets(chosen.num_neighbours, threshold) for threshold in below)


def test_the_degree_grows_like_a_logarithm() -> None:
    degrees = [choose_neighbourhood(n, n // 10, n // 10).num_neighbours for n in (10**3, 10**4, 10**5)]
    assert degrees == sorted(degrees)
    assert degrees[-1] < 1.5 * degrees[0]


@pytest.mark.parametrize(("colluding", "dropouts"), [(9, 0), (0, 9), (5, 4), (0, 6), (-1, 0), (0, -1)])
def test_impossible_levels_are_refused(colluding: int, dropouts: int) -> None:
    with pytest.raises(ValueError, match=r"no graph|must leave two"):
        choose_neighbourhood(10, colluding, dropouts)


@pytest.mark.parametrize(("neighbours", "threshold"), [(4, 1), (4, 6), (4, 2), (5, 3), (3, 2)])
def test_thresholds_without_a_majority_of_holders_are_refused(neighbours: int, threshold: int) -> None:
    with pytest.raises(ValueError, match="threshold"):
        Neighbourhood(neighbours, threshold)


@pytest.mark.parametrize("neighbours", range(1, 12))
def test_majority_is_the_smallest_threshold_that_two_disjoint_groups_cannot_both_reach(neighbours: int) -> None:
    assert 2 * majority(neighbours) > neighbours + 1 >= 2 * (majority(neighbours) - 1)
    assert Neighbourhood(neighbours, majority(neighbours)).num_neighbours == neighbours


def test_complete_graphs() -> None:
    assert complete_neighbourhood(9) == Neighbourhood(8, 7)
    assert complete_neighbourhood(9, threshold=5) == Neighbourhood(8, 5)
    assert complete_neighbourhood(2) == Neighbourhood(1, 2)
    with pytest.raises(ValueError, match="two clients"):
        complete_neighbourhood(1)
