"""Where differential privacy enters local training: between per-sample gradients and the optimizer.

In every step the engine hands a ``GradientTransform`` the per-sample gradients of all active clients, without
having formed them, and the accumulated gradient of the optimizer, one vector a client. The transform adds the sum
of the clipped gradients plus noise, over the batch size (a public number); the engine goes on with the proximal term
and the optimizer. Apart from these vectors, which are large and therefore changed in place, a transform is a pure
function over stacked tensors; its memory is a dictionary of rows, one a client.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.streams import Streams

TransformState: TypeAlias = dict[str, Tensor]


class SampleGradients(Protocol):
    """The gradients ∇ℓ_b of every sample b in the batches of k clients, for one step.

    The gradients are of the plain loss, neither weighted nor divided. Samples that only pad a batch (``present``
    is False) have arbitrary norms; ``weighted_sum`` ignores them whatever their weight.

    Attributes:
        present: (k, B) bool, which samples are there.
        losses: (k, B) the loss of each sample.
    """

    present: Tensor
    losses: Tensor

    @property
    def sizes(self) -> Sequence[int]:
        """Elements of each of the L parameters, in flat order."""

    def squared_norms(self) -> Tensor:
        """(k, B, L) squared norms of the part of ∇ℓ_b in each of the L parameters, in flat order.

        Their sum over the last axis is ‖∇ℓ_b‖². No per-sample gradient is formed where the layer's norm has a
        closed form.
        """

    def weighted_sum(self, weights: Tensor, into: Tensor | None = None, decay: float = 0.0) -> Tensor:
        """(k, d) sums Σ_b weights_b ∇ℓ_b.

        Args:
            weights: (k, B), or (k, B, L) with one weight for each parameter.
            into: (k, d) set in place to decay · into + sums, and given back; None for new memory.
            decay: What ``into`` is multiplied by; where it is 0, nothing that ``into`` held matters.
        """

    def products(self) -> Sequence[tuple[Tensor, Tensor]] | None:
        """The gradients as outer products, where every parameter's part is one: in models of linear layers.

        Returns:
            A pair (k, B, m), (k, B, n) for each parameter in flat order, element i · n + j of whose part is the
            product of element i of the first and j of the second; None where some part is no outer product.
        """

    def formed(self) -> Iterator[tuple[slice, Tensor]]:
        """The gradients themselves, (k, b, d) for a slice of samples at a time, in chunks that fit in memory.

        For norms that have no closed form (a wavelet norm). Each chunk may be overwritten by the caller.
        """


@dataclass(frozen=True)
class StepContext:
    """Which step this is, for schedules and random streams.

    Attributes:
        streams: The run's random streams. Draw per client, step and round, never per chunk.
        round_index: Communication round, from 1.
        step: Local step, from 0.
        clients: (k,) int64, the clients whose step this is.
        divisor: (k,) the batch size that the sum will be divided by, public.
        learning_rate: η.
        reads_values: Whether the step may branch on what it computed, for which the host waits until a GPU has done
            all that was launched. Where it may not, it assumes what is nearly always true, see ``PrivateStep``.
    """

    streams: Streams
    round_index: int
    step: int
    clients: NDArray[np.int64]
    divisor: Tensor
    learning_rate: float
    reads_values: bool = True


@dataclass(frozen=True)
class PrivateStep:
    """What a transform gives back for one step.

    Attributes:
        state: The rows (k, ...) for the next step; may be those that came in, changed in place.
        statistics: Name to (k,): what the ledger or the trace wants to know of this step.
        void: (k,) bool, of which clients the step was computed on an assumption that is wrong; None where on none.
            All steps of a block in which there is one are then repeated with ``StepContext.reads_values``.
    """

    state: TransformState
    statistics: Mapping[str, Tensor] = field(default_factory=dict)
    void: Tensor | None = None


class GradientTransform(Protocol):
    """Per-sample clipping and noise of one local step."""

    def start(self, clients: NDArray[np.int64], like: Tensor) -> TransformState:
        """The state (k, ...) of clients that have never trained before, on the device and in the dtype of ``like``."""

    def __call__(
        self, gradients: SampleGradients, state: TransformState, context: StepContext, into: Tensor, decay: float
    ) -> PrivateStep:
        """Clip, sum and add noise for the active clients of one step.

        Args:
            gradients: Of the samples.
            state: Rows (k, ...) of the state.
            context: Which step this is.
            into: (k, d) set in place to decay · into + (sum of the clipped gradients + noise) / divisor.
            decay: What ``into`` is multiplied by; where it is 0, nothing that ``into`` held matters.
        """
