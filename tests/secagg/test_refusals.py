"""What server and clients refuse, and that a refusal changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from tests.secagg.rounds import advance, encoded_inputs, parameters, parties, play_until
from wirelessfl.secagg import (
    SERVER,
    AlteredMessage,
    EncryptedShares,
    ForbiddenRequest,
    ForeignMessage,
    LateMessage,
    MalformedMessage,
    MaskedInput,
    Message,
    MessageRefused,
    Neighbourhood,
    NeighbourKeys,
    ReplayedMessage,
    Ring,
    RoundAborted,
    RoundParameters,
    RoundResult,
    SeededBytes,
    ShareDelivery,
    Stage,
    UnmaskRequest,
    UnmaskShares,
    complete_neighbourhood,
    rehearse,
)

FACTS = parameters(complete_neighbourhood(5, 3))
INPUTS = encoded_inputs(5, FACTS.ring, FACTS.dimension, seed=1)
TOTAL = sum(vector.astype(object) for vector in INPUTS.values()) % 2**FACTS.ring.bits
STEPS = [Stage.SHARE_KEYS, Stage.MASKED_INPUT, Stage.UNMASK]


def link_of(client: int) -> bytes:
    return SeededBytes(0, "link", client)(32)


def tampered(message: Message) -> list[Message]:
    """The message with one bit flipped in each of its parts, and with other ends."""
    copies: list[Message] = [
        replace(message, tag=bytes([message.tag[0] ^ 1]) + message.tag[1:]),
        replace(message, tag=b""),
        replace(message, tag=message.tag[:-1]),
    ]
    for field in fields(message):
        part: Any = getattr(message, field.name)
        if isinstance(part, np.ndarray) and part.size:
            flipped = part.copy()
            flipped.reshape(-1)[-1] ^= 1
            for wrong in (flipped, part[:-1]):
                changes: dict[str, Any] = {field.name: wrong}
                copies.append(replace(message, **changes))
    return copies


def finish(server: Any, clients: Any, messages: dict[int, Message]) -> list[int]:
    """Play the round from here to its end."""
    while True:
        for name, message in messages.items():
            server.receive(clients[name].answer(message, INPUTS[name]))
        outcome = server.close_stage()
        if isinstance(outcome, RoundResult):
            total: list[int] = outcome.total.tolist()
            return total
        assert not isinstance(outcome, RoundAborted)
        messages = {message.receiver: message for message in outcome}


@pytest.mark.parametrize("stage", STEPS)
def test_clients_refuse_altered_messages_and_go_on_with_the_right_one(stage: Stage) -> None:
    server, clients = parties(FACTS, 5)
    messages = play_until(stage, server, clients, INPUTS)
    copies = tampered(messages[2])
    assert len(copies) > 3
    for copy in copies:
        with pytest.raises(AlteredMessage):
            clients[2].answer(copy, INPUTS[2])
    assert finish(server, clients, messages) == TOTAL.tolist()


@pytest.mark.parametrize("stage", STEPS)
def test_the_server_refuses_altered_messages_and_goes_on_with_the_right_one(stage: Stage) -> None:
    server, clients = parties(FACTS, 5)
    messages = play_until(stage, server, clients, INPUTS)
    reply = clients[2].answer(messages.pop(2), INPUTS[2])
    for copy in tampered(reply):
        with pytest.raises(AlteredMessage):
            server.receive(copy)
    assert 2 in server.awaited
    server.receive(reply)
    assert 2 not in server.awaited
    assert finish(server, clients, messages) == TOTAL.tolist()


@pytest.mark.parametrize("stage", STEPS)
def test_messages_of_other_sessions_ends_and_senders_are_foreign(stage: Stage) -> None:
    server, clients = parties(FACTS, 5)
    messages = play_until(stage, server, clients, INPUTS)
    for wrong in (
        replace(messages[2], session=bytes(16)),
        replace(messages[2], receiver=3),
        replace(messages[2], sender=3),
        messages[3],  # the server's own message for somebody else
    ):
        with pytest.raises(ForeignMessage):
            clients[2].answer(wrong, INPUTS[2])
    reply = clients[2].answer(messages[2], INPUTS[2])
    for wrong in (
        replace(reply, session=bytes(16)),
        replace(reply, receiver=3),
        replace(reply, sender=77),
        replace(reply, sender=SERVER),
        messages[3],  # sent back
    ):
        with pytest.raises(ForeignMessage):
            server.receive(wrong)
    with pytest.raises(AlteredMessage):  # somebody else's words under one's own name and key
        server.receive(replace(reply, sender=3))


def test_a_whole_round_recorded_earlier_is_foreign_to_the_next() -> None:
    recorded = parties(parameters(complete_neighbourhood(5, 3), session=b"yesterday's roun"), 5)[1][2].advertise_keys()
    server, _ = parties(FACTS, 5)
    with pytest.raises(ForeignMessage):
        server.receive(recorded)


@pytest.mark.parametrize("stage", STEPS)
def test_replayed_messages_are_refused_on_both_sides(stage: Stage) -> None:
    server, clients = parties(FACTS, 5)
    messages = play_until(stage, server, clients, INPUTS)
    reply = clients[2].answer(messages[2], INPUTS[2])
    with pytest.raises(ReplayedMessage):
        clients[2].answer(messages[2], INPUTS[2])
    server.receive(reply)
    with pytest.raises(ReplayedMessage):
        server.receive(reply)
    del messages[2]
    for name, message in messages.items():
        server.receive(clients[name].answer(message, INPUTS[name]))
    server.close_stage()
    with pytest.raises(ReplayedMessage):
        server.receive(reply)


def test_keys_are_advertised_once() -> None:
    server, clients = parties(FACTS, 5)
    advertisement = clients[0].advertise_keys()
    server.receive(advertisement)
    with pytest.raises(ReplayedMessage):
        clients[0].advertise_keys()
    with pytest.raises(ReplayedMessage):
        server.receive(advertisement)


@pytest.mark.parametrize("stage", STEPS)
def test_late_messages_are_refused_and_change_nothing(stage: Stage) -> None:
    server, clients = parties(FACTS, 5)
    messages = play_until(stage, server, clients, INPUTS)
    late = clients[2].answer(messages.pop(2), INPUTS[2])
    for name, message in messages.items():
        server.receive(clients[name].answer(message, INPUTS[name]))
    outcome = server.close_stage()
    with pytest.raises(LateMessage):
        server.receive(late)
    contributors = set(range(5)) if stage == Stage.UNMASK else {0, 1, 3, 4}
    expected = sum(INPUTS[name].astype(object) for name in contributors) % 2**FACTS.ring.bits
    if not isinstance(outcome, RoundResult):
        assert not isinstance(outcome, RoundAborted)
        assert finish(server, clients, {message.receiver: message for message in outcome}) == expected.tolist()
    else:
        assert outcome.total.tolist() == expected.tolist()


def test_a_client_that_missed_a_stage_stays_out() -> None:
    server, clients = parties(FACTS, 5)
    messages = play_until(Stage.SHARE_KEYS, server, clients, INPUTS)
    for name in (0, 1, 3, 4):
        server.receive(clients[name].answer(messages[name], INPUTS[name]))
    advance(server)
    forged = MaskedInput(
        session=FACTS.session, sender=2, receiver=SERVER, values=INPUTS[2], bits_per_element=FACTS.ring.bits
    ).sealed(link_of(2))
    with pytest.raises(LateMessage, match="dropped out"):
        server.receive(forged)


def test_steps_cannot_be_skipped() -> None:
    server, clients = parties(FACTS, 5)
    messages = play_until(Stage.SHARE_KEYS, server, clients, INPUTS)
    early = UnmaskRequest(
        session=FACTS.session,
        sender=SERVER,
        receiver=2,
        alive=np.arange(5, dtype=np.uint32),
        dropped=np.empty(0, dtype=np.uint32),
    ).sealed(link_of(2))
    with pytest.raises(MalformedMessage, match="not yet"):
        clients[2].unmask(early)
    ahead = MaskedInput(
        session=FACTS.session, sender=2, receiver=SERVER, values=INPUTS[2], bits_per_element=FACTS.ring.bits
    ).sealed(link_of(2))
    with pytest.raises(MalformedMessage, match="before being asked"):
        server.receive(ahead)
    assert finish(server, clients, messages) == TOTAL.tolist()


def test_a_share_altered_by_the_relay_is_refused() -> None:
    """The server can seal what it likes towards a client, but not what another client encrypted."""
    server, clients = parties(FACTS, 5)
    delivery = play_until(Stage.MASKED_INPUT, server, clients, INPUTS)[2]
    assert isinstance(delivery, ShareDelivery)
    flipped, swapped = delivery.ciphertexts.copy(), delivery.ciphertexts[[1, 0, 2, 3]]
    flipped[1, 5] ^= 1
    for ciphertexts in (flipped, swapped):
        with pytest.raises(AlteredMessage, match="share of"):
            clients[2].mask_input(replace(delivery, ciphertexts=ciphertexts).sealed(link_of(2)), INPUTS[2])
    clients[2].mask_input(delivery, INPUTS[2])


def both_secrets(request: UnmaskRequest) -> UnmaskRequest:
    return replace(request, dropped=request.alive[:1])


def own_mask_key(request: UnmaskRequest) -> UnmaskRequest:
    mine = request.alive == request.receiver
    return replace(request, alive=request.alive[~mine], dropped=request.alive[mine])


@pytest.mark.parametrize("forbidden", [both_secrets, own_mask_key])
def test_clients_never_help_to_learn_both_secrets(forbidden: Callable[[UnmaskRequest], UnmaskRequest]) -> None:
    server, clients = parties(FACTS, 5)
    messages = play_until(Stage.UNMASK, server, clients, INPUTS)
    request = messages[2]
    assert isinstance(request, UnmaskRequest)
    with pytest.raises(ForbiddenRequest):
        clients[2].unmask(forbidden(request).sealed(link_of(2)))
    assert finish(server, clients, messages) == TOTAL.tolist()


def nobody_named(request: UnmaskRequest) -> UnmaskRequest:
    return replace(request, alive=request.alive[request.alive == request.receiver])


def named_twice(request: UnmaskRequest) -> UnmaskRequest:
    return replace(request, alive=np.append(request.alive, request.alive[0]))


def stranger_named(request: UnmaskRequest) -> UnmaskRequest:
    return replace(request, dropped=np.array([9], dtype=np.uint32))


def too_few_alive(request: UnmaskRequest) -> UnmaskRequest:
    return replace(request, alive=request.alive[[0, 2]], dropped=request.alive[[1, 3, 4]])


@pytest.mark.parametrize("malformed", [nobody_named, named_twice, stranger_named, too_few_alive])
def test_clients_refuse_unmask_requests_that_do_not_fit(malformed: Callable[[UnmaskRequest], UnmaskRequest]) -> None:
    server, clients = parties(FACTS, 5)
    request = play_until(Stage.UNMASK, server, clients, INPUTS)[2]
    assert isinstance(request, UnmaskRequest)
    with pytest.raises(MalformedMessage):
        clients[2].unmask(malformed(request).sealed(link_of(2)))


def test_clients_refuse_neighbourhoods_that_do_not_fit() -> None:
    server, clients = parties(FACTS, 5)
    message = play_until(Stage.SHARE_KEYS, server, clients, INPUTS)[2]
    assert isinstance(message, NeighbourKeys)
    small_order = message.keys.copy()
    small_order[0] = 0
    wrong: list[NeighbourKeys] = [
        replace(message, peers=message.peers[::-1]),
        replace(message, peers=np.array([0, 1, 2, 3], dtype=np.uint32)),  # itself
        replace(message, peers=message.peers.astype(np.int64)),
        replace(message, peers=message.peers[:1], keys=message.keys[:1]),  # fewer than t holders
        replace(message, peers=np.arange(3, 8, dtype=np.uint32), keys=message.keys[[0, 1, 2, 3, 0]]),  # no majority
        replace(message, keys=message.keys[:3]),
        replace(message, keys=message.keys.astype(np.int16)),
        replace(message, keys=small_order),
    ]
    for copy in wrong:
        with pytest.raises(MalformedMessage):
            clients[2].share_keys(copy.sealed(link_of(2)))
    assert clients[2].stage == Stage.SHARE_KEYS
    clients[2].share_keys(message)


def test_clients_refuse_deliveries_that_do_not_fit() -> None:
    server, clients = parties(FACTS, 5)
    message = play_until(Stage.MASKED_INPUT, server, clients, INPUTS)[2]
    assert isinstance(message, ShareDelivery)
    wrong: list[ShareDelivery] = [
        replace(message, peers=message.peers[:1], ciphertexts=message.ciphertexts[:1]),
        replace(message, peers=np.array([0, 1, 3, 9], dtype=np.uint32)),
        replace(message, peers=np.array([0, 0, 1, 3], dtype=np.uint32)),
        replace(message, ciphertexts=message.ciphertexts[:, :-1]),
    ]
    for copy in wrong:
        with pytest.raises(MalformedMessage):
            clients[2].mask_input(copy.sealed(link_of(2)), INPUTS[2])
    with pytest.raises(ValueError, match="fit the ring"):
        clients[2].mask_input(message, INPUTS[2] + np.uint32(2**FACTS.ring.bits))
    assert clients[2].stage == Stage.MASKED_INPUT
    clients[2].mask_input(message, INPUTS[2])


def test_the_server_refuses_content_that_does_not_fit() -> None:
    server, clients = parties(FACTS, 5)
    advertisement = clients[2].advertise_keys()
    with pytest.raises(MalformedMessage):
        server.receive(replace(advertisement, keys=advertisement.keys[:1]).sealed(link_of(2)))
    server.receive(advertisement)
    del clients[2]
    for client in clients.values():
        server.receive(client.advertise_keys())
    shares = clients[3].share_keys(advance(server)[3])  # type: ignore[arg-type]
    assert isinstance(shares, EncryptedShares)
    for wrong in (
        replace(shares, peers=shares.peers[::-1]),
        replace(shares, peers=shares.peers[1:], ciphertexts=shares.ciphertexts[1:]),
        replace(shares, ciphertexts=shares.ciphertexts[:, 1:]),
    ):
        with pytest.raises(MalformedMessage):
            server.receive(wrong.sealed(link_of(3)))
    server.receive(shares)


def test_the_server_refuses_masked_inputs_and_shares_that_do_not_fit() -> None:
    server, clients = parties(FACTS, 5)
    messages = play_until(Stage.MASKED_INPUT, server, clients, INPUTS)
    masked = clients[2].answer(messages.pop(2), INPUTS[2])
    assert isinstance(masked, MaskedInput)
    for values in (masked.values[:-1], masked.values.astype(np.uint64), masked.values | np.uint32(2**FACTS.ring.bits)):
        with pytest.raises(MalformedMessage, match="masked input"):
            server.receive(replace(masked, values=values).sealed(link_of(2)))
    server.receive(masked)
    for name, message in messages.items():
        server.receive(clients[name].answer(message, INPUTS[name]))
    messages = advance(server)
    shares = clients[2].answer(messages.pop(2), INPUTS[2])
    assert isinstance(shares, UnmaskShares)
    beyond = shares.shares.copy()
    beyond[0, 0] = 2**31 - 1
    for wrong in (
        replace(shares, shares=beyond),
        replace(shares, shares=shares.shares[:, :-1]),
        replace(shares, owners=shares.owners[::-1]),
    ):
        with pytest.raises(MalformedMessage):
            server.receive(wrong.sealed(link_of(2)))
    server.receive(shares)
    assert finish(server, clients, messages) == TOTAL.tolist()


def test_wrong_shares_of_a_mask_key_abort_the_round() -> None:
    """An authentic client that lies about the dropped client's mask key: the advertised public key shows it."""
    server, clients = parties(FACTS, 5)
    messages = play_until(Stage.MASKED_INPUT, server, clients, INPUTS)
    del messages[4]
    for name, message in messages.items():
        server.receive(clients[name].answer(message, INPUTS[name]))
    for name, message in advance(server).items():
        reply = clients[name].answer(message, INPUTS[name])
        assert isinstance(reply, UnmaskShares)
        if name == 0:
            lie = reply.shares.copy()
            lie[list(reply.owners).index(4), 0] ^= 2**10  # not among the low three bits, which X25519 ignores
            reply = replace(reply, shares=lie).sealed(link_of(0))
        server.receive(reply)
    outcome = server.close_stage()
    assert isinstance(outcome, RoundAborted)
    assert outcome.stage == Stage.UNMASK
    assert "shares" in outcome.reason


