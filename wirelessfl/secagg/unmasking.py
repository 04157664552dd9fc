"""The server's last step: reconstruct the secrets that the survivors' shares determine, and remove all masks."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.secagg.field import MERSENNE_31, Elements
from wirelessfl.secagg.keys import KeyPair, agree, pair_context
from wirelessfl.secagg.masks import MaskStream, RingVector
from wirelessfl.secagg.messages import Names, UnmaskShares
from wirelessfl.secagg.parameters import RoundParameters
from wirelessfl.secagg.refusals import MalformedMessage
from wirelessfl.secagg.sharing import LIMBS, reconstruct, share_points


def check_shares(message: UnmaskShares, alive: Names, dropped: Names) -> None:
    """Refusal of shares that are not one for each owner asked about.

    Raises:
        MalformedMessage: other owners, another shape, or values that are not field elements.
    """
    precondition(
        np.array_equal(message.owners, np.concatenate([alive, dropped])),
        f"client {message.sender} did not answer for exactly the clients it was asked about",
        MalformedMessage,
    )
    shares = message.shares
    precondition(
        shares.shape == (len(message.owners), LIMBS) and shares.dtype == np.uint32,
        f"client {message.sender} did not send one share for each client",
        MalformedMessage,
    )
    precondition(
        shares.max() < MERSENNE_31.prime,
        f"a share from client {message.sender} is not made of field elements",
        MalformedMessage,
    )


def remove_masks(
    total: RingVector,
    parameters: RoundParameters,
    contributors: Sequence[int],
    peers_of: Mapping[int, Sequence[int]],
    public_keys: Mapping[int, bytes],
    answers: Mapping[int, UnmaskShares],
) -> None:
    """Sum (d,) of the encoded inputs, in place of that of the masked inputs.

    Args:
        total: Σ over the contributors of encoded input + self mask ± pairwise masks.
        parameters: the round's public facts.
        contributors: the clients in the sum.
        peers_of: for each client that dropped out after sharing keys, the contributors it had agreed on masks with.
        public_keys: the mask keys that the clients advertised.
        answers: the survivors' shares.

    Raises:
        ValueError: shares of a client do not belong to a secret, or not to the key it advertised.
    """
    owners = np.array([*contributors, *peers_of], dtype=np.uint32)
    points, shares = gather_shares(owners, list(answers.values()), parameters.neighbourhood.threshold)
    secrets = [secret.tobytes() for secret in reconstruct(points, shares)]
    masks = MaskStream(parameters.ring, parameters.dimension)
    for seed in secrets[: len(contributors)]:
        masks.add(total, seed, negative=True)
    for client, secret in zip(peers_of, secrets[len(contributors) :], strict=True):
        pair = KeyPair.of(secret)
        precondition(
            pair.public == public_keys[client],
            f"the shares do not reconstruct the mask key that client {client} advertised",
        )
        for peer in peers_of[client]:
            context = pair_context(b"mask", parameters.session, client, peer)
            # What the dropped client would have added: the opposite of what its peer did add.
            masks.add_pairwise(total, client, peer, agree(pair, public_keys[peer], context))
    parameters.ring.reduce(total)


def gather_shares(
    owners: Names, answers: Sequence[UnmaskShares], threshold: int
) -> tuple[Elements, NDArray[np.uint32]]:
    """For each owner (o,), the points (o, t) and values (o, t, LIMBS) of t of its shares.

    Raises:
        ValueError: there are fewer than t shares of an owner.
    """
    asked = np.concatenate([answer.owners for answer in answers])
    points = np.repeat(
        share_points(np.array([answer.sender for answer in answers], dtype=np.uint32)),
        [len(answer.owners) for answer in answers],
    )
    shares = np.concatenate([answer.shares for answer in answers])
    order = np.lexsort((points, asked))
    first = np.searchsorted(asked, owners, sorter=order)
    count = np.searchsorted(asked, owners, side="right", sorter=order) - first
    if (count < threshold).any():
        raise ValueError(f"fewer than {threshold} shares came back of client {owners[count < threshold][0]}")
    chosen = order[first[:, None] + np.arange(threshold)]
    return points[chosen], shares[chosen]
