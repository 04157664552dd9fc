"""What a codec of digital uploads is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Payload:
    """Encoded vectors of k clients.

    Attributes:
        content: whatever the codec's own ``decode`` takes.
        bits: of each client's.
    """

    content: Any
    bits: int


@runtime_checkable
class Codec(Protocol):
    """How vectors become bits. Their number is public and known before training: airtime does not tell of data."""

    def bits(self, dimension: int) -> int:
        """Bits of an encoded vector of length d."""

    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        """The payload of vectors (k, d), with randomness of k generators, one a client."""

    def decode(self, payload: Payload) -> NDArray[np.float32]:
        """(k, d) what the server reconstructs."""
