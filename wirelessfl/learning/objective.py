"""The local objective: cross entropy."""

from __future__ import annotations

import torch
from torch import Tensor


def sample_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross entropy −log softmax(logits)[target] of each sample.

    Args:
        logits: (..., num_classes).
        targets: (...) int64 class numbers.

    Returns:
        (...) losses.
    """
    return -_log_softmax(logits).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def losses_and_derivative(logits: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The losses, and the derivative of their weighted sum by the logits: weight · (softmax − one-hot).

    Args:
        logits: (..., num_classes).
        targets: (...) int64 class numbers.
        weights: (...) weight of each sample.

    Returns:
        (...) losses ℓ and (..., num_classes) ∂(Σ weights · ℓ)/∂logits.
    """
    log_probability = _log_softmax(logits)
    own, weights = targets.unsqueeze(-1), weights.unsqueeze(-1)
    losses = log_probability.gather(-1, own).squeeze(-1).neg_()
    derivative = log_probability.exp_().mul_(weights)
    return losses, derivative.scatter_add_(-1, own, -weights)


def _log_softmax(logits: Tensor) -> Tensor:
    """In single precision at least, also where products were taken in bfloat16."""
    return torch.log_softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
