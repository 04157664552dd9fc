"""Gradient norms of the training objective at stored models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import wirelessfl as wfl
from publications.gradients import gradient_norm, gradient_norms, perceptron, training_samples

SCENARIO = {
    "name": "gradients",
    "rounds": 3,
    "data": {"dataset": {"name": "digits"}, "limit": 200},
    "model": {"name": "mlp", "hidden": [2]},
    "clients": {"count": 4},
    "training": {"steps": 1, "batch_size": 10, "optimizer": {"name": "sgd", "lr": 0.5}},
    "uplink": {"kind": "ideal"},
    "trace": {"models": "every 2"},
}


def test_norms_stand_at_the_rounds_whose_models_are_stored(tmp_path: Path) -> None:
    """Of three rounds every other one and the last."""
    scenario = wfl.load_scenario(SCENARIO)
    wfl.simulate(scenario, tmp_path / "run", pictures=False)
    norms = gradient_norms(scenario, tmp_path / "run" / "trace.h5")
    assert np.isfinite(norms).tolist() == [False, True, True]
    plain = wfl.load_scenario(SCENARIO, overrides={"trace.models": "none"})
    wfl.simulate(plain, tmp_path / "plain", pictures=False)
    assert np.isnan(gradient_norms(plain, tmp_path / "plain" / "trace.h5")).all()


def test_the_norm_is_that_of_differences_of_the_loss() -> None:
    """Central differences in double precision, along every axis."""
    scenario = wfl.load_scenario(SCENARIO)
    examples = training_samples(scenario)
    assert len(examples) == 200
    model = perceptron(scenario, examples)
    at = model.initial(3).double()

    def loss(parameters: torch.Tensor) -> float:
        found = model.logits(parameters, examples.inputs.double())
        return float(torch.nn.functional.cross_entropy(found, examples.targets))

    axes = 1e-5 * torch.eye(model.dimension, dtype=torch.float64)
    slopes = [(loss(at + axis) - loss(at - axis)) / 2e-5 for axis in axes]
    assert gradient_norm(model, at.float(), examples) == pytest.approx(np.linalg.norm(slopes), rel=1e-4)
