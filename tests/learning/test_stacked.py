"""The closed forms: which modules they cover, each layer against autograd, sample space against weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.learning.plain_loop import RandomPopulation
from tests.learning.test_cohort import MODELS, STREAMS, collect
from wirelessfl.learning.batches import Sampling, local_steps, plan_batches
from wirelessfl.learning.cohort import ExecutionPlan, LocalTraining, train_cohort
from wirelessfl.learning.cohort.block import BlockData
from wirelessfl.learning.cohort.execution import full_precision, precision_scope
from wirelessfl.learning.cohort.gradients import SampleGradients
from wirelessfl.learning.cohort.run import LocalModels, LocalRun
from wirelessfl.learning.cohort.stacked import Program, SampleSpace, StackedModels, compile_program, convolution
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.kernel_geometry import KernelGeometry
from wirelessfl.learning.models import TemperedSigmoid, mlp, resnet18_gn
from wirelessfl.learning.optimizers import SGD
from wirelessfl.learning.population import Shards

CLIENTS, SAMPLES, CLASSES = 3, 4, 5


class Doubled(nn.Linear):
    """A subclass that computes something else."""

    def forward(self, inputs: Tensor) -> Tensor:
        return 2 * super().forward(inputs)


def tied() -> nn.Sequential:
    layer = nn.Linear(6, 6)
    return nn.Sequential(layer, nn.ReLU(), layer, nn.Linear(6, CLASSES))


def hooked() -> nn.Sequential:
    module = nn.Sequential(nn.Linear(6, CLASSES))
    module[0].register_forward_hook(lambda module, inputs, output: 2 * output)
    return module


IMAGE = (2, 9, 8)
LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear_without_bias": (lambda: nn.Linear(6, CLASSES, bias=False), (6,)),
    "sequential_in_sequential": (
        lambda: nn.Sequential(nn.Sequential(nn.Linear(6, 7), nn.Tanh()), nn.Identity(), nn.Linear(7, CLASSES)),
        (6,),
    ),
    "activations_in_a_row": (
        lambda: nn.Sequential(
            nn.Linear(6, 7), nn.Tanh(), nn.ReLU(), TemperedSigmoid(1.3, 0.7, 0.2), nn.Linear(7, CLASSES), nn.Tanh()
        ),
        (6,),
    ),
    "activation_before_the_first_layer": (lambda: nn.Sequential(nn.Tanh(), nn.Linear(6, CLASSES)), (6,)),
    "conv_with_everything": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
            nn.ReLU(),
            nn.Conv2d(3, 4, 2, bias=False),
            nn.Flatten(),
            nn.LazyLinear(CLASSES),
        ),
        IMAGE,
    ),
    "conv_with_everything_behind_a_conv": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, 3),
            nn.Tanh(),
            nn.Conv2d(3, 4, (3, 2), stride=(2, 3), padding=(1, 2), dilation=(1, 2)),
            nn.Conv2d(4, 3, 1, stride=2, bias=False),
            nn.Flatten(),
            nn.LazyLinear(CLASSES),
        ),
        IMAGE,
    ),
    "pools": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, 3, padding=1),
            nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
            nn.AvgPool2d(2, stride=1, padding=1, count_include_pad=False),
            nn.Conv2d(3, 4, 2),
            nn.AdaptiveAvgPool2d((2, 3)),
            nn.Flatten(),
            nn.Linear(24, CLASSES),
        ),
        IMAGE,
    ),
    "group_norm": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 6, 3), nn.GroupNorm(3, 6), nn.Tanh(), nn.Flatten(), nn.LazyLinear(CLASSES)
        ),
        IMAGE,
    ),
    "images_at_once_and_no_more": (
        lambda: nn.Sequential(nn.GroupNorm(1, 2), nn.AvgPool2d(4), nn.Flatten(), nn.Tanh(), nn.LazyLinear(CLASSES)),
        IMAGE,
    ),
}  # fmt: skip
OTHERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "residual": (lambda: resnet18_gn((3, 8, 8), CLASSES), (3, 8, 8)),
    "subclass": (lambda: nn.Sequential(Doubled(6, CLASSES)), (6,)),
    "tied": (tied, (6,)),
    "hook": (hooked, (6,)),
    "unknown": (lambda: nn.Sequential(nn.Linear(6, CLASSES), nn.GELU()), (6,)),
    "grouped_conv": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.Flatten(), nn.LazyLinear(CLASSES)),
        IMAGE,
    ),
    "circular_conv": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular"), nn.Flatten(), nn.LazyLinear(CLASSES)
        ),
        IMAGE,
    ),
    "norm_of_features": (lambda: nn.Sequential(nn.Linear(6, 8), nn.GroupNorm(2, 8), nn.Linear(8, CLASSES)), (6,)),
    "linear_on_images": (
        lambda: nn.Sequential(nn.Conv2d(2, 2, 3), nn.Linear(6, 4), nn.Flatten(), nn.LazyLinear(CLASSES)),
        IMAGE,
    ),
    "two_dimensions": (lambda: nn.Sequential(nn.Linear(3, 4), nn.Flatten(), nn.Linear(8, CLASSES)), (2, 3)),
}  # fmt: skip


def make(build: Callable[[], nn.Module], shape: tuple[int, ...]) -> FlatModel:
    def ready() -> nn.Module:
        module = build()
        module(torch.zeros(1, *shape))  # lazy layers learn their size
        return module

    return FlatModel(ready, shape, CLASSES)


@pytest.mark.parametrize("name", MODELS)
def test_the_papers_models_have_closed_forms(name: str) -> None:
    build, shape = MODELS[name]
    assert compile_program(FlatModel(build, shape, 3)) is not None


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_known_is_left_to_the_general_engine(name: str) -> None:
    assert compile_program(make(*OTHERS[name])) is None


@pytest.mark.parametrize("name", OTHERS)
def test_the_general_engine_takes_what_is_left(name: str) -> None:
    """One full-batch step is −η times the gradient by autograd."""
    build, shape = OTHERS[name]
    model = make(build, shape)
    population = RandomPopulation(np.array([3, 5]), shape, CLASSES)
    start = model.initial(1).double()
    training = LocalTraining(SGD(), 0.1, batch_size=8, epochs=1)
    plan = ExecutionPlan(chunk=1, threads=2)
    blocks = train_cohort(model, start, population, np.arange(2), training, STREAMS, 1, plan)
    for client, update in enumerate(collect(list(blocks), 2)[0]):
        data = population.of_client(client)
        at = start.clone().requires_grad_()
        loss = nn.functional.cross_entropy(model.logits(at, data.inputs.double()), data.targets)
        torch.testing.assert_close(update, -0.1 * torch.autograd.grad(loss, at)[0], rtol=1e-9, atol=1e-12)


def test_convolutions_multiply_patches_of_few_positions_and_in_full_precision_on_a_gpu() -> None:
    layer = convolution.Conv2d(3, 32, KernelGeometry((4, 4), (2, 2), (0, 0), (1, 1)), has_bias=True)
    here, there = torch.zeros(1), torch.zeros(1, device="meta")
    assert layer.multiplies_patches(here, 16)
    assert not layer.multiplies_patches(here, 17)
    assert layer.multiplies_patches(there, 17)
    with torch.autocast("cpu", torch.bfloat16):
        assert not layer.multiplies_patches(here, 16)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert not layer.multiplies_patches(there, 17)
        assert layer.multiplies_patches(here, 16)
    finally:
        torch.set_float32_matmul_precision(before)


def batch_of(model: FlatModel) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    parameters = torch.stack([model.initial(seed) for seed in range(CLIENTS)]).double()
    inputs = torch.randn(CLIENTS, SAMPLES, *model.feature_shape, generator=generator, dtype=torch.float64)
    return parameters, inputs, torch.randint(model.num_classes, (CLIENTS, SAMPLES), generator=generator)


def sample_gradients(model: FlatModel, parameters: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
    """(k, B, d) by autograd, one sample at a time."""
    rows = []
    for own, samples, labels in zip(parameters, inputs, targets, strict=True):
        for sample, label in zip(samples, labels, strict=True):
            at = own.clone().requires_grad_()
            loss = nn.functional.cross_entropy(model.logits(at, sample[None]), label[None])
            rows.append(torch.autograd.grad(loss, at)[0])
    return torch.stack(rows).view(CLIENTS, SAMPLES, -1)


def program_of(model: FlatModel) -> Program:
    program = compile_program(model)
    assert program is not None
    return program


@pytest.fixture(params=["grouped", "patches"])
def convolutions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Convolutions as on a CPU, and as of few positions there or on a GPU in single precision."""
    monkeypatch.setattr(convolution.Conv2d, "multiplies_patches", lambda *_: request.param == "patches")


