"""Accuracy and loss of the global model on the test set."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from wirelessfl.learning.data.examples import Examples
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.objective import sample_losses

_CHUNK = 1024  # samples at a time; fixed, so that the sum has one order


@dataclass(frozen=True)
class Evaluation:
    """Of a model on a set of examples.

    Attributes:
        accuracy: Share of samples whose largest logit is that of the target; NaN logits count as wrong.
        loss: Mean cross entropy.
    """

    accuracy: float
    loss: float


def evaluate(model: FlatModel, parameters: Tensor, examples: Examples) -> Evaluation:
    """Evaluate in chunks of samples, on the device of ``parameters`` (d,).

    Raises:
        ValueError: if there are no examples.
    """
    if len(examples) == 0:
        raise ValueError("there are no examples to evaluate on")
    device = parameters.device
    model.module.to(device)
    correct = torch.zeros((), dtype=torch.int64, device=device)
    loss = torch.zeros((), dtype=torch.float64, device=device)
    with torch.no_grad():
        for first in range(0, len(examples), _CHUNK):
            logits = model.logits(parameters, examples.inputs[first : first + _CHUNK].to(device))
            own = examples.targets[first : first + _CHUNK].to(device)
            correct += ((logits.argmax(dim=-1) == own) & logits.isfinite().all(dim=-1)).sum()
            loss += sample_losses(logits, own).sum(dtype=torch.float64)
    return Evaluation(correct.item() / len(examples), loss.item() / len(examples))
