"""Local training of clients, and where differential privacy enters it: between gradients and optimizer.

In every step the engine hands a ``GradientTransform`` the per-sample gradients of all active clients, without
having formed them, and the accumulated gradient of the optimizer, one vector a client. The transform adds the sum
of the clipped gradients plus noise, over the batch size (a public number); the engine goes on with the proximal term
and the optimizer. Apart from these vectors, which are large and therefore changed in place, a transform is a pure
function over stacked tensors; its memory is a dictionary of rows, one a client.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.errors import precondition
from wirelessfl.learning.augmentation import Augmentation
from wirelessfl.learning.batches import Sampling
from wirelessfl.learning.cohort.gradients import SampleGradients
from wirelessfl.learning.optimizers import Optimizer
from wirelessfl.streams import Streams


@dataclass(frozen=True)
class LocalTraining:
    """Local training of every client in a round.

    Attributes:
        optimizer: Step function; its state starts anew in every round.
        learning_rate: η of this round.
        batch_size: Samples in a mini-batch; their expected number under Poisson sampling.
        epochs: Passes over the local data, ⌈n_i / batch_size⌉ steps each. Either this or ``steps``.
        steps: Local steps.
        sampling: ``shuffle`` or ``poisson`` (rate min(1, batch_size / n_i)).
        prox_mu: μ of the proximal term (μ/2)‖w − w̄‖² (Li et al., "FedProx", MLSys 2020); 0 for none.
        clip: τ, the update Δ_i = w_i − w̄ is scaled to this norm where it exceeds it; None for no clipping.
        augmentation: What is done with each sample of a batch before the model sees it; None for nothing.

    Raises:
        ValueError: if a number is out of range, or not exactly one of ``epochs`` and ``steps`` is given.
    """

    optimizer: Optimizer
    learning_rate: float
    batch_size: int
    epochs: int | None = None
    steps: int | None = None
    sampling: Sampling = "shuffle"
    prox_mu: float = 0.0
    clip: float | None = None
    augmentation: Augmentation | None = None

    def __post_init__(self) -> None:
        either = (1 if self.epochs is None else self.epochs), (1 if self.steps is None else self.steps)
        checks = (
            ((self.epochs is None) != (self.steps is None), "local training takes either epochs or steps"),
            (min(either) >= 1, f"epochs or steps must be at least 1, not {self.epochs} and {self.steps}"),
            (self.batch_size >= 1, f"batch_size must be at least 1, not {self.batch_size}"),
            (self.sampling in get_args(Sampling), f"sampling must be 'shuffle' or 'poisson', not {self.sampling!r}"),
            (0 < self.learning_rate < math.inf, f"learning_rate must be positive and finite, not {self.learning_rate}"),
            (0 <= self.prox_mu < math.inf, f"prox_mu must be at least 0 and finite, not {self.prox_mu}"),
            (self.clip is None or 0 < self.clip < math.inf, f"clip must be positive and finite, not {self.clip}"),
        )
        for holds, message in checks:
            precondition(holds, message)


@dataclass(frozen=True)
class CohortBlock:
    """The finished local training of k clients.

    Attributes:
        positions: (k,) int64, which of the clients asked for these are.
        updates: (k, d) in the dtype of the global model, on the plan's device, Δ_i after clipping.
        norm_raw: (k,) float64, ‖Δ_i‖ before clipping; NaN or infinite where training diverged.
        norm: (k,) float64, ‖Δ_i‖ after clipping. With a clip an update that is not finite is replaced by
            zeros, as the bound must hold; without one it is passed on as it is.
        train_loss: (k,) float64, the loss averaged over all samples seen in all local steps, each at the
            parameters of its step and without proximal term; NaN for a client that saw no sample.
        transform_state: Rows (k, ...) of the gradient transform's state after the last step: in the memory of the host
            those of one number a client, on the plan's device the others.
        statistics: Name to (k, S) float64, what the gradient transform reported of each step; NaN beyond a
            client's last step.
    """

    positions: NDArray[np.int64]
    updates: Tensor
    norm_raw: NDArray[np.float64]
    norm: NDArray[np.float64]
    train_loss: NDArray[np.float64]
    transform_state: Mapping[str, Tensor] = field(default_factory=dict)
    statistics: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def is_rehearsed(self) -> bool:
        """Whether nothing was computed, as in a rehearsal: one row of zeros for all, of norms that are unknown."""
        return self.updates.stride(0) == 0 and all(map(math.isnan, self.norm_raw))


TransformState: TypeAlias = dict[str, Tensor]


@dataclass(frozen=True)
class StepContext:
    """Local step of k clients, for schedules and random streams.

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
    """Result of a transform in one step.

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
