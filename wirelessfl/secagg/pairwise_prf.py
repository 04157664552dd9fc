"""`pairwise_prf`: seeds agreed once, one message a round, and everybody has to answer.

Hu, Guo, Gong, "Concentrated Differentially Private and Utility Preserving Federated Learning", §IV-B, Fig. 2. At
enrolment every pair of clients agrees on a seed; in round t client i sends x_i + Σ_{j>i} G(seed_ij, t) −
Σ_{j<i} G(seed_ij, t), the sums over the round's participants. The masks cancel in the sum of all participants and in
no other. The number t is a nonce: a round that failed is tried again under a fresh one only, because two vectors
masked under the same nonce with different participants differ by a mask that may be known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from wirelessfl.errors import precondition
from wirelessfl.secagg.encoding import Ring, RingVector
from wirelessfl.secagg.keys import KEY_BYTES, KeyPair, MaskStream, agree, pair_context
from wirelessfl.secagg.messages import (
    SERVER,
    KeyAdvertisement,
    MaskedInput,
    Message,
    Names,
    NeighbourKeys,
    Octets,
    RoundStart,
    authenticate,
    check_ascending,
    check_octets,
    names,
)
from wirelessfl.secagg.protocol import (
    SESSION_BYTES,
    ForeignMessage,
    LateMessage,
    MalformedMessage,
    RandomBytes,
    ReplayedMessage,
    RoundAborted,
    RoundResult,
    Stage,
)

RUN_BYTES = 8


@dataclass(frozen=True)
class PrfParameters:
    """The public facts of a run: 8 bytes that no other run of these clients has, dimension and ring of the sums."""

    run: bytes
    dimension: int
    ring: Ring

    def __post_init__(self) -> None:
        precondition(len(self.run) == RUN_BYTES, f"a run is named by {RUN_BYTES} bytes, not {len(self.run)}")
        precondition(self.dimension >= 1, f"the summed vectors need at least one coordinate, not {self.dimension}")

    def session(self, nonce: int) -> bytes:
        """The session of a nonce: 0 for the enrolment, 1 and up for the attempts at a round."""
        return self.run + nonce.to_bytes(SESSION_BYTES - RUN_BYTES)


@dataclass(frozen=True, eq=False)
class PairwiseSeeds:
    """Rows that a client keeps from round to round: peers (m,) ascending, seeds (m, 32), and the last nonce it used."""

    peers: Names
    seeds: Octets
    last_nonce: int = 0


class PrfClient:
    """One client's side: `advertise_keys` and `agree_seeds` once, then `mask_input` in every round.

    Args:
        parameters: the run's public facts.
        name: the client's number.
        link_key: the key it shares with the server.
        random_bytes: source of its key; `SeededBytes` in a simulation only.

    Attributes:
        seeds: all that lives across rounds; may be stored and put back.
    """

    def __init__(self, parameters: PrfParameters, name: int, link_key: bytes, random_bytes: RandomBytes) -> None:
        self.parameters = parameters
        self.name = name
        self.seeds: PairwiseSeeds | None = None
        self._link = {SERVER: link_key}
        self._pair = KeyPair.of(random_bytes(KEY_BYTES))

    def advertise_keys(self) -> KeyAdvertisement:
        """Enrolment, first step: the public key."""
        return KeyAdvertisement(
            session=self.parameters.session(0),
            sender=self.name,
            receiver=SERVER,
            keys=np.frombuffer(self._pair.public, dtype=np.uint8).reshape(1, KEY_BYTES),
        ).sealed(self._link[SERVER])

    def agree_seeds(self, message: NeighbourKeys) -> None:
        """Enrolment, second step: a seed with every other client.

        Raises:
            MessageRefused: see `protocol`; seeds are never agreed twice.
        """
        session = self.parameters.session(0)
        authenticate(message, session, self.name, self._link)
        precondition(self.seeds is None, f"client {self.name} has agreed on its seeds before", ReplayedMessage)
        check_ascending(message.peers)
        check_octets(message.keys, (len(message.peers), 1, KEY_BYTES))
        precondition(self.name not in message.peers, f"client {self.name} is listed as its own peer", MalformedMessage)
        seeds = b"".join(
            agree(self._pair, keys.tobytes(), pair_context(b"seed", session, self.name, peer))
            for peer, keys in zip(message.peers.tolist(), message.keys, strict=True)
        )
        self.seeds = PairwiseSeeds(message.peers, np.frombuffer(seeds, dtype=np.uint8).reshape(-1, KEY_BYTES))

    def mask_input(self, message: RoundStart, encoded: RingVector) -> MaskedInput:
        """A round: the encoded input (d,) under the masks towards all other participants.

        Raises:
            ReplayedMessage: the nonce is not above all that were used.
            MessageRefused: see `protocol`.
            ValueError: the input is not a vector of the run's ring and dimension.
        """
        parameters = self.parameters
        parameters.ring.check(encoded, parameters.dimension)
        authenticate(message, message.session, self.name, self._link)
        run, counter = message.session[:RUN_BYTES], message.session[RUN_BYTES:]
        precondition(
            run == parameters.run and len(message.session) == SESSION_BYTES, "a round of another run", ForeignMessage
        )
        if self.seeds is None:
            raise MalformedMessage(f"client {self.name} has not agreed on seeds yet")
        nonce = int.from_bytes(counter)
        precondition(
            nonce > self.seeds.last_nonce,
            f"nonce {nonce} is not fresh: client {self.name} has used {self.seeds.last_nonce}",
            ReplayedMessage,
        )
        others = self._others(message.participants, self.seeds.peers)
        masked = encoded.copy()
        masks = MaskStream(parameters.ring, parameters.dimension)
        rows = np.searchsorted(self.seeds.peers, others)
        for peer, row in zip(others.tolist(), rows.tolist(), strict=True):
            masks.add_pairwise(masked, self.name, peer, self.seeds.seeds[row].tobytes(), bytes(8) + counter)
        parameters.ring.reduce(masked)
        self.seeds = replace(self.seeds, last_nonce=nonce)
        return MaskedInput(
            session=message.session,
            sender=self.name,
            receiver=SERVER,
            values=masked,
            bits_per_element=parameters.ring.bits,
        ).sealed(self._link[SERVER])

    def _others(self, participants: Names, known: Names) -> Names:
        # The participants without this client; it must be one of them, and know the rest
        check_ascending(participants)
        others: Names = participants[participants != self.name]
        precondition(
            len(others) == len(participants) - 1 and len(others) > 0,
            f"client {self.name} is not among two or more participants",
            MalformedMessage,
        )
        precondition(
            np.isin(others, known).all(), "a participant was not there when seeds were agreed", MalformedMessage
        )
        return others


class _Collection:
    # One message from each client under one nonce, taken by the server until it is closed

    def __init__(self, parameters: PrfParameters, nonce: int, link_keys: Mapping[int, bytes]) -> None:
        self.parameters = parameters
        self.session = parameters.session(nonce)
        self._link_keys = dict(link_keys)
        self._heard: set[int] = set()
        self._closed = False

    @property
    def awaited(self) -> frozenset[int]:
        """The clients that have not been heard yet."""
        return frozenset(self._link_keys) - self._heard

    def _authenticate(self, message: Message, sent: str, closed: str) -> None:
        authenticate(message, self.session, SERVER, self._link_keys)
        sender = message.sender
        precondition(sender not in self._heard, f"client {sender} has already {sent}", ReplayedMessage)
        precondition(not self._closed, f"{closed} was closed without client {sender}", LateMessage)


class PrfEnrolment(_Collection):
    """The server's side of the enrolment: collect public keys, hand everybody those of everybody else."""

    def __init__(self, parameters: PrfParameters, link_keys: Mapping[int, bytes]) -> None:
        super().__init__(parameters, 0, link_keys)
        self._keys: dict[int, Octets] = {}

    def receive(self, message: KeyAdvertisement) -> None:
        """Receipt of one client's public key.

        Raises:
            MessageRefused: see `protocol`.
        """
        self._authenticate(message, "advertised its key", "the enrolment")
        message.check(1)
        self._keys[message.sender] = message.keys
        self._heard.add(message.sender)

    def close(self) -> list[NeighbourKeys]:
        """End of the enrolment: the keys of all enrolled clients, for each of them without its own."""
        self._closed = True
        enrolled = sorted(self._heard)
        keys = np.array([self._keys[name] for name in enrolled], dtype=np.uint8)
        return [
            NeighbourKeys(
                session=self.session,
                sender=SERVER,
                receiver=name,
                peers=np.delete(names(enrolled), row),
                keys=np.delete(keys, row, axis=0),
            ).sealed(self._link_keys[name])
            for row, name in enumerate(enrolled)
        ]