@pytest.mark.usefixtures("convolutions")
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_every_layer(name: str) -> None:
    model = make(*LAYERS[name])
    program = program_of(model)
    parameters, inputs, targets = batch_of(model)
    expected = sample_gradients(model, parameters, inputs, targets)
    sample_weights = torch.rand(CLIENTS, SAMPLES, dtype=torch.float64)
    into = torch.randn_like(parameters)
    before = into.clone()
    weights = program.weights([parameters])
    program.add_gradient(weights, inputs, targets, sample_weights, program.weights([into]), 0.5)
    torch.testing.assert_close(into, 0.5 * before + torch.einsum("kb,kbd->kd", sample_weights, expected))
    into.fill_(torch.nan)
    program.add_gradient(weights, inputs, targets, sample_weights, program.weights([into]), 0.0)
    torch.testing.assert_close(into, torch.einsum("kb,kbd->kd", sample_weights, expected))


@pytest.mark.usefixtures("convolutions")
@pytest.mark.parametrize("name", [*LAYERS, "cnn_mnist", "cnn_cifar10"])
def test_single_precision_runs_other_kernels_to_the_same_end(name: str) -> None:
    """Convolutions and pools have kernels of their own for float32; sums of some hundred terms lose 1e-5."""
    model = make(*LAYERS[name]) if name in LAYERS else FlatModel(*MODELS[name], CLASSES - 2)
    program = program_of(model)
    parameters, inputs, targets = batch_of(model)
    expected, found = torch.zeros_like(parameters), torch.zeros_like(parameters).float()
    ones = torch.ones(CLIENTS, SAMPLES)
    for into in (expected, found):
        weights = program.weights([parameters.to(into.dtype)])
        own = inputs.to(into.dtype)
        program.add_gradient(weights, own, targets, ones.to(into.dtype), program.weights([into]), 0.0)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5 * float(expected.abs().max()))


