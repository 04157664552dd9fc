"""Laws of noise and of clipping rules: privacy costs as published and as they hold.

A *multiplier* is the noise's standard deviation over how far one contribution can move the output, measured in
coordinates in which the noise is white.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.privacy.costs import require_choices
from wirelessfl.privacy.wavelet import lemma_1_variance

ClipDomain = Literal["gradient", "coefficients", "weighted"]
WaveletReading = Literal["algorithm_1", "lemma_2"]
MooFeedback = Literal["published", "private"]


@dataclass(frozen=True)
class NoiseLaw:
    """Law of noise of multiplier sigma; here of independent noise on every coordinate."""

    def published_factor(self) -> float | None:
        """Factor of sigma in the paper; None where no paper claims anything."""
        return 1.0

    def published_factor_at_server(self) -> float | None:
        """The same for noise that a server adds to a sum of updates."""
        return self.published_factor()

    def accounted_factor(self) -> float:
        """Factor of sigma that gives the multiplier that holds."""
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
    reading: WaveletReading = "algorithm_1"

    def __post_init__(self) -> None:
        precondition(
            self.length >= 1 and not self.length & (self.length - 1),
            f"length must be a power of two, found {self.length}",
        )
        require_choices(self, clip_domain=ClipDomain, reading=WaveletReading)

    @override
    def published_factor(self) -> float | None:
        return None if self.clip_domain == "gradient" else self.published_factor_at_server()

    @override
    def published_factor_at_server(self) -> float:
        # Algorithm 2 clips gradients as they are, whose norm is that of the update
        return 1.0 if self.reading == "algorithm_1" else math.sqrt(lemma_1_variance(self.length))

    @override
    def accounted_factor(self) -> float:
        return {"coefficients": 1.0 / self.length, "gradient": 1.0 / math.sqrt(self.length), "weighted": 1.0}[
            self.clip_domain
        ]

    @override
    def remarks(self) -> Iterator[str]:
        if self.clip_domain != "gradient":
            names = {"algorithm_1": "Algorithm 1, multiplier σ", "lemma_2": "Lemma 2, multiplier σ√((2 + log₂ m)/2)"}
            other = math.sqrt(lemma_1_variance(self.length)) if self.reading == "algorithm_1" else 1.0
            yield (
                f"The published figure reads the wavelet paper by {names[self.reading]}; its other reading is the "
                f"accountant at {other:.4g} σ."
            )
        if self.clip_domain != "weighted":
            bound = "m" if self.clip_domain == "coefficients" else "√m"
            yield (
                f"The noise on a coefficient is divided by its weight, so one contribution clipped in the "
                f"{self.clip_domain} domain has {bound} times the sensitivity: the true multiplier is σ/{bound}."
            )


@dataclass(frozen=True)
class ClippingLaw:
    """Public facts of a clipping rule: how a noise multiplier becomes privacy. Here for a public norm."""

    @property
    def unproven(self) -> str | None:
        """Why no guarantee holds, None if one does."""
        return None

    def published_multiplier(self, noise_multiplier: float, factor: float = 1.0) -> float:
        """The multiplier the paper feeds its accountant, ``factor`` being what its noise law makes of a multiplier."""
        return factor * noise_multiplier

    def accounted_multiplier(self, noise_multiplier: float) -> float:
        """The multiplier of the whole mechanism, the rule's own release included."""
        return noise_multiplier

    def remarks(self) -> Iterator[str]:
        """Plain sentences on why published and accounted differ."""
        return iter(())


@dataclass(frozen=True)
class FixedClip(ClippingLaw):
    """A public norm: flat clipping, or the median of a public proxy set, which costs nothing."""


@dataclass(frozen=True)
class UnknownClip(ClippingLaw):
    """A clipping rule whose class says nothing of what its norm reveals: nothing is proven."""

    @override
    @property
    def unproven(self) -> str:
        return "the clipping rule is code from outside whose law does not say what its norm reveals"


@dataclass(frozen=True)
class PerLayerClip(ClippingLaw):
    """Each layer j clipped to its own C_j, noise of standard deviation sigma √(ΣC_j²) on all.

    The papers print √ΣC_j for the sensitivity, which is another number (larger when the C_j are below one).
    """

    norms: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        precondition(
            self.norms and all(0 < norm < math.inf for norm in self.norms),
            f"layer norms must be positive and finite, found {self.norms}",
        )

    @property
    def sensitivity(self) -> float:
        """√(ΣC_j²), which holds."""
        return math.sqrt(sum(norm**2 for norm in self.norms))

    @property
    def printed_sensitivity(self) -> float:
        """√ΣC_j, as the papers print it."""
        return math.sqrt(sum(self.norms))

    @override
    def published_multiplier(self, noise_multiplier: float, factor: float = 1.0) -> float:
        return factor * noise_multiplier * self.sensitivity / self.printed_sensitivity

    @override
    def remarks(self) -> Iterator[str]:
        yield (
            f"For clipping by layer the papers print the sensitivity √ΣC_j = {self.printed_sensitivity:.4g}; "
            f"it is √(ΣC_j²) = {self.sensitivity:.4g}."
        )


@dataclass(frozen=True)
class QuantileClip(ClippingLaw):
    """Adaptive quantile clipping (Andrew et al. 2021): each step also releases a noised count of clipped norms.

    The count is centred, so that one contribution moves it by 1/2.

    Attributes:
        count_noise_std: sigma_b, noise on the centred count.
    """

    count_noise_std: float = 1.0

    def __post_init__(self) -> None:
        precondition(self.count_noise_std > 0, f"count_noise_std must be positive, found {self.count_noise_std}")

    @override
    def published_multiplier(self, noise_multiplier: float, factor: float = 1.0) -> float:
        return self.accounted_multiplier(factor * noise_multiplier)

    @override
    def accounted_multiplier(self, noise_multiplier: float) -> float:
        # One event at z = (z_Δ⁻² + (2 sigma_b)⁻²)^(−1/2).
        if noise_multiplier == 0:
            return 0.0
        return 1.0 / math.hypot(1.0 / noise_multiplier, 1.0 / (2.0 * self.count_noise_std))


@dataclass(frozen=True)
class DynamicClip(ClippingLaw):
    """Clip and multiplier on public schedules of their own (Du et al. 2021)."""

    @override
    def remarks(self) -> Iterator[str]:
        yield (
            "For noise on a schedule the paper takes the central limit of Gaussian differential privacy over all "
            "steps, which is not a bound; the accounted figure composes one event for each multiplier that was used."
        )


@dataclass(frozen=True)
class MooClip(ClippingLaw):
    """MOO adaptive clipping (DESIGN.md §4): C follows how much the loss falls per unit of C.

    Attributes:
        feedback: ``published`` reads raw gradients, ``private`` only gradients that are already noised.
    """

    feedback: MooFeedback = "published"

    def __post_init__(self) -> None:
        require_choices(self, feedback=MooFeedback)

    @override
    @property
    def unproven(self) -> str | None:
        raw = "the clipping norm depends on raw private gradients, which no accountant covers"
        return {"published": raw, "private": None}[self.feedback]
