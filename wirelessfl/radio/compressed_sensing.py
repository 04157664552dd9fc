"""Sparse vectors behind a random projection: subsampled cosine transforms, and approximate message passing.

Amiri, Gündüz: "Machine Learning at the Wireless Edge: Distributed Stochastic Gradient Descent Over-the-Air", IEEE TSP
2020 (arXiv 1901.00844). Donoho, Maleki, Montanari: "Message-passing algorithms for compressed sensing", PNAS 2009.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition


class Projection(Protocol):
    """A linear map of d coordinates to s measurements, with columns of norm 1 in the mean."""

    def forward(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """A x (..., s) of rows x (..., d)."""

    def transposed(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Aᵀ y (..., d) of rows y (..., s)."""


class SubsampledCosines:
    """√(d/s) times s random rows of the orthonormal DCT-II of d coordinates, with random signs; no matrix is stored.

    Args:
        dimension: d.
        measurements: s.
        generator: of the signs and of the rows.

    Raises:
        ValueError: if s is not in 1..d.
    """

    def __init__(self, dimension: int, measurements: int, generator: np.random.Generator) -> None:
        precondition(1 <= measurements <= dimension, f"s must be in 1..{dimension}, not {measurements}")
        self._signs = generator.choice(np.array([-1.0, 1.0]), dimension)
        self._kept = np.sort(generator.choice(dimension, measurements, replace=False))
        self._scale = np.sqrt(dimension / measurements)

    def forward(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """A x (..., s)."""
        from scipy import fft  # which few scenarios need

        return np.asarray(self._scale * fft.dct(rows * self._signs, norm="ortho")[..., self._kept])

    def transposed(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Aᵀ y (..., d)."""
        from scipy import fft  # which few scenarios need

        spread = np.zeros((*rows.shape[:-1], len(self._signs)))
        spread[..., self._kept] = rows
        return np.asarray(self._scale * fft.idct(spread, norm="ortho") * self._signs)


def approximate_message_passing(
    projection: Projection, measured: NDArray[np.float64], iterations: int, threshold: float
) -> NDArray[np.float64]:
    """Estimate (d,) of a sparse x from y = A x + noise (s,).

    x ← soft(x + Aᵀ z, θ σ̂) and z ← y − A x + z ‖x‖₀/s with σ̂ = ‖z‖/√s; the last term keeps the error of x + Aᵀ z white.

    Args:
        projection: A.
        measured: y.
        iterations: how often, at least once.
        threshold: θ, in units of the error's standard deviation.
    """
    count = len(measured)
    residual = measured
    estimate = np.zeros_like(projection.transposed(measured))
    for _ in range(iterations):
        noisy = estimate + projection.transposed(residual)
        level = threshold * float(np.linalg.norm(residual)) / np.sqrt(count)
        estimate = np.sign(noisy) * np.maximum(np.abs(noisy) - level, 0.0)
        residual = measured - projection.forward(estimate) + residual * (np.count_nonzero(estimate) / count)
    return estimate


def framed(projected: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """Symbols (k, s) of projections (k, s − 1) with their scale as the last one: √a (x, 1), a = P/(‖x‖² + 1).

    Every row spends the power P. The scale depends on the client's data.
    """
    whole = np.concatenate([projected, np.ones((len(projected), 1))], axis=1)
    return np.asarray(whole * np.sqrt(power / (whole**2).sum(axis=1, keepdims=True)))


def unframed(received: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean (s − 1,) of projections by their scales, from the sum (s,) of symbols; 0 if no scale is positive."""
    scale = float(received[-1])
    return received[:-1] / scale if scale > 0 else np.zeros(len(received) - 1)
