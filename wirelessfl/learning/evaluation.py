"""Accuracy and loss of the global model on the test set."""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.errors import precondition
from wirelessfl.learning.cohort.execution import full_precision, map_in_order
from wirelessfl.learning.data.examples import Examples
from wirelessfl.learning.flat import FlatModel, sample_losses
from wirelessfl.learning.layout import arranged, image_format, samples_at_once
from wirelessfl.learning.winograd.modules import MinimallyFiltered
from wirelessfl.transfers import download

_CHUNK = 1024  # samples at a time; fixed, so that the sum has one order


@dataclass(frozen=True)
class Evaluation:
    """Accuracy and loss of a model on a set of examples.

    Attributes:
        accuracy: Share of samples whose largest logit is that of the target; NaN logits count as wrong.
        loss: Mean cross entropy.
        correct: (N,) bool, sample by sample; empty where nothing was evaluated.
    """

    accuracy: float
    loss: float
    correct: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_), repr=False, compare=False)


def evaluate(model: FlatModel, parameters: Tensor, examples: Examples, threads: int = 1) -> Evaluation:
    """Evaluation in chunks of samples, on the device of ``parameters`` (d,).

    Args:
        model: The model.
        parameters: (d,).
        examples: The test set.
        threads: Worker threads on a CPU; they change no bit.

    Raises:
        ValueError: if there are no examples.
    """
    precondition(len(examples) != 0, "there are no examples to evaluate on")

    on_cpu = parameters.device.type == "cpu"
    # Before the workers: both run the module
    layout = image_format(model) if on_cpu else torch.contiguous_format
    at_once = samples_at_once(model, _CHUNK) if on_cpu else _CHUNK

    def assess_each(chunks: range) -> list[tuple[Tensor, Tensor]]:
        own = model.on(parameters.device)
        with full_precision(parameters.device):
            return [_assess(own, parameters, examples, first, at_once, layout) for first in chunks]

    chunks = range(0, len(examples), _CHUNK)
    if not on_cpu:
        results = assess_each(chunks)
    else:
        shares = [chunks[first::threads] for first in range(min(threads, len(chunks)))]
        of_shares = list(map_in_order(assess_each, shares, threads))
        results = [of_shares[index % len(shares)][index // len(shares)] for index in range(len(chunks))]
    totals = torch.stack([of_chunk for of_chunk, _ in results]).sum(dim=0)
    found = download({"totals": totals, "right": torch.cat([right for _, right in results]).double()})
    correct, loss = found["totals"].tolist()
    return Evaluation(correct / len(examples), loss / len(examples), found["right"] > 0)


def _assess(
    model: FlatModel, parameters: Tensor, examples: Examples, first: int, at_once: int, layout: torch.memory_format
) -> tuple[Tensor, Tensor]:
    # (2,) float64: how many of a chunk of samples are right, and the sum of their losses; and (n,) which are right.
    with torch.no_grad():
        inputs = examples.inputs[first : first + _CHUNK].to(parameters.device)
        logits = _logits(model, parameters, inputs, at_once, layout)
        own = examples.targets[first : first + _CHUNK].to(parameters.device)
        correct = (logits.argmax(dim=-1) == own) & logits.isfinite().all(dim=-1)
        loss = sample_losses(logits, own).sum(dtype=torch.float64)
        return torch.stack([correct.sum(dtype=torch.float64), loss]), correct


def _logits(model: FlatModel, parameters: Tensor, inputs: Tensor, at_once: int, layout: torch.memory_format) -> Tensor:
    # (n, num_classes) logits of a chunk of samples, so many at a time
    parts = torch.split(inputs, at_once)
    if inputs.ndim == 4:
        parts = tuple(arranged(part, layout) for part in parts)
    with MinimallyFiltered():
        return torch.cat([model.logits(parameters, part) for part in parts])
