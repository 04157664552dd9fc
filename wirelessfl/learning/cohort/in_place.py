"""Accumulation in place: into ← decay · into + something."""

import torch
from torch import Tensor

_LOOPED_ELEMENTS = 4096


def add_product(into: Tensor, left: Tensor, right: Tensor, decay: float) -> None:
    """Sets into ← decay · into + left @ right, batched; ``into`` (k, m, n) is a slice of a wider matrix.

    Into memory that is not contiguous, the batched product runs one matrix at a time: right for large matrices,
    where it saves a pass, wrong for small ones, where it is all overhead. Products in reduced precision cannot
    be accumulated in place.
    """
    in_place = into.is_contiguous() or into[0].numel() >= _LOOPED_ELEMENTS
    if in_place and not _reduces_precision(into.device.type):
        torch.baddbmm(into, left, right, beta=decay, out=into)
    else:
        add_to(into, torch.bmm(left, right), decay)


def _reduces_precision(device: str) -> bool:
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def add_to(into: Tensor, value: Tensor, decay: float) -> None:
    """Sets into ← decay · into + value; what ``into`` held does not matter, not even NaN, where ``decay`` is 0."""
    if decay == 1:
        into.add_(value)
    elif decay:
        into.mul_(decay).add_(value)
    else:
        into.copy_(value)