def formed_of_pieces(samples: SampleGradients) -> Tensor:
    """(k, B, d) gradients from their pieces."""

    def formed(left: Tensor, right: Tensor | None) -> Tensor:
        return left if right is None else (left[..., :, None] * right[..., None, :]).flatten(2)

    return torch.cat([torch.cat([formed(*piece) for piece in part], dim=2) for part in samples.pieces()], dim=1)


@pytest.mark.usefixtures("convolutions")
@pytest.mark.parametrize("name", LAYERS)
def test_per_sample_norms_and_sums_of_every_layer(name: str) -> None:
    build, shape = LAYERS[name]
    model = make(build, shape)
    population = RandomPopulation(np.array([4, 4, 2]), shape, CLASSES)
    training = LocalTraining(SGD(), 0.1, batch_size=8, epochs=1)
    data = block_data(population, training)
    start = model.initial(4).double()
    models = StackedModels(program_of(model), start, data)
    samples = models.samples(data.batches[0])
    inputs, targets = data.inputs_of(data.batches[0]), data.batches[0].targets
    expected = sample_gradients(model, start.expand(CLIENTS, -1), inputs, targets) * samples.present[..., None]
    pieces = torch.split(expected, model.sizes, dim=-1)
    squared = torch.stack([piece.square().sum(-1) for piece in pieces], dim=-1)
    torch.testing.assert_close(samples.squared_norms() * samples.present[..., None], squared)
    formed = torch.cat([part for _, part in samples.formed()], dim=1)
    torch.testing.assert_close(formed * samples.present[..., None], expected)
    assert torch.equal(formed_of_pieces(samples), formed)
    flat, layered = torch.rand(CLIENTS, SAMPLES).double(), torch.rand(CLIENTS, SAMPLES, len(pieces)).double()
    layered[2, 3] = torch.nan  # padding
    torch.testing.assert_close(samples.weighted_sum(flat), torch.einsum("kb,kbd->kd", flat, expected))
    each = [torch.einsum("kb,kbd->kd", layered[..., i].nan_to_num(), piece) for i, piece in enumerate(pieces)]
    torch.testing.assert_close(samples.weighted_sum(layered), torch.cat(each, dim=1))
    vectors = torch.randn(CLIENTS, model.dimension).double()
    inner = torch.einsum("kbd,kd->kb", expected, vectors)
    torch.testing.assert_close(samples.inner_products(vectors) * samples.present, inner)
    torch.testing.assert_close(SampleGradients.inner_products(samples, vectors) * samples.present, inner)
    without_norms = models.samples(data.batches[0])  # of which nothing is held
    torch.testing.assert_close(without_norms.weighted_sum(layered), torch.cat(each, dim=1))
    into = torch.rand(CLIENTS, model.dimension).double()
    both = 0.3 * into + torch.einsum("kb,kbd->kd", flat, expected)
    torch.testing.assert_close(samples.weighted_sum(flat, into, decay=0.3), both)


