"""Privacy costs of clipping rules, as published and as they hold."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from typing_extensions import override

from wirelessfl.errors import precondition


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
            "steps, which is no bound; the accounted figure composes one event for each multiplier that was used."
        )


@dataclass(frozen=True)
class MooClip(ClippingLaw):
    """MOO adaptive clipping (DESIGN.md §4): C follows how much the loss falls per unit of C.

    Attributes:
        feedback: ``published`` reads raw gradients, ``private`` only gradients that are already noised.
    """

    feedback: Literal["published", "private"] = "published"

    def __post_init__(self) -> None:
        precondition(
            self.feedback in ("published", "private"), f"feedback must be published or private, found {self.feedback!r}"
        )

    @override
    @property
    def unproven(self) -> str | None:
        private = self.feedback == "private"
        return None if private else "the clipping norm follows raw private gradients, which no accountant sees"
