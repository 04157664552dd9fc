"""Copies between host and device: packed into one, and unpacked as they were."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.learning.device_recorder import META
from tests.learning.test_cohort import SIZES, STREAMS, make
from wirelessfl.learning.batches import Batches, plan_batches
from wirelessfl.learning.cohort import (
    ExecutionPlan,
    LocalTraining,
    PrivateStep,
    SampleGradients,
    StepContext,
    TransformState,
    engine,
    train_cohort,
)
from wirelessfl.learning.cohort.block import BlockData
from wirelessfl.learning.cohort.engine import train_privately
from wirelessfl.learning.cohort.run import Trained, VoidSteps
from wirelessfl.learning.optimizers import SGD
from wirelessfl.learning.private import PrivateGradients
from wirelessfl.privacy.clipping import Constant, FlatClipping
from wirelessfl.privacy.mechanisms import GaussianMechanism
from wirelessfl.radio import Superposition
from wirelessfl.radio.impairments import LateArrival
from wirelessfl.transfers import download, pack, unpack, upload

CPU = torch.device("cpu")


class Copies(TorchDispatchMode):
    """Counts copies from the host to the ``meta`` device."""

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self)
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        given = func(*args, **(kwargs or {}))
        if isinstance(given, torch.Tensor) and given.device == META and any(t.device == CPU for t in tensors):
            self.count += 1
        return given


def batches_of(clients: NDArray[np.int64]) -> Batches:
    """One epoch in batches of 8."""
    sizes = SIZES[clients]
    return plan_batches("shuffle", STREAMS.nodes("batch_order", 1, clients), sizes, -(-sizes // 8), 8)


def test_on_a_cpu_nothing_is_copied() -> None:
    array = np.arange(6.0).reshape(2, 3)
    (tensor,) = upload([array], CPU)
    assert tensor.data_ptr() == array.ctypes.data
    assert download({"a": tensor})["a"].ctypes.data == array.ctypes.data


def test_arrays_of_all_kinds_go_as_one_and_come_out_as_they_were() -> None:
    generator = np.random.default_rng(0)
    arrays: list[NDArray[Any]] = [
        generator.integers(0, 99, (3, 5)),
        np.array([True, False, True]),
        generator.normal(size=(2, 3, 1)),
        np.zeros((0, 4), dtype=np.int64),
        generator.normal(size=7).astype(np.float32),
        np.broadcast_to(np.arange(4), (2, 4)),
        generator.normal(size=(4, 6)).T,
    ]
    with Copies() as copies:
        there = upload(arrays, META)
    assert copies.count == 1
    for array, tensor in zip(arrays, there, strict=True):
        assert tuple(tensor.shape) == array.shape
        assert tensor.dtype == torch.from_numpy(np.array(array)).dtype
    packed, places = pack(arrays)
    for array, tensor in zip(arrays, unpack(packed, arrays, places), strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)


def test_the_data_of_a_block_go_in_one_copy() -> None:
    model, population = make("mlp")
    clients = np.array([1, 4, 2])
    with Copies() as copies:
        BlockData.of(population.shards(clients), batches_of(clients), torch.zeros(model.dimension, device=META))
    assert copies.count == 1


@pytest.mark.parametrize("iq_packing", [False, True])
def test_the_coefficients_of_a_block_go_in_one_copy(iq_packing: bool) -> None:
    updates = torch.zeros(3, 4000, device=META)
    phases = np.exp(1j * np.arange(12.0)).reshape(3, 4)
    for pieces, late, expected in (
        (4, None, 1),
        (4, LateArrival(np.full(3, 0.25)), 2),  # the symbol it belongs to and the next
        (1, LateArrival(np.full(3, 1e-3), subcarriers=32), 1),
    ):
        air = Superposition(4000, iq_packing, pieces)
        with Copies() as copies:
            air.add(updates, phases[:, :pieces], late)
        assert copies.count == expected


def test_steps_that_assumed_finite_gradients_are_void_where_one_is_not() -> None:
    """And are repeated with a look at the values, which gives what the CPU gives at once."""
    model, population = make("mlp")
    clients = np.array([1, 4, 2])
    training = LocalTraining(SGD(), 0.05, batch_size=8, epochs=1)
    transform = PrivateGradients(FlatClipping(0.5), GaussianMechanism(Constant(0.0)))
    shards, start = population.shards(clients), model.initial(1)
    data = BlockData.of(shards, batches_of(clients), start)

    def updates(reads_values: bool) -> Tensor:
        context = StepContext(STREAMS, 1, 0, clients, start, 0.05, reads_values)
        with torch.no_grad():
            return train_privately(model, start, training, data, transform, {}, context).report(np.arange(3)).updates

    assert torch.equal(updates(reads_values=False), updates(reads_values=True))
    shards.inputs[5] = torch.inf
    with pytest.raises(VoidSteps):
        updates(reads_values=False)
    assert updates(reads_values=True).isfinite().all()


class VoidAtFirst:
    """A transform whose first attempt at a block does not hold."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def start(self, clients: NDArray[np.int64], like: Tensor) -> TransformState:
        return {"steps": like.new_zeros(len(clients))}

    def __call__(
        self, gradients: SampleGradients, state: TransformState, context: StepContext, into: Tensor, decay: float
    ) -> PrivateStep:
        into.zero_()
        first = context.step not in self.calls
        self.calls.append(context.step)
        return PrivateStep({"steps": state["steps"] + 1}, void=torch.full((len(into),), first))


def test_the_engine_repeats_a_void_block_from_its_beginning() -> None:
    model, population = make("mlp")
    training, transform = LocalTraining(SGD(), 0.05, batch_size=8, steps=3), VoidAtFirst()
    rows = {"steps": torch.full((3,), 10.0)}
    arguments = (population, np.array([1, 4, 2]), training, STREAMS, 1, ExecutionPlan())
    (block,) = train_cohort(model, model.initial(1), *arguments, transform, rows)
    assert transform.calls == [0, 1, 2, 0, 1, 2]
    assert block.transform_state["steps"].tolist() == [13.0] * 3


def test_a_void_block_is_forgotten_before_it_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is planned for one block: what is void of it may not lie there while it is trained again."""
    model, population = make("mlp")
    training = LocalTraining(SGD(), 0.05, batch_size=8, steps=3)
    before: list[weakref.ref[Tensor]] = []
    alive: list[bool] = []

    def watched(*arguments: Any) -> Trained:
        alive.extend(reference() is not None for reference in before)
        trained = train_privately(*arguments)
        before.append(weakref.ref(trained.updates))
        return trained

    monkeypatch.setattr(engine, "train_privately", watched)
    arguments = (population, np.array([1, 4, 2]), training, STREAMS, 1, ExecutionPlan())
    list(train_cohort(model, model.initial(1), *arguments, VoidAtFirst()))
    assert alive == [False]
