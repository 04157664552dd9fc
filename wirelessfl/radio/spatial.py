"""Gaussian fields along a node's way with exponential autocorrelation, for shadowing and line of sight.

Gudmundson (1991) measured e^{−Δd/d_cor} for shadowing; TR 38.901 states d_cor for every large-scale parameter (Table
7.5-6) and for the state of the line of sight (Table 7.6.3.1-2).
"""

import numpy as np
from numpy.typing import NDArray


def ornstein_uhlenbeck(
    previous: NDArray[np.float64], way: NDArray[np.float64], decorrelation: float, innovation: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A standard normal field (n,) further along the way: r g + √(1 − r²) z with r = e^{−way/d_cor}.

    Exact at every lag for steps of any lengths: the field is Markov along the way.

    Args:
        previous: (n,) the field at the last point.
        way: (n,) metres along the way since then, at least 0; 0 keeps the field as it is.
        decorrelation: d_cor in metres, positive.
        innovation: (n,) independent standard normal numbers.
    """
    kept = np.exp(-way / decorrelation)
    return np.asarray(kept * previous + np.sqrt(-np.expm1(-2.0 * way / decorrelation)) * innovation)


class PairedFields:
    """Two standard normal fields of different decorrelation distances that one white noise drives.

    Each has autocorrelation e^{−Δd/d_cor} with its own d_cor. Their correlation at one point is
    2 √(d₁ d₂)/(d₁ + d₂), so that a link that changes from one to the other keeps most of what shadows it; the standard
    states the two distances and nothing of the change.

    Args:
        decorrelation: (2,) d_cor in metres, positive.
    """

    def __init__(self, decorrelation: NDArray[np.float64]) -> None:
        self._rate = 1.0 / np.asarray(decorrelation, dtype=np.float64)
        first, second = self._rate.tolist()
        self._cross = 2.0 * np.sqrt(first * second) / (first + second)

    def start(self, normals: NDArray[np.float64]) -> NDArray[np.float64]:
        """The fields (n, 2) of the stationary law from standard normal numbers (n, 2); the first field is the first."""
        second = self._cross * normals[:, 0] + np.sqrt(1.0 - self._cross**2) * normals[:, 1]
        return np.stack([normals[:, 0], second], axis=1)

    def advance(
        self, previous: NDArray[np.float64], way: NDArray[np.float64], normals: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The fields (n, 2) after a way (n,) in metres from those before it, with fresh standard normals (n, 2)."""
        lost = -np.expm1(-2.0 * way[:, None] * self._rate)
        deviation = np.sqrt(lost)
        both_lost = -np.expm1(-way * self._rate.sum())
        shared = np.divide(self._cross * both_lost, deviation[:, 0], out=np.zeros_like(way), where=way > 0)
        own = np.sqrt(np.maximum(lost[:, 1] - shared**2, 0.0))
        innovation = np.stack([deviation[:, 0] * normals[:, 0], shared * normals[:, 0] + own * normals[:, 1]], axis=1)
        return np.asarray(np.exp(-way[:, None] * self._rate) * previous + innovation)
