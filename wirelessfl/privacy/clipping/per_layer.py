"""One norm for each layer."""

import math
from dataclasses import dataclass

import torch
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.privacy.clipping.base import Clipped, ClippingState, Memoryless, Samples, Step, require_positive, shrink
from wirelessfl.privacy.clipping_laws import ClippingLaw, PerLayerClip


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
            require_positive("each of clip_norms", norm)
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
        if squared.shape[-1] != len(self.layer_of):
            raise ValueError(
                f"clipping by layer needs the norms of {len(self.layer_of)} parts, not {squared.shape[-1]}"
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
    if norms is not None and len(norms) != layers:
        raise ValueError(f"norms: found {len(norms)} norms; allowed here: {layers}, one for each layer, or null")
    return PerLayerClipping(norms or (clip_norm / math.sqrt(max(layers, 1)),) * layers, layer_of)
