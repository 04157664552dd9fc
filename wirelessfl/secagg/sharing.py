"""Shamir's t-of-n secret sharing of 32-byte secrets, for all secrets and all holders at once, and removal of the masks.

Shamir, "How to share a secret", CACM 1979. A secret is cut into 9 limbs of 30 bits; each limb is the value at 0 of
its own uniformly random polynomial of degree t - 1 over the field of 2**31 - 1 elements, and a holder's share is
the nine values at the holder's point. Any t shares determine the secret, fewer are independent of it.

Arithmetic in the field is vectorised and exact. Products of two elements of a field below 2**31 fit 62 bits, so that
uint64 holds them; matrix products go through floating-point BLAS, with one factor split in halves so short that every
sum stays an exact integer below 2**53.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.secagg.encoding import RingVector
from wirelessfl.secagg.keys import KEY_BYTES, KeyPair, MaskStream, agree, pair_context
from wirelessfl.secagg.messages import Names, UnmaskShares
from wirelessfl.secagg.protocol import MalformedMessage, RandomBytes, RoundParameters

_LIMB_BITS = 30
LIMBS = -(-8 * KEY_BYTES // _LIMB_BITS)
_BIT = np.arange(_LIMB_BITS, dtype=np.uint64)

# The shares of the mask key and of the self-mask seed.
SECRETS = 2
PLAIN_BYTES = SECRETS * LIMBS * 4
SEALED_BYTES = PLAIN_BYTES + 16

Elements = NDArray[np.uint64]
_HALF_BITS = 16
_LOW_HALF = 2**_HALF_BITS - 1
# 2**6 terms of (16-bit half) x (31-bit element) sum to less than 2**53, the last exact integer of a double.
_EXACT_TERMS = 2 ** (53 - 31 - _HALF_BITS)


@dataclass(frozen=True)
class PrimeField:
    """The integers modulo ``prime`` (at most 2**31 - 1), held as uint64 arrays of values below ``prime``."""

    prime: int

    def __post_init__(self) -> None:
        precondition(2 <= self.prime < 2**31, f"the field's prime must lie in [2, 2**31), not {self.prime}")

    def random(self, shape: tuple[int, ...], random_bytes: RandomBytes) -> Elements:
        """Uniform elements of the given shape, by rejection of words that are not below the prime."""
        count = int(np.prod(shape))
        mask = np.uint32(2 ** self.prime.bit_length() - 1)
        kept = np.empty(0, dtype=np.uint32)
        while len(kept) < count:
            words = np.frombuffer(random_bytes(4 * (count - len(kept))), dtype="<u4") & mask
            kept = np.concatenate([kept, words[words < self.prime]])
        return kept.astype(np.uint64).reshape(shape)

    def matmul(self, left: Elements, right: Elements) -> Elements:
        """The matrix product of (m, k) and (k, n) elements, (m, n)."""
        product = np.zeros((left.shape[0], right.shape[1]), dtype=np.uint64)
        for start in range(0, left.shape[1], _EXACT_TERMS):
            block = left[:, start : start + _EXACT_TERMS]
            factor = right[start : start + _EXACT_TERMS].astype(np.float64)
            high = ((block >> _HALF_BITS).astype(np.float64) @ factor).astype(np.uint64)
            low = ((block & _LOW_HALF).astype(np.float64) @ factor).astype(np.uint64)
            product += ((high % self.prime) << _HALF_BITS) + low % self.prime
            product %= self.prime
        return product

    def inverse(self, elements: Elements) -> Elements:
        """Multiplicative inverses by Fermat's theorem; 0 has none and gives 0."""
        result = np.ones_like(elements)
        square, exponent = elements % self.prime, self.prime - 2
        while exponent:
            if exponent & 1:
                result = result * square % self.prime
            square = square * square % self.prime
            exponent >>= 1
        return result % self.prime

    def powers(self, points: Elements, count: int) -> Elements:
        """The Vandermonde matrix (m, count): powers 0 to count - 1 of the m points."""
        matrix = np.ones((len(points), count), dtype=np.uint64)
        base, filled = points % self.prime, 1
        while filled < count:  # each pass doubles the number of columns: base is points**filled
            width = min(filled, count - filled)
            matrix[:, filled : filled + width] = matrix[:, :width] * base[:, None] % self.prime
            base, filled = base * base % self.prime, filled + width
        return matrix % self.prime

    def lagrange_at_zero(self, points: Elements) -> Elements:
        """Weights (m, t) that take the values of a polynomial at each row's t points to its value at 0.

        λ_i = Π_{j ≠ i} x_j / (x_j − x_i). The points of a row must be distinct and non-zero.
        """
        numerator = denominator = one = np.ones_like(points)
        for j, own in enumerate(np.eye(points.shape[1], dtype=np.bool_)):
            point = points[:, j : j + 1]
            distance = np.where(own, one, (point + self.prime - points) % self.prime)
            denominator = denominator * distance % self.prime
            numerator = numerator * np.where(own, one, point) % self.prime
        return numerator * self.inverse(denominator) % self.prime


