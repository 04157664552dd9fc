"""Laws of noise: the multiplier a paper names and the one that holds.

A *multiplier* is the noise's standard deviation over how far one contribution can move the output, measured in
coordinates in which the noise is white.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from typing_extensions import override

from wirelessfl.errors import precondition

ClipDomain = Literal["gradient", "coefficients", "weighted"]


@dataclass(frozen=True)
class NoiseLaw:
    """Law of noise of multiplier sigma; here of independent noise on every coordinate."""

    def published_factor(self) -> float | None:
        """What sigma is multiplied by in the paper; None where no paper claims anything."""
        return 1.0

    def accounted_factor(self) -> float:
        """What sigma is multiplied by to give the multiplier that holds."""
        return 1.0

    def remarks(self) -> Iterator[str]:
        """Plain sentences on why the two differ."""
        return iter(())


@dataclass(frozen=True)
class WhiteNoise(NoiseLaw):
    """Independent noise of standard deviation sigma C on every coordinate."""


@dataclass(frozen=True)
class HaarNoise(NoiseLaw):
    """Noise N(0, (sigma C/W)²) on Haar coefficients (DESIGN.md §4).

    In whitened coordinates W∘H/(sigma C) a contribution moves the output by its weighted norm ‖W∘H‖ over sigma C.

    Attributes:
        length: m, the padded length, a power of two.
        clip_domain: ``coefficients`` clips ‖H‖ <= C (Algorithm 1 of the paper): ‖W∘H‖ <= m C. ``gradient`` clips
            the gradient itself: ‖W∘H‖ <= √m C. ``weighted`` clips ‖W∘H‖ <= C.
        reading: Which of the paper's two claims is published: ``algorithm_1`` is the accountant at sigma,
            ``lemma_2`` at sigma √((2 + log2 m)/2).
    """

    length: int
    clip_domain: ClipDomain = "coefficients"
    reading: Literal["algorithm_1", "lemma_2"] = "algorithm_1"

    def __post_init__(self) -> None:
        precondition(
            self.length >= 1 and not self.length & (self.length - 1),
            f"length must be a power of two, found {self.length}",
        )
        precondition(
            self.clip_domain in ("gradient", "coefficients", "weighted"),
            f"clip_domain must be gradient, coefficients or weighted, found {self.clip_domain!r}",
        )

    @override
    def published_factor(self) -> float | None:
        factor = 1.0 if self.reading == "algorithm_1" else self._lemma_2_factor()
        return None if self.clip_domain == "gradient" else factor

    @override
    def accounted_factor(self) -> float:
        return {"coefficients": 1.0 / self.length, "gradient": 1.0 / math.sqrt(self.length), "weighted": 1.0}[
            self.clip_domain
        ]

    @override
    def remarks(self) -> Iterator[str]:
        if self.clip_domain != "gradient":
            names = {"algorithm_1": "Algorithm 1, multiplier σ", "lemma_2": "Lemma 2, multiplier σ√((2 + log₂ m)/2)"}
            other = self._lemma_2_factor() if self.reading == "algorithm_1" else 1.0
            yield (
                f"The published figure reads the wavelet paper by {names[self.reading]}; its other reading is the "
                f"accountant at {other:.4g} σ."
            )
        if self.clip_domain != "weighted":
            bound = "m" if self.clip_domain == "coefficients" else "√m"
            yield (
                f"The noise on a coefficient is divided by its weight, so one contribution clipped in the "
                f"{self.clip_domain} domain can stand out {bound} times as far: the true multiplier is σ/{bound}."
            )

    def _lemma_2_factor(self) -> float:
        return math.sqrt((2.0 + math.log2(self.length)) / 2.0)
