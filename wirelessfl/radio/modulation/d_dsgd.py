"""Digital distributed gradient descent at the capacity of the Gaussian multiple-access channel (D-DSGD).

Amiri, Gündüz: "Machine Learning at the Wireless Edge: Distributed Stochastic Gradient Descent Over-the-Air", IEEE TSP
2020 (arXiv 1901.00844), section III.
"""

import math
from dataclasses import dataclass

from wirelessfl.errors import precondition

MEAN_BITS = 33
"""Bits of a mean in single precision and its sign."""


@dataclass(frozen=True)
class DDsgd:
    """Code at the symmetric capacity of K clients, R = (s/2K) log₂(1 + K P/(s σ²)) bits each over s real symbols.

    Attributes:
        symbols: s/d, in (0, 1].

    Raises:
        ValueError: if the share is out of range.
    """

    symbols: float = 0.5

    def __post_init__(self) -> None:
        precondition(0 < self.symbols <= 1, f"symbols must lie in (0, 1], not {self.symbols}")

    def symbol_count(self, dimension: int) -> int:
        """Number of real symbols s of a slot for updates of d coordinates."""
        # The tolerance keeps 0.07 of 100 coordinates at 7, where the product is a hair above it
        return max(1, math.ceil(self.symbols * dimension * (1.0 - 1e-15)))

    def capacity_bits(self, dimension: int, clients: int, energy: float) -> float:
        """Bits R of each client.

        Args:
            dimension: d.
            clients: K.
            energy: P/σ², of a client in the slot.
        """
        uses = self.symbol_count(dimension)
        return uses / (2 * clients) * math.log1p(clients * energy / uses) / math.log(2)

    def kept(self, dimension: int, clients: int, energy: float) -> int:
        """The largest q ≤ d/2 with log₂ C(d, q) + 33 ≤ R; 0 where not even one place fits."""
        room = self.capacity_bits(dimension, clients, energy) - MEAN_BITS
        low, high = 0, dimension // 2  # C(d, q) grows up to there
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if log2_binomial(dimension, middle) <= room else (low, middle - 1)
        return low


def log2_binomial(total: int, chosen: int) -> float:
    """log₂ C(d, q)."""
    logarithm = math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)
    return logarithm / math.log(2)
