"""The rates of NR's modulation and coding schemes, with a floor below which a link carries nothing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition

# TS 38.214, Table 5.1.3.1-1: bits of a symbol, and the code rates × 1024 that are used with it
_TABLE = (
    (2, (120, 157, 193, 251, 308, 379, 449, 526, 602, 679)),
    (4, (340, 378, 434, 490, 553, 616, 658)),
    (6, (438, 466, 517, 567, 616, 666, 719, 772, 822, 873, 910, 948)),
)

EFFICIENCIES: NDArray[np.float64] = np.array([bits * rate / 1024 for bits, rates in _TABLE for rate in rates])
"""(29,) bit/s/Hz by MCS index; index 17 is by 0.004 less than index 16."""

_ASCENDING = np.sort(EFFICIENCIES)


@dataclass(frozen=True)
class ModulationAndCoding:
    """The most efficient scheme that a link carries: η ≤ log2(1 + γ/Γ), and none below the first.

    Attributes:
        gap: Γ ≥ 1, linear: how much more SNR a scheme needs than Shannon's limit.
    """

    gap: float = 1.0

    def __post_init__(self) -> None:
        precondition(1.0 <= self.gap < np.inf, f"gap must be at least 1 and finite, not {self.gap}")

    def throughput(self, bandwidth_hz: float, snr: NDArray[np.float64]) -> NDArray[np.float64]:
        """B η bit/s at signal-to-noise ratios (n,); 0 below the floor."""
        # A gap that is undone exactly by an SNR at a scheme's threshold is no outage
        carried = np.log2(1.0 + snr / self.gap) * (1.0 + 1e-12)
        schemes = np.searchsorted(_ASCENDING, carried, side="right")
        return np.asarray(bandwidth_hz * np.concatenate([[0.0], _ASCENDING])[schemes])

    @property
    def floor_snr(self) -> float:
        """Γ (2^η − 1) of the first scheme: the least SNR at which anything is sent."""
        return float(self.gap * (2.0 ** _ASCENDING[0] - 1.0))

    @staticmethod
    def least_bps(bandwidth_hz: float) -> float:
        """The rate of the first scheme in a band."""
        return float(bandwidth_hz * _ASCENDING[0])
