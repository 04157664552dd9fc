"""One clipping rule and one noise mechanism as the engine's gradient transform: DP-SGD, DP-Adam, DP-AdaGrad."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from wirelessfl.conformance import given, returned
from wirelessfl.errors import precondition
from wirelessfl.learning.cohort import (
    ExecutionPlan,
    GradientTransform,
    LocalTraining,
    PrivateStep,
    SampleGradients,
    StepContext,
    TransformState,
    train_cohort,
)
from wirelessfl.learning.cohort.gradients import add_to
from wirelessfl.learning.data import Dataset, Examples
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.optimizers import SGD
from wirelessfl.learning.partition import Partition
from wirelessfl.learning.population import PartitionedData
from wirelessfl.privacy.clipping import Clipped, ClippingRule, Memoryless, Samples, Step
from wirelessfl.privacy.mechanisms import LocalSteps, NoiseMechanism, PerSampleGradients, divisible, is_divisible
from wirelessfl.privacy.releases import Release
from wirelessfl.quotients import add_quotient
from wirelessfl.streams import Streams


@dataclass(frozen=True)
class PrivateGradients(GradientTransform):
    """Per-sample gradients clipped, summed and noised; any optimizer may use the result.

    The statistics of a step are ``clipped_share``, the share of the samples in the batch that were clipped (NaN for an
    empty batch; it is data of the client), ``clip_norm``, the sensitivity that the noise was scaled to, and
    ``noise_multiplier``.

    Attributes:
        clipping: How far one sample reaches.
        noise: What is added to the sum, and in which norm samples are measured.
    """

    clipping: ClippingRule
    noise: NoiseMechanism

    @property
    def lasting(self) -> tuple[str, ...]:
        """Names of the state rows that a client keeps from round to round."""
        return self.clipping.lasting

    @override
    def start(self, clients: NDArray[np.int64], like: Tensor) -> TransformState:
        return self.clipping.start(len(clients), like)

    @override
    def __call__(
        self, gradients: SampleGradients, state: TransformState, context: StepContext, into: Tensor, decay: float
    ) -> PrivateStep:
        squared_norms = self.noise.squared_norms(gradients)
        broken = not_finite(squared_norms)
        # Nearly always none is: elsewhere than on a CPU that is assumed, and a block where it is wrong repeated.
        without_some = context.reads_values and bool(broken.any())
        weighted_sum = FiniteGradients(gradients, broken).weighted_sum if without_some else gradients.weighted_sum
        samples = Samples(squared_norms, gradients.present, weighted_sum, gradients.inner_products)
        clipped = given("clipping", self.clipping, "clip", self.clipping.clip(samples, state, context), Clipped)
        each = context.divisor.shape
        weights = clipped.weights
        returned("clipping", self.clipping, "clip", weights, (*gradients.present.shape, *weights.shape[2:]))
        returned("clipping", self.clipping, "clip", clipped.sensitivity, each)
        if isinstance(self.clipping, Memoryless) and is_divisible(self.noise):
            multiplier, rows = self._add_mean(weighted_sum, clipped, context, into, decay), clipped.state
        else:
            total = weighted_sum(weights)
            multiplier = self.noise.add(total, clipped.sensitivity, context)
            learnt = self.clipping.learn(total, clipped.state, context)
            rows = given("clipping", self.clipping, "learn", learnt, dict)
            add_quotient(into, total, context.divisor, decay)
        returned("mechanism", self.noise, "add", multiplier, each)
        for name, before in state.items():
            if getattr(rows.get(name), "shape", None) != before.shape:  # the name of a row is put into words only then
                returned("clipping", self.clipping, f"learn ({name})", rows.get(name), before.shape)
        reduced = weights < 1 if weights.ndim == 2 else (weights < 1).any(-1)
        statistics = {
            "clipped_share": (reduced & gradients.present).sum(1) / gradients.present.sum(1),
            "clip_norm": clipped.sensitivity.clone(),  # it may be a state row, which the engine goes on to overwrite
            "noise_multiplier": multiplier,
        }
        return PrivateStep(rows, statistics, None if context.reads_values else broken.any(1))

    def _add_mean(
        self, weighted_sum: Callable[..., Tensor], clipped: Clipped, context: StepContext, into: Tensor, decay: float
    ) -> Tensor:
        # Adds the noised mean without forming the sum, and gives the noise multiplier.
        #
        # The mean over a batch is a sum with divisor 1 of gradients of as much less weight and sensitivity.
        weights, share = clipped.weights, 1 / context.divisor
        weighted_sum(weights * share.view(-1, *[1] * (weights.ndim - 1)), into, decay)
        mean = replace(context, divisor=torch.ones_like(context.divisor))
        return self.noise.add(into, clipped.sensitivity * share, mean)

    def release(self, steps: LocalSteps) -> Release:
        """The record of a round's local steps for the ledger."""
        return self.noise.release(steps, self.clipping)