class PrfRound(_Collection):
    """The server's side of one attempt at a round.

    Args:
        parameters: the run's public facts.
        nonce: 1 or more, and above that of every attempt before, in this round or an earlier one.
        link_keys: for each participant the key it shares with the server.
    """

    def __init__(self, parameters: PrfParameters, nonce: int, link_keys: Mapping[int, bytes]) -> None:
        precondition(nonce >= 1, f"the nonce of a round must be at least 1, not {nonce}")
        precondition(
            len(link_keys) >= 2, f"a sum of {len(link_keys)} clients hides nothing: at least two must participate"
        )
        super().__init__(parameters, nonce, link_keys)
        self._total = parameters.ring.zeros(parameters.dimension)

    def start(self) -> list[RoundStart]:
        """Messages that tell each participant who participates."""
        participants = names(sorted(self._link_keys))
        return [
            RoundStart(session=self.session, sender=SERVER, receiver=name, participants=participants).sealed(link_key)
            for name, link_key in self._link_keys.items()
        ]

    def receive(self, message: MaskedInput) -> None:
        """Receipt of one participant's masked input.

        Raises:
            MessageRefused: see `protocol`.
        """
        self._authenticate(message, "sent its masked input", "the round")
        message.check(self.parameters.ring, self.parameters.dimension)
        self._total += message.values
        self._heard.add(message.sender)

    def close(self) -> RoundResult | RoundAborted:
        """End of the attempt: the sum if all participants answered, else those that are missing."""
        self._closed = True
        if self.awaited:
            missing = ", ".join(str(name) for name in sorted(self.awaited))
            return RoundAborted(Stage.MASKED_INPUT, f"pairwise_prf needs every participant; missing: {missing}")
        self.parameters.ring.reduce(self._total)
        return RoundResult(self._total, tuple(sorted(self._heard)))
