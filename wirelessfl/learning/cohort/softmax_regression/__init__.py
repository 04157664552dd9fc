"""Local training of softmax regression by gradient descent, all steps of a client in one go.

Weights and samples of a client are small enough to stay in the cache of a core from its first step to its last. A small
kernel in C takes them there; the engine, which goes step by step through all clients of a block, has them from memory
every time, and calls torch some twenty times a step. The kernel wants a processor with AVX-512, or with AVX2 and fused
multiplications.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from wirelessfl.kernels import POINTER, library_beside, loaded
from wirelessfl.learning.cohort.block import BlockData
from wirelessfl.learning.cohort.run import Trained, finished
from wirelessfl.learning.cohort.stacked.layers import Flatten, Linear
from wirelessfl.learning.cohort.stacked.program import Program
from wirelessfl.learning.cohort.stacked.sample_space import SampleSpace
from wirelessfl.learning.cohort.training import LocalTraining
from wirelessfl.learning.optimizers import SGD

__all__ = ["MOST_CLASSES", "MOST_FEATURES", "MOST_SAMPLES", "kernel", "takes", "train"]

LIBRARY = library_beside(__file__)

MOST_CLASSES = 32
"""With more, weights would leave the cache, and products of the libraries are as fast."""

_FEW_WEIGHTS = 2**13
"""Of which a cache has the model, what it has moved, and the global model: the kernel is then the fastest."""

_GAIN = 2.5
_PASSES = 17
"""Operations a second over those in sample space, and what passes over a weight in a step count for: measured on an AMD
of family 26, for 784 to 6,000 features, 10 to 32 classes and 20 to 200 samples."""

MOST_FEATURES = 384 * 16
MOST_SAMPLES = 384
"""Of a batch. Sums run over these, and over features in 16 lanes; of longer ones the last digits would be lost."""

_TOGETHER = 4  # samples whose logits are formed at once
_ALIGNMENT = 3 * 16  # numbers lost before three places in memory that begin a line of the cache


class Descent(NamedTuple):
    """Gradient descent: v ← momentum · v + gradient + pull · (w − w̄), w ← w − rate · v."""

    rate: float
    momentum: float
    pull: float


class Step(NamedTuple):
    """A step of the first a clients: the rows (a, b) of their samples, and weights of the losses, 0 behind the last."""

    rows: Tensor
    weights: Tensor


class _Sizes(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64) for name in ("clients", "steps", "features", "classes", "has_biases", "apart", "samples")
    ]


class _Descent(ctypes.Structure):
    _fields_ = [(name, ctypes.c_float) for name in Descent._fields]


class _Step(ctypes.Structure):
    _fields_ = [
        *((name, POINTER) for name in Step._fields),
        *((name, ctypes.c_int64) for name in ("clients", "samples", "rows_apart", "weights_apart")),
    ]


def takes(program: Program, start: Tensor, training: LocalTraining, data: BlockData) -> bool:
    """Whether this is softmax regression by gradient descent in single precision on a CPU, and the kernel is fast.

    Of many weights it would go through all in every step; with few samples sample space is then the faster way.

    Args:
        program: The layers of the model.
        start: (d,) the global model.
        training: What each client does.
        data: Of the clients.
    """
    *before, last = program.steps
    if not isinstance(last.layer, Linear) or not all(isinstance(step.layer, Flatten) for step in before):
        return False
    classes, features = last.slots[0].shape
    samples, steps = max((batch.rows.shape[1] for batch in data.batches), default=0), len(data.batches)
    fits = classes <= MOST_CLASSES and features <= MOST_FEATURES and samples <= MOST_SAMPLES
    # Of a class that derives from it nobody knows what a step does
    descends = type(training.optimizer) is SGD and data.augmentation is None
    is_plain = start.device.type == "cpu" and start.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    if not (fits and descends and is_plain) or kernel() is None:
        return False
    operations = steps * classes * features * (4 * samples + _PASSES)
    return classes * features <= _FEW_WEIGHTS or operations < _GAIN * SampleSpace(program).operations(data)


def train(program: Program, start: Tensor, training: LocalTraining, data: BlockData) -> Trained:
    """All local steps of a block for which ``takes`` holds."""
    library = kernel()
    assert library is not None
    steps = [Step(batch.rows, batch.weights) for batch in data.batches]
    descent = Descent(training.learning_rate, training.optimizer.decay, training.prox_mu)
    classes = program.steps[-1].slots[0].shape[0]
    inputs, updates = data.inputs.flatten(1), start.new_empty(data.clients, len(start))
    losses, energies = _descend(library, inputs, data.targets, start, classes, descent, steps, updates)
    return finished(updates, energies.sqrt().to(updates.dtype), losses, training, data)


def _descend(
    library: ctypes.CDLL,
    inputs: Tensor,
    targets: Tensor,
    start: Tensor,
    classes: int,
    descent: Descent,
    steps: Sequence[Step],
    updates: Tensor,
) -> tuple[Tensor, Tensor]:
    # Writes the updates (k, d) at ``start`` (d,) for inputs (N, features) and targets (N,); sums of losses and squared
    # norms (k,)
    inputs, targets, start = inputs.contiguous(), targets.to(torch.int64).contiguous(), start.contiguous()
    clients, features = len(updates), inputs.shape[1]
    samples = max((step.rows.shape[1] for step in steps), default=0)
    losses, energies = (start.new_empty(clients, dtype=torch.float64) for _ in range(2))
    # Models and their velocities; of each sample its logits, two numbers and a pointer, which takes as much as two
    room = start.new_empty(2 * classes * (features + 1) + (classes + 4) * (samples + _TOGETHER) + _ALIGNMENT)
    has_biases = len(start) > classes * features
    sizes = _Sizes(clients, len(steps), features, classes, has_biases, len(start), samples)
    described = (_Step * len(steps))(
        *(
            _Step(*(each.data_ptr() for each in step), *step.rows.shape, *(each.stride(0) for each in step))
            for step in steps
        )
    )
    library.wirelessfl_train_softmax_regression(
        *map(ctypes.byref, (sizes, _Descent(*descent), described)),
        *(tensor.data_ptr() for tensor in (inputs, targets, start, updates, losses, energies, room)),
    )
    return losses, energies


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    return loaded(LIBRARY, {"wirelessfl_train_softmax_regression": (POINTER,) * 10}, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    # Where the processor lacks the instructions nothing is written
    clients, samples, features, classes, descent = 2, 7, 37, 3, Descent(0.5, 0.4, 0.3)
    numbers = torch.linspace(-1.3, 1.7, 1000, dtype=torch.float32).mul(2**12).cos()
    inputs, start = numbers[: samples * features].view(samples, features), numbers[-classes * (features + 1) :]
    places = torch.arange(samples, device="cpu")
    targets, weights = places % classes, inputs.new_full((clients, 3), 0.4)
    steps = [Step(places[first : first + 6].view(clients, 3), weights) for first in (0, 1)]
    found = inputs.new_zeros(clients, len(start))
    _descend(library, inputs, targets, start, classes, descent, steps, found)
    moved, velocity = (torch.zeros_like(found, dtype=torch.float64) for _ in range(2))
    for step in steps:
        own, model = inputs[step.rows].double(), start + moved
        logits = own @ model[:, :-classes].reshape(clients, classes, features).mT + model[:, None, -classes:]
        delta = 0.4 * (logits.softmax(2) - functional.one_hot(targets[step.rows], classes))
        gradient = torch.cat([(delta.mT @ own).flatten(1), delta.sum(1)], 1)
        velocity = descent.momentum * velocity + gradient + descent.pull * moved
        moved = moved - descent.rate * velocity
    return torch.allclose(found.double(), moved, rtol=1e-4, atol=1e-5)