def test_a_finished_round_awaits_nobody_and_cannot_be_closed_again() -> None:
    server, clients = parties(FACTS, 5)
    finish(server, clients, play_until(Stage.SHARE_KEYS, server, clients, INPUTS))
    assert server.stage == Stage.FINISHED
    assert not server.awaited
    with pytest.raises(ValueError, match="over"):
        server.close_stage()


@pytest.mark.parametrize("stage", [Stage.ADVERTISE_KEYS, *STEPS])
def test_below_the_threshold_the_round_aborts_and_says_why(stage: Stage) -> None:
    outcome = rehearse(FACTS, INPUTS, dict.fromkeys([0, 2, 4], stage), seed=0)
    assert outcome == RoundAborted(stage, "2 clients are left, the threshold is 3")


def test_separated_survivors_abort_the_round() -> None:
    """On a ring of eight, two opposite clients that leave cut the survivors' graph in two."""
    facts = parameters(Neighbourhood(2, 2))
    server, clients = parties(facts, 8)
    inputs = encoded_inputs(8, facts.ring, facts.dimension, seed=1)
    messages = play_until(Stage.MASKED_INPUT, server, clients, inputs)
    start = messages[0]
    assert isinstance(start, ShareDelivery)
    ring, previous = [0], -1
    while len(ring) < 8:
        delivery = messages[ring[-1]]
        assert isinstance(delivery, ShareDelivery)
        ring.append(next(peer for peer in delivery.peers.tolist() if peer not in (previous, *ring)))
    for name in set(range(8)) - {ring[0], ring[4]}:
        server.receive(clients[name].answer(messages[name], inputs[name]))
    outcome = server.close_stage()
    assert isinstance(outcome, RoundAborted)
    assert "several groups without a mask in common" in outcome.reason


def test_every_refusal_is_a_value_error() -> None:
    kinds = [ForeignMessage, AlteredMessage, ReplayedMessage, LateMessage, MalformedMessage, ForbiddenRequest]
    assert all(issubclass(kind, MessageRefused) for kind in kinds)
    assert issubclass(MessageRefused, ValueError)


@pytest.mark.parametrize(("session", "dimension"), [(b"short", 3), (bytes(16), 0), (bytes(16), -1)])
def test_impossible_parameters_are_refused(session: bytes, dimension: int) -> None:
    with pytest.raises(ValueError, match=r"session|coordinate"):
        RoundParameters(session, dimension, Ring(8), complete_neighbourhood(3))
