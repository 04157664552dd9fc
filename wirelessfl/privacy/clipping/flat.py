"""Clipping to public norms: one for all, fixed or on a public schedule, or one for each layer."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.privacy.clipping.base import (
    Clipped,
    ClippingState,
    Geometric,
    Memoryless,
    Samples,
    Schedule,
    Step,
    shrink,
)
from wirelessfl.privacy.costs import require_positive
from wirelessfl.privacy.laws import ClippingLaw, DynamicClip, FixedClip, PerLayerClip


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
        require_positive(clip_norm=self.clip_norm)

    @override
    def law(self) -> ClippingLaw:
        return FixedClip()

    @override
    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        return clip_to(samples, samples.squared_norms.new_full((len(samples.present),), self.clip_norm), state)


@dataclass(frozen=True)
class DynamicClipping(Memoryless):
    """Flat clipping to a norm on a public schedule, beside a noise multiplier on one of its own (Du et al. 2021).

    C_t = C_0 ρ_C^(−t/T) and μ_t = μ_0 ρ_μ^(t/T), so that the noise multiplier 1/μ_t shrinks along with the norm. The
    schedules are public, so the rule itself costs nothing; each round is one event of its own multiplier.

    Attributes:
        clip_norm: C_m for each round, see ``Geometric``.

    Raises:
        ValueError: If the first norm is not positive.
    """

    clip_norm: Schedule

    def __post_init__(self) -> None:
        require_positive(**{"clip_norm in round 1": self.clip_norm.at(1)})

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


@dataclass(frozen=True)
class PerLayerClipping(Memoryless):
    """Clipping of the part of a gradient in layer j to norm C_j; a whole gradient is then within √(ΣC_j²).

    Source: McMahan, Ramage, Talwar, Zhang, "Learning differentially private recurrent language models", ICLR 2018.

    Attributes:
        clip_norms: (J,) C_j.
        layer_of: (L,) the layer of each part of the gradient, from 0, such as the weight and the bias of layer 0.

    Raises:
        ValueError: If a norm is not positive and finite, or the layers are not 0 … J − 1.
    """

    clip_norms: tuple[float, ...]
    layer_of: tuple[int, ...]

    def __post_init__(self) -> None:
        for norm in self.clip_norms:
            require_positive(**{"each of clip_norms": norm})
        precondition(
            set(self.layer_of) == set(range(len(self.clip_norms))) and self.clip_norms,
            f"{len(self.clip_norms)} norms do not fit layers numbered {sorted(set(self.layer_of))}",
        )

    @override
    def law(self) -> ClippingLaw:
        return PerLayerClip(self.clip_norms)

    @override
    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        squared = samples.squared_norms
        precondition(
            squared.shape[-1] == len(self.layer_of),
            f"clipping by layer needs the norms of {len(self.layer_of)} parts, not {squared.shape[-1]}",
        )
        per_layer = [squared.new_zeros(squared.shape[:2]) for _ in self.clip_norms]
        for layer, part in zip(self.layer_of, squared.unbind(-1), strict=True):
            per_layer[layer] += part
        # Norms filled in where they are needed: a tensor or an index made of numbers is a copy to a GPU in every step.
        weights = [
            shrink(norm.sqrt(), squared.new_full((), clip))
            for norm, clip in zip(per_layer, self.clip_norms, strict=True)
        ]
        sensitivity = math.sqrt(sum(norm**2 for norm in self.clip_norms))
        of_parts = torch.stack([weights[layer] for layer in self.layer_of], dim=-1)
        return Clipped(of_parts, squared.new_full((len(squared),), sensitivity), state)


def per_layer_clipping(
    clip_norm: float, layer_of: tuple[int, ...], norms: tuple[float, ...] | None = None
) -> PerLayerClipping:
    """Clipping rule with these norms, or with C/√J for each of the J layers, so that a whole gradient is within C.

    Raises:
        ValueError: If there are norms of other layers than the model has.
    """
    layers = len(set(layer_of))
    chosen = (clip_norm / math.sqrt(max(layers, 1)),) * layers if norms is None else norms
    precondition(
        len(chosen) == layers,
        f"norms: found {len(chosen)} norms; allowed here: {layers}, one for each layer, or null",
    )
    return PerLayerClipping(chosen, layer_of)
