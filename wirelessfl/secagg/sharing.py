"""Shamir's t-of-n secret sharing of 32-byte secrets, for all secrets and all holders at once.

Shamir, "How to share a secret", CACM 1979. A secret is cut into 9 limbs of 30 bits; each limb is the value at 0 of
its own uniformly random polynomial of degree t - 1 over the field of 2**31 - 1 elements, and a holder's share is
the nine values at the holder's point. Any t shares determine the secret, fewer are independent of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wirelessfl.secagg.field import MERSENNE_31, Elements, PrimeField, RandomBytes

SECRET_BYTES = 32
_LIMB_BITS = 30
LIMBS = -(-8 * SECRET_BYTES // _LIMB_BITS)
_BIT = np.arange(_LIMB_BITS, dtype=np.uint64)


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
    if not 1 <= threshold <= len(points):
        raise ValueError(f"the threshold must lie between 1 and the {len(points)} holders, not {threshold}")
    if len(np.unique(points)) != len(points) or points.min() < 1 or points.max() >= field.prime:
        raise ValueError(f"share points must be distinct and in [1, {field.prime})")
    coefficients = field.random((threshold - 1, len(secrets)), random_bytes)
    return field.matmul(field.powers(points, threshold), np.concatenate([secrets[None, :], coefficients]))


def reconstruct_elements(field: PrimeField, points: Elements, shares: Elements) -> Elements:
    """The secrets (o, s) of o owners from t shares (o, t, s) of each, taken at points (o, t).

    Owners whose shares lie at the same points use one set of Lagrange weights.
    """
    distinct, which = np.unique(points, axis=0, return_inverse=True)
    weights = field.lagrange_at_zero(distinct)[which.reshape(-1)]
    prime = np.uint64(field.prime)
    secrets: Elements = (weights[:, :, None] * shares % prime).sum(axis=1) % prime
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
    if (limbs >> np.uint64(_LIMB_BITS)).any() or bits[:, 8 * SECRET_BYTES :].any():
        raise ValueError("the shares do not reconstruct a 32-byte secret: at least one was altered")
    return np.packbits(bits[:, : 8 * SECRET_BYTES], axis=1, bitorder="little")
