"""The peak of a block's memory, gone through without values, against torch's profiler on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from tests.learning.plain_loop import RandomPopulation
from tests.simulation.scaffold import Scaffold
from wirelessfl import quotients
from wirelessfl.learning import direct, winograd
from wirelessfl.learning.algorithms import ClientRows, FedAvg, LocalObjective, ServerState
from wirelessfl.learning.batches import Sampling, local_steps, plan_batches
from wirelessfl.learning.client_side import ClientSide, empty_store
from wirelessfl.learning.cohort import (
    ClientDemand,
    CohortBlock,
    ExecutionPlan,
    GradientTransform,
    LocalTraining,
    StepContext,
    general,
    gradients,
    patches,
    pooling,
    train_cohort,
)
from wirelessfl.learning.cohort.block import BlockData
from wirelessfl.learning.cohort.engine import train_plainly, train_privately
from wirelessfl.learning.cohort.peak import BlockMemory, LiveMemory
from wirelessfl.learning.cohort.stacked import compile_program, convolution, program
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.models import cnn_cifar10, cnn_mnist, mlp
from wirelessfl.learning.optimizers import SGD, Adam, Optimizer
from wirelessfl.learning.private import PrivateGradients, without_noise
from wirelessfl.privacy.clipping import Constant, FlatClipping, PrivateMooClipping
from wirelessfl.privacy.mechanisms import GaussianMechanism, HaarMechanism, haar_norms
from wirelessfl.streams import Streams

CLIENTS, SAMPLES = 3, 24
PLAN = ExecutionPlan()
TOLERANCE = 0.05
"""Of what a CPU's allocator held for tensors, of which operators make a few for themselves."""
SCRATCH = 0.25
"""The same where a CPU's kernels copy weights and images into layouts of their own: so much in so small a network."""
COPIED = {("cnn_cifar10", "plain"), ("plug-in", "plain")}

MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (lambda: mlp((200,), 10, hidden=(64,)), (200,)),
    "cnn_mnist": (lambda: cnn_mnist((1, 28, 28), 10), (1, 28, 28)),
    "cnn_cifar10": (lambda: cnn_cifar10((3, 16, 16), 10), (3, 16, 16)),
    "plug-in": (lambda: nn.Sequential(nn.Linear(200, 64), nn.GELU(), nn.Linear(64, 10)), (200,)),
}
QUIET = GaussianMechanism(Constant(0.0))
TRANSFORMS: dict[str, GradientTransform | None] = {
    "plain": None,
    "flat": PrivateGradients(FlatClipping(1.0), QUIET),
    "MOO": PrivateGradients(PrivateMooClipping(1.0, 0.1, 0.1), QUIET),
    "wavelet norms": PrivateGradients(FlatClipping(1.0), HaarMechanism(Constant(0.0))),
}


def profiled_peak(
    model: FlatModel, training: LocalTraining, transform: GradientTransform | None, corrects: bool = False
) -> int:
    """The most bytes of tensors that torch's CPU allocator held at a time, from the events of the profiler."""
    population = RandomPopulation(np.full(CLIENTS, SAMPLES), model.feature_shape, 10)
    clients, sizes = np.arange(CLIENTS), population.sizes
    steps = local_steps(sizes, training.batch_size, training.epochs, training.steps)
    stream = Streams(0).nodes("batch_order", 1, clients)
    batches = plan_batches(training.sampling, stream, sizes, steps, training.batch_size)
    shards, start = population.shards(clients), model.initial(0)
    compile_program(model)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler, torch.no_grad():
        data = replace(BlockData.of(shards, batches, start), consecutive=None)  # as clients of different sizes
        if transform is None:
            train_plainly(model, start, training, data, torch.zeros(CLIENTS, len(start)) if corrects else None)
        else:
            context = StepContext(Streams(0), 1, 0, clients, start, 0.1, reads_values=False)
            train_privately(model, start, training, data, transform, transform.start(clients, start), context)
    kineto = profiler.profiler
    assert kineto is not None and kineto.kineto_results is not None
    events = sorted(kineto.kineto_results.events(), key=lambda event: event.start_ns())
    live = peak = 0
    taken, around = list[tuple[int, Any]](), list[Any]()
    for event in events:
        while around and around[-1].start_ns() + around[-1].duration_ns() < event.start_ns():
            around.pop()
        if event.name() == "[memory]":
            taken.append((event.nbytes(), around[-1] if around else None))
        else:
            around.append(event)
    for size in without_scratch(taken):
        live += size
        peak = max(peak, live)
    return peak


