"""Message sizes, tags, and the public names of ``wirelessfl.secagg``."""

from __future__ import annotations

import ast
import hmac
import struct
from pathlib import Path

import numpy as np
import pytest

import wirelessfl.secagg as room
from tests.secagg.rounds import encoded_inputs, parameters, parties, play_until
from wirelessfl.secagg import Message, Neighbourhood, Stage, complete_neighbourhood
from wirelessfl.secagg.messages import HEADER_BITS

HEADER = 8 * (1 + 16 + 4 + 4 + 16)  # kind, session, sender, receiver, tag
SHARE = 32 * 9  # nine 31-bit limbs in words
SEALED = 2 * SHARE + 128  # shares of both secrets and the tag of AES-GCM


def test_sizes_follow_the_contents() -> None:
    facts = parameters(Neighbourhood(4, 3), dimension=1000, bits=20)
    inputs = encoded_inputs(9, facts.ring, 1000, seed=0)
    server, clients = parties(facts, 9)
    sizes: dict[type[Message], int] = {}
    advertisement = clients[0].advertise_keys()
    sizes[type(advertisement)] = advertisement.bits
    server, clients = parties(facts, 9)
    for stage in (Stage.SHARE_KEYS, Stage.MASKED_INPUT, Stage.UNMASK):
        server, clients = parties(facts, 9)
        message = play_until(stage, server, clients, inputs)[0]
        reply = clients[0].answer(message, inputs[0])
        sizes |= {type(message): message.bits, type(reply): reply.bits}
    assert HEADER_BITS == HEADER
    assert sizes == {
        room.KeyAdvertisement: HEADER + 2 * 256,
        room.NeighbourKeys: HEADER + 4 * (32 + 2 * 256),
        room.EncryptedShares: HEADER + 4 * (32 + SEALED),
        room.ShareDelivery: HEADER + 4 * (32 + SEALED),
        room.MaskedInput: HEADER + 1000 * 20,
        room.UnmaskRequest: HEADER + 5 * 32,
        room.UnmaskShares: HEADER + 5 * (32 + SHARE),
    }


def test_the_tag_is_the_hmac_of_everything() -> None:
    facts = parameters(complete_neighbourhood(3))
    message = parties(facts, 3)[1][1].advertise_keys()
    fields = [
        (b"bytes", facts.session),
        (b"int", b"1"),
        (b"int", str(2**32 - 1).encode()),
        (b"|u1(2, 32)", message.keys.tobytes()),
    ]
    text = b"".join(struct.pack("<BQ", len(form), len(data)) + form + data for form, data in fields)
    key = room.SeededBytes(0, "link", 1)(32)
    assert message.tag == hmac.digest(key, b"\x01" + text, "sha256")[:16]


def test_contents_cannot_slide_between_parts() -> None:
    """The same bytes cut differently are another message."""
    names = np.arange(4, dtype=np.uint32)
    one, two = (
        room.UnmaskRequest(session=bytes(16), sender=1, receiver=2, alive=names[:cut], dropped=names[cut:])
        for cut in (1, 2)
    )
    assert one.sealed(b"key").tag != two.sealed(b"key").tag
    with pytest.raises(room.AlteredMessage):
        two.__class__(
            session=bytes(16), sender=1, receiver=2, alive=names[:2], dropped=names[2:], tag=one.sealed(b"key").tag
        ).verify(b"key")


def test_a_server_message_only_can_be_answered() -> None:
    facts = parameters(complete_neighbourhood(3))
    _, clients = parties(facts, 3)
    with pytest.raises(ValueError, match="does not send"):
        clients[1].answer(clients[0].advertise_keys(), np.zeros(3, dtype=np.uint32))


def test_the_public_names_exist_once() -> None:
    assert len(set(room.__all__)) == len(room.__all__)
    assert all(hasattr(room, name) for name in room.__all__)


def test_the_room_stays_below_the_shell() -> None:
    outside = {"simpy", "click", "h5py", "yaml", "rich", "pydantic", "torch", "scenario", "trace", "simulation"}
    for file in Path(room.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found = {part for alias in node.names for part in alias.name.split(".")}
            elif isinstance(node, ast.ImportFrom):
                found = set((node.module or "").split("."))
            else:
                continue
            assert not found & outside, f"{file.name} imports {found & outside}"
