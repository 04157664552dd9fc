"""`pairwise_prf`: everybody answers or nothing is learnt, and a nonce is used once."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.secagg.rounds import encoded_inputs
from tests.statistics import assert_counts, shifted
from wirelessfl.secagg import (
    SERVER,
    AlteredMessage,
    ForeignMessage,
    LateMessage,
    MalformedMessage,
    PairwiseSeeds,
    PrfClient,
    PrfEnrolment,
    PrfParameters,
    PrfRound,
    ReplayedMessage,
    Ring,
    RingVector,
    RoundAborted,
    RoundResult,
    RoundStart,
    SeededBytes,
    Stage,
)

RUN = b"run 0001"


def facts_of(dimension: int = 3, bits: int = 9) -> PrfParameters:
    return PrfParameters(RUN, dimension, Ring(bits))


def links_of(clients: range) -> dict[int, bytes]:
    return {name: SeededBytes(0, "link", name)(32) for name in clients}


def enrolled(facts: PrfParameters, num_clients: int, seed: int = 0) -> dict[int, PrfClient]:
    """Clients that have agreed on their seeds."""
    links = links_of(range(num_clients))
    clients = {name: PrfClient(facts, name, link, SeededBytes(seed, "client", name)) for name, link in links.items()}
    enrolment = PrfEnrolment(facts, links)
    for client in clients.values():
        enrolment.receive(client.advertise_keys())
    assert not enrolment.awaited
    for message in enrolment.close():
        clients[message.receiver].agree_seeds(message)
    return clients


def attempt(
    facts: PrfParameters, clients: dict[int, PrfClient], nonce: int, inputs: dict[int, RingVector], answering: set[int]
) -> RoundResult | RoundAborted:
    """One attempt among the clients in ``inputs``, of whom only some answer."""
    links = links_of(range(len(clients)))
    server = PrfRound(facts, nonce, {name: links[name] for name in inputs})
    for start in server.start():
        if start.receiver in answering:
            server.receive(clients[start.receiver].mask_input(start, inputs[start.receiver]))
    return server.close()


@pytest.mark.parametrize("num_clients", [2, 3, 4, 5, 6])
def test_every_set_of_answers(num_clients: int) -> None:
    """The exact sum if all answer, else the missing by name; each attempt under a fresh nonce."""
    facts = facts_of()
    clients, inputs = enrolled(facts, num_clients), encoded_inputs(num_clients, facts.ring, facts.dimension, seed=1)
    everybody = set(range(num_clients))
    subsets = itertools.chain.from_iterable(itertools.combinations(everybody, k) for k in range(num_clients + 1))
    for nonce, answering in enumerate(map(set, subsets), start=1):
        outcome = attempt(facts, clients, nonce, inputs, answering)
        if answering == everybody:
            assert isinstance(outcome, RoundResult)
            total = sum(vector.astype(object) for vector in inputs.values()) % 2**facts.ring.bits
            assert outcome.total.tolist() == total.tolist()
        else:
            missing = ", ".join(str(name) for name in sorted(everybody - answering))
            assert isinstance(outcome, RoundAborted)
            assert outcome.stage == Stage.MASKED_INPUT
            assert outcome.reason.endswith(f"missing: {missing}")


@given(st.data())
@settings(max_examples=25)
def test_any_participants_in_any_round(data: st.DataObject) -> None:
    facts = facts_of(data.draw(st.integers(1, 30)), data.draw(st.sampled_from([1, 17, 32, 40, 64])))
    num_clients = data.draw(st.integers(2, 9))
    clients, inputs = enrolled(facts, num_clients), encoded_inputs(num_clients, facts.ring, facts.dimension, seed=1)
    nonces = data.draw(st.lists(st.integers(1, 2**64 - 1), min_size=1, max_size=3, unique=True))
    for nonce in sorted(nonces):
        chosen = data.draw(st.sets(st.integers(0, num_clients - 1), min_size=2))
        outcome = attempt(facts, clients, nonce, {name: inputs[name] for name in chosen}, chosen)
        assert isinstance(outcome, RoundResult)
        assert outcome.contributors == tuple(sorted(chosen))
        total = sum(inputs[name].astype(object) for name in chosen) % 2**facts.ring.bits
        assert outcome.total.tolist() == total.tolist()


def started(facts: PrfParameters, nonce: int, participants: range, receiver: int) -> RoundStart:
    server = PrfRound(facts, nonce, links_of(participants))
    return next(message for message in server.start() if message.receiver == receiver)


def test_a_nonce_is_used_once_and_a_retry_needs_a_fresh_one() -> None:
    facts = facts_of()
    clients, vector = enrolled(facts, 4), np.array([1, 2, 3], dtype=np.uint32)
    clients[1].mask_input(started(facts, 5, range(4), 1), vector)
    for stale in (5, 4, 1):
        for participants in (range(4), range(3)):
            with pytest.raises(ReplayedMessage, match="not fresh"):
                clients[1].mask_input(started(facts, stale, participants, 1), vector)
    clients[1].mask_input(started(facts, 6, range(3), 1), vector)


def test_one_nonce_with_two_sets_of_participants_would_reveal_a_mask() -> None:
    """Why: the difference is the mask towards the client left out, and two such masks unmask an input."""
    facts = facts_of(dimension=40, bits=32)
    clients, vector = enrolled(facts, 3), np.arange(40, dtype=np.uint32)
    everybody = started(facts, 1, range(3), 1)
    masked = []
    for participants in (everybody, started(facts, 1, range(2), 1), started(facts, 1, range(1, 3), 1)):
        seeds = clients[1].seeds
        assert seeds is not None
        clients[1].seeds = replace(seeds, last_nonce=0)  # a client that forgets what it used
        masked.append(clients[1].mask_input(participants, vector).values)
    towards_two, towards_zero = masked[0] - masked[1], masked[0] - masked[2]
    assert np.array_equal(masked[0] - towards_two - towards_zero, vector)


def test_seeds_survive_being_stored() -> None:
    facts = facts_of()
    clients, inputs = enrolled(facts, 3), encoded_inputs(3, facts.ring, facts.dimension, seed=1)
    attempt(facts, clients, 1, inputs, {0, 1, 2})
    stored = {name: client.seeds for name, client in clients.items()}
    resumed = {name: PrfClient(facts, name, link, SeededBytes(99, name)) for name, link in links_of(range(3)).items()}
    for name, seeds in stored.items():
        assert seeds is not None
        assert seeds.last_nonce == 1
        resumed[name].seeds = PairwiseSeeds(seeds.peers.copy(), seeds.seeds.copy(), seeds.last_nonce)
    assert isinstance(attempt(facts, resumed, 2, inputs, {0, 1, 2}), RoundResult)


def test_pairs_share_one_seed_and_nobody_else_does() -> None:
    clients = enrolled(facts_of(), 4)
    seen: dict[frozenset[int], set[bytes]] = {}
    for name, client in clients.items():
        assert client.seeds is not None
        for peer, seed in zip(client.seeds.peers.tolist(), client.seeds.seeds, strict=True):
            seen.setdefault(frozenset({name, peer}), set()).add(seed.tobytes())
    assert len(seen) == 6
    assert all(len(seeds) == 1 for seeds in seen.values())
    assert len(set.union(*seen.values())) == 6


def test_a_masked_input_is_uniform_and_fresh_under_every_nonce() -> None:
    facts = facts_of(dimension=32_000, bits=4)
    clients, vector = enrolled(facts, 3, seed=shifted(3)), np.full(32_000, 9, dtype=np.uint32)
    one, two = (clients[1].mask_input(started(facts, nonce, range(3), 1), vector).values for nonce in (1, 2))
    difference = one - two
    facts.ring.reduce(difference)
    for seen in (one, two, difference):
        assert_counts(np.bincount(seen.astype(int), minlength=16), np.full(16, 1 / 16))


def test_clients_refuse_rounds_that_do_not_fit() -> None:
    facts, vector = facts_of(), np.zeros(3, dtype=np.uint32)
    client = enrolled(facts, 4)[1]
    start, link = started(facts, 1, range(4), 1), links_of(range(4))[1]
    with pytest.raises(AlteredMessage):
        client.mask_input(replace(start, participants=start.participants[:-1]), vector)
    other_run = PrfParameters(b"run 0002", 3, Ring(9))
    for foreign in (started(other_run, 1, range(4), 1), started(facts, 1, range(4), 2), replace(start, session=RUN)):
        with pytest.raises(ForeignMessage):
            client.mask_input(foreign.sealed(link), vector)
    for participants in ([1], [0, 2], [1, 0], [0, 1, 7], []):
        wrong = replace(start, participants=np.array(participants, dtype=np.uint32)).sealed(link)
        with pytest.raises(MalformedMessage):
            client.mask_input(wrong, vector)
    with pytest.raises(ValueError, match="expected 3"):
        client.mask_input(start, np.zeros(4, dtype=np.uint32))
    client.mask_input(start, vector)


def test_the_enrolment_refuses_what_does_not_fit() -> None:
    facts, links = facts_of(), links_of(range(4))
    clients = {name: PrfClient(facts, name, link, SeededBytes(0, name)) for name, link in links.items()}
    enrolment = PrfEnrolment(facts, links)
    first = clients[0].advertise_keys()
    with pytest.raises(AlteredMessage):
        enrolment.receive(replace(first, keys=first.keys ^ np.uint8(1)))
    with pytest.raises(MalformedMessage):
        enrolment.receive(replace(first, keys=first.keys.repeat(2, axis=0)).sealed(links[0]))
    enrolment.receive(first)
    with pytest.raises(ReplayedMessage):
        enrolment.receive(first)
    for name in (1, 2):
        enrolment.receive(clients[name].advertise_keys())
    messages = {message.receiver: message for message in enrolment.close()}
    with pytest.raises(LateMessage):
        enrolment.receive(clients[3].advertise_keys())
    assert sorted(messages) == [0, 1, 2]
    start = replace(started(facts, 1, range(3), 0))
    with pytest.raises(MalformedMessage, match="agreed"):
        clients[0].mask_input(start, np.zeros(3, dtype=np.uint32))
    itself = replace(messages[0], peers=np.array([0, 1], dtype=np.uint32)).sealed(links[0])
    short = replace(messages[0], keys=messages[0].keys[:1]).sealed(links[0])
    for wrong in (itself, short):
        with pytest.raises(MalformedMessage):
            clients[0].agree_seeds(wrong)
    clients[0].agree_seeds(messages[0])
    with pytest.raises(ReplayedMessage):
        clients[0].agree_seeds(messages[0])


def test_the_round_refuses_what_does_not_fit() -> None:
    facts = facts_of()
    clients, vector, links = enrolled(facts, 3), np.zeros(3, dtype=np.uint32), links_of(range(3))
    server = PrfRound(facts, 1, links)
    replies = {m.receiver: clients[m.receiver].mask_input(m, vector) for m in server.start()}
    with pytest.raises(AlteredMessage):
        server.receive(replace(replies[0], values=replies[0].values ^ np.uint32(1)))
    with pytest.raises(ForeignMessage):
        server.receive(replace(replies[0], sender=SERVER))
    with pytest.raises(MalformedMessage):
        server.receive(replace(replies[0], values=replies[0].values[:2]).sealed(links[0]))
    server.receive(replies[0])
    with pytest.raises(ReplayedMessage):
        server.receive(replies[0])
    assert server.awaited == {1, 2}
    server.receive(replies[1])
    assert isinstance(server.close(), RoundAborted)
    with pytest.raises(LateMessage):
        server.receive(replies[2])
    with pytest.raises(ForeignMessage):  # an answer to the failed attempt has no place in the next one
        PrfRound(facts, 2, links).receive(replies[2])


def test_impossible_parameters_are_refused() -> None:
    for run, dimension in ((b"long name of a run", 3), (RUN, 0)):
        with pytest.raises(ValueError, match=r"bytes|coordinate"):
            PrfParameters(run, dimension, Ring(8))
    with pytest.raises(ValueError, match="nonce"):
        PrfRound(facts_of(), 0, links_of(range(3)))
    with pytest.raises(ValueError, match="at least two"):
        PrfRound(facts_of(), 1, links_of(range(1)))