MERSENNE_31 = PrimeField(2**31 - 1)


def share_points(names: NDArray[np.uint32]) -> Elements:
    """The evaluation point of each holder: its number plus one, since the value at 0 is the secret itself."""
    return names.astype(np.uint64) + np.uint64(1)


def share_elements(
    field: PrimeField, secrets: Elements, points: Elements, threshold: int, random_bytes: RandomBytes
) -> Elements:
    """Share each of the (s,) secrets among the holders at the (m,) points; returns (m, s) elements.

    Raises:
        ValueError: the threshold is not in [1, m], or the points are not distinct non-zero elements.
    """
    precondition(
        1 <= threshold <= len(points),
        f"the threshold must lie between 1 and the {len(points)} holders, not {threshold}",
    )
    precondition(
        len(np.unique(points)) == len(points) and points.min() >= 1 and points.max() < field.prime,
        f"share points must be distinct and in [1, {field.prime})",
    )
    coefficients = field.random((threshold - 1, len(secrets)), random_bytes)
    return field.matmul(field.powers(points, threshold), np.concatenate([secrets[None, :], coefficients]))


def reconstruct_elements(field: PrimeField, points: Elements, shares: Elements) -> Elements:
    """The secrets (o, s) of o owners from t shares (o, t, s) of each, taken at points (o, t).

    Owners whose shares lie at the same points use one set of Lagrange weights.
    """
    distinct, which = np.unique(points, axis=0, return_inverse=True)
    weights = field.lagrange_at_zero(distinct)[which.reshape(-1)]
    return np.asarray((weights[:, :, None] * shares % field.prime).sum(axis=1) % field.prime)


def split(
    secrets: NDArray[np.uint8], points: Elements, threshold: int, random_bytes: RandomBytes
) -> NDArray[np.uint32]:
    """Shares (m, s, LIMBS) of the secrets (s, 32) for the holders at the (m,) points."""
    bits = np.zeros((len(secrets), LIMBS * _LIMB_BITS), dtype=np.uint8)
    bits[:, : 8 * KEY_BYTES] = np.unpackbits(secrets, axis=1, bitorder="little")
    limbs = bits.reshape(-1, _LIMB_BITS).astype(np.uint64) @ (np.uint64(1) << _BIT)
    shares = share_elements(MERSENNE_31, limbs, points, threshold, random_bytes)
    return shares.astype(np.uint32).reshape(len(points), len(secrets), LIMBS)


def reconstruct(points: Elements, shares: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """The secrets (o, 32) of o owners from shares (o, t, LIMBS) at points (o, t).

    Raises:
        ValueError: the shares of an owner do not belong to one 32-byte secret.
    """
    limbs = reconstruct_elements(MERSENNE_31, points, shares.astype(np.uint64))
    bits = ((limbs[:, :, None] >> _BIT) & np.uint64(1)).astype(np.uint8).reshape(len(limbs), -1)
    precondition(
        not (limbs >> _LIMB_BITS).any() and not bits[:, 8 * KEY_BYTES :].any(),
        "the shares do not reconstruct a 32-byte secret: at least one was altered",
    )
    return np.packbits(bits[:, : 8 * KEY_BYTES], axis=1, bitorder="little")


def shares_of(plaintexts: bytes) -> NDArray[np.uint32]:
    """The shares (m, SECRETS, LIMBS) in m plaintexts that follow each other."""
    return np.frombuffer(plaintexts, dtype="<u4").reshape(-1, SECRETS, LIMBS)


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
