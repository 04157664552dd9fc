"""What one sample does to an upload of the zCDP paper: the smallest case against Lemma 5 and Theorem 1, by hand.

One device holds m samples and takes τ steps on all of them (γ = m, so m/γ = 1 divides every τ). It starts at 0. One
sample, the canary, has the gradient −G or G at every model. The others have the gradient 0 within ηG/(2m) of 0, and
beyond one of length G by which a step leads away from 0. The first step moves the model by ±ηG/m, by the canary alone;
every later step moves it by ±ηG, by all samples. With m = τ = 2 the uploads are ±(ηG/2 + ηG): 3 ηG apart, where Lemma 5
says 2 ητG/γ = 2 ηG.

The sum over r devices has Gaussian noise of variance r τ η² σ², so its ρ is (3 ηG)²/(2 · 2 r η² σ²) = 2.25 G²/(r σ²),
and Theorem 1 says 2 τ G²/(r m γ σ²) = G²/(r σ²).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from publications.zcdp_sum import DELTA
from wirelessfl.privacy import gaussian_epsilon, zcdp_epsilon

_DEVICES, _NOISE_STD = 1_000_000, 1e-3
"""r, and σ in units of G: so small that a device's own noise leads no model across the flat part (50 σ at least)."""


@dataclass(frozen=True)
class Upload:
    """Full batches on one device, in units of η G.

    Attributes:
        samples: m = γ.
        steps: τ.
    """

    samples: int
    steps: int

    def end(self, canary: int) -> float:
        """The upload without noise, with the canary's gradient at −canary."""
        model = 0.0
        for _ in range(self.steps):
            others = float(np.sign(model)) if abs(model) > 1 / (2 * self.samples) else 0.0
            model += (canary + (self.samples - 1) * others) / self.samples
        return model

    @property
    def moved(self) -> float:
        """How far the upload moves when the canary is exchanged."""
        return self.end(1) - self.end(-1)

    @property
    def lemma_5(self) -> float:
        """2 τ/γ."""
        return 2 * self.steps / self.samples

    @property
    def rho(self) -> float:
        """ρ of the sum in G²/(r σ²): the least for which the sum, a Gaussian mechanism, has ρ-zCDP."""
        return self.moved**2 / (2 * self.steps)

    @property
    def theorem_1(self) -> float:
        """ρ of one round by Theorem 1, in G²/(r σ²)."""
        return 2 * self.steps / self.samples**2

    @property
    def published_epsilon(self) -> float:
        """ε by Theorem 1 for one round."""
        return float(zcdp_epsilon(self.theorem_1 / (_DEVICES * _NOISE_STD**2), DELTA))

    @property
    def exact_epsilon(self) -> float:
        """ε of one round by the exact curve of a Gaussian."""
        return float(gaussian_epsilon(self.moved / (_NOISE_STD * np.sqrt(_DEVICES * self.steps)), DELTA))


UPLOADS = (Upload(2, 1), Upload(2, 2), Upload(10, 2), Upload(10, 10))
"""One step, for which lemma and theorem hold; the smallest case against them; and larger ones."""


def upload_rows() -> list[dict[str, Any]]:
    """``uploads.csv``: what the paper says, and what an exact sum of 10⁶ uploads has."""
    return [
        {
            "m = γ": one.samples,
            "τ": one.steps,
            "upload moves by, Lemma 5": f"{one.lemma_5:g} ηG",
            "it moves by": f"{one.moved:g} ηG",
            "ρ r σ²/G², Theorem 1": f"{one.theorem_1:.3g}",
            "of the sum": f"{one.rho:.3g}",
            "ε published (Theorem 1)": f"{one.published_epsilon:.3g}",
            "ε of the sum, exactly": f"{one.exact_epsilon:.3g}",
        }
        for one in UPLOADS
    ]
