"""The median gradient norm of public data, a clipping norm that costs no privacy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.errors import precondition
from wirelessfl.learning.cohort import (
    ExecutionPlan,
    LocalTraining,
    PrivateStep,
    SampleGradients,
    StepContext,
    TransformState,
    train_cohort,
)
from wirelessfl.learning.data import Dataset, Examples
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.optimizers import SGD
from wirelessfl.learning.partition import Partition
from wirelessfl.learning.population import PartitionedData
from wirelessfl.privacy.mechanisms import NoiseMechanism
from wirelessfl.streams import Streams


def proxy_median_norm(
    model: FlatModel, parameters: Tensor, proxy: Examples, noise: NoiseMechanism, plan: ExecutionPlan
) -> float:
    """The median norm of the per-sample gradients of public data at the global model.

    Calibrates C in the first rounds of a run, in the norm that the mechanism clips in; the median heuristic is that
    of Abadi et al., CCS 2016, §4, on data that nobody has to protect. It costs no privacy if the proxy data are
    public and disjoint from the data of all clients, and the global model is public as well.

    Args:
        model: The model.
        parameters: (d,) global model of the round.
        proxy: Public samples, at least one.
        noise: The mechanism that C is for.
        plan: How to compute it.

    Returns:
        The median norm, finite and not negative.

    Raises:
        ValueError: If there is no sample, or the median is not finite.
    """
    precondition(len(proxy) != 0, "the proxy set is empty")
    training = LocalTraining(SGD(), learning_rate=1.0, batch_size=len(proxy), steps=1)
    client = np.zeros(1, dtype=np.int64)
    names = tuple(map(str, range(model.num_classes)))
    everything = Partition(np.array([0, len(proxy)]), np.arange(len(proxy)))
    population = PartitionedData(Dataset("proxy", proxy, proxy, names), everything)
    blocks = train_cohort(model, parameters, population, client, training, Streams(0), 1, plan, _MedianNorm(noise))
    median = float(next(iter(blocks)).statistics["median_norm"][0, 0])
    precondition(np.isfinite(median), "the gradient norms of the proxy set are not finite")
    return median


@dataclass(frozen=True)
class _MedianNorm:
    # Measures, and gives back no gradient (a ``GradientTransform``).
    noise: NoiseMechanism

    def start(self, clients: NDArray[np.int64], like: Tensor) -> TransformState:
        return {}

    def __call__(
        self, gradients: SampleGradients, state: TransformState, context: StepContext, into: Tensor, decay: float
    ) -> PrivateStep:
        norms = self.noise.squared_norms(gradients).sum(-1).sqrt()
        into.zero_()
        return PrivateStep(state, {"median_norm": norms.quantile(0.5, dim=1)})
