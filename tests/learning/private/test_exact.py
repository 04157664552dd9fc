"""Batched private training equals the slow loop over clients, steps and samples, in double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tests.learning.plain_loop import RandomPopulation, train_client
from tests.learning.private.slow import (
    SlowDynamic,
    SlowFlat,
    SlowGaussian,
    SlowHaar,
    SlowMeanGaussian,
    SlowMoo,
    SlowPerLayer,
    SlowPrivacy,
    SlowQuantile,
    SlowSampleMoo,
)
from tests.learning.test_cohort import MODELS, STREAMS, collect, make
from tests.speed import rest_slow
from wirelessfl.learning.batches import Sampling
from wirelessfl.learning.cohort import CohortBlock, ExecutionPlan, LocalTraining, train_cohort
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.models import resnet18_gn
from wirelessfl.learning.optimizers import SGD, AdaGrad, Adam, Optimizer
from wirelessfl.learning.private import PrivateGradients, layer_of_parameters
from wirelessfl.privacy.clipping import (
    ClippingRule,
    Constant,
    DynamicClipping,
    FlatClipping,
    Geometric,
    PerLayerClipping,
    PrivateMooClipping,
    PublishedMooClipping,
    QuantileClipping,
    SampleMooClipping,
)
from wirelessfl.privacy.mechanisms import GaussianMechanism, HaarMechanism, MeanGaussianMechanism, NoiseMechanism

ROUND = 3
CLIENTS = [4, 1, 3, 0, 5, 2]

NOISES: dict[str, tuple[NoiseMechanism, SlowGaussian | SlowHaar]] = {
    "gaussian": (GaussianMechanism(Constant(0.4)), SlowGaussian(0.4)),
    "growing": (GaussianMechanism(Geometric(0.4, 2.0, 4)), SlowGaussian(0.4 * 2.0**0.5)),
    "mean": (MeanGaussianMechanism(0.05), SlowMeanGaussian(0.05)),
    "coefficients": (HaarMechanism(Constant(0.4)), SlowHaar(0.4, "coefficients")),
    "weighted": (HaarMechanism(Constant(0.4), "weighted"), SlowHaar(0.4, "weighted")),
    "gradient": (HaarMechanism(Constant(0.4), "gradient"), SlowHaar(0.4, "gradient")),
}


def per_layer(model: FlatModel) -> tuple[ClippingRule, SlowFlat]:
    layer_of = layer_of_parameters(model)
    clips = [0.3 + 0.2 * layer for layer in range(max(layer_of) + 1)]
    sizes = [sum(s for s, own in zip(model.sizes, layer_of, strict=True) if own == j) for j in range(len(clips))]
    return PerLayerClipping(tuple(clips), layer_of), SlowPerLayer(clips, sizes)


RULES: dict[str, Callable[[FlatModel], tuple[ClippingRule, SlowFlat]]] = {
    "flat": lambda model: (FlatClipping(0.7), SlowFlat(0.7)),
    "per_layer": per_layer,
    "dynamic": lambda model: (DynamicClipping(Geometric(1.2, 0.3, 5)), SlowDynamic(1.2, 0.3, 5)),
    "quantile": lambda model: (QuantileClipping(0.5, 0.4, 0.3, 1.5), SlowQuantile(0.5, 0.4, 0.3, 1.5)),
    "moo_published": lambda model: (PublishedMooClipping(0.7, 0.02, 0.5), SlowMoo(0.7, 0.02, 0.5, "published")),
    "moo_sample": lambda model: (SampleMooClipping(0.7, 0.02, 0.1), SlowSampleMoo(0.7, 0.02, 0.1)),
    "moo_private": lambda model: (PrivateMooClipping(0.7, 0.02, 0.5), SlowMoo(0.7, 0.02, 0.5, "private")),
}


def compare(
    model: FlatModel, population: RandomPopulation, training: LocalTraining, rule: str, noise: str, clients: list[int]
) -> None:
    clipping, slow_rule = RULES[rule](model)
    mechanism, slow_noise = NOISES[noise]
    start = model.initial(2).double()
    transform = PrivateGradients(clipping, mechanism)
    plan = ExecutionPlan(chunk=4)
    blocks = list(train_cohort(model, start, population, np.array(clients), training, STREAMS, ROUND, plan, transform))
    updates, numbers = collect(blocks, len(clients))
    slow = SlowPrivacy(slow_rule, slow_noise, STREAMS, ROUND, training.learning_rate)
    clips = clips_after(blocks)
    for row, (client, update, loss) in enumerate(zip(clients, updates, numbers[:, 2], strict=True)):
        expected = train_client(model, start, population, client, training, STREAMS, ROUND, slow)
        # Both in double precision, where only a wrong formula can make a difference above 1e-8.
        torch.testing.assert_close(update, expected.update, rtol=1e-8, atol=1e-10)
        assert loss == pytest.approx(expected.train_loss, rel=1e-8, nan_ok=True)
        if row in clips:
            assert clips[row] == pytest.approx(slow.memories[client]["clip"], rel=1e-8)


def clips_after(blocks: list[CohortBlock]) -> dict[int, float]:
    """Position to the norm that a client goes on with, for rules that remember one."""
    return {
        int(position): float(clip)
        for block in blocks
        for position, clip in zip(block.positions, block.transform_state.get("clip_norm", ()), strict=False)
    }


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("rule", rest_slow(RULES, fast=2))
def test_every_model_and_rule_equals_the_loop(name: str, rule: str) -> None:
    model, population = make(name)
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, steps=3, sampling="poisson", prox_mu=0.1)
    compare(model, population, training, rule, "gaussian", CLIENTS)


WAVELET_NORMS = ("coefficients", "weighted")  # they do not split by layers
PAIRS = [(noise, rule) for noise in NOISES for rule in RULES if (rule, noise in WAVELET_NORMS) != ("per_layer", True)]


@pytest.mark.parametrize(("noise", "rule"), rest_slow(PAIRS, fast=20))
def test_every_noise_and_rule_equals_the_loop(noise: str, rule: str) -> None:
    model, population = make("mlp")
    training = LocalTraining(SGD(), 0.05, batch_size=8, epochs=2, sampling="shuffle", clip=1.0)
    compare(model, population, training, rule, noise, CLIENTS)


@pytest.mark.parametrize("optimizer", rest_slow([SGD(), SGD(0.9), Adam(eps=1e-3), AdaGrad(1e-3)], fast=2), ids=repr)
@pytest.mark.parametrize("noise", ["gaussian", "coefficients", "weighted"])
@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
def test_every_optimizer_takes_the_noised_gradient(optimizer: Optimizer, noise: str, sampling: Sampling) -> None:
    """DP-SGD, DP-Adam and DP-AdaGrad, and their wavelet forms."""
    model, population = make("mlp")
    compare(model, population, LocalTraining(optimizer, 0.02, 8, steps=5, sampling=sampling), "flat", noise, CLIENTS)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_resnet_equals_the_loop(rule: str) -> None:
    model = FlatModel(lambda: resnet18_gn((3, 8, 8), 3), (3, 8, 8), 3)
    population = RandomPopulation(np.array([2, 2]), (3, 8, 8))
    compare(model, population, LocalTraining(SGD(), 0.01, batch_size=2, steps=2), rule, "gaussian", [1])


def test_norms_are_those_of_autograd() -> None:
    """Per-sample norms of every shipped model, parameter by parameter, against one backward pass a sample."""
    for name in MODELS:
        model, population = make(name)
        start = model.initial(2).double()
        training = LocalTraining(SGD(), 0.05, batch_size=7, epochs=1)
        seen: list[torch.Tensor] = []

        class Probe(FlatClipping):
            def clip(self, samples, state, step):  # type: ignore[no-untyped-def]
                seen.append(samples.squared_norms)  # noqa: B023
                return super().clip(samples, state, step)

        transform = PrivateGradients(Probe(1.0), GaussianMechanism(Constant(0.0)))
        list(train_cohort(model, start, population, np.array([0]), training, STREAMS, 1, ExecutionPlan(), transform))
        module = model.module.double()
        for parameter, value in zip(module.parameters(), model.unflatten(start).values(), strict=True):
            parameter.data = value.clone()
        data = population.of_client(0)
        for sample in range(7):
            loss = torch.nn.functional.cross_entropy(module(data.inputs[[sample]].double()), data.targets[[sample]])
            gradient = torch.autograd.grad(loss, list(module.parameters()))
            expected = torch.stack([part.square().sum() for part in gradient])
            torch.testing.assert_close(seen[0][0, sample], expected, rtol=1e-9, atol=1e-18)
        module.float()
