"""Gradients of which some are not finite: whose norm is infinite or not a number, a sample counts as nothing."""

import torch
from torch import Tensor

from wirelessfl.learning.cohort import SampleGradients
from wirelessfl.learning.cohort.in_place import add_to


def not_finite(squared_norms: Tensor, present: Tensor) -> Tensor:
    """(k, B) which samples have a gradient of no finite norm, from (k, B, L) squared norms."""
    return ~squared_norms.sum(-1).isfinite() & present


class FiniteGradients:
    """The gradients of a step without the broken ones, for sums that must hold a clip.

    A weight of zero is not enough: zero times infinity is not a number, so that one such sample would reach the whole
    sum, and no noise hides that. The gradients are formed, which takes long, and happens where training breaks down.

    Args:
        gradients: Of all samples.
        broken: (k, B) which of them count as nothing.
    """

    def __init__(self, gradients: SampleGradients, broken: Tensor) -> None:
        self._gradients = gradients
        self._broken = broken

    def weighted_sum(self, weights: Tensor, into: Tensor | None = None, decay: float = 0.0) -> Tensor:
        """See ``SampleGradients.weighted_sum``."""
        gradients = self._gradients
        counted = (gradients.present & ~self._broken)[..., None]
        weights = (weights[..., None] if weights.ndim == 2 else weights).where(counted, 0.0)
        sizes = torch.tensor(gradients.sizes, device=weights.device)
        total: Tensor | None = None
        for part, formed in gradients.formed():
            own = weights[:, part]
            each = own if own.shape[-1] == 1 else own.repeat_interleave(sizes, dim=-1)
            summed = (formed.where(counted[:, part], 0.0) * each).sum(1)
            total = summed if total is None else total + summed
        assert total is not None, "a step has samples"
        if into is None:
            return total
        add_to(into, total, decay)
        return into
