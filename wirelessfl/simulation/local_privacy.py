"""Sample-level privacy in the run: the transform of each round, its memory, and its record for the ledger."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.conformance import method_at
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import SGD, ExecutionPlan, FlatModel, LocalTraining
from wirelessfl.learning.batches import local_steps
from wirelessfl.learning.data import Examples
from wirelessfl.learning.private import PrivateGradients, proxy_median_norm
from wirelessfl.privacy import Release, SecureSum
from wirelessfl.privacy.clipping import FlatClipping
from wirelessfl.privacy.mechanisms import LocalSteps
from wirelessfl.simulation.state import SimulationState
from wirelessfl.transfers import aligned


@dataclass(frozen=True)
class ProxyCalibration:
    """The clipping norm follows the median gradient norm of public samples in the first rounds.

    Attributes:
        examples: public samples that belong to no client.
        factor: C over that median.
        rounds: rounds in which it is measured anew.
    """

    examples: Examples
    factor: float
    rounds: int


@dataclass(frozen=True)
class LocalPrivacy:
    """Clipping and noise of per-sample gradients at the clients.

    Attributes:
        gradients: one clipping rule and one noise mechanism.
        dimension: d.
        proxy: calibration on public data, or None.
        uploads_are_updates: whether clients send the outcome of this round's local steps alone.
    """

    gradients: PrivateGradients
    dimension: int
    proxy: ProxyCalibration | None = None
    uploads_are_updates: bool = True

    @property
    def adds_noise(self) -> bool:
        """Whether there is noise; where gradients are only clipped, the record is the air's, not one of their own."""
        return self.gradients.noise.facts().adds_noise

    def transform(
        self, model: FlatModel, parameters: Tensor, state: SimulationState, round_index: int, plan: ExecutionPlan
    ) -> PrivateGradients:
        """The transform of clients that train from ``parameters`` (d,), who began in that round.

        Who began in an earlier round, in which the norm was calibrated, clips to that of the model of then; so does
        everybody where none was calibrated, as in a rehearsal.
        """
        if self.proxy is None:
            return self.gradients
        clip = state.proxy_clip
        if math.isnan(clip) or round_index <= min(self.proxy.rounds, state.round_index):
            clip = self._proxy_clip(self.proxy, model, parameters, state, plan)
        return replace(self.gradients, clipping=FlatClipping(clip))

    def calibrate(self, model: FlatModel, state: SimulationState, round_index: int, plan: ExecutionPlan) -> None:
        """Measures the public samples at the global model where that is due, and notes the norm in the state."""
        if self.proxy is not None and (round_index <= self.proxy.rounds or math.isnan(state.proxy_clip)):
            state.proxy_clip = self._proxy_clip(self.proxy, model, aligned(state.parameters), state, plan)

    def _proxy_clip(
        self,
        proxy: ProxyCalibration,
        model: FlatModel,
        parameters: Tensor,
        state: SimulationState,
        plan: ExecutionPlan,
    ) -> float:
        median = proxy_median_norm(model, parameters, proxy.examples, self.gradients.noise, plan)
        # A model that fits all public samples has gradients of norm 0, which would clip everything away. One that has
        # diverged has none: the last norm stays.
        return proxy.factor * max(median, 1e-6) if math.isfinite(median) else state.proxy_clip

    def initial_rows(self, registered: NDArray[np.int64], parameters: Tensor) -> dict[str, NDArray[np.float32]]:
        """The clients' memory before the first round, (K,) each, for the K clients with ``registered`` samples."""
        fresh = self.gradients.start(np.zeros(1, dtype=np.int64), parameters)
        return {name: np.repeat(fresh[name].numpy(), len(registered), axis=0) for name in self.gradients.lasting}

    def rows(
        self, transform: PrivateGradients, state: SimulationState, clients: NDArray[np.int64]
    ) -> Mapping[str, Tensor]:
        """The transform's memory of ``clients``; what does not last starts anew."""
        return {name: torch.from_numpy(state.clipping[name][clients]) for name in transform.lasting}

    def releases(
        self,
        training: LocalTraining,
        samples: NDArray[np.int64],
        clients: NDArray[np.int64],
        round_index: int,
        secure_sum: SecureSum | None,
        steps: NDArray[np.int64] | None = None,
    ) -> tuple[Release, ...]:
        """The record of the local steps of ``clients``, who hold (n,) ``samples``; ``steps`` None are all planned ones.

        Raises:
            ScenarioError: a mechanism from outside leaves none of this round and these clients.
        """
        if not self.adds_noise:
            return ()
        planned = local_steps(samples, training.batch_size, training.epochs, training.steps)
        record = LocalSteps(
            round_index=round_index,
            clients=clients,
            samples=samples,
            batch_size=training.batch_size,
            steps=planned if steps is None else steps,
            sampling=training.sampling,
            dimension=self.dimension,
            secure_sum=secure_sum,
            linear_upload=self.uploads_are_updates and isinstance(training.optimizer, SGD) and training.clip is None,
        )
        release, key = self.gradients.release(record), "training.privacy.mechanism: release gives"
        if not isinstance(release, Release):
            where = method_at(self.gradients.noise, "release")
            raise ScenarioError(f"{key} a {type(release).__name__}; allowed: a Release{where}")
        if release.round_index != round_index or not np.array_equal(release.clients, clients):
            raise ScenarioError(
                f"{key} a record of round {release.round_index} and clients {release.clients}; allowed: round "
                f"{round_index} and clients {clients}, which trained in it"
            )
        return (release,)
