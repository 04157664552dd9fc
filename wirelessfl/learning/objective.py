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
    return -torch.log_softmax(logits, dim=-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def losses_and_derivative(logits: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The losses, and the derivative of their weighted sum by the logits: weight · (softmax − one-hot).

    Args:
        logits: (..., num_classes).
        targets: (...) int64 class numbers.
        weights: (...) weight of each sample.

    Returns:
        (...) losses ℓ and (..., num_classes) ∂(Σ weights · ℓ)/∂logits.
    """
    log_probability = torch.log_softmax(logits, dim=-1)
    own = targets.unsqueeze(-1)
    losses = -log_probability.gather(-1, own).squeeze(-1)
    derivative = log_probability.exp_()
    derivative.scatter_add_(-1, own, derivative.new_full((), -1.0).expand(own.shape))
    return losses, derivative.mul_(weights.unsqueeze(-1))
