"""Softmax regression on data that are at hand: a problem whose constants are all known.

The loss of a sample is −log softmax(Θ x̃)[y] with x̃ = (x, 1). Its gradient is (π − e_y) x̃ᵀ with ‖π − e_y‖ ≤ √2, and its
Hessian (diag π − π πᵀ) ⊗ x̃ x̃ᵀ with ‖diag π − π πᵀ‖ ≤ 1/2. Everything else follows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SoftmaxRegression:
    """The mean of the devices' mean cross entropies, f = Σ p_i F_i.

    Attributes:
        inputs: (N, p) features, without the constant.
        targets: (N,) classes from 0.
        device: (N,) whose sample it is, from 0; every device has one at least.
        classes: C.

    Raises:
        ValueError: if the shapes do not fit or a device holds nothing.
    """

    inputs: Array
    targets: NDArray[np.int64]
    device: NDArray[np.int64]
    classes: int

    def __post_init__(self) -> None:
        if self.inputs.ndim != 2 or not len(self.inputs) == len(self.targets) == len(self.device):
            raise ValueError("inputs (N, p), targets (N,) and device (N,) must have equal lengths")
        if len(self.inputs) == 0 or np.any(np.bincount(self.device) == 0):
            raise ValueError("every device needs at least one sample")
        if np.any((self.targets < 0) | (self.targets >= self.classes)):
            raise ValueError(f"targets must lie between 0 and {self.classes - 1}")

    @property
    def extended(self) -> Array:
        """(N, p + 1) x̃: the inputs and a constant 1."""
        return np.concatenate([self.inputs, np.ones((len(self.inputs), 1))], axis=1)

    @property
    def weight(self) -> Array:
        """(n,) p_i, shares of the samples."""
        counts = np.bincount(self.device)
        return np.asarray(counts / counts.sum())

    @property
    def dimension(self) -> int:
        """Parameters d."""
        return int(self.classes * (self.inputs.shape[1] + 1))

    def matrix(self, flat: Array) -> Array:
        """Θ (C, p + 1) from a flat model (d,) as the library's ``logistic`` has it: weights row by row, then biases."""
        if flat.shape != (self.dimension,):
            raise ValueError(f"a model of {self.dimension} numbers is needed, found shape {flat.shape}")
        weights, bias = np.split(np.asarray(flat, dtype=np.float64), [self.classes * self.inputs.shape[1]])
        return np.concatenate([weights.reshape(self.classes, -1), bias[:, None]], axis=1)

    def loss(self, theta: Array) -> float:
        """f(Θ), the mean over all samples."""
        scores = self.extended @ theta.T
        top = scores.max(axis=1)
        spread = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
        return float(np.mean(spread - scores[np.arange(len(scores)), self.targets]))

    def gradient(self, theta: Array) -> Array:
        """∇f(Θ) (C, p + 1)."""
        return np.asarray(self._residual(theta).T @ self.extended / len(self.inputs))

    def device_gradients(self, theta: Array) -> Array:
        """∇F_i(Θ) (n, C, p + 1)."""
        residual, extended = self._residual(theta), self.extended
        held = [self.device == one for one in range(len(self.weight))]
        return np.stack([residual[rows].T @ extended[rows] / rows.sum() for rows in held])

    def minimum(self, steps: int = 50) -> float:
        """Least f, by Newton's method from zero, for classes that no plane separates.

        Raises:
            ValueError: if the gradient has not vanished after ``steps`` steps.
        """
        theta = np.zeros((self.classes, self.inputs.shape[1] + 1))
        for _ in range(steps):
            gradient = self.gradient(theta)
            if np.linalg.norm(gradient) < 1e-12:
                return self.loss(theta)
            step = np.linalg.lstsq(self._hessian(theta), gradient.ravel(), rcond=1e-10)[0]
            theta = theta - step.reshape(theta.shape)
        raise ValueError("no minimum was found: are the classes separable?")

    def _hessian(self, theta: Array) -> Array:
        """(d, d) mean of (diag π − π πᵀ) ⊗ x̃ x̃ᵀ."""
        residual, extended = self._residual(theta), self.extended
        share = residual + np.eye(self.classes)[self.targets]
        curve = share[:, :, None] * np.eye(self.classes) - share[:, :, None] * share[:, None, :]
        whole = np.einsum("nab,ni,nj->aibj", curve, extended, extended) / len(extended)
        return np.asarray(whole.reshape(self.dimension, self.dimension))

    def _residual(self, theta: Array) -> Array:
        """(N, C) π − e_y."""
        scores = self.extended @ theta.T
        share = np.exp(scores - scores.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        share[np.arange(len(share)), self.targets] -= 1
        return np.asarray(share)

    def smoothness(self) -> float:
        """L = max_i λ_max(Σ x̃ x̃ᵀ/n_i)/2, for every F_i and hence for f."""
        extended = self.extended
        largest = [np.linalg.norm(extended[self.device == one], ord=2) ** 2 for one in range(len(self.weight))]
        return float(max(np.array(largest) / np.bincount(self.device)) / 2)

    def gradient_bounds(self) -> Array:
        """(n,) √2 times the mean of ‖x̃‖: no gradient of F_i is longer. G = Σ p_i of these bounds ‖∇f‖."""
        norms = np.linalg.norm(self.extended, axis=1)
        return np.asarray(np.sqrt(2) * np.bincount(self.device, weights=norms) / np.bincount(self.device))

    def deviations(self) -> Array:
        """(n,) κ_i ≥ ‖∇F_i − ∇f‖ = (1 − p_i) ‖∇F_i − that of all others‖."""
        bounds, share = self.gradient_bounds(), self.weight
        total = float(bounds @ share)
        return np.asarray((1 - share) * bounds + total - share * bounds)

    def heterogeneity(self) -> float:
        """ζ² ≥ Σ p_i ‖∇F_i − ∇f‖², by the second moments."""
        return float(self.weight @ self.gradient_bounds() ** 2)

    def gradient_variance(self) -> float:
        """β², of one sample's gradient about its device's mean, by the second moments."""
        squares = 2 * (self.extended**2).sum(axis=1)
        return float((np.bincount(self.device, weights=squares) / np.bincount(self.device)).max())

    def dissimilarity(self, direction: Array) -> float:
        """B of Definition 2, for two classes that ``direction`` separates with a margin.

        With 1 − π_y of a sample written u, ‖∇F_i‖ ≤ √2 R ū_i, and along the direction ‖∇f‖ ≥ √2 γ Σ p_i ū_i, where R
        is the largest ‖x̃‖ and γ the margin. Σ p_i ū_i² ≤ (Σ p_i ū_i)²/min p_i then gives B² = R²/(γ² min p_i).

        Args:
            direction: (p + 1,), of any length: class 1 where direction · x̃ > 0.

        Raises:
            ValueError: if there are not two classes, or some sample lies on the wrong side.
        """
        if self.classes != 2:
            raise ValueError(f"a margin is one of two classes, not of {self.classes}")
        unit = np.asarray(direction) / np.linalg.norm(direction)
        margin = float(((2 * self.targets - 1) * (self.extended @ unit)).min())
        if margin <= 0:
            raise ValueError("the direction does not separate the classes")
        reach = float(np.linalg.norm(self.extended, axis=1).max())
        return reach / (margin * float(np.sqrt(self.weight.min())))
