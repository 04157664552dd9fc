"""Rounds to test with: the parties, a cache for the slow curve, and the outcome by the book."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from unittest.mock import patch

import networkx as nx
import numpy as np

from wirelessfl.secagg import (
    KeyPair,
    Message,
    Ring,
    RingVector,
    RoundAborted,
    RoundParameters,
    RoundResult,
    SecAggClient,
    SecAggServer,
    SeededBytes,
    Stage,
    agree,
)
from wirelessfl.secagg.keys import check_order
from wirelessfl.secagg.protocol import Neighbourhood

SESSION = bytes(range(16))
STAGES = tuple(Stage)


def parameters(
    neighbourhood: Neighbourhood, dimension: int = 3, bits: int = 9, session: bytes = SESSION
) -> RoundParameters:
    return RoundParameters(session, dimension, Ring(bits), neighbourhood)


def encoded_inputs(num_clients: int, ring: Ring, dimension: int, seed: int) -> dict[int, RingVector]:
    """Uniform ring vectors, one for each client."""
    generator = np.random.default_rng(seed)
    return {
        client: generator.integers(0, ring.largest, dimension, dtype=ring.dtype.type, endpoint=True)
        for client in range(num_clients)
    }


def parties(facts: RoundParameters, num_clients: int, seed: int = 0) -> tuple[SecAggServer, dict[int, SecAggClient]]:
    """A server and clients that share link keys."""
    links = {name: SeededBytes(seed, "link", name)(32) for name in range(num_clients)}
    clients = {name: SecAggClient(facts, name, link, SeededBytes(seed, "client", name)) for name, link in links.items()}
    return SecAggServer(facts, links, SeededBytes(seed, "server")), clients


def advance(server: SecAggServer) -> dict[int, Message]:
    """Close the stage; the messages for the next one by receiver."""
    outcome = server.close_stage()
    assert not isinstance(outcome, RoundResult | RoundAborted), outcome
    return {message.receiver: message for message in outcome}


def play_until(
    stage: Stage, server: SecAggServer, clients: Mapping[int, SecAggClient], inputs: Mapping[int, RingVector]
) -> dict[int, Message]:
    """Let everybody answer every stage before ``stage``; the messages that ask for it, by receiver."""
    for client in clients.values():
        server.receive(client.advertise_keys())
    messages = advance(server)
    while server.stage < stage:
        for name, message in messages.items():
            server.receive(clients[name].answer(message, inputs[name]))
        messages = advance(server)
    return messages


@contextmanager
def remembered_curve() -> Iterator[None]:
    """Remember key pairs and agreements: rounds with one seed repeat the same curve operations thousands of times."""
    cached_agree = lru_cache(maxsize=None)(_agree_by_secret)

    def quick_agree(own: KeyPair, peer_public: bytes, context: bytes) -> bytes:
        return cached_agree(own.secret, peer_public, context)

    with (
        patch.object(KeyPair, "of", lru_cache(maxsize=None)(KeyPair.of)),
        patch("wirelessfl.secagg.client.agree", quick_agree),
        patch("wirelessfl.secagg.sharing.agree", quick_agree),
        patch("wirelessfl.secagg.messages.check_order", lru_cache(maxsize=None)(check_order)),
    ):
        yield


def _agree_by_secret(secret: bytes, peer_public: bytes, context: bytes) -> bytes:
    return agree(KeyPair.of(secret), peer_public, context)


def outcome_by_the_book(
    graph: nx.Graph, silent_from: Mapping[int, Stage], threshold: int
) -> tuple[Stage, frozenset[int]]:
    """Where a round ends (FINISHED: with a sum) and who is in the sum, from the protocol's definition alone.

    A_s are the clients that answered stage s. The round goes on while every client in A_s has t holders of its shares
    left, itself counted; once inputs are in, those in A_1 but not in A_2 whose masks are in somebody's input need t
    holders as well, and the inputs must not form several separate sums.
    """

    def answered(stage: Stage) -> frozenset[int]:
        return frozenset(client for client in graph if silent_from.get(client, Stage.FINISHED) > stage)

    def recoverable(owners: frozenset[int], holders: frozenset[int]) -> bool:
        return all(len(({owner} | set(graph[owner])) & holders) >= threshold for owner in owners)

    sharing, sending = answered(Stage.SHARE_KEYS), answered(Stage.MASKED_INPUT)
    lost = frozenset(client for client in sharing - sending if set(graph[client]) & sending)
    owners = {
        Stage.ADVERTISE_KEYS: frozenset(graph),
        Stage.SHARE_KEYS: sharing,
        Stage.MASKED_INPUT: sending | lost,
        Stage.UNMASK: sending | lost,
    }
    for stage, needed in owners.items():
        holders = answered(stage)
        if len(holders) < threshold or not recoverable(needed, holders):
            return stage, frozenset()
        if stage == Stage.MASKED_INPUT and len(_component(graph, sending)) < len(sending):
            return stage, frozenset()
    return Stage.FINISHED, sending


def _component(graph: nx.Graph, members: frozenset[int]) -> set[int]:
    """The members that can be reached from the first one through members only."""
    reached, frontier = set(), [min(members)]
    while frontier:
        client = frontier.pop()
        if client not in reached:
            reached.add(client)
            frontier.extend(set(graph[client]) & members)
    return reached
