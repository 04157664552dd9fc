"""The local objective: cross entropy."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def sample_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross entropy −log softmax(logits)[target] of each sample.

    Args:
        logits: (..., num_classes).
        targets: (...) int64 class numbers.

    Returns:
        (...) losses.
    """
    return -functional.log_softmax(logits, dim=-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
