"""Clipping to one public norm: fixed, or on a public schedule."""

from dataclasses import dataclass

from torch import Tensor
from typing_extensions import override

from wirelessfl.privacy.clipping.base import Clipped, ClippingState, Memoryless, Samples, Step, require_positive, shrink
from wirelessfl.privacy.clipping.schedule import Geometric, Schedule
from wirelessfl.privacy.clipping_laws import ClippingLaw, DynamicClip, FixedClip


def clip_to(samples: Samples, clip: Tensor, state: ClippingState) -> Clipped:
    """Clipping of every gradient of client i to norm ``clip[i]``; ``clip`` (k,)."""
    return Clipped(shrink(samples.norms(), clip[:, None]), clip, state)


@dataclass(frozen=True)
class FlatClipping(Memoryless):
    """g ← g · min(1, C/‖g‖) with one C for all (Abadi et al., "Deep learning with differential privacy", CCS 2016).

    Attributes:
        clip_norm: C.

    Raises:
        ValueError: If C is not positive and finite.
    """

    clip_norm: float

    def __post_init__(self) -> None:
        require_positive("clip_norm", self.clip_norm)

    @override
    def law(self) -> ClippingLaw:
        return FixedClip()

    @override
    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        return clip_to(samples, samples.squared_norms.new_full((len(samples.present),), self.clip_norm), state)


@dataclass(frozen=True)
class DynamicClipping(Memoryless):
    """Flat clipping to a norm on a public schedule, beside a noise multiplier on one of its own (Du et al. 2021).

    The schedules are public, so the rule itself costs nothing; each round is one event of its own multiplier.

    Attributes:
        clip_norm: C_m for each round, see ``Geometric``.

    Raises:
        ValueError: If the first norm is not positive.
    """

    clip_norm: Schedule

    def __post_init__(self) -> None:
        require_positive("clip_norm in round 1", self.clip_norm.at(1))

    @override
    def law(self) -> ClippingLaw:
        return DynamicClip()

    @override
    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        clip_norm = self.clip_norm.at(step.round_index)
        return clip_to(samples, samples.squared_norms.new_full((len(samples.present),), clip_norm), state)


def dynamic_clipping(clip_norm: float, clip_ratio: float, rounds: int) -> DynamicClipping:
    """Clipping rule whose norm goes from ``clip_norm`` to ``clip_ratio`` times it over the run."""
    return DynamicClipping(Geometric(clip_norm, clip_ratio, rounds))
