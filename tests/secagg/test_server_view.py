"""What the server sees of one client: uniform ring elements, and never both secrets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.secagg.rounds import STAGES, encoded_inputs, parameters, parties, play_until
from tests.statistics import assert_counts, shifted
from wirelessfl.secagg import (
    MaskedInput,
    Message,
    Neighbourhood,
    Ring,
    RingVector,
    RoundAborted,
    RoundResult,
    SecAggClient,
    Stage,
    UnmaskRequest,
    agree,
    complete_neighbourhood,
    majority,
)
from wirelessfl.secagg.keys import MaskStream, pair_context

BITS, DIMENSION = 4, 32_000
CELLS = 2**BITS


def assert_uniform(vector: RingVector) -> None:
    assert_counts(np.bincount(vector.astype(int), minlength=CELLS), np.full(CELLS, 1 / CELLS))


def masked_vector(client: int, seed: int, value: int = 3) -> tuple[RingVector, dict[int, SecAggClient]]:
    """One client's masked input, of a constant vector, in a round of four; and the clients."""
    facts = parameters(complete_neighbourhood(4, 3), DIMENSION, BITS)
    inputs = {name: np.full(DIMENSION, value, dtype=np.uint32) for name in range(4)}
    server, clients = parties(facts, 4, shifted(seed))
    messages = play_until(Stage.MASKED_INPUT, server, clients, inputs)
    reply = clients[client].answer(messages[client], inputs[client])
    assert isinstance(reply, MaskedInput)
    return reply.values, clients


def without_pairwise_masks(vector: RingVector, client: int, clients: dict[int, SecAggClient]) -> RingVector:
    """What is left once the server has reconstructed this client's mask key, as if it had dropped out."""
    vector, masks = vector.copy(), MaskStream(Ring(BITS), DIMENSION)
    for peer in set(clients) - {client}:
        key = agree(
            clients[client]._mask,
            clients[peer]._mask.public,
            pair_context(b"mask", clients[client].parameters.session, client, peer),
        )
        masks.add_pairwise(vector, peer, client, key)
    Ring(BITS).reduce(vector)
    return vector


def without_self_mask(vector: RingVector, client: int, clients: dict[int, SecAggClient]) -> RingVector:
    vector = vector.copy()
    MaskStream(Ring(BITS), DIMENSION).add(vector, clients[client]._self_seed, negative=True)
    Ring(BITS).reduce(vector)
    return vector


@pytest.mark.parametrize("client", [0, 2, 3])
def test_one_masked_input_is_uniform(client: int) -> None:
    masked, _ = masked_vector(client, seed=20)
    assert_uniform(masked)


def test_a_late_masked_input_stays_hidden_behind_its_self_mask() -> None:
    """The server has recovered the mask key of a client it thought lost; then its input comes in after all."""
    masked, clients = masked_vector(1, seed=21)
    rest = without_pairwise_masks(masked, 1, clients)
    assert_uniform(rest)
    assert set(without_self_mask(rest, 1, clients).tolist()) == {3}  # both secrets together would show the input


def test_one_input_without_its_self_mask_is_still_uniform() -> None:
    masked, clients = masked_vector(1, seed=22)
    assert_uniform(without_self_mask(masked, 1, clients))


def test_the_same_input_looks_fresh_in_every_round() -> None:
    one, _ = masked_vector(1, seed=23)
    two, _ = masked_vector(1, seed=24)
    difference = one - two
    Ring(BITS).reduce(difference)
    assert_uniform(difference)


def test_the_uniformity_test_notices_a_missing_mask() -> None:
    plain = np.full(DIMENSION, 3, dtype=np.uint32)
    plain[: DIMENSION // 2] = 7
    with pytest.raises(AssertionError, match="chi-square"):
        assert_uniform(plain)


@given(st.data())
@settings(max_examples=40)
def test_the_server_never_asks_for_both_secrets_of_a_client(data: st.DataObject) -> None:
    """Neither from one client nor from two, whoever drops out when."""
    num_clients = data.draw(st.integers(4, 10))
    degree = data.draw(st.integers(2, num_clients - 1))
    facts = parameters(Neighbourhood(degree, majority(degree)))
    inputs = encoded_inputs(num_clients, facts.ring, facts.dimension, seed=2)
    silent = st.sampled_from([*STAGES, *[Stage.FINISHED] * 8])
    silent_from = data.draw(st.lists(silent, min_size=num_clients, max_size=num_clients))
    server, clients = parties(facts, num_clients)
    for name, client in clients.items():
        if silent_from[name] > Stage.ADVERTISE_KEYS:
            server.receive(client.advertise_keys())
    requests: list[Message] = []
    while not isinstance(outcome := server.close_stage(), RoundAborted | RoundResult):
        for message in outcome:
            if silent_from[message.receiver] > server.stage:
                requests.append(message)
                server.receive(clients[message.receiver].answer(message, inputs[message.receiver]))
    asked = [message for message in requests if isinstance(message, UnmaskRequest)]
    alive = {int(name) for message in asked for name in message.alive}
    dropped = {int(name) for message in asked for name in message.dropped}
    assert not alive & dropped
    assert all(message.receiver in message.alive for message in asked)
