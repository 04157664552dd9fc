"""Local SGD on one-dimensional quadratics, where every expectation is a closed form: no run, no sampling error."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from publications.convergence.local_sgd import LocalSgd, Smoothness

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Quadratics:
    """Devices with f_i(x) = a_i (x − c_i)²/2, and f their mean.

    Attributes:
        curvature: a_i, all above 0.
        centre: c_i.

    Raises:
        ValueError: if the lengths differ or a curvature is not above 0.
    """

    curvature: tuple[float, ...]
    centre: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.curvature) != len(self.centre) or not all(one > 0 for one in self.curvature):
            raise ValueError(f"one curvature above 0 for each centre, found {self.curvature} and {self.centre}")

    @property
    def convexity(self) -> float:
        """λ: f is exactly so strongly convex."""
        return float(np.mean(self.curvature))

    @property
    def minimiser(self) -> float:
        """θ*."""
        return float(np.dot(self.curvature, self.centre) / np.sum(self.curvature))

    def gap(self, model: float) -> float:
        """Optimality gap f − f* of a model."""
        return 0.5 * self.convexity * (model - self.minimiser) ** 2

    def constants(self, start: float) -> Smoothness:
        """What the theorems ask for: L of every f_i, the gap at the start, β = 0, and ζ² where curvatures agree.

        Raises:
            ValueError: if curvatures differ, for then ‖∇f_i − ∇f‖ has no bound.
        """
        if len(set(self.curvature)) > 1:
            raise ValueError("devices of different curvature have gradients that differ without bound")
        spread = self.curvature[0] ** 2 * float(np.var(self.centre))
        return Smoothness(self.curvature[0], self.gap(start), heterogeneity=spread)


def expected_gaps(problem: Quadratics, run: LocalSgd, start: float, rounds: int) -> Array:
    """(T τ,) E f(θ̂^k) − f* of Algorithm 1 with full batches, θ̂^k the mean over the round's devices.

    Local step s maps a device's model x to (1 − η a)^s x + (1 − (1 − η a)^s) c plus noise; a round's devices are one of
    all subsets of r, and the expectation is taken over every one of them.
    """
    chosen = np.array(list(combinations(range(run.devices), run.devices_per_round)))
    kept = 1 - run.step * np.array(problem.curvature)
    centre, best, half = np.array(problem.centre), problem.minimiser, problem.convexity / 2
    mean, square, found = start, start**2, []
    for _ in range(rounds):
        for local in range(run.local_steps + 1):
            keep = (kept**local)[chosen].mean(axis=1)
            shift = ((1 - kept**local) * centre)[chosen].mean(axis=1)
            noise = sum((kept ** (2 * step))[chosen].sum(axis=1) for step in range(local))
            spread = noise * (run.step * run.noise_std / run.devices_per_round) ** 2
            first = float(np.mean(keep * mean + shift))
            second = float(np.mean(keep**2 * square + 2 * keep * shift * mean + shift**2 + spread))
            if local < run.local_steps:
                found.append(half * (second - 2 * best * first + best**2))
        mean, square = first, second
    return np.array(found)
