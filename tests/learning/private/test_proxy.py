"""The clipping norm taken from public data, and the layers of a model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.learning.private.slow import SlowGaussian, SlowHaar
from tests.learning.test_cohort import MODELS, make
from wirelessfl.learning.cohort import ExecutionPlan
from wirelessfl.learning.data import Examples
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.private import layer_of_parameters, proxy_median_norm
from wirelessfl.privacy.clipping import Constant
from wirelessfl.privacy.mechanisms import GaussianMechanism, HaarMechanism, NoiseMechanism


def median_by_hand(
    model: FlatModel, parameters: torch.Tensor, proxy: Examples, measure: SlowGaussian | SlowHaar
) -> float:
    module = model.module.double()
    for parameter, value in zip(module.parameters(), model.unflatten(parameters).values(), strict=True):
        parameter.data = value.clone()
    norms = []
    for sample, target in zip(proxy.inputs.double(), proxy.targets, strict=True):
        loss = torch.nn.functional.cross_entropy(module(sample[None]), target[None])
        gradient = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(module.parameters()))])
        norms.append(measure.norm(gradient))
    module.float()
    return float(np.median(norms))


@pytest.mark.parametrize("name", ["mlp", "cnn_mnist"])
@pytest.mark.parametrize("count", [1, 6, 9])
@pytest.mark.parametrize(
    ("noise", "measure"),
    [
        (GaussianMechanism(Constant(1.0)), SlowGaussian(1.0)),
        (HaarMechanism(Constant(1.0), "coefficients"), SlowHaar(1.0, "coefficients")),
        (HaarMechanism(Constant(1.0), "weighted"), SlowHaar(1.0, "weighted")),
    ],
)
def test_the_median_is_that_of_the_norms_one_by_one(
    name: str, count: int, noise: NoiseMechanism, measure: SlowGaussian | SlowHaar
) -> None:
    model, population = make(name)
    everything = population.of_client(1)
    proxy = Examples(everything.inputs[:count], everything.targets[:count])
    parameters = model.initial(4).double()
    found = proxy_median_norm(model, parameters, proxy, noise, ExecutionPlan())
    assert found == pytest.approx(median_by_hand(model, parameters, proxy, measure), rel=1e-9)


def test_an_empty_proxy_is_refused() -> None:
    model, population = make("mlp")
    data = population.of_client(1)
    noise = GaussianMechanism(Constant(1.0))
    empty = Examples(data.inputs[:0], data.targets[:0])
    with pytest.raises(ValueError, match="the proxy set is empty"):
        proxy_median_norm(model, model.initial(4), empty, noise, ExecutionPlan())


def test_a_model_that_has_diverged_has_no_norm() -> None:
    model, population = make("mlp")
    noise = GaussianMechanism(Constant(1.0))
    given = model, model.initial(4) * torch.nan, population.of_client(1), noise, ExecutionPlan()
    assert not np.isfinite(proxy_median_norm(*given))


@pytest.mark.parametrize("name", MODELS)
def test_weight_and_bias_are_one_layer(name: str) -> None:
    model, _ = make(name)
    modules = [module for module in model.module.modules() if list(module.parameters(recurse=False))]
    expected = [layer for layer, module in enumerate(modules) for _ in module.parameters(recurse=False)]
    assert layer_of_parameters(model) == tuple(expected)
