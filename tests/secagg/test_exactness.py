"""The sum is exact bit for bit for every set of dropouts at every stage, and aborts exactly where it must."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.secagg.rounds import STAGES, encoded_inputs, outcome_by_the_book, parameters, remembered_curve
from wirelessfl.secagg import (
    Neighbourhood,
    RingVector,
    RoundAborted,
    RoundParameters,
    SeededBytes,
    Stage,
    complete_neighbourhood,
    harary_graph,
    majority,
    rehearse,
)

SEED = 3


def check_round(facts: RoundParameters, inputs: Mapping[int, RingVector], silent_from: Mapping[int, Stage]) -> Stage:
    """Run a round and compare it with the book; where it ended."""
    advertised = [client for client in inputs if silent_from.get(client) != Stage.ADVERTISE_KEYS]
    neighbourhood = facts.neighbourhood
    stage, contributors = Stage.ADVERTISE_KEYS, frozenset[int]()
    if len(advertised) > 1:
        graph = harary_graph(advertised, neighbourhood.num_neighbours, SeededBytes(SEED, "server"))
        stage, contributors = outcome_by_the_book(graph, silent_from, neighbourhood.threshold)
    outcome = rehearse(facts, inputs, silent_from, SEED)
    if isinstance(outcome, RoundAborted):
        assert outcome.stage == stage, (silent_from, outcome)
        assert outcome.reason
    else:
        assert stage == Stage.FINISHED, (silent_from, stage)
        assert outcome.contributors == tuple(sorted(contributors))
        total = sum(inputs[client].astype(object) for client in contributors) % 2**facts.ring.bits
        assert outcome.total.tolist() == total.tolist()
    return stage


def check_all_dropouts(num_clients: int, neighbourhood: Neighbourhood) -> None:
    """Every client may fall silent from every stage on: 5**n rounds."""
    facts = parameters(neighbourhood, dimension=2, bits=9)
    inputs = encoded_inputs(num_clients, facts.ring, facts.dimension, SEED)
    with remembered_curve():
        ends = {
            check_round(facts, inputs, dict(enumerate(silent)))
            for silent in itertools.product(STAGES, repeat=num_clients)
        }
    assert ends == set(STAGES)  # every kind of ending was met


@pytest.mark.parametrize(
    ("num_clients", "threshold"),
    [(n, t) for n in (2, 3, 4) for t in range(majority(n - 1), n + 1)] + [pytest.param(5, 3, marks=pytest.mark.slow)],
)
def test_secagg_with_every_set_of_dropouts(num_clients: int, threshold: int) -> None:
    check_all_dropouts(num_clients, complete_neighbourhood(num_clients, threshold))


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [2, 3])
def test_secagg_plus_with_every_set_of_dropouts(threshold: int) -> None:
    check_all_dropouts(5, Neighbourhood(2, threshold))


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [4, 5, 6])
def test_secagg_with_every_set_of_dropouts_among_six(threshold: int) -> None:
    check_all_dropouts(6, complete_neighbourhood(6, threshold))


@pytest.mark.slow
@pytest.mark.parametrize(("degree", "threshold"), [(2, 2), (3, 3), (4, 3)])
def test_secagg_plus_with_every_set_of_dropouts_among_six(degree: int, threshold: int) -> None:
    check_all_dropouts(6, Neighbourhood(degree, threshold))


def test_lost_clients_whose_masks_are_in_no_input_need_no_recovery() -> None:
    """On a ring a, b, c, d, e, f: a and d never share keys, b and c share and vanish, e and f know neither."""
    facts = parameters(Neighbourhood(2, 2))
    graph = harary_graph(range(6), 2, SeededBytes(SEED, "server"))
    (a, b), (c, d) = nx.find_cycle(graph)[0], nx.find_cycle(graph)[2]
    silent_from = {a: Stage.SHARE_KEYS, b: Stage.MASKED_INPUT, c: Stage.MASKED_INPUT, d: Stage.SHARE_KEYS}
    inputs = encoded_inputs(6, facts.ring, facts.dimension, SEED)
    assert check_round(facts, inputs, silent_from) == Stage.FINISHED


@given(st.data())
@settings(max_examples=60)
def test_larger_rounds_with_random_dropouts(data: st.DataObject) -> None:
    num_clients = data.draw(st.integers(7, 16), "clients")
    degree = data.draw(st.integers(2, num_clients), "degree")
    threshold = data.draw(st.integers(majority(degree), degree + 1), "threshold")
    bits, dimension = data.draw(st.sampled_from([1, 8, 31, 32, 33, 64]), "bits"), data.draw(st.integers(1, 40), "d")
    facts = parameters(Neighbourhood(degree, threshold), dimension, bits)
    stay = st.sampled_from([*STAGES[:-1], *[Stage.FINISHED] * 12])
    silent_from = dict(enumerate(data.draw(st.lists(stay, min_size=num_clients, max_size=num_clients), "silent")))
    check_round(facts, encoded_inputs(num_clients, facts.ring, dimension, SEED), silent_from)


def test_a_round_is_reproducible_and_its_secrets_follow_the_seed() -> None:
    facts = parameters(complete_neighbourhood(4), dimension=50, bits=32)
    inputs = encoded_inputs(4, facts.ring, facts.dimension, SEED)
    one, two = (rehearse(facts, inputs, {2: Stage.MASKED_INPUT}, seed) for seed in (1, 2))
    assert not isinstance(one, RoundAborted)
    assert not isinstance(two, RoundAborted)
    assert np.array_equal(one.total, two.total)
