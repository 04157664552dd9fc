"""Share encryption between two clients, relayed by the server: AES-256-GCM (NIST SP 800-38D)."""

from __future__ import annotations

import struct

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wirelessfl.secagg.messages import Octets
from wirelessfl.secagg.refusals import AlteredMessage
from wirelessfl.secagg.sharing import LIMBS

# The shares of the mask key and of the self-mask seed.
SECRETS = 2
PLAIN_BYTES = SECRETS * LIMBS * 4
SEALED_BYTES = PLAIN_BYTES + 16

_ENDS = struct.Struct("<II")


def seal(key: bytes, session: bytes, sender: int, receiver: int, plaintext: bytes) -> bytes:
    """Encrypt a share; session, sender and receiver are authenticated with it.

    The pair's key is used once in each direction, so that the two ends make a nonce that never repeats.
    """
    ends = _ENDS.pack(sender, receiver)
    return AESGCM(key).encrypt(ends + b"\0\0\0\0", plaintext, session + ends)


def unseal(key: bytes, session: bytes, sender: int, receiver: int, ciphertext: Octets) -> bytes:
    """Decrypt a share.

    Raises:
        AlteredMessage: it was altered, or is not what this sender sealed for this receiver in this session.
    """
    ends = _ENDS.pack(sender, receiver)
    try:
        return AESGCM(key).decrypt(ends + b"\0\0\0\0", ciphertext.tobytes(), session + ends)
    except InvalidTag as error:
        raise AlteredMessage(f"the share of {sender} for {receiver} does not verify") from error


def shares_of(plaintexts: bytes) -> np.ndarray[tuple[int, int, int], np.dtype[np.uint32]]:
    """The shares (m, SECRETS, LIMBS) in m plaintexts that follow each other."""
    return np.frombuffer(plaintexts, dtype="<u4").reshape(-1, SECRETS, LIMBS)
