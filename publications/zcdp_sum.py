"""A case in which the server has the sum alone, the arithmetic is exact, and Theorem 1 is wrong.

One device holds τ samples, used one a step in random order, and starts at 0. Where its model lies beyond ±η G/2, every
sample's gradient is as long as the clip and points outwards; else it is 0. One further sample, the canary, has gradient
±G at every model. From then on all later steps have the canary's direction, so the upload moves by up to τ η G, whereas
Lemma 5 sums up differences of one sample's gradients. The other r − 1 devices have gradients of 0 and add their noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from wirelessfl.privacy import zcdp_epsilon
from wirelessfl.streams import Streams

SAMPLES, NOISE_STD, DELTA = 100, 0.02, 1e-4
"""n = τ, with γ = 1 and η = G = 1: one whole pass, as Theorem 1 asks; σ; δ."""

DEVICES = (10_000, 62_500, 250_000)
"""Values of r, the devices in the sum."""


def uploads(sign: int, trials: int, seed: int = 1) -> NDArray[np.float64]:
    """(trials,) uploads of the device with the canary's gradient at −sign, its own noise included."""
    generator = Streams(seed).generator("zcdp/sum")
    place = generator.integers(0, SAMPLES, trials)
    noise = NOISE_STD * generator.standard_normal((SAMPLES, trials))
    model = np.zeros(trials)
    for step in range(SAMPLES):
        outwards = np.where(np.abs(model) > 0.5, np.sign(model), 0.0)
        model = model + np.where(place == step, float(sign), outwards) + noise[step]
    return model


def epsilon_of_sum(devices: int, trials: int = 2_000) -> float:
    """The least ε at δ = 1e-4 that two such sums of ``devices`` uploads have, by their hockey-stick divergence.

    The noise of the others is exactly Gaussian; the device's own upload is a mixture over ``trials`` draws of it.
    """
    spread = NOISE_STD * float(np.sqrt((devices - 1) * SAMPLES))
    ends = SAMPLES + 8 * spread
    grid = np.linspace(-ends, ends, 4_001)
    with_canary, without = (_density(uploads(sign, trials), spread, grid) for sign in (1, -1))

    def excess(epsilon: float) -> float:
        return float(np.trapezoid(np.maximum(with_canary - np.exp(epsilon) * without, 0.0), grid)) - DELTA

    return float(brentq(excess, 0.0, 600.0)) if excess(600.0) < 0 else 600.0


def _density(centres: NDArray[np.float64], spread: float, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.mean([norm.pdf(grid, centre, spread) for centre in centres], axis=0))


def published_epsilon(devices: int) -> float:
    """Theorem 1 with C = 1: ρ = 2 τ G²/(r n γ σ²)."""
    return float(zcdp_epsilon(2 / (devices * NOISE_STD**2), DELTA))


def sum_rows() -> list[dict[str, Any]]:
    """One row for each r: what Theorem 1 says, and the ε of the sum."""
    return [
        {
            "devices in the sum": devices,
            "ε published (Theorem 1)": f"{published_epsilon(devices):.3g}",
            "ε of the sum, at least": f"{epsilon_of_sum(devices):.3g}",
        }
        for devices in DEVICES
    ]
