"""Shamir's t-of-n secret sharing of 32-byte secrets, for all secrets and all holders at once, and share encryption.

Shamir, "How to share a secret", CACM 1979. A secret is cut into 9 limbs of 30 bits; each limb is the value at 0 of
its own uniformly random polynomial of degree t - 1 over the field of 2**31 - 1 elements, and a holder's share is
the nine values at the holder's point. Any t shares determine the secret, fewer are independent of it.

Shares travel between two clients through the server, encrypted with AES-256-GCM (NIST SP 800-38D).
"""

import struct

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.secagg.field import MERSENNE_31, Elements, PrimeField, RandomBytes
from wirelessfl.secagg.refusals import AlteredMessage

SECRET_BYTES = 32
_LIMB_BITS = 30
LIMBS = -(-8 * SECRET_BYTES // _LIMB_BITS)
_BIT = np.arange(_LIMB_BITS, dtype=np.uint64)

# The shares of the mask key and of the self-mask seed.
SECRETS = 2
PLAIN_BYTES = SECRETS * LIMBS * 4
SEALED_BYTES = PLAIN_BYTES + 16

_ENDS = struct.Struct("<II")


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
    secrets: Elements = (weights[:, :, None] * shares % field.prime).sum(axis=1) % field.prime
    return secrets


def split(
    secrets: NDArray[np.uint8], points: Elements, threshold: int, random_bytes: RandomBytes
) -> NDArray[np.uint32]:
    """Shares (m, s, LIMBS) of the secrets (s, 32) for the holders at the (m,) points."""
    bits = np.zeros((len(secrets), LIMBS * _LIMB_BITS), dtype=np.uint8)
    bits[:, : 8 * SECRET_BYTES] = np.unpackbits(secrets, axis=1, bitorder="little")
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
        not (limbs >> _LIMB_BITS).any() and not bits[:, 8 * SECRET_BYTES :].any(),
        "the shares do not reconstruct a 32-byte secret: at least one was altered",
    )
    return np.packbits(bits[:, : 8 * SECRET_BYTES], axis=1, bitorder="little")


def seal(key: bytes, session: bytes, sender: int, receiver: int, plaintext: bytes) -> bytes:
    """Ciphertext of a share; session, sender and receiver are authenticated with it.

    The pair's key is used once in each direction, so that the two ends make a nonce that never repeats.
    """
    ends = _ENDS.pack(sender, receiver)
    return AESGCM(key).encrypt(ends + b"\0\0\0\0", plaintext, session + ends)


def unseal(key: bytes, session: bytes, sender: int, receiver: int, ciphertext: NDArray[np.uint8]) -> bytes:
    """Share of a ciphertext.

    Raises:
        AlteredMessage: it was altered, or is not what this sender sealed for this receiver in this session.
    """
    ends = _ENDS.pack(sender, receiver)
    try:
        return AESGCM(key).decrypt(ends + b"\0\0\0\0", ciphertext.tobytes(), session + ends)
    except InvalidTag as error:
        raise AlteredMessage(f"the share of {sender} for {receiver} does not verify") from error


def shares_of(plaintexts: bytes) -> NDArray[np.uint32]:
    """The shares (m, SECRETS, LIMBS) in m plaintexts that follow each other."""
    return np.frombuffer(plaintexts, dtype="<u4").reshape(-1, SECRETS, LIMBS)
