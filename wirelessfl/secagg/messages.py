"""The messages of a round: who sends what to whom, its size in bits, and its authentication tag.

Every message carries an HMAC-SHA256 tag, cut to 128 bits, under the key that the server and that client agreed on
at enrolment; the tag covers the kind and every field of the message, arrays with their type and shape. Session, sender
and receiver make a message of another round, or one sent back to its sender, recognisable.
"""

import hmac
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import instance_of, precondition
from wirelessfl.secagg.encoding import Ring, RingVector
from wirelessfl.secagg.keys import KEY_BYTES, check_order
from wirelessfl.secagg.protocol import SESSION_BYTES, AlteredMessage, ForeignMessage, MalformedMessage

SERVER = 2**32 - 1
TAG_BYTES = 16
# Kind, session, sender, receiver and tag.
HEADER_BITS = 8 * (1 + SESSION_BYTES + 4 + 4 + TAG_BYTES)

Names = NDArray[np.uint32]
Octets = NDArray[np.uint8]


@dataclass(frozen=True, eq=False, kw_only=True)
class Message:
    """A message of one session; clients are numbered below 2**31 - 2, the server is ``SERVER``."""

    kind: ClassVar[int]

    session: bytes
    sender: int
    receiver: int
    tag: bytes = b""

    def __init_subclass__(cls, kind: int) -> None:
        cls.kind = kind

    @property
    def bits(self) -> int:
        """Size on the air: header, tag and arrays."""
        return HEADER_BITS + 8 * sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def sealed(self, link_key: bytes) -> Self:
        """The message with its authentication tag."""
        return replace(self, tag=self._expected_tag(link_key))

    def verify(self, link_key: bytes) -> None:
        """Check of the authentication tag.

        Raises:
            AlteredMessage: the message is not what the holder of the key sealed.
        """
        precondition(
            hmac.compare_digest(self.tag, self._expected_tag(link_key)),
            f"the {type(self).__name__} from {self.sender} does not verify",
            AlteredMessage,
        )

    def _expected_tag(self, link_key: bytes) -> bytes:
        code = hmac.new(link_key, bytes([self.kind]), "sha256")
        for field in fields(self):
            if field.name != "tag":
                form, data = _authenticated(getattr(self, field.name))
                code.update(struct.pack("<BQ", len(form), len(data)) + form + data)
        return code.digest()[:TAG_BYTES]


def _authenticated(value: object) -> tuple[bytes, bytes]:
    # What the tag covers of a field's value: its type, with the shape of an array, and its bytes
    match value:
        case np.ndarray():
            return f"{value.dtype.str}{value.shape}".encode(), value.tobytes()
        case bytes():
            return b"bytes", value
        case int():
            return b"int", str(value).encode()
        case _:
            raise MalformedMessage(f"a message does not carry a {type(value).__name__}")


def authenticate(message: Message, session: bytes, receiver: int, link_keys: Mapping[int, bytes]) -> None:
    """Check that a message belongs to session and receiver, and was sealed by a sender in ``link_keys``.

    Raises:
        MalformedMessage: a field of the header is of another type.
        ForeignMessage: another session or receiver, or an unknown sender.
        AlteredMessage: the authentication tag does not verify.
    """
    name = instance_of(type(message))
    header = (message.session, bytes), (message.tag, bytes), (message.sender, int), (message.receiver, int)
    precondition(
        all(type(value) is kind for value, kind in header),
        f"the header of {name} is not two numbers, a session and a tag",
        MalformedMessage,
    )
    precondition(message.session == session, f"{name} of another session", ForeignMessage)
    precondition(
        message.receiver == receiver and message.sender in link_keys,
        f"{name} from {message.sender} to {message.receiver} is not expected here",
        ForeignMessage,
    )
    message.verify(link_keys[message.sender])


def names(clients: Iterable[int]) -> Names:
    """Client numbers as a message holds them."""
    return np.fromiter(clients, dtype=np.uint32)


def check_ascending(clients: Names) -> None:
    """Refusal of a list of clients that is not distinct and in ascending order.

    Raises:
        MalformedMessage: it is not.
    """
    precondition(
        clients.dtype == np.uint32 and clients.ndim == 1 and np.all(clients[1:] > clients[:-1]),
        "the clients are not listed once each, in ascending order",
        MalformedMessage,
    )


def check_octets(octets: Octets, shape: tuple[int, ...]) -> None:
    """Refusal of bytes of another shape.

    Raises:
        MalformedMessage: they are.
    """
    precondition(
        octets.shape == shape and octets.dtype == np.uint8,
        f"expected bytes of shape {shape}, found {octets.dtype} of shape {octets.shape}",
        MalformedMessage,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class KeyAdvertisement(Message, kind=1):
    """Client to server: its public keys (c, 32), c = 2 (share encryption, masks) or 1 (`pairwise_prf`)."""

    keys: Octets

    def check(self, count: int) -> None:
        """Refusal of anything but ``count`` public keys that others can agree on a secret with.

        Raises:
            MalformedMessage: it is.
        """
        check_octets(self.keys, (count, KEY_BYTES))
        for key in self.keys:
            check_order(key.tobytes())


@dataclass(frozen=True, eq=False, kw_only=True)
class NeighbourKeys(Message, kind=2):
    """Server to client: the neighbours (m,) in ascending order and their public keys (m, c, 32)."""

    peers: Names
    keys: Octets


@dataclass(frozen=True, eq=False, kw_only=True)
class EncryptedShares(Message, kind=3):
    """Client to server: for each neighbour (m,) the ciphertext (m, SEALED_BYTES) that only it can open."""

    peers: Names
    ciphertexts: Octets


@dataclass(frozen=True, eq=False, kw_only=True)
class ShareDelivery(Message, kind=4):
    """Server to client: the ciphertexts (m, SEALED_BYTES) meant for it from the neighbours (m,) that sent shares."""

    peers: Names
    ciphertexts: Octets


@dataclass(frozen=True, eq=False, kw_only=True)
class MaskedInput(Message, kind=5):
    """Client to server: the encoded input under its masks, (d,) ring elements of ``bits_per_element`` bits."""

    values: RingVector
    bits_per_element: int

    @property
    def bits(self) -> int:
        """Size on the air, the ring elements packed without gaps."""
        return HEADER_BITS + self.bits_per_element * len(self.values)

    def check(self, ring: Ring, dimension: int) -> None:
        """Refusal of anything but a vector of the round's ring and dimension, sent at the bits of its elements.

        Raises:
            MalformedMessage: it is not.
        """
        precondition(
            self.bits_per_element == ring.bits,
            f"the masked input of client {self.sender} has {self.bits_per_element} bits an element, not {ring.bits}",
            MalformedMessage,
        )
        try:
            ring.check(self.values, dimension)
        except ValueError as error:
            raise MalformedMessage(f"the masked input of client {self.sender}: {error}") from error


@dataclass(frozen=True, eq=False, kw_only=True)
class UnmaskRequest(Message, kind=6):
    """Server to client: whose self-mask seed shares (``alive``) and mask key shares (``dropped``) it asks for."""

    alive: Names
    dropped: Names


@dataclass(frozen=True, eq=False, kw_only=True)
class UnmaskShares(Message, kind=7):
    """Client to server: one share (LIMBS field elements) for each owner (m,) asked about, first alive, then dropped."""

    owners: Names
    shares: NDArray[np.uint32]


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundStart(Message, kind=8):
    """Server to client (`pairwise_prf`): the clients whose inputs are summed under this session's nonce."""

    participants: Names
