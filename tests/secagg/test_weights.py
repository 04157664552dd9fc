"""With hidden weights the server can compute Σ n_i and Σ n_i Δ_i, and nothing else about any n_i."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import lru_cache

import numpy as np
import pytest

from tests.secagg.rounds import parameters, parties, play_until
from tests.statistics import assert_counts, shifted
from wirelessfl.secagg import (
    FixedPoint,
    HiddenWeights,
    MaskedInput,
    MaskStream,
    PairwiseSeeds,
    PrfClient,
    PrfParameters,
    PrfRound,
    Ring,
    RoundResult,
    SeededBytes,
    Stage,
    complete_neighbourhood,
)

BITS, DIMENSION = 10, 31_999
RING = Ring(2)
PAIRS = [frozenset(pair) for pair in itertools.combinations(range(3), 2)]
ENCODING = HiddenWeights(FixedPoint(1.0, 0.5, BITS, 3), dimension=3, max_weight=100)


def weight_everywhere(weight: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """A vector whose every coordinate is the one that carries a client's n_i, so that one round shows its law."""
    (*_, carried) = ENCODING.encode(np.zeros(3), weight, np.random.default_rng(0))
    return np.full(DIMENSION + 1, carried, dtype=np.uint32)


@pytest.mark.parametrize("weights", [(7, 20, 73), (98, 1, 1)])
def test_the_masked_weight_of_one_client_is_uniform_and_their_sum_is_exact(weights: tuple[int, ...]) -> None:
    facts = parameters(complete_neighbourhood(3, 2), DIMENSION + 1, BITS)
    inputs = {name: weight_everywhere(weight) for name, weight in enumerate(weights)}
    server, clients = parties(facts, 3, shifted(31))
    messages = play_until(Stage.MASKED_INPUT, server, clients, inputs)
    seen = []
    for name, message in messages.items():
        reply = clients[name].answer(message, inputs[name])
        assert isinstance(reply, MaskedInput)
        seen.append(reply.values)
        server.receive(reply)
    # Any one of them, and any difference of two, says nothing.
    for vector in (*map(np.copy, seen), *(one - other for one, other in itertools.combinations(seen, 2))):
        Ring(BITS).reduce(vector)
        assert_counts(np.bincount(vector.astype(int) >> 6, minlength=16), np.full(16, 1 / 16))
    for name, message in {m.receiver: m for m in server.close_stage()}.items():  # type: ignore[union-attr]
        server.receive(clients[name].answer(message, inputs[name]))
    outcome = server.close_stage()
    assert isinstance(outcome, RoundResult)
    assert set(outcome.total.tolist()) == {sum(weights)}


@lru_cache
def seed_with_mask(mask: int, pair: frozenset[int]) -> bytes:
    """A seed of this pair whose mask under nonce 1 is ``mask`` in Z_4."""
    for attempt in itertools.count():
        seed = SeededBytes(attempt, *sorted(pair))(32)
        vector = RING.zeros(1)
        MaskStream(RING, 1).add(vector, seed, bytes(15) + b"\1")
        RING.reduce(vector)
        if vector[0] == mask:
            return seed
    raise AssertionError("unreachable")


def view(weights: tuple[int, ...], masks: tuple[int, ...]) -> tuple[int, ...]:
    """What three clients send, as `pairwise_prf` has it, where their pairs' masks are given."""
    facts, links = PrfParameters(b"8 bytes.", 1, RING), {name: bytes([name]) * 32 for name in range(3)}
    server, sent = PrfRound(facts, 1, links), []
    for start in server.start():
        client = PrfClient(facts, start.receiver, links[start.receiver], SeededBytes(1, start.receiver))
        others = [name for name in range(3) if name != client.name]
        pairs = [frozenset({client.name, other}) for other in others]
        seeds = b"".join(seed_with_mask(masks[PAIRS.index(pair)], pair) for pair in pairs)
        client.seeds = PairwiseSeeds(
            np.array(others, dtype=np.uint32), np.frombuffer(seeds, dtype=np.uint8).reshape(2, 32)
        )
        masked = client.mask_input(start, np.array([weights[client.name]], dtype=np.uint32))
        server.receive(masked)
        sent.append(int(masked.values[0]))
    outcome = server.close()
    assert isinstance(outcome, RoundResult) and outcome.total.tolist() == [sum(weights) % 4]
    return tuple(sent)


@pytest.mark.slow
def test_all_weights_of_one_sum_look_the_same_by_enumeration() -> None:
    """Over Z_4, every mask once: each view with the right sum equally often, whatever the single weights are."""
    for weights in itertools.product(range(4), repeat=3):
        if weights[2] > 1:  # two values of the third are enough, for half the time
            continue
        seen = Counter(view(weights, masks) for masks in itertools.product(range(4), repeat=3))
        possible = [each for each in itertools.product(range(4), repeat=3) if sum(each) % 4 == sum(weights) % 4]
        assert seen == Counter(dict.fromkeys(possible, 4))