def without_scratch(taken: list[tuple[int, Any]]) -> list[int]:
    """Sizes taken (positive) and given back, less those that a kernel took and gave back: these differ by processor."""
    kept: list[tuple[int, Any]] = []
    for size, operator in taken:
        own = operator is not None and (-size, operator) in kept
        if size < 0 and own:
            kept.remove((-size, operator))
        else:
            kept.append((size, operator))
    return [size for size, _ in kept]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("how", TRANSFORMS)
@pytest.mark.parametrize("optimizer", [SGD(0.9), Adam()], ids=["sgd", "adam"])
def test_the_peak_is_that_of_the_profiler(
    name: str, how: str, optimizer: Optimizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradients, "_ELSEWHERE", 8 * 2**20)  # form as many gradients at a time as a CPU does
    monkeypatch.setattr(convolution.Conv2d, "multiplies_patches", lambda *_: True)  # on this CPU as on a GPU
    monkeypatch.setattr(convolution, "holds", lambda _: False)
    monkeypatch.setattr(patches, "kernel", lambda: None)
    monkeypatch.setattr(pooling, "kernel", lambda: None)
    monkeypatch.setattr(direct, "kernel", lambda: None)
    monkeypatch.setattr(winograd, "kernel", lambda: None)
    monkeypatch.setattr(haar_norms, "kernel", lambda: None)
    monkeypatch.setattr(quotients, "kernel", lambda: None)
    monkeypatch.setattr(haar_norms.pieces, "_by_lanes", lambda _: False)
    build, shape = MODELS[name]
    model = FlatModel(build, shape, 10)
    training = LocalTraining(optimizer, 0.1, batch_size=8, steps=2)
    population = RandomPopulation(np.full(CLIENTS, SAMPLES), shape, 10)
    memory = BlockMemory(model, training, population, FedAvg(), TRANSFORMS[how])
    sent = CLIENTS * SAMPLES * (int(np.prod(shape)) * 4 + 8)  # on a CPU samples are not sent
    found = memory.peak(CLIENTS) - CLIENTS * model.dimension * 4 - sent  # nor are there updates of the block before
    expected = profiled_peak(model, training, TRANSFORMS[how])
    assert found <= (1 + TOLERANCE) * expected
    assert found >= (1 - (SCRATCH if (name, how) in COPIED else TOLERANCE)) * expected


class Corrected(FedAvg):
    """Gradients corrected by a vector a client, and a proximal term, which takes a matrix of its own."""

    def client(self, server: ServerState, rows: ClientRows) -> LocalObjective:
        return LocalObjective(0.1, torch.zeros(len(rows.clients), len(server.parameters)))


def test_corrections_are_there_while_clients_train() -> None:
    build, shape = MODELS["mlp"]
    model, training = FlatModel(build, shape, 10), LocalTraining(SGD(0.9), 0.1, batch_size=8, steps=2)
    population = RandomPopulation(np.full(CLIENTS, SAMPLES), shape, 10)
    plain, corrected = (BlockMemory(model, training, population, how).peak(CLIENTS) for how in (FedAvg(), Corrected()))
    besides = CLIENTS * (model.dimension * 4 + SAMPLES * (200 * 4 + 8))  # as above
    expected = profiled_peak(model, replace(training, prox_mu=0.1), None, corrects=True)
    assert corrected - besides == pytest.approx(expected, rel=TOLERANCE)
    assert corrected > plain + CLIENTS * model.dimension * 4


def floats_of(model: FlatModel) -> int:
    """Numbers of one sample on its way through the perceptron."""
    training = LocalTraining(SGD(), 0.1, batch_size=1, steps=1)
    population = RandomPopulation(np.full(CLIENTS, 1), MODELS["mlp"][1], 10)
    two, one = (ClientDemand.of(model, replace(training, batch_size=n), population, FedAvg()).nbytes for n in (2, 1))
    return (two - one) // 4


def unread(at: torch.Tensor, clients: NDArray[np.int64]) -> torch.Tensor:
    """Gradients that no algorithm here reads."""
    raise AssertionError


