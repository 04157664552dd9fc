"""What local training is, how it is executed, and what comes out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.errors import precondition
from wirelessfl.learning.batches import Sampling
from wirelessfl.learning.optimizers import Optimizer

Precision = Literal["fp32", "tf32", "bf16"]


@dataclass(frozen=True)
class LocalTraining:
    """What every client does in a round.

    Attributes:
        optimizer: Step function; its state starts anew in every round.
        learning_rate: η of this round.
        batch_size: Samples in a mini-batch; their expected number under Poisson sampling.
        epochs: Passes over the local data, ⌈n_i / batch_size⌉ steps each. Either this or ``steps``.
        steps: Local steps.
        sampling: ``shuffle`` or ``poisson`` (rate min(1, batch_size / n_i)).
        prox_mu: μ of the proximal term (μ/2)‖w − w̄‖² (Li et al., "FedProx", MLSys 2020); 0 for none.
        clip: τ, the update Δ_i = w_i − w̄ is scaled to this norm where it exceeds it; None for no clipping.

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

    def __post_init__(self) -> None:
        precondition((self.epochs is None) != (self.steps is None), "local training takes either epochs or steps")
        precondition(
            (1 if self.epochs is None else self.epochs) >= 1 and (1 if self.steps is None else self.steps) >= 1,
            f"epochs or steps must be at least 1, not {self.epochs} and {self.steps}",
        )
        precondition(self.batch_size >= 1, f"batch_size must be at least 1, not {self.batch_size}")
        precondition(
            self.sampling in ("shuffle", "poisson"), f"sampling must be 'shuffle' or 'poisson', not {self.sampling!r}"
        )
        precondition(
            math.isfinite(self.learning_rate) and self.learning_rate > 0,
            f"learning_rate must be positive and finite, not {self.learning_rate}",
        )
        precondition(
            math.isfinite(self.prox_mu) and self.prox_mu >= 0,
            f"prox_mu must be at least 0 and finite, not {self.prox_mu}",
        )
        precondition(
            self.clip is None or (math.isfinite(self.clip) and self.clip > 0),
            f"clip must be positive and finite, not {self.clip}",
        )


@dataclass(frozen=True)
class ExecutionPlan:
    """How the cohort is computed; it changes results by float rounding only, and a run repeats under one plan.

    Attributes:
        device: A torch device name.
        threads: Worker threads on a CPU, each working on its own clients.
        chunk: Clients trained together in one block.
        precision: Of matrix products: ``fp32``, or ``tf32`` (CUDA only) or ``bf16``.

    Raises:
        ValueError: if a number is below 1 or the precision is unknown.
    """

    device: str = "cpu"
    threads: int = 1
    chunk: int = 16
    precision: Precision = "fp32"

    def __post_init__(self) -> None:
        precondition(
            self.threads >= 1 and self.chunk >= 1,
            f"threads and chunk must be at least 1, not {self.threads} and {self.chunk}",
        )
        precondition(
            self.precision in ("fp32", "tf32", "bf16"), f"precision must be fp32, tf32 or bf16, not {self.precision!r}"
        )
        precondition(
            self.precision != "tf32" or self.device.startswith("cuda"),
            f"precision tf32 is there on CUDA only, not on {self.device}",
        )


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
