"""The client of `secagg` and `secagg_plus`: one method a step, message in, message out, no clock."""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.secagg.encoding import RingVector
from wirelessfl.secagg.keys import KEY_BYTES, KeyPair, MaskStream, agree, pair_context, seal, unseal
from wirelessfl.secagg.messages import (
    SERVER,
    EncryptedShares,
    KeyAdvertisement,
    MaskedInput,
    Message,
    Names,
    NeighbourKeys,
    ShareDelivery,
    UnmaskRequest,
    UnmaskShares,
    authenticate,
    check_ascending,
    check_octets,
)
from wirelessfl.secagg.protocol import (
    ForbiddenRequest,
    MalformedMessage,
    RandomBytes,
    ReplayedMessage,
    RoundParameters,
    Stage,
)
from wirelessfl.secagg.sharing import SEALED_BYTES, share_points, shares_of, split

# The order of the public keys in an advertisement, and of the two secrets in every share.
CHANNEL, MASK = 0, 1
MASK_KEY, SELF_SEED = 0, 1


class SecAggClient:
    """One client's side of one round (Bonawitz et al. 2017, Figure 4, without its consistency check).

    A step that raises leaves the client as it was. The server is trusted to relay public keys and to tell everyone the
    same list of survivors, but not with anything else (honest but curious).

    Args:
        parameters: the round's public facts.
        name: the client's number, below 2**31 - 2.
        link_key: the key it shares with the server, agreed once at enrolment.
        random_bytes: source of all secrets; `SeededBytes` in a simulation only.
    """

    def __init__(self, parameters: RoundParameters, name: int, link_key: bytes, random_bytes: RandomBytes) -> None:
        self.parameters = parameters
        self.name = name
        self.stage = Stage.ADVERTISE_KEYS
        self._link_key = link_key
        self._random_bytes = random_bytes
        self._channel = KeyPair.of(random_bytes(KEY_BYTES))
        self._mask = KeyPair.of(random_bytes(KEY_BYTES))
        self._self_seed = random_bytes(KEY_BYTES)
        self._mask_keys: dict[int, bytes] = {}  # public, of all neighbours
        self._channel_secrets: dict[int, bytes] = {}  # agreed with each neighbour
        self._own_share: NDArray[np.uint32]
        self._owners: Names  # whose shares this client holds, its own included, ascending
        self._shares: NDArray[np.uint32]  # (owners, 2, LIMBS)

    def advertise_keys(self) -> KeyAdvertisement:
        """Step 1: the two public keys.

        Raises:
            ReplayedMessage: they were advertised before.
        """
        self._expect(Stage.ADVERTISE_KEYS)
        self.stage = Stage.SHARE_KEYS
        return KeyAdvertisement(
            session=self.parameters.session,
            sender=self.name,
            receiver=SERVER,
            keys=np.frombuffer(self._channel.public + self._mask.public, dtype=np.uint8).reshape(2, KEY_BYTES),
        ).sealed(self._link_key)

    def share_keys(self, message: NeighbourKeys) -> EncryptedShares:
        """Step 2: shares of the mask key and of the self-mask seed, encrypted for each neighbour.

        Raises:
            MessageRefused: see `protocol`.
        """
        self._accept(message, Stage.SHARE_KEYS)
        self._check_neighbours(message)
        peers, session = message.peers, self.parameters.session
        channel_secrets = {
            peer: agree(self._channel, key.tobytes(), pair_context(b"share", session, self.name, peer))
            for peer, key in zip(peers.tolist(), message.keys[:, CHANNEL], strict=True)
        }
        secrets = np.frombuffer(self._mask.secret + self._self_seed, dtype=np.uint8).reshape(2, KEY_BYTES)
        points = share_points(np.append(peers, np.uint32(self.name)))
        shares = split(secrets, points, self.parameters.neighbourhood.threshold, self._random_bytes)
        sealed = b"".join(
            seal(key, session, self.name, peer, share.tobytes())
            for (peer, key), share in zip(channel_secrets.items(), shares[:-1].astype("<u4"), strict=True)
        )
        self._channel_secrets = channel_secrets
        self._mask_keys = {peer: key.tobytes() for peer, key in zip(peers.tolist(), message.keys[:, MASK], strict=True)}
        self._own_share = shares[-1]
        self.stage = Stage.MASKED_INPUT
        return EncryptedShares(
            session=session,
            sender=self.name,
            receiver=SERVER,
            peers=peers,
            ciphertexts=np.frombuffer(sealed, dtype=np.uint8).reshape(len(peers), SEALED_BYTES),
        ).sealed(self._link_key)

    def mask_input(self, message: ShareDelivery, encoded: RingVector) -> MaskedInput:
        """Step 3: the encoded input (d,) under the self mask and the masks towards all neighbours that sent shares.

        Raises:
            MessageRefused: see `protocol`.
            ValueError: the input is not a vector of the round's ring and dimension.
        """
        parameters = self.parameters
        parameters.ring.check(encoded, parameters.dimension)
        self._accept(message, Stage.MASKED_INPUT)
        peers = self._check_delivery(message)
        plain = b"".join(
            unseal(self._channel_secrets[peer], parameters.session, peer, self.name, ciphertext)
            for peer, ciphertext in zip(peers, message.ciphertexts, strict=True)
        )
        masked = encoded.copy()
        masks = MaskStream(parameters.ring, parameters.dimension)
        masks.add(masked, self._self_seed)
        for peer in peers:
            context = pair_context(b"mask", parameters.session, self.name, peer)
            masks.add_pairwise(masked, self.name, peer, agree(self._mask, self._mask_keys[peer], context))
        parameters.ring.reduce(masked)
        position = int(np.searchsorted(message.peers, self.name))
        self._owners = np.insert(message.peers, position, self.name)
        self._shares = np.insert(shares_of(plain), position, self._own_share, axis=0)
        self.stage = Stage.UNMASK
        return MaskedInput(
            session=parameters.session,
            sender=self.name,
            receiver=SERVER,
            values=masked,
            bits_per_element=parameters.ring.bits,
        ).sealed(self._link_key)

    def unmask(self, message: UnmaskRequest) -> UnmaskShares:
        """Step 4: for every neighbour one share, of its self-mask seed if it is alive, of its mask key if it dropped.

        Raises:
            ForbiddenRequest: a client is listed as alive and as dropped, or this client itself as dropped.
            MessageRefused: see `protocol`.
        """
        self._accept(message, Stage.UNMASK)
        precondition(
            not np.intersect1d(message.alive, message.dropped).size,
            "the server asks for both secrets of one client",
            ForbiddenRequest,
        )
        precondition(
            self.name in message.alive,
            "the server asks for the mask key of a client that sent its masked input",
            ForbiddenRequest,
        )
        owners = np.concatenate([message.alive, message.dropped])
        precondition(
            np.array_equal(np.sort(owners), self._owners),
            "the request does not name every neighbour that sent shares exactly once",
            MalformedMessage,
        )
        precondition(
            len(message.alive) >= self.parameters.neighbourhood.threshold,
            "fewer neighbours than the threshold survived: nothing may be unmasked",
            MalformedMessage,
        )
        secret = np.repeat([SELF_SEED, MASK_KEY], [len(message.alive), len(message.dropped)])
        self.stage = Stage.FINISHED
        return UnmaskShares(
            session=self.parameters.session,
            sender=self.name,
            receiver=SERVER,
            owners=owners,
            shares=self._shares[np.searchsorted(self._owners, owners), secret],
        ).sealed(self._link_key)

    def answer(self, message: Message, encoded: RingVector) -> Message:
        """The answer to any message of the server, for an encoded input (d,)."""
        match message:
            case NeighbourKeys():
                return self.share_keys(message)
            case ShareDelivery():
                return self.mask_input(message, encoded)
            case UnmaskRequest():
                return self.unmask(message)
            case _:
                raise ValueError(f"a server does not send a {type(message).__name__}")

    def _expect(self, stage: Stage) -> None:
        precondition(
            self.stage <= stage, f"client {self.name} has already taken the step {stage.name}", ReplayedMessage
        )
        precondition(
            self.stage >= stage,
            f"client {self.name} is at {self.stage.name}, not yet at {stage.name}",
            MalformedMessage,
        )

    def _accept(self, message: Message, stage: Stage) -> None:
        authenticate(message, self.parameters.session, self.name, {SERVER: self._link_key})
        self._expect(stage)

    def _check_neighbours(self, message: NeighbourKeys) -> None:
        peers, neighbourhood = message.peers, self.parameters.neighbourhood
        check_ascending(peers)
        check_octets(message.keys, (len(peers), 2, KEY_BYTES))
        precondition(self.name not in peers, f"client {self.name} is listed as its own neighbour", MalformedMessage)
        precondition(
            neighbourhood.threshold <= len(peers) + 1 < 2 * neighbourhood.threshold,
            f"{len(peers)} neighbours do not suit a threshold of {neighbourhood.threshold}",
            MalformedMessage,
        )

    def _check_delivery(self, message: ShareDelivery) -> list[int]:
        peers: list[int] = message.peers.tolist()
        check_ascending(message.peers)
        check_octets(message.ciphertexts, (len(peers), SEALED_BYTES))
        precondition(
            self._channel_secrets.keys() >= set(peers),
            "a share comes from a client that is no neighbour",
            MalformedMessage,
        )
        precondition(
            len(peers) + 1 >= self.parameters.neighbourhood.threshold,
            "fewer neighbours than the threshold sent shares: the input is not sent",
            MalformedMessage,
        )
        return peers
