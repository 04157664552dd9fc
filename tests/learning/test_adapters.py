"""Models of which a part is trained: frozen parameters, and low-rank adapters."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learning.plain_loop import RandomPopulation
from tests.learning.private.test_exact import compare as compare_privately
from tests.learning.test_cohort import MODELS, SIZES, STREAMS, collect
from tests.learning.test_cohort import compare as compare_plainly
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import ExecutionPlan, FlatModel, LocalTraining, train_cohort
from wirelessfl.learning.adapters import LowRankAdaptation, LowRankConv2d, LowRankLinear, TrainedPart, merge_adapters
from wirelessfl.learning.algorithms import FedAvg
from wirelessfl.learning.cohort.peak import BlockMemory
from wirelessfl.learning.cohort.stacked import compile_program
from wirelessfl.learning.data.examples import Examples
from wirelessfl.learning.models import mlp, mobilenet_gn, resnet_gn, transformer
from wirelessfl.learning.optimizers import SGD, Adam

SHAPE = (12,)
BOTH = LowRankAdaptation(rank=2, alpha=3.0, unfrozen=r".*bias")
PARTS: dict[str, tuple[str, TrainedPart]] = {
    "last layer": ("mlp_deep_tanh", TrainedPart(r"5\..*")),
    "first layer": ("mlp_deep_tanh", TrainedPart(r"1\..*")),
    "biases": ("cnn_mnist", TrainedPart(r".*bias")),
    "adapters": ("mlp_deep_tanh", TrainedPart(".*", LowRankAdaptation(2, 2.0))),
    "adapters and biases": ("cnn_cifar10", TrainedPart(".*", BOTH)),
    "one factor": ("mlp", TrainedPart(r".*lora_B", LowRankAdaptation(2, 0.5, "3"))),
}


def partial(name: str, part: TrainedPart, seed: int = 4) -> FlatModel:
    build, shape = MODELS[name]
    return FlatModel(lambda: adapted(build, part), shape, 3, part, seed)


def adapted(build: Callable[[], nn.Module], part: TrainedPart) -> nn.Module:
    return build() if part.adaptation is None else part.adaptation.adapted(build())


def values_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in module.named_parameters()}


def seeded(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return build()


@pytest.mark.parametrize("which", PARTS)
def test_a_part_is_trained_as_in_the_plain_loop_and_the_rest_keeps_its_bits(which: str) -> None:
    """The loop trains the whole module by autograd, with ``requires_grad`` of frozen parameters off."""
    name, part = PARTS[which]
    model, population = partial(name, part), RandomPopulation(SIZES, MODELS[name][1])
    first = values_of(seeded(lambda: adapted(MODELS[name][0], part), 4))
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=2, prox_mu=0.1, clip=0.3)
    compare_plainly(model, population, training, ExecutionPlan(chunk=4), [4, 1, 3, 0, 5, 2])
    for frozen in first.keys() - model.shapes.keys():
        assert torch.equal(model.module.get_parameter(frozen), first[frozen])
    assert model.dimension + model.frozen_dimension == sum(value.numel() for value in first.values())
    assert 0 < model.dimension == sum(first[one].numel() for one in model.shapes) == len(model.initial(4))
    start = torch.cat([first[one].flatten() for one in model.shapes])
    assert torch.equal(model.initial(4), start)


@pytest.mark.parametrize("which", [pytest.param("last layer", marks=pytest.mark.slow), "adapters and biases"])
@pytest.mark.parametrize(
    ("rule", "noise"),
    [("flat", "gaussian"), ("per_layer", "gaussian"), ("quantile", "weighted"), ("moo_private", "mean")],
)
def test_clipping_and_noise_see_the_trained_part_alone(which: str, rule: str, noise: str) -> None:
    name, part = PARTS[which]
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, steps=2, sampling="poisson")
    population = RandomPopulation(SIZES, MODELS[name][1])
    compare_privately(partial(name, part), population, training, rule, noise, [4, 1, 0])


@pytest.mark.parametrize(
    ("build", "shape", "trained"),
    [
        (MODELS["cnn_mnist"][0], (1, 20, 20), "9.*"),
        (MODELS["cnn_cifar10"][0], (3, 8, 8), "(9|13).*"),
        (lambda: resnet_gn((3, 8, 8), 3, depth=8), (3, 8, 8), "8.*"),
        (lambda: transformer((12,), 3, 4, width=8), (12,), "6.*"),
    ],
    ids=["dense", "convolution", "blocks", "tokens"],
)
def test_closed_forms_are_used_where_all_that_is_frozen_comes_first(
    build: Callable[[], nn.Module], shape: tuple[int, ...], trained: str
) -> None:
    """The plain loop trains the whole module by autograd, which knows of no closed forms."""
    model = FlatModel(build, shape, 3, TrainedPart(trained), 4)
    program = compile_program(model)
    assert program is not None and model.frozen_dimension > 0
    population = RandomPopulation(SIZES, shape)
    if shape == (12,):
        population = Tokens(SIZES, shape)
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=1)
    compare_plainly(model, population, training, ExecutionPlan(chunk=4), [4, 1, 3, 0])
    compare_privately(model, population, training, "flat", "gaussian", [4, 1, 0])
    assert compile_program(FlatModel(build, shape, 3, TrainedPart("0.*"), 4)) is None


class Tokens(RandomPopulation):
    """Sequences of whole numbers from 0 to 3."""

    def _examples(self, client: int, count: int) -> Examples:
        drawn = super()._examples(client, count)
        return Examples(drawn.inputs.abs().floor().clamp(max=3), drawn.targets)


def test_everything_trained_is_the_model_itself() -> None:
    build, shape = MODELS["mlp"]
    whole, every = FlatModel(build, shape, 3), FlatModel(build, shape, 3, TrainedPart(), 9)
    assert (every.shapes, every.dimension, every.frozen_dimension) == (whole.shapes, whole.dimension, 0)
    population, training = RandomPopulation(SIZES), LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=1)
    updates = [
        collect(list(train_cohort(one, one.initial(1), population, np.arange(6), training, STREAMS, 1, PLAN)), 6)[0]
        for one in (whole, every)
    ]
    assert torch.equal(*updates)


PLAN = ExecutionPlan(chunk=4)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Linear(7, 5),
        nn.Linear(7, 5, bias=False),
        nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
        nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect", bias=False),
        nn.Conv2d(3, 4, 3, padding="same"),
    ],
    ids=repr,
)
def test_an_adapted_layer_is_the_layer_with_merged_weights(layer: nn.Linear | nn.Conv2d) -> None:
    scale = 1.7
    low = LowRankLinear(layer, 2, scale) if isinstance(layer, nn.Linear) else LowRankConv2d(layer, 2, scale)
    inputs = torch.randn(6, 7) if isinstance(layer, nn.Linear) else torch.randn(6, 3, 8, 9)
    assert torch.equal(low(inputs), layer(inputs)), "training begins at W"
    low, merged, inputs = low.double(), layer.double(), inputs.double()
    nn.init.normal_(low.lora_B)
    whole = (low.weight + scale * (low.lora_B @ low.lora_A).view_as(low.weight)).detach().requires_grad_()
    expected = torch.func.functional_call(merged, {"weight": whole}, (inputs,))
    torch.testing.assert_close(low(inputs), expected, rtol=1e-12, atol=1e-12)
    # ∂ℓ/∂A = scale Bᵀ G and ∂ℓ/∂B = scale G Aᵀ, with G the gradient by the merged weights
    low(inputs).square().sum().backward()
    expected.square().sum().backward()
    assert whole.grad is not None
    gradient = whole.grad.flatten(1)
    torch.testing.assert_close(low.lora_A.grad, scale * low.lora_B.detach().T @ gradient)
    torch.testing.assert_close(low.lora_B.grad, scale * gradient @ low.lora_A.detach().T)


@pytest.mark.parametrize("name", ["mlp_deep_tanh", "cnn_cifar10"])
def test_merged_adapters_are_plain_layers(name: str) -> None:
    build, shape = MODELS[name]
    module = LowRankAdaptation(2, 3.0).adapted(build()).double()
    for name_of, factor in module.named_parameters():
        if name_of.endswith("lora_B"):
            nn.init.normal_(factor)
    inputs = torch.rand(4, *shape, dtype=torch.float64)
    expected = module(inputs)
    merged, plain = merge_adapters(module), build().double()
    torch.testing.assert_close(merged(inputs), expected, rtol=1e-10, atol=1e-10)
    assert {type(one) for one in merged.modules()} == {type(one) for one in plain.modules()}
    plain.load_state_dict(merged.state_dict())
    torch.testing.assert_close(plain(inputs), expected, rtol=1e-10, atol=1e-10)
    alone = merge_adapters(LowRankAdaptation(1, 1.0).adapted(nn.Linear(4, 3)))
    assert type(alone) is nn.Linear and alone.extra_repr() == nn.Linear(4, 3).extra_repr()


def test_a_factor_of_full_rank_trains_the_weights_themselves() -> None:
    """With A the identity and scale 1, steps on B are those on W that the module itself would take."""
    part = TrainedPart(".*lora_B", LowRankAdaptation(6, 6.0, "3"))
    build, population = lambda: mlp(SHAPE, 3, hidden=(6, 8)), RandomPopulation(SIZES)

    def with_identity() -> nn.Module:
        module = adapted(build, part)
        nn.init.eye_(module.get_parameter("3.lora_A"))
        return module

    low, plain = FlatModel(with_identity, SHAPE, 3, part, 4), FlatModel(build, SHAPE, 3, TrainedPart(r"3\.weight"), 4)
    assert low.dimension == plain.dimension == 48
    training = LocalTraining(Adam(eps=1e-3), 0.01, batch_size=8, epochs=2)
    updates = [
        collect(list(train_cohort(m, m.initial(4).double(), population, np.arange(6), training, STREAMS, 1, PLAN)), 6)[
            0
        ]
        for m in (low, plain)
    ]
    torch.testing.assert_close(*updates, rtol=1e-9, atol=1e-11)
    merged = plain.initial(4).double() + updates[0][0]
    inputs = population.of_client(0).inputs.double()
    torch.testing.assert_close(low.logits(updates[0][0], inputs), plain.logits(merged, inputs))


def test_layers_that_cannot_be_adapted_are_left_alone() -> None:
    """Depthwise convolutions, embeddings and norms: here by exact counts r (inputs + outputs) of the others."""
    part = TrainedPart(".*", LowRankAdaptation(2, 2.0))
    network = FlatModel(lambda: adapted(lambda: mobilenet_gn((3, 8, 8), 4), part), (3, 8, 8), 4, part)
    pairs = [(32, 64), (64, 128), (128, 128), (128, 256), (256, 256), (256, 256), (256, 4), (3 * 9, 32)]
    assert network.dimension == 2 * sum(map(sum, pairs))
    encoder = FlatModel(lambda: adapted(lambda: transformer((5,), 4, 11, width=8), part), (5,), 4, part)
    assert encoder.dimension == 2 * (2 * (8 + 24 + 8 + 8 + 8 + 32 + 32 + 8) + 8 + 4)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (TrainedPart("weight"), "model.trainable: found weight; allowed: .* 1.weight, 1.bias, 3.weight, 3.bias"),
        (TrainedPart(".*", LowRankAdaptation(2, 2.0, "2")), "model.lora.targets: found 2; allowed: .* layer 1, 3"),
        (TrainedPart(".*", LowRankAdaptation(4, 2.0)), "model.lora.rank: found 4; allowed: at most 3, .* layer 3"),
        (TrainedPart(".*", LowRankAdaptation(2, 2.0, unfrozen="3")), "model.lora.unfrozen: found 3; allowed: "),
        (TrainedPart("3.bias", LowRankAdaptation(2, 2.0)), "model.trainable: found 3.bias; allowed: .* 1.lora_A"),
    ],
)
def test_what_names_nothing_is_refused_with_what_there_is(part: TrainedPart, message: str) -> None:
    with pytest.raises(ScenarioError, match=re.compile(message)):
        partial("mlp", part)


def test_a_model_without_layers_to_adapt_is_refused() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.Parameter(torch.ones(3, 12))

        def forward(self, inputs: Tensor) -> Tensor:
            return functional.linear(inputs, self.factor)

    with pytest.raises(ScenarioError, match="the model has no such layer"):
        LowRankAdaptation(1, 1.0).adapted(Scaled())
    alone = LowRankAdaptation(1, 1.0).adapted(nn.Linear(4, 3))
    assert isinstance(alone, LowRankLinear)


def test_planned_memory_counts_frozen_parameters_once_and_trained_ones_by_client() -> None:
    build, shape = MODELS["cnn_cifar10"]
    population = RandomPopulation(SIZES, shape)
    training = LocalTraining(SGD(), 0.05, batch_size=8, epochs=1)
    whole, last = (
        BlockMemory(FlatModel(build, shape, 3, part), training, population, FedAvg())
        for part in (TrainedPart(), TrainedPart("13.*"))
    )
    assert last.model.dimension == 129 * 3
    fewer = 4 * (whole.model.dimension - last.model.dimension)
    assert whole.resident - last.resident == fewer, "the global model is smaller, the module is not"
    assert last.peak(4) == last.peak(4), "the frozen module is not counted with a block"
    assert last.peak(4) < whole.peak(4) - 4 * 2 * fewer
