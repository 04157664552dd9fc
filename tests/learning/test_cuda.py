"""The engine on a GPU beside the same on a CPU; skipped where torch sees none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.learning.test_cohort import MODELS, STREAMS, collect, make
from wirelessfl.learning import PartitionedData, evaluate
from wirelessfl.learning.cohort import ExecutionPlan, LocalTraining, Precision, train_cohort
from wirelessfl.learning.data import load_digits
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.models import mlp
from wirelessfl.learning.optimizers import SGD, AdaGrad, Adam, Optimizer
from wirelessfl.learning.partition import iid_partition
from wirelessfl.learning.private import PrivateGradients
from wirelessfl.privacy.clipping import Constant, FlatClipping, PrivateMooClipping, QuantileClipping
from wirelessfl.privacy.mechanisms import GaussianMechanism, HaarMechanism
from wirelessfl.radio import Superposition

pytestmark = pytest.mark.cuda

CPU, CUDA = ExecutionPlan(chunk=4), ExecutionPlan(device="cuda", chunk=6)


def train(
    name: str, training: LocalTraining, plan: ExecutionPlan, dtype: torch.dtype, noise: float | None = None
) -> torch.Tensor:
    """(6, d) updates, brought to the host."""
    model, population = make(name)
    start = model.initial(2).to(dtype)
    transform = None if noise is None else PrivateGradients(FlatClipping(0.5), GaussianMechanism(Constant(noise)))
    blocks = train_cohort(model, start, population, np.arange(6), training, STREAMS, 3, plan, transform)
    return collect([replace(block, updates=block.updates.cpu()) for block in blocks], 6)[0]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("noise", [None, 0.0], ids=["plain", "clipped per sample"])
def test_every_model_trains_as_on_a_cpu(name: str, noise: float | None) -> None:
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=2, prox_mu=0.1, clip=0.5)
    on_gpu, on_cpu = (train(name, training, plan, torch.float64, noise) for plan in (CUDA, CPU))
    torch.testing.assert_close(on_gpu, on_cpu, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("optimizer", [SGD(), Adam(eps=1e-3), AdaGrad(1e-3)], ids=repr)
def test_every_optimizer_trains_as_on_a_cpu(optimizer: Optimizer) -> None:
    training = LocalTraining(optimizer, 0.02, batch_size=5, steps=9)
    on_gpu, on_cpu = (train("mlp", training, plan, torch.float64) for plan in (CUDA, CPU))
    torch.testing.assert_close(on_gpu, on_cpu, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("tf32", 2e-2), ("bf16", 5e-2)])
def test_single_precision_is_within_the_tolerance_of_the_guide(precision: Precision, tolerance: float) -> None:
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=2)
    exact = train("mlp", training, CPU, torch.float64)
    found = train("mlp", training, replace(CUDA, precision=precision), torch.float32).double()
    assert (found - exact).norm() <= tolerance * exact.norm()


def test_the_same_plan_gives_the_same_bits() -> None:
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=2)
    assert torch.equal(*(train("mlp", training, CUDA, torch.float32, noise=1.0) for _ in range(2)))


def test_noise_is_that_of_a_cpu() -> None:
    """To the roundings of float32, in which the noise is drawn."""
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=2)
    on_gpu, on_cpu = (train("mlp", training, plan, torch.float64, noise=1.0) for plan in (CUDA, CPU))
    torch.testing.assert_close(on_gpu, on_cpu, rtol=1e-5, atol=1e-6)


PRIVATE: dict[str, PrivateGradients | None] = {
    "plain": None,
    "flat": PrivateGradients(FlatClipping(0.5), GaussianMechanism(Constant(1.0))),
    "MOO": PrivateGradients(PrivateMooClipping(0.5, 0.1, 0.1), GaussianMechanism(Constant(1.0))),
    "wavelet": PrivateGradients(FlatClipping(0.5), HaarMechanism(Constant(1.0))),
    "quantile": PrivateGradients(QuantileClipping(0.5, 0.5, 0.2, 1.0), GaussianMechanism(Constant(1.0))),
}


@pytest.fixture
def waiting_is_an_error() -> Iterator[Callable[[], None]]:
    """Call it, and whatever makes the host wait for the device raises until the test ends."""
    before = torch.cuda.get_sync_debug_mode()
    yield lambda: torch.cuda.set_sync_debug_mode("error")
    torch.cuda.set_sync_debug_mode(before)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("how", PRIVATE)
def test_a_round_never_waits_but_for_its_report(name: str, how: str, waiting_is_an_error: Callable[[], None]) -> None:
    """The second of two: in the first, libraries set themselves up and constants are sent."""
    model, population = make(name)
    training = LocalTraining(Adam(), 0.01, batch_size=8, epochs=1, sampling="poisson", prox_mu=0.1, clip=0.5)
    start = model.initial(2)
    air = Superposition(model.dimension)

    def one_round(index: int) -> None:
        blocks = train_cohort(model, start, population, np.arange(6), training, STREAMS, index, CUDA, PRIVATE[how])
        for block in blocks:
            air.add(block.updates, np.ones(6, dtype=np.complex128))

    one_round(1)
    waiting_is_an_error()
    one_round(2)


def test_a_block_with_a_gradient_that_is_not_finite_is_repeated() -> None:
    """What is found then is what a CPU finds at once."""
    model, population = make("mlp")
    training = LocalTraining(SGD(), 0.05, batch_size=8, epochs=1)
    transform = PrivateGradients(FlatClipping(0.5), GaussianMechanism(Constant(0.0)))
    start = model.initial(2).double()
    start[0] = torch.inf
    found = [
        next(iter(train_cohort(model, start, population, np.arange(6), training, STREAMS, 1, plan, transform)))
        for plan in (CUDA, replace(CPU, chunk=6))
    ]
    torch.testing.assert_close(found[0].updates.cpu(), found[1].updates, rtol=1e-8, atol=1e-10, equal_nan=True)


def test_the_air_gives_the_host_one_vector() -> None:
    updates = torch.arange(6.0, device="cuda").view(2, 3)
    air = Superposition(3)
    air.add(updates, np.array([1.0 + 0j, 2.0 + 0j]))
    np.testing.assert_array_equal(np.asarray(air.received()), [6.0, 9.0, 12.0])


def test_data_that_lie_there_are_evaluated_there() -> None:
    digits = load_digits()
    partition = iid_partition(len(digits.train), 6, np.random.default_rng(0))
    population = PartitionedData(digits.to("cuda"), partition).side_by_side()
    model = FlatModel(lambda: mlp((1, 8, 8), 10, hidden=(9,)), (1, 8, 8), 10)
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=1)
    start = model.initial(1)
    (block,) = train_cohort(model, start, population, np.arange(6), training, STREAMS, 1, CUDA)
    assert block.updates.is_cuda
    there = evaluate(model, (start.cuda() + block.updates.mean(0)), population.test)
    here = evaluate(model, start + block.updates.mean(0).cpu(), digits.test)
    assert there.loss == pytest.approx(here.loss, rel=1e-4)
