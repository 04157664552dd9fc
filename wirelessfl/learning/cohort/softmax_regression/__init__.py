"""Local training of softmax regression by gradient descent, all steps of a client in one go.

Weights and samples of a client are small enough to stay in the cache of a core from its first step to its last. A small
kernel in C takes them there; the engine, which goes step by step through all clients of a block, has them from memory
every time, and calls torch some twenty times a step. The kernel wants a processor with AVX-512, or with AVX2 and fused
multiplications.
"""

import ctypes
import math
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

MOST_FEATURES = 384 * 16
"""Sums run over them in 16 lanes; of more than 384 numbers in each the last digits would be lost."""

MOST_SAMPLES = 384
"""Of a batch, over which sums run too."""

_PASSES = 20
"""Operations of a product that take as long as what a step does with a weight beside its products."""

_GAIN = 3
"""Operations a second of the kernel over those of products in sample space."""

_CALLS = 10**7
"""Operations of the kernel that take as long as the calls of torch in a step in sample space, of however many clients.

All three were fitted on an AMD of family 26, to 763 blocks of 4 to 500 clients with 2 to 300 samples, 20 to 5,000
features and 2 to 32 classes: in 18 of them the slower way was chosen by more than a tenth; 0.9 % are lost on average.
"""

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
    # Of a class that derives from it nobody knows what a step does
    descends = type(training.optimizer) is SGD and data.augmentation is None
    is_plain = start.device.type == "cpu" and start.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    if not (descends and is_plain) or len(last.slots) != 1 + last.layer.has_bias or kernel() is None:
        return False
    classes, features = last.slots[0].shape
    fits = classes <= MOST_CLASSES and features <= MOST_FEATURES and data.largest_batch <= MOST_SAMPLES
    return fits and _can_be_read(data, classes, features) and _is_fast(program, data)


def _can_be_read(data: BlockData, classes: int, features: int) -> bool:
    # Whether memory is what the kernel takes it for; what is not so is refused, or copied, where torch computes
    inputs, targets, rows = data.inputs, data.targets, data.own_rows
    if targets.dtype != torch.int64 or rows.dtype != torch.int64 or rows.numel() == 0:
        return False
    are_rows = inputs.is_contiguous() and math.prod(inputs.shape[1:]) == features
    least, greatest = targets[rows].aminmax()
    return are_rows and targets.is_contiguous() and int(least) >= 0 and int(greatest) < classes


def _is_fast(program: Program, data: BlockData) -> bool:
    space, steps = SampleSpace(program), len(data.batches)
    here = steps * space.weight.size * (4 * data.largest_batch + _PASSES)
    return data.clients * here < data.clients * _GAIN * space.operations(data) + _CALLS * steps


def train(program: Program, start: Tensor, training: LocalTraining, data: BlockData) -> Trained:
    """All local steps of a block for which ``takes`` holds."""
    library = kernel()
    assert library is not None
    steps = [Step(batch.rows, batch.weights) for batch in data.batches]
    descent = Descent(training.learning_rate, training.optimizer.decay, training.prox_mu)
    weight, *biases = program.steps[-1].slots
    updates = start.new_empty(data.clients, len(start))
    model = start.contiguous(), weight.shape[0], len(biases) > 0
    losses, energies = _descend(library, data.inputs, data.targets, *model, descent, steps, updates)
    return finished(updates, energies.sqrt().to(updates.dtype), losses, training, data)


def _descend(
    library: ctypes.CDLL,
    inputs: Tensor,
    targets: Tensor,
    start: Tensor,
    classes: int,
    has_biases: bool,
    descent: Descent,
    steps: Sequence[Step],
    updates: Tensor,
) -> tuple[Tensor, Tensor]:
    # Writes the updates (k, d) at ``start`` (d,) for inputs (N, ...) and targets (N,); sums of losses and squared norms
    # (k,)
    clients, features = len(updates), math.prod(inputs.shape[1:])
    samples = max((step.rows.shape[1] for step in steps), default=0)
    losses, energies = (start.new_empty(clients, dtype=torch.float64) for _ in range(2))
    # Models and their velocities; of each sample its logits, two numbers and a pointer, which takes as much as two
    room = start.new_empty(2 * classes * (features + 1) + (classes + 4) * (samples + _TOGETHER) + _ALIGNMENT)
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
    return all(_trains(library, has_biases) for has_biases in (True, False))


def _trains(library: ctypes.CDLL, has_biases: bool) -> bool:
    # Sizes with which every piece of a product is formed: 18 classes = 10 + 5 + 2 + 1, 53 features = 32 + 16 + 5, and
    # batches of 6 samples and of 5, whose last is alone
    clients, samples, features, classes, descent = 2, 13, 53, 18, Descent(0.5, 0.4, 0.3)
    numbers = torch.linspace(-1.3, 1.7, 2000, dtype=torch.float32, device="cpu").mul(2**12).cos()
    weights = classes * features
    inputs, start = numbers[: samples * features].view(samples, features), numbers[-weights - classes * has_biases :]
    places = torch.arange(samples, device="cpu")
    targets, steps = 3 * places % classes, []
    for first, size in ((0, 6), (1, 5), (3, 5)):
        rows = places[first : first + clients * size].view(clients, size)
        steps.append(Step(rows, inputs.new_full((clients, size), 0.4)))
    found = inputs.new_zeros(clients, len(start))
    _descend(library, inputs, targets, start, classes, has_biases, descent, steps, found)
    moved, velocity = (torch.zeros_like(found, dtype=torch.float64) for _ in range(2))
    for rows, _ in steps:
        own, model = inputs[rows].double(), start + moved
        logits = own @ model[:, :weights].reshape(clients, classes, features).mT
        if has_biases:
            logits = logits + model[:, None, weights:]
        delta = 0.4 * (logits.softmax(2) - functional.one_hot(targets[rows], classes))
        gradient = torch.cat([(delta.mT @ own).flatten(1), *([delta.sum(1)] if has_biases else [])], 1)
        velocity = descent.momentum * velocity + gradient + descent.pull * moved
        moved = moved - descent.rate * velocity
    return torch.allclose(found.double(), moved, rtol=1e-4, atol=1e-5)
