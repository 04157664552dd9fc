"""Softmax regression by the kernel against the plain loop in double precision."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.learning.narrow_kernels import without_avx512
from tests.learning.plain_loop import LoopResult, RandomPopulation, train_client
from tests.learning.test_cohort import STREAMS, collect
from tests.learning.test_stacked import block_data
from wirelessfl.learning.algorithms.base import LocalObjective
from wirelessfl.learning.augmentation import Augmentation
from wirelessfl.learning.batches import Sampling
from wirelessfl.learning.cohort import ExecutionPlan, LocalTraining, softmax_regression, train_cohort
from wirelessfl.learning.cohort.block import BlockData
from wirelessfl.learning.cohort.stacked import Program, compile_program
from wirelessfl.learning.cohort.stacked.program import Slot
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.models import logistic, mlp
from wirelessfl.learning.optimizers import SGD, Adam

compiled_only = pytest.mark.skipif(
    softmax_regression.kernel() is None, reason="the kernel was not compiled, or not for this processor"
)

SIZES = np.array([7, 30, 12, 1, 19, 12])
SHAPES = [
    *((features, 3) for features in (1, 7, 16, 17, 40, 784)),  # all kinds of ends behind the last vector
    *((21, classes) for classes in (1, 2, 4, 5, 9, 10, 11, 13, 32)),  # all pieces of classes
]
TRAINING = LocalTraining(SGD(0.6), 0.05, batch_size=8, epochs=2, prox_mu=0.3)


def regression(features: int, classes: int, *, bias: bool = True) -> FlatModel:
    def build() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(features, classes, bias=bias))

    return FlatModel(build, (features,), classes)


def population(features: int, classes: int) -> RandomPopulation:
    return RandomPopulation(SIZES, (features,), classes)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each block that the kernel trains."""
    made: list[int] = []
    train = softmax_regression.train

    def counted(program: Program, start: Tensor, training: LocalTraining, data: BlockData) -> object:
        made.append(data.clients)
        return train(program, start, training, data)

    monkeypatch.setattr(softmax_regression, "train", counted)
    return made


def trained(
    model: FlatModel, own: RandomPopulation, training: LocalTraining, chunk: int = 4, start: Tensor | None = None
) -> tuple[Tensor, NDArray[np.float64]]:
    """Updates (n, d), and norms before and after and losses (n, 3)."""
    start = model.initial(2) if start is None else start
    clients = np.arange(len(own.sizes))
    return collect(list(train_cohort(model, start, own, clients, training, STREAMS, 3, ExecutionPlan(chunk=chunk))), 6)


def assert_like_the_plain_loop(model: FlatModel, own: RandomPopulation, training: LocalTraining) -> None:
    """As far from double precision as the loop in single precision is, within a factor of 4, or of 2⁻²⁰."""
    updates, numbers = trained(model, own, training)
    assert updates.dtype == torch.float32

    def loop(dtype: torch.dtype) -> list[LoopResult]:
        start = model.initial(2)
        return [train_client(model, start, own, client, training, STREAMS, 3, dtype=dtype) for client in range(6)]

    exact, single = (torch.stack([one.update for one in loop(dtype)]) for dtype in (torch.float64, torch.float32))
    bound = 4 * float((single - exact).abs().max()) + 2.0**-20 * float(exact.abs().max())
    assert float((updates - exact).abs().max()) <= bound
    for (norm_raw, norm, loss), one in zip(numbers, loop(torch.float64), strict=True):
        assert norm_raw == pytest.approx(float(one.raw.norm()), rel=1e-5, abs=1e-7)
        assert norm == pytest.approx(float(one.update.norm()), rel=1e-5, abs=1e-7)
        assert loss == pytest.approx(one.train_loss, rel=1e-5, abs=1e-6)


@compiled_only
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_every_size_is_the_plain_loop(shape: tuple[int, int], bias: bool, calls: list[int]) -> None:
    assert_like_the_plain_loop(regression(*shape, bias=bias), population(*shape), TRAINING)
    assert calls


@compiled_only
@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("prox_mu", [0.0, 0.4])
@pytest.mark.parametrize("steps", [1, 2, 9])
@pytest.mark.parametrize("clip", [None, 0.05])
def test_every_kind_of_descent_is_the_plain_loop(
    sampling: Sampling, momentum: float, prox_mu: float, steps: int, clip: float | None, calls: list[int]
) -> None:
    training = LocalTraining(
        SGD(momentum), 0.1, batch_size=5, steps=steps, sampling=sampling, prox_mu=prox_mu, clip=clip
    )
    assert_like_the_plain_loop(regression(37, 10), population(37, 10), training)
    assert calls


