"""Every field of every message of the three protocols is under its tag, and a useless key costs its sender only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wirelessfl.secagg as room
from tests.secagg.rounds import SESSION, encoded_inputs, parties, play_until
from wirelessfl.secagg import (
    SERVER,
    AlteredMessage,
    KeyAdvertisement,
    MalformedMessage,
    MaskedInput,
    Message,
    MessageRefused,
    Neighbourhood,
    PrfClient,
    PrfEnrolment,
    PrfParameters,
    PrfRound,
    Ring,
    RoundParameters,
    RoundResult,
    RoundStart,
    SeededBytes,
    Stage,
    complete_neighbourhood,
)

RING = Ring(9)
INPUTS = encoded_inputs(5, RING, 3, seed=1)
PROTOCOLS = {"secagg": complete_neighbourhood(5, 3), "secagg_plus": Neighbourhood(2, 2)}


def link_of(client: int) -> bytes:
    return SeededBytes(0, "link", client)(32)


@dataclass(frozen=True)
class Delivery:
    """An honest message and the step of its receiver that takes it."""

    message: Message
    take: Callable[[Any], object]

    @property
    def link(self) -> bytes:
        """The key under which it is sealed."""
        client = self.message.receiver if self.message.sender == SERVER else self.message.sender
        return link_of(client)


def graph_deliveries(protocol: str) -> Iterator[Delivery]:
    """Every message that client 2 and the server exchange in one round of `secagg` or `secagg_plus`."""
    facts = RoundParameters(SESSION, 3, RING, PROTOCOLS[protocol])
    server, clients = parties(facts, 5)
    advertisement = clients[2].advertise_keys()
    yield Delivery(advertisement, server.receive)
    for stage in (Stage.SHARE_KEYS, Stage.MASKED_INPUT, Stage.UNMASK):
        server, clients = parties(facts, 5)
        message = play_until(stage, server, clients, INPUTS)[2]
        yield Delivery(message, partial(clients[2].answer, encoded=INPUTS[2]))
        reply = parties_at(stage, facts)[2].answer(message, INPUTS[2])
        yield Delivery(reply, server.receive)


def parties_at(stage: Stage, facts: RoundParameters) -> dict[int, room.SecAggClient]:
    """The clients of a round like every other of these, about to answer ``stage``."""
    server, clients = parties(facts, 5)
    play_until(stage, server, clients, INPUTS)
    return clients


def prf_deliveries() -> Iterator[Delivery]:
    """Every message that client 2 and the server exchange in an enrolment and a round of `pairwise_prf`."""
    facts = PrfParameters(b"run 0001", 3, RING)
    links = {name: link_of(name) for name in range(4)}
    clients = {name: PrfClient(facts, name, link, SeededBytes(0, "client", name)) for name, link in links.items()}
    enrolment, fresh = PrfEnrolment(facts, links), PrfEnrolment(facts, links)
    for client in clients.values():
        enrolment.receive(client.advertise_keys())
    yield Delivery(clients[2].advertise_keys(), fresh.receive)
    keys = {message.receiver: message for message in enrolment.close()}
    yield Delivery(keys[2], clients[2].agree_seeds)
    enrolled = PrfClient(facts, 2, links[2], SeededBytes(0, "client", 2))
    enrolled.agree_seeds(keys[2])
    server = PrfRound(facts, 1, links)
    start = next(message for message in server.start() if message.receiver == 2)
    seeds = enrolled.seeds
    yield Delivery(start, lambda wrong: enrolled.mask_input(wrong, INPUTS[2]))
    sender = PrfClient(facts, 2, links[2], SeededBytes(0, "client", 2))
    sender.seeds = seeds
    yield Delivery(sender.mask_input(start, INPUTS[2]), server.receive)


def deliveries(protocol: str) -> list[Delivery]:
    return list(prf_deliveries() if protocol == "pairwise_prf" else graph_deliveries(protocol))


def altered(value: object) -> list[Any]:
    """Other values of a field: another bit, another length, and for an array another order, type and shape."""
    match value:
        case bytes():
            flipped = bytes([value[0] ^ 1]) + value[1:]
            return [flipped, value[:-1], value + b"\0", b""]
        case int():
            return [value + 1, value - 1, value ^ (1 << 16), value + 2**32]
        case np.ndarray():
            others = [np.concatenate([value, value[:1]]), value[:-1], value[::-1]]
            if value.size:
                others.append(value.copy())
                others[-1].view(np.uint8).reshape(-1)[-1] ^= 1
            else:
                others.append(np.zeros(1, dtype=value.dtype))
            others += [value.byteswap(), value.view(value.dtype.newbyteorder()), value.astype(np.float64)]
            others += [value[None], value.view(value.dtype.str.replace("u", "i"))]
            return [other for other in others if not same(value, other)]
        case _:
            raise TypeError(type(value))


def same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("protocol", ["pairwise_prf", "secagg", "secagg_plus"])
def test_every_field_altered_in_turn_is_refused(protocol: str) -> None:
    exchanged = deliveries(protocol)
    for delivery in exchanged:
        for field in fields(delivery.message):
            for value in altered(getattr(delivery.message, field.name)):
                changes: dict[str, Any] = {field.name: value}
                wrong = replace(delivery.message, **changes)
                with pytest.raises(AlteredMessage, match="does not verify"):
                    wrong.verify(delivery.link)
                with pytest.raises(MessageRefused):
                    delivery.take(wrong)
        delivery.take(delivery.message)  # nothing of what was refused has changed the receiver


def test_every_kind_of_message_is_exchanged() -> None:
    seen = {type(one.message) for protocol in ("pairwise_prf", "secagg") for one in deliveries(protocol)}
    assert seen == set(Message.__subclasses__())
    assert len({kind.kind for kind in seen}) == len(seen)


def test_a_message_is_not_taken_for_another_kind() -> None:
    """One list of names: the participants of a round, or both lists of an unmask request."""
    participants = np.arange(3, dtype=np.uint32)
    start = RoundStart(session=SESSION, sender=SERVER, receiver=2, participants=participants).sealed(link_of(2))
    other = room.UnmaskRequest(
        session=SESSION, sender=SERVER, receiver=2, alive=participants, dropped=participants[:0], tag=start.tag
    )
    with pytest.raises(AlteredMessage):
        other.verify(link_of(2))


@pytest.mark.parametrize("bits", [1, 8, 10, 64])
def test_an_input_is_charged_at_the_bits_of_the_ring(bits: int) -> None:
    """Its sender seals what it likes; the ring of the round is known to both."""
    for delivery in (*deliveries("secagg"), *deliveries("pairwise_prf")):
        if isinstance(delivery.message, MaskedInput):
            wrong = replace(delivery.message, bits_per_element=bits).sealed(delivery.link)
            with pytest.raises(MalformedMessage, match=f"has {bits} bits an element, not 9"):
                delivery.take(wrong)


PRIME = 2**255 - 19
# The u-coordinates of order 8 on Curve25519 (Bernstein, "Curve25519: new Diffie-Hellman speed records", and its page).
EIGHTH = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)


def test_the_points_of_order_eight_double_to_order_four() -> None:
    """Doubling (RFC 7748, §5; A = 486662): (u² − 1)² / 4u(u² + Au + 1), from order 8 to u = 1, from there to u = 0."""
    for point in EIGHTH:
        assert (point**2 - 1) ** 2 % PRIME == 4 * point * (point**2 + 486662 * point + 1) % PRIME


def useless_keys() -> list[bytes]:
    """Every encoding of a u-coordinate of small order: beyond the prime and with the unused top bit too."""
    canonical = (0, 1, PRIME - 1, *EIGHTH)
    below = [u for point in canonical for u in (point, point + PRIME) if u < 2**255]
    return [(u + top).to_bytes(32, "little") for u in below for top in (0, 2**255)]


@pytest.mark.parametrize("public", useless_keys(), ids=bytes.hex)
def test_no_secret_can_be_agreed_with_a_point_of_small_order(public: bytes) -> None:
    with pytest.raises(MalformedMessage, match="public key"):
        room.agree(room.KeyPair.of(SeededBytes(1)(32)), public, b"context")


@pytest.mark.parametrize("protocol", ["secagg", "secagg_plus"])
@pytest.mark.parametrize("place", [0, 1], ids=["share key", "mask key"])
def test_a_key_of_small_order_excludes_its_sender(protocol: str, place: int) -> None:
    """The others get their sum, and the messages of those that are left never name the one that is not."""
    facts = RoundParameters(SESSION, 3, RING, PROTOCOLS[protocol])
    server, clients = parties(facts, 5)
    for name, client in clients.items():
        message = client.advertise_keys()
        if name == 2:
            for useless in useless_keys():
                keys = message.keys.copy()
                keys[place] = np.frombuffer(useless, dtype=np.uint8)
                with pytest.raises(MalformedMessage, match="public key"):
                    server.receive(replace(message, keys=keys).sealed(link_of(2)))
        else:
            server.receive(message)
    assert server.awaited == {2}
    outcome = server.close_stage()
    while not isinstance(outcome, RoundResult):
        assert not isinstance(outcome, room.RoundAborted), outcome
        for request in outcome:
            server.receive(clients[request.receiver].answer(request, INPUTS[request.receiver]))
        outcome = server.close_stage()
    assert outcome.contributors == (0, 1, 3, 4)
    expected = sum(INPUTS[name].astype(object) for name in outcome.contributors) % 2**RING.bits
    assert outcome.total.tolist() == expected.tolist()


def test_a_key_of_small_order_excludes_its_sender_from_the_enrolment() -> None:
    facts = PrfParameters(b"run 0001", 3, RING)
    links = {name: link_of(name) for name in range(4)}
    clients = {name: PrfClient(facts, name, link, SeededBytes(0, "client", name)) for name, link in links.items()}
    enrolment = PrfEnrolment(facts, links)
    for name, client in clients.items():
        message = client.advertise_keys()
        if name == 2:
            with pytest.raises(MalformedMessage, match="public key"):
                enrolment.receive(replace(message, keys=np.zeros_like(message.keys)).sealed(links[2]))
        else:
            enrolment.receive(message)
    for keys in enrolment.close():
        clients[keys.receiver].agree_seeds(keys)
    server = PrfRound(facts, 1, {name: links[name] for name in (0, 1, 3)})
    for start in server.start():
        server.receive(clients[start.receiver].mask_input(start, INPUTS[start.receiver]))
    outcome = server.close()
    assert isinstance(outcome, RoundResult)
    expected = sum(INPUTS[name].astype(object) for name in (0, 1, 3)) % 2**RING.bits
    assert outcome.total.tolist() == expected.tolist()


def test_an_unreadable_advertisement_is_refused() -> None:
    server, clients = parties(RoundParameters(SESSION, 3, RING, PROTOCOLS["secagg"]), 5)
    message = clients[2].advertise_keys()
    assert isinstance(message, KeyAdvertisement)
    words: Any = "keys"
    with pytest.raises(MessageRefused):
        server.receive(replace(message, keys=words))


@pytest.mark.parametrize("protocol", ["pairwise_prf", "secagg"])
def test_whatever_stands_in_a_field_is_refused_and_stops_nobody(protocol: str) -> None:
    """Without the key: other types than a message has, and an array of many axes."""
    many = np.zeros([1] * 32, dtype=np.uint8)
    strange: tuple[Any, ...] = (None, "text", b"text", 2.0, True, np.int64(2), [2], {}, np.arange(3), many)
    for delivery in deliveries(protocol):
        for field in fields(delivery.message):
            for value in strange:
                changes: dict[str, Any] = {field.name: value}
                with pytest.raises(MessageRefused):
                    delivery.take(replace(delivery.message, **changes))
        delivery.take(delivery.message)