def test_rows_and_several_vectors_are_there_while_clients_send() -> None:
    build, shape = MODELS["mlp"]
    model, algorithm = FlatModel(build, shape, 10), Scaffold(momentum=0.0)
    clients, of_one = np.arange(CLIENTS), 4 * model.dimension
    server, ones = algorithm.start(model.initial(0)), np.ones(CLIENTS)
    steps, cpu = np.full(CLIENTS, 2), torch.device("cpu")
    side = ClientSide(algorithm, server, clients, steps, 0.1, 1.0, empty_store(algorithm, server), cpu, unread)
    with LiveMemory("cpu") as memory:
        block = CohortBlock(clients, torch.ones(CLIENTS, model.dimension), ones, ones, ones)
        side.finished(block)
    measured = memory.peak + CLIENTS * of_one  # the rows before are NumPy's
    training = LocalTraining(SGD(), 0.1, batch_size=1, steps=1)
    population = RandomPopulation(np.full(CLIENTS, 1), shape, 10)
    planned = BlockMemory(model, training, population, algorithm).peak(CLIENTS)
    assert planned - CLIENTS * 2 * of_one == pytest.approx(measured, rel=TOLERANCE)
    plain, controlled = (ClientDemand.of(model, training, population, how).nbytes for how in (FedAvg(), algorithm))
    samples = plain - 4 * (3 * model.dimension + floats_of(model))
    assert controlled - samples == 6 * of_one  # an update, rows twice, three vectors
    batches = replace(training, batch_size=1 + 3 * of_one // floats_of(model))  # training takes more than sending
    plain, controlled = (ClientDemand.of(model, batches, population, how).nbytes for how in (FedAvg(), algorithm))
    assert controlled - plain == of_one  # a correction


def test_poisson_batches_are_taken_at_their_largest() -> None:
    build, shape = MODELS["cnn_mnist"]
    model, sizes = FlatModel(build, shape, 10), np.full(4, 100)
    population = RandomPopulation(sizes, shape, 10)
    peaks: dict[Sampling, int] = {
        sampling: BlockMemory(
            model, LocalTraining(SGD(), 0.1, 16, steps=2, sampling=sampling), population, FedAvg()
        ).peak(4)
        for sampling in ("shuffle", "poisson")
    }
    of_forty = BlockMemory(model, LocalTraining(SGD(), 0.1, 40, steps=2), population, FedAvg()).peak(4)
    assert peaks["shuffle"] < peaks["poisson"] == of_forty  # 16 + 6 · √16


def test_noise_that_is_not_drawn_clips_in_the_same_norm() -> None:
    transform = PrivateGradients(FlatClipping(1.0), HaarMechanism(Constant(1.0)))
    model = FlatModel(MODELS["mlp"][0], (200,), 10)
    population = RandomPopulation(np.full(2, 8), (200,), 10)
    training = LocalTraining(SGD(), 0.1, batch_size=8, steps=1)
    quiet = PrivateGradients(FlatClipping(1.0), HaarMechanism(Constant(0.0)))
    found, expected = (
        next(iter(train_cohort(model, model.initial(0), population, np.arange(2), training, Streams(0), 1, PLAN, how)))
        for how in (without_noise(transform), quiet)
    )
    assert torch.equal(found.updates, expected.updates)


def test_memory_is_live_from_its_making_until_its_last_view_is_gone() -> None:
    memory = LiveMemory("cpu")
    with memory:
        first = torch.zeros(1000)
        second = first * 2
        view = second[:10]
        del second
        assert memory.live == 8000
        del view
        assert memory.live == 4000
        first.add_(1.0)
    assert (memory.live, memory.peak) == (4000, 8000)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cnn_mnist", "plug-in"])
def test_gradients_that_are_alike_are_not_formed_to_plan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 24 samples one at a time three are formed in each of two steps, and the peak is that of 24 formed."""
    build, shape = MODELS[name]
    model, population = FlatModel(build, shape, 10), RandomPopulation(np.full(CLIENTS, SAMPLES), shape, 10)
    training = LocalTraining(SGD(), 0.1, batch_size=SAMPLES, steps=2)
    memory = BlockMemory(model, training, population, FedAvg(), TRANSFORMS["wavelet norms"])
    monkeypatch.setattr(gradients, "_ELSEWHERE", 1)
    parts = gradients.formed_in_parts
    formed: list[slice] = []

    def counted(form: Callable[[slice], Tensor], *arguments: Any) -> Iterator[tuple[slice, Tensor]]:
        def form_and_count(part: slice) -> Tensor:
            formed.append(part)
            return form(part)

        return parts(form_and_count, *arguments)

    def all_formed(form: Callable[[slice], Tensor], samples: int, *_: Any) -> Iterator[tuple[slice, Tensor]]:
        return ((part, form(part)) for part in (slice(first, first + 1) for first in range(samples)))

    peaks = []
    for way in (counted, all_formed):
        for module in (general, program):
            monkeypatch.setattr(module, "formed_in_parts", way)
        peaks.append(memory.peak(CLIENTS))
    assert len(formed) == 6
    assert peaks[0] == peaks[1]