@compiled_only
@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_a_step_may_forget_all_that_was_moved(rate: float, calls: list[int]) -> None:
    """With η μ = 1 nothing is kept of what a client has moved; beyond, it changes its sign."""
    training = LocalTraining(SGD(), rate, batch_size=5, steps=3, prox_mu=2.0 if rate == 0.5 else 0.6)
    assert_like_the_plain_loop(regression(37, 10), population(37, 10), training)
    assert calls


@compiled_only
def test_losses_and_steps_at_logits_far_apart() -> None:
    """Of one sample with logits 0 and x loss and derivative have six digits; derivatives below e⁻⁸⁷ are zero."""
    own = RandomPopulation(np.ones(6, dtype=np.int64), (1,), 2)
    model, training = regression(1, 2), LocalTraining(SGD(), 1.0, batch_size=1, steps=1)
    for x in (0.0, 1e-6, 0.3, 1.0, 5.0, 20.0, 60.0, 86.0, 200.0, -0.7, -30.0, -86.0, -1e30):
        start = torch.tensor([0.0, 0.0, 0.0, x])
        updates, numbers = trained(model, own, training, start=start)
        for client in range(6):
            target = int(own.of_client(client).targets[0])
            logits = torch.tensor([0.0, x], dtype=torch.float64)
            probability, found = logits.softmax(0), updates[client, 2:].double()  # of the biases: the derivative itself
            torch.testing.assert_close(found[1 - target], -probability[1 - target], rtol=1e-6, atol=2e-38)
            torch.testing.assert_close(found[target], 1 - probability[target], rtol=1e-6, atol=1.2e-7)
            loss = float(torch.logsumexp(logits, 0) - logits[target])
            assert numbers[client, 2] == pytest.approx(loss, rel=1e-6, abs=1.2e-7)


@compiled_only
@pytest.mark.parametrize("number", [torch.nan, torch.inf])
@pytest.mark.parametrize("place", range(12))
def test_a_model_that_has_diverged_stays_so(number: float, place: int) -> None:
    """Not a number among the logits makes loss and update of the sample such, in whichever class it is."""
    model, own = regression(3, 3), population(3, 3)
    start = model.initial(1)
    start[place] = number
    updates, numbers = trained(model, own, replace(TRAINING, clip=1.0, prox_mu=0.0), start=start)
    exact, expected = trained(model, own, replace(TRAINING, clip=1.0, prox_mu=0.0), start=start.double())
    np.testing.assert_array_equal(np.isfinite(numbers), np.isfinite(expected))
    torch.testing.assert_close(updates, exact.float(), rtol=1e-4, atol=1e-5)


@compiled_only
def test_a_client_s_bits_depend_on_nobody_else() -> None:
    model, own = regression(37, 10), population(37, 10)
    expected, numbers = trained(model, own, TRAINING, chunk=6)
    for chunk in (1, 4):
        updates, others = trained(model, own, TRAINING, chunk=chunk)
        assert torch.equal(updates, expected)
        np.testing.assert_array_equal(others, numbers)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("softmax_regression")
    return without_avx512(softmax_regression.LIBRARY, folder, {"wirelessfl_train_softmax_regression": 10})


