"""A transform that clips as another does and draws no noise: for its memory, not for its numbers."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.learning.private.transform import PrivateGradients
from wirelessfl.privacy.clipping import Step
from wirelessfl.privacy.mechanisms import NoiseMechanism, PerSampleGradients, divisible, is_divisible


def without_noise(transform: PrivateGradients) -> PrivateGradients:
    """The transform with the same clipping, in the norm of the same mechanism, whose noise is not drawn.

    Noise is added in place and drawn in pieces of bounded size. Where there are no values, that takes long.
    """
    undrawn = _UndrawnOnMeans if is_divisible(transform.noise) else _Undrawn
    return replace(transform, noise=undrawn(transform.noise))


@dataclass(frozen=True)
class _Undrawn(NoiseMechanism):
    noise: NoiseMechanism

    @override
    def squared_norms(self, gradients: PerSampleGradients) -> Tensor:
        return self.noise.squared_norms(gradients)

    @override
    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        return torch.zeros_like(sensitivity)


@dataclass(frozen=True)
class _UndrawnOnMeans(_Undrawn):
    @override
    @divisible
    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        return torch.zeros_like(sensitivity)