def resumed_state(
    transform: PrivateGradients, clients: NDArray[np.int64], lasting: Mapping[str, Tensor], like: Tensor
) -> TransformState:
    """The ``transform_state`` of a new round from the rows that clients kept.

    Args:
        transform: The transform.
        clients: (n,) who will train.
        lasting: The rows (n, ...) named by ``transform.lasting``, in the order of ``clients``.
        like: (d,) a model.

    Returns:
        These rows, and fresh ones of everything else, which take no memory until a block of clients is trained.
    """
    fresh = transform.start(clients[:1], like)
    return {name: lasting.get(name, rows.expand(len(clients), *rows.shape[1:])) for name, rows in fresh.items()}


def layer_of_parameters(model: FlatModel) -> tuple[int, ...]:
    """(L,) the layer of each parameter in flat order, from 0: weight and bias of one module are one layer."""
    modules = [name.rpartition(".")[0] for name in model.shapes]
    first_seen = {module: layer for layer, module in enumerate(dict.fromkeys(modules))}
    return tuple(first_seen[module] for module in modules)


def without_noise(transform: PrivateGradients) -> PrivateGradients:
    """The transform with the same clipping, in the norm of the same mechanism, whose noise is not drawn.

    Noise is added in place and drawn in pieces of bounded size. Where there are no values, that takes long.
    """
    noise = transform.noise
    return replace(transform, noise=_UndrawnOnMeans(noise) if is_divisible(noise) else _Undrawn(noise))


@dataclass(frozen=True)
class _Undrawn(NoiseMechanism):
    noise: NoiseMechanism

    @override
    def squared_norms(self, gradients: PerSampleGradients) -> Tensor:
        return self.noise.squared_norms(gradients)

    @override
    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        return torch.zeros_like(sensitivity)


@dataclass(frozen=True)
class _UndrawnOnMeans(_Undrawn):
    @override
    @divisible
    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        return torch.zeros_like(sensitivity)


def not_finite(squared_norms: Tensor) -> Tensor:
    """(k, B) which samples have a gradient of no finite norm, those of padding too, from (k, B, L) squared norms."""
    return ~squared_norms.sum(-1).isfinite()


class FiniteGradients:
    """The gradients of a step without the broken ones, for sums that must hold a clip.

    A weight of zero is not enough: zero times infinity is not a number, so that one such sample would reach the whole
    sum, and no noise hides that. The gradients are formed, which takes long, and happens where training breaks down.

    Args:
        gradients: Of all samples.
        broken: (k, B) which of them count as nothing.
    """

    def __init__(self, gradients: SampleGradients, broken: Tensor) -> None:
        self._gradients, self._broken = gradients, broken

    def weighted_sum(self, weights: Tensor, into: Tensor | None = None, decay: float = 0.0) -> Tensor:
        """(k, d) sums Σ_b weights_b ∇ℓ_b, as ``SampleGradients.weighted_sum`` without the broken gradients."""
        gradients = self._gradients
        counted = (gradients.present & ~self._broken)[..., None]
        weights = (weights[..., None] if weights.ndim == 2 else weights).where(counted, 0.0)
        sizes = torch.tensor(gradients.sizes, device=weights.device)
        total: Tensor | None = None
        for part, formed in gradients.formed():
            own = weights[:, part]
            each = own if own.shape[-1] == 1 else own.repeat_interleave(sizes, dim=-1)
            summed = (formed.where(counted[:, part], 0.0) * each).sum(1)
            total = summed if total is None else total + summed
        assert total is not None, "a step has samples"
        return add_to(into, total, decay)


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
        The median norm; not finite where the model has diverged.

    Raises:
        ValueError: If there is no sample.
    """
    precondition(len(proxy) != 0, "the proxy set is empty")
    training = LocalTraining(SGD(), learning_rate=1.0, batch_size=len(proxy), steps=1)
    client = np.zeros(1, dtype=np.int64)
    names = tuple(map(str, range(model.num_classes)))
    everything = Partition(np.array([0, len(proxy)]), np.arange(len(proxy)))
    population = PartitionedData(Dataset("proxy", proxy, proxy, names), everything)
    blocks = train_cohort(model, parameters, population, client, training, Streams(0), 1, plan, _MedianNorm(noise))
    return float(next(iter(blocks)).statistics["median_norm"][0, 0])


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