@compiled_only
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_both_kinds_of_processors_give_the_same_bits(
    shape: tuple[int, int], narrow: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, own = regression(*shape), population(*shape)
    expected, numbers = trained(model, own, TRAINING)
    monkeypatch.setattr(softmax_regression, "kernel", lambda: narrow)
    updates, others = trained(model, own, TRAINING)
    assert torch.equal(updates, expected)
    np.testing.assert_array_equal(others, numbers)


@compiled_only
def test_nobody_and_clients_without_samples() -> None:
    model, own = regression(5, 3), RandomPopulation(np.array([0, 4]), (5,), 3)
    plan = ExecutionPlan(chunk=4)
    (block,) = train_cohort(model, model.initial(2), own, np.arange(2), TRAINING, STREAMS, 3, plan)
    (silent,) = np.flatnonzero(block.positions == 0)
    assert not block.updates[silent].any() and block.norm[silent] == 0 and np.isnan(block.train_loss[silent])
    assert block.updates[1 - silent].any()
    (block,) = train_cohort(model, model.initial(2), own, np.zeros(1, np.int64), TRAINING, STREAMS, 3, plan)
    assert not block.updates.any()


@compiled_only
def test_what_the_kernel_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain softmax regression by gradient descent itself, in single precision on a CPU; all else trains elsewhere."""

    class Other(SGD):
        """Might do anything."""

    def takes(
        model: FlatModel | None = None,
        training: LocalTraining = TRAINING,
        dtype: torch.dtype = torch.float32,
        samples: int = 30,
        clients: int = 2,
        **changes: object,
    ) -> bool:
        model = model or regression(5, 3)
        own = RandomPopulation(np.full(clients, samples), model.feature_shape, model.num_classes)
        data = block_data(own, training)
        data = replace(data, inputs=data.inputs.float())
        program, data = compile_program(model), replace(data, **changes)  # type: ignore[arg-type]
        assert program is not None
        return softmax_regression.takes(program, model.initial(0).to(dtype), training, data)

    assert takes()
    assert takes(FlatModel(lambda: logistic((4, 5), 3), (4, 5), 3))
    assert not takes(FlatModel(lambda: mlp((5,), 3, hidden=(4,)), (5,), 3))
    assert not takes(training=replace(TRAINING, optimizer=Adam()))
    assert not takes(training=replace(TRAINING, optimizer=Other()))
    assert not takes(dtype=torch.float64)
    assert not takes(augmentation=Augmentation())
    assert takes(regression(5, softmax_regression.MOST_CLASSES))
    assert not takes(regression(5, softmax_regression.MOST_CLASSES + 1))
    assert takes(regression(softmax_regression.MOST_FEATURES, 2))
    assert not takes(regression(softmax_regression.MOST_FEATURES + 1, 2))
    most = softmax_regression.MOST_SAMPLES
    assert takes(training=replace(TRAINING, batch_size=most), samples=most)
    assert not takes(training=replace(TRAINING, batch_size=most + 1), samples=most + 1)
    long = replace(TRAINING, batch_size=5, epochs=20)
    assert takes(regression(784, 10), long, samples=200, clients=100)
    assert takes(regression(784, 10), long, samples=10, clients=10)
    assert not takes(regression(784, 10), long, samples=10, clients=100)  # where sample space is faster
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not takes()
    monkeypatch.setattr(softmax_regression, "kernel", lambda: None)
    assert not takes()


@compiled_only
def test_what_the_kernel_cannot_read_is_left_to_torch() -> None:
    """Memory laid out otherwise, and what torch refuses: other features, labels that are no class, other types."""
    model = regression(6, 3)
    own = RandomPopulation(np.array([30, 12, 7]), (6,), 3)
    program, data = compile_program(model), block_data(own, TRAINING)
    assert program is not None
    inputs, targets = data.inputs.float(), data.targets
    data = replace(data, inputs=inputs)

    def takes(program: Program = program, **changes: Tensor) -> bool:
        changed = replace(data, **changes)  # type: ignore[arg-type]
        return softmax_regression.takes(program, model.initial(0), TRAINING, changed)

    assert takes()
    assert takes(inputs=inputs.view(-1, 2, 3))
    assert not takes(inputs=inputs.T.contiguous().T)
    assert not takes(inputs=inputs[:, :5].contiguous())
    for wrong in (-1, 3):
        assert not takes(targets=targets.clone().index_fill_(0, torch.tensor([3]), wrong))
    assert not takes(targets=targets.int())
    assert not takes(own_rows=data.own_rows.int())
    assert not takes(own_rows=data.own_rows[:0])
    *before, last = program.steps
    assert not takes(Program((*before, replace(last, slots=(*last.slots, Slot(21, (1,)))))))


@compiled_only
@pytest.mark.parametrize("own", ["correction", "begin"])
def test_corrections_and_models_of_one_s_own_train_elsewhere(own: str, calls: list[int]) -> None:
    model, data = regression(5, 3), population(5, 3)
    start = model.initial(2)
    rows = torch.randn(6, len(start), generator=torch.Generator().manual_seed(1))
    objective = (lambda positions: LocalObjective(correction=rows[positions])) if own == "correction" else None
    begin = rows.numpy() if own == "begin" else None
    blocks = train_cohort(
        model, start, data, np.arange(6), TRAINING, STREAMS, 3, ExecutionPlan(), objective=objective, begin=begin
    )
    assert sum(len(block.positions) for block in blocks) == 6
    assert not calls


def test_a_machine_without_the_kernel_gives_the_same_but_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    model, own = regression(37, 10), population(37, 10)
    updates, numbers = trained(model, own, TRAINING)
    monkeypatch.setattr(softmax_regression, "kernel", lambda: None)
    found, others = trained(model, own, TRAINING)
    torch.testing.assert_close(found, updates, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(others, numbers, rtol=1e-5)


def test_a_library_that_trains_wrongly_is_not_taken() -> None:
    class Wrong:
        @staticmethod
        def wirelessfl_train_softmax_regression(*_: object) -> None:
            """Nothing is written."""

    assert not softmax_regression._compiled_agrees(Wrong)  # type: ignore[arg-type]
