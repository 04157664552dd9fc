"""Gradient norm of the training objective at the models that a trace holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import wirelessfl as wfl
from wirelessfl.errors import WirelessFLError
from wirelessfl.learning import Examples, FlatModel, mlp
from wirelessfl.scenario import Scenario

GRADIENT_NORM = "gradient_norm"


def gradient_norms(scenario: Scenario, trace: Path) -> NDArray[np.float64]:
    """(T,) ‖∇f‖ of a multilayer perceptron, f the mean loss of all training samples.

    Args:
        scenario: Of the run.
        trace: Of the run; rounds whose model it does not hold are NaN.
    """
    norms = np.full(scenario.rounds, np.nan)
    try:
        stored = wfl.read_group(trace, "model")
    except WirelessFLError:  # a run that stored no model
        return norms
    examples = training_samples(scenario)
    model = perceptron(scenario, examples)
    for at, weights in zip(stored["round"].to_numpy(), stored["weights"].to_numpy(), strict=True):
        norms[int(at) - 1] = gradient_norm(model, torch.from_numpy(weights), examples)
    return norms


def gradient_norm(model: FlatModel, parameters: torch.Tensor, examples: Examples) -> float:
    """‖∇f‖ at one model (d,)."""
    at = parameters.detach().clone().requires_grad_(True)
    loss = torch.nn.functional.cross_entropy(model.logits(at, examples.inputs), examples.targets)
    (gradient,) = torch.autograd.grad(loss, at)
    return float(gradient.double().norm())


def training_samples(scenario: Scenario) -> Examples:
    """The samples of all clients, each once."""
    population = wfl.load_population(scenario)
    shards = population.shards(np.arange(len(population.sizes), dtype=np.int64))
    rows = torch.cat([own[:size] for own, size in zip(shards.index, shards.sizes.tolist(), strict=True)])
    return Examples(shards.inputs[rows], shards.targets[rows])


def perceptron(scenario: Scenario, examples: Examples) -> FlatModel:
    """The multilayer perceptron of a scenario, for inputs as these."""
    shape, hidden = examples.inputs.shape[1:], tuple(getattr(scenario.model, "hidden"))  # noqa: B009
    classes = int(examples.targets.max()) + 1
    return FlatModel(lambda: mlp(shape, classes, hidden), shape, classes)