def block_data(population: RandomPopulation, training: LocalTraining) -> BlockData:
    sizes = population.sizes
    clients = np.arange(len(sizes))
    steps = local_steps(sizes, training.batch_size, training.epochs, training.steps)
    stream = STREAMS.nodes("batch_order", 1, clients)
    batches = plan_batches(training.sampling, stream, sizes, steps, training.batch_size)
    return BlockData.of(population.shards(clients), batches, torch.zeros(1, dtype=torch.float64))


@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
@pytest.mark.parametrize("hidden", [None, 7, 40])
@pytest.mark.parametrize("prox_mu", [0.0, 0.4])
@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("steps", [None, 1])
def test_sample_space_is_another_form_of_the_same(
    sampling: Sampling, hidden: int | None, prox_mu: float, corrected: bool, steps: int | None
) -> None:
    shape = (5, 8)
    model = make(lambda: mlp(shape, CLASSES, hidden=(hidden or CLASSES,), activation=nn.Tanh), shape)
    if hidden is None:
        model = make(lambda: nn.Sequential(nn.Flatten(), nn.Linear(40, CLASSES, bias=False)), shape)
    population = RandomPopulation(np.array([30, 23, 17, 2]), shape, CLASSES)
    epochs = 3 if steps is None else None
    training = LocalTraining(
        SGD(0.6), 0.05, batch_size=6, epochs=epochs, steps=steps, sampling=sampling, prox_mu=prox_mu
    )
    data, start = block_data(population, training), model.initial(1).double()
    program = program_of(model)
    found = []
    drawn = torch.randn(4, len(start), dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    correction = drawn if corrected else None
    forms: list[LocalModels] = [
        StackedModels(program, start, data, correction),
        SampleSpace(program).models(start, data, correction),
    ]
    with torch.no_grad():
        for models in forms:
            found.append(LocalRun(models, training, data).train(models.add_gradient).report(np.arange(4)))
    torch.testing.assert_close(found[1].updates, found[0].updates, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[1].train_loss, found[0].train_loss, rtol=1e-10)


def test_own_inputs_are_gathered_or_seen_in_place() -> None:
    training = LocalTraining(SGD(), 0.1, batch_size=8, epochs=1)
    for sizes, in_place in (([4, 4, 4], True), ([4, 3, 2], False)):
        data = block_data(RandomPopulation(np.array(sizes), (2, 3), CLASSES), training)
        assert torch.equal(data.own_inputs(), data.inputs[data.own_rows])
        assert (data.own_inputs().data_ptr() == data.inputs.data_ptr()) == in_place


def test_sample_space_fits_linear_first_layers_only_and_is_chosen_where_samples_are_few() -> None:
    assert SampleSpace.fits(program_of(make(lambda: mlp((40,), CLASSES), (40,))))
    assert not SampleSpace.fits(program_of(make(*LAYERS["pools"])))
    assert not SampleSpace.fits(program_of(make(*LAYERS["activation_before_the_first_layer"])))
    space = SampleSpace(program_of(make(lambda: mlp((40,), CLASSES), (40,))))
    training = LocalTraining(SGD(), 0.1, batch_size=8, epochs=5)
    assert space.pays_off(block_data(RandomPopulation(np.array([16, 8]), (40,), CLASSES), training))
    assert not space.pays_off(block_data(RandomPopulation(np.array([400, 8]), (40,), CLASSES), training))


@pytest.mark.parametrize("name", ["mlp", "cnn_mnist"])
def test_workers_change_no_bit(name: str) -> None:
    build, shape = MODELS[name]
    model = FlatModel(build, shape, 3)
    population = RandomPopulation(np.arange(2, 14), shape)
    training = LocalTraining(SGD(0.5), 0.05, batch_size=4, epochs=2)
    threads_here = torch.get_num_threads()
    updates = [
        collect(list(train_cohort(model, model.initial(0), population, np.arange(12), training, STREAMS, 0, plan)), 12)
        for plan in (ExecutionPlan(chunk=3, threads=1), ExecutionPlan(chunk=3, threads=3))
    ]
    assert torch.equal(updates[0][0], updates[1][0])
    assert torch.get_num_threads() == threads_here


def test_bf16_products_give_about_the_same_update() -> None:
    """Products round to 8 bits: an update of a few steps keeps two digits."""
    wide: tuple[Callable[[], nn.Module], tuple[int, ...]] = (lambda: mlp((60,), 3, hidden=(9,)), (60,))
    for build, shape in (MODELS["mlp"], MODELS["cnn_cifar10"], wide):  # the last one trains in sample space
        model = FlatModel(build, shape, 3)
        population = RandomPopulation(np.array([16, 12, 9]), shape)
        training = LocalTraining(SGD(0.5), 0.02, batch_size=8, epochs=1)
        exact, rough = (
            collect(
                list(train_cohort(model, model.initial(0), population, np.arange(3), training, STREAMS, 0, plan)), 3
            )
            for plan in (ExecutionPlan(), ExecutionPlan(precision="bf16"))
        )
        assert rough[0].dtype == torch.float32
        error = float((rough[0] - exact[0]).norm() / exact[0].norm())
        assert 1e-5 < error < 0.03


def test_a_run_that_is_given_up_stops() -> None:
    build, shape = MODELS["mlp"]
    model = FlatModel(build, shape, 3)
    asked: list[int] = []

    class Counting(RandomPopulation):
        def shards(self, clients: NDArray[np.int64]) -> Shards:
            asked.extend(clients.tolist())
            return super().shards(clients)

    population = Counting(np.full(40, 5), shape)
    training = LocalTraining(SGD(), 0.1, batch_size=5, epochs=1)
    blocks = train_cohort(
        model, model.initial(0), population, np.arange(40), training, STREAMS, 0, ExecutionPlan(chunk=1)
    )
    next(blocks)
    blocks.close()  # type: ignore[attr-defined]
    assert len(asked) <= 4


def test_a_failing_population_is_heard() -> None:
    build, shape = MODELS["mlp"]
    model = FlatModel(build, shape, 3)

    class Broken(RandomPopulation):
        def shards(self, clients: NDArray[np.int64]) -> Shards:
            raise OSError("disk on fire")

    training = LocalTraining(SGD(), 0.1, batch_size=5, epochs=1)
    with pytest.raises(OSError, match="disk on fire"):
        list(
            train_cohort(
                model,
                model.initial(0),
                Broken(np.full(4, 5), shape),
                np.arange(4),
                training,
                STREAMS,
                0,
                ExecutionPlan(),
            )
        )


def test_what_is_clipped_is_exact_to_single_precision_under_tf32() -> None:
    """TF32 keeps ten bits: a norm by it is off by up to 1 in 2000, and so would be the clip."""
    with precision_scope(ExecutionPlan(device="cuda", precision="tf32")):
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == ("high", True)
        with full_precision(torch.device("cuda")):
            assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == ("highest", False)
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == ("high", True)


def test_tf32_needs_cuda() -> None:
    with pytest.raises(ValueError, match="CUDA only"):
        ExecutionPlan(precision="tf32")
    assert replace(ExecutionPlan(device="cuda:0"), precision="tf32").precision == "tf32"
