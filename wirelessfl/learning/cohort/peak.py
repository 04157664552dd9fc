"""Peak memory of a block of clients on a GPU: its training, gone through without values.

On torch's ``meta`` device operations have shapes and no values, and take neither time nor memory. A block that is
trained there allocates what it would on a GPU, and at its peak as much; only what operations take inside themselves,
and what an allocator wastes, is not seen. It was compared with what torch's profiler sees on a CPU, not on a GPU.
"""

import math
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from wirelessfl.learning.algorithms.base import Algorithm
from wirelessfl.learning.batches import Batches, local_steps
from wirelessfl.learning.client_side import Footprint
from wirelessfl.learning.cohort.block import Batch, BlockData
from wirelessfl.learning.cohort.engine import train_plainly, train_privately
from wirelessfl.learning.cohort.stacked import compile_program
from wirelessfl.learning.cohort.stacked.layers import FrozenLayers
from wirelessfl.learning.cohort.training import GradientTransform, LocalTraining, StepContext
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.population import Population
from wirelessfl.streams import Streams
from wirelessfl.transfers import places_of, unpack

_META = torch.device("meta")
_STEPS = 2  # in the second everything is there that later steps find
_DEVIATIONS = 6.0  # of a Poisson batch above its mean: a larger one among 10⁹ is not to be expected


class LiveMemory(TorchDispatchMode):
    """Bytes of the tensors that are alive, of those made within the scope on one kind of device.

    Attributes:
        live: Bytes now.
        peak: The most bytes so far.
    """

    def __init__(self, device: str) -> None:
        TorchDispatchMode.__init__(self)
        self.live = self.peak = 0
        self._device = device
        self._known: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = func(*args, **(kwargs or {}))
        taken = {
            tensor.untyped_storage()._cdata for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, Tensor)
        }
        for tensor in tree_leaves(given):
            if isinstance(tensor, Tensor) and tensor.device.type == self._device:
                self._count(tensor.untyped_storage(), taken)
        self.peak = max(self.peak, self.live)
        return given

    def _count(self, storage: torch.UntypedStorage, taken: set[int]) -> None:
        # Counts memory that is new: neither known nor that of an argument, of which this is a view
        name = storage._cdata
        if name in self._known or name in taken:
            return
        self._known.add(name)
        self.live += storage.nbytes()
        weakref.finalize(storage, self._forget, name, storage.nbytes())

    def _forget(self, name: int, size: int) -> None:
        self._known.discard(name)
        self.live -= size


class _FirstSteps(list[Batch]):
    """Batches of which only the first few are gone through."""

    def __iter__(self) -> Iterator[Batch]:
        return islice(super().__iter__(), _STEPS)


@dataclass(frozen=True)
class BlockMemory:
    """Memory of a GPU that blocks of clients take.

    Attributes:
        model: The model.
        training: What each client does.
        population: Whose samples; of each block it is assumed that all clients hold as many as the largest does.
        algorithm: Whose corrections, rows and uploads.
        transform: Clipping and noise, or None.
    """

    model: FlatModel
    training: LocalTraining
    population: Population
    algorithm: Algorithm
    transform: GradientTransform | None = None

    @cached_property
    def footprint(self) -> Footprint:
        """Memory that the algorithm takes beside the training."""
        return Footprint.of(self.algorithm, self.model.dimension)

    def peak(self, clients: int) -> int:
        """Bytes at the peak of a block of so many clients, training or sending, and of the uploads before it."""
        program = compile_program(self.model)
        self.model.on(_META)
        start = torch.empty(self.model.dimension, device=_META)
        for step in () if program is None else program.steps:
            if isinstance(step.layer, FrozenLayers):
                step.layer.like(start)  # the module, which is there from round to round
        memory = LiveMemory("meta")
        with memory, torch.no_grad():
            self._train(clients, int(self.population.sizes.max()), start)
        finishing = clients * (start.nbytes + self.footprint.finishing)
        return max(memory.peak, finishing) + clients * self.footprint.upload

    @property
    def resident(self) -> int:
        """Bytes that stay there from round to round: samples, module, and the global model with what comes with it."""
        module = 4 * (self.model.dimension + self.model.frozen_dimension)
        return module + self.footprint.received + self.population.lasting_bytes

    def _train(self, clients: int, samples: int, start: Tensor) -> None:
        objective = self.footprint.objective
        training = replace(self.training, prox_mu=objective.prox_mu)
        correction = None if objective.correction is None else start.new_empty(clients, len(start))
        data = self._data(clients, samples, start)
        data = replace(data, batches=_FirstSteps(data.batches))
        if self.transform is None:
            train_plainly(self.model, start, training, data, correction)
            return
        members = np.arange(clients)
        state = self.transform.start(members, start)
        context = StepContext(Streams(0), 1, 0, members, start, training.learning_rate, reads_values=False)
        train_privately(self.model, start, training, data, self.transform, state, context, correction)

    def _data(self, clients: int, samples: int, start: Tensor) -> BlockData:
        # The data of clients that hold so many samples each, in batches of which none has any content
        training = self.training
        own = np.full(clients, samples)
        steps = local_steps(own, training.batch_size, training.epochs, training.steps)
        width = min(training.batch_size, samples)
        if training.sampling == "poisson":
            width = min(samples, math.ceil(width + _DEVIATIONS * math.sqrt(width)))
        shape = int(steps[0]), clients
        counts = _hollow(np.int64, *shape, value=width)
        batches = Batches(_hollow(np.int64, *shape, width), counts, _hollow(np.float64, *shape, value=1), steps)
        arrays = [_hollow(np.int64, clients, samples), own, batches.index, batches.counts, batches.divisor]
        arrays += [] if training.augmentation is None else [_hollow(np.float32, *batches.index.shape, 4)]
        rows = 1 if self.population.lasting_bytes else clients * samples
        made = [_hollow(np.float32, rows, *self.model.feature_shape), _hollow(np.int64, rows)]
        length, places = places_of([*arrays, *made])
        sent = unpack(torch.empty(length, dtype=torch.uint8, device=_META), [*arrays, *made], places)
        return BlockData.laid_out(sent, batches, start, None, training.augmentation)


def _hollow(dtype: type[np.generic], *shape: int, value: float = 0) -> NDArray[Any]:
    # An array of one number that takes the memory of one number
    return np.broadcast_to(np.array(value, dtype=dtype), shape)
