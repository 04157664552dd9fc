"""A model as a function of one flat parameter vector, the conditions on its module, and the local objective."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

from wirelessfl.errors import precondition
from wirelessfl.learning.adapters import TrainedPart

INITIAL_MODEL = "initial_model"
"""Purpose of the seed of the first model, and of its frozen parameters."""

_SEEDED = threading.RLock()  # the generator is that of the whole process, in which runs of other threads draw too
_PROBE_SAMPLES = 3
_PROBE_TOLERANCE = 1e-6  # relative, in float64: far above rounding, far below what mixing samples does


def check_module(module: nn.Module, feature_shape: Sequence[int], num_classes: int) -> None:
    """Refusal of a module whose output for one sample depends on the others, or on chance.

    Besides the layer types known to do so, the module is run on three random samples together and one by
    one, in double precision; both must give the same (samples, num_classes) logits.

    Raises:
        ValueError: naming the layer or the property that does not fit.
    """
    for name, layer in module.named_modules():
        mixes = isinstance(layer, _BatchNorm) and not isinstance(layer, _InstanceNorm)
        for refused, why in (
            (mixes, "mixes the samples of a batch; use GroupNorm"),
            (getattr(layer, "track_running_stats", False), "keeps running statistics; switch them off"),
            (isinstance(layer, _DropoutNd) and layer.p > 0, "is random; results would depend on batching"),
        ):
            precondition(not refused, f"layer {name!r} ({type(layer).__name__}) {why}")
    parameters = list(module.named_parameters())
    precondition(parameters, "the model has no parameters to train")
    for name, parameter in parameters:
        precondition(
            parameter.dtype == torch.float32,
            f"parameter {name!r} is {parameter.dtype}; all parameters must be torch.float32",
        )
        precondition(
            parameter.requires_grad,
            f"parameter {name!r} is frozen; register constants as buffers, or freeze it by model.trainable",
        )
    probe = copy.deepcopy(module).double()
    generator = torch.Generator().manual_seed(0)
    samples = torch.rand(_PROBE_SAMPLES, *feature_shape, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        together = probe(samples)
        precondition(
            isinstance(together, Tensor), f"the model gives a {type(together).__name__}, not a tensor of logits"
        )
        alone = torch.cat([probe(sample[None]) for sample in samples])
    precondition(
        together.shape == (_PROBE_SAMPLES, num_classes),
        f"for {_PROBE_SAMPLES} samples the model gives shape {tuple(together.shape)}, "
        f"not {(_PROBE_SAMPLES, num_classes)}",
    )
    precondition(
        torch.allclose(together, alone, rtol=_PROBE_TOLERANCE, atol=_PROBE_TOLERANCE, equal_nan=True),
        "the model's output for a sample depends on the other samples of its batch, or on chance",
    )


def sample_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross entropy −log softmax(logits)[target] of each sample.

    Args:
        logits: (..., num_classes).
        targets: (...) int64 class numbers.

    Returns:
        (...) losses.
    """
    shifted = _single_precision(logits)
    shifted = shifted - shifted.amax(-1, keepdim=True).detach()
    return shifted.exp().sum(-1).log() - shifted.gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def losses_and_derivative(logits: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The losses, and the derivative of their weighted sum by the logits: weight · (softmax − one-hot).

    Args:
        logits: (..., num_classes).
        targets: (...) int64 class numbers.
        weights: (...) weight of each sample.

    Returns:
        (...) losses ℓ and (..., num_classes) ∂(Σ weights · ℓ)/∂logits.
    """
    shifted = _single_precision(logits) - logits.amax(-1, keepdim=True)
    own, weights = targets.unsqueeze(-1), weights.unsqueeze(-1)
    at_target = shifted.gather(-1, own)
    exponential = shifted.exp_()
    total = exponential.sum(-1, keepdim=True)
    losses = total.log().sub_(at_target).squeeze(-1)
    derivative = exponential.mul_(weights / total)
    return losses, derivative.scatter_add_(-1, own, -weights)


def _single_precision(logits: Tensor) -> Tensor:
    # At least that, also where products were taken in bfloat16
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


class FlatModel:
    """A torch module whose trained parameters are one float32 vector of dimension d.

    The order is that of ``module.named_parameters()``, each parameter row by row; frozen ones are no part of it.

    Args:
        build: Makes the module; called once here and once for each ``initial``. Its random initialisation
            is taken from the seed given there, never from torch's global generator.
        feature_shape: Shape of one sample.
        num_classes: Number of logits.
        part: Which parameters are trained; None for all.
        frozen_seed: Seed of the values of the others.

    Attributes:
        module: The module; holds structure, buffers and frozen parameters, its other values are never used.
        dimension: d, the number of trained parameters.
        frozen_dimension: The number of frozen ones.
        shapes: Name of each trained parameter to its shape, in flat order.
        frozen: Name of each frozen parameter to its shape.

    Raises:
        ValueError: if the module cannot be trained sample by sample (see ``check_module``).
        ScenarioError: if no parameter would be trained.
    """

    def __init__(
        self,
        build: Callable[[], nn.Module],
        feature_shape: Sequence[int],
        num_classes: int,
        part: TrainedPart | None = None,
        frozen_seed: int = 0,
    ) -> None:
        self._build = build
        self.feature_shape = tuple(feature_shape)
        self.num_classes = num_classes
        self.module = _build_from_seed(build, 0)
        check_module(self.module, self.feature_shape, num_classes)
        every = dict(self.module.named_parameters())
        names = list(every) if part is None else part.names(self.module)
        self.frozen = {name: every[name].shape for name in every if name not in names}
        self.shapes = {name: every[name].shape for name in names}
        self.sizes = [math.prod(shape) for shape in self.shapes.values()]
        self.dimension = sum(self.sizes)
        self.frozen_dimension = sum(map(math.prod, self.frozen.values()))
        self._elsewhere: dict[torch.device, FlatModel] = {}
        if self.frozen:
            values = dict(_build_from_seed(build, frozen_seed).named_parameters())
            for name in self.frozen:
                every[name].requires_grad_(False).copy_(values[name].detach())

    def replica(self, device: torch.device) -> FlatModel:
        """The same model around a module of its own on ``device``, for use in another thread.

        On a CPU the modules share their parameters, which nobody changes: a call puts others in their places.
        """
        twin = copy.copy(self)
        shared = self.module.parameters() if device.type == "cpu" else ()
        twin.module = copy.deepcopy(self.module, {id(parameter): parameter for parameter in shared}).to(device)
        return twin

    def on(self, device: torch.device) -> FlatModel:
        """A replica for a device that one thread computes on, made once; on a CPU a new one for each caller."""
        if device.type == "cpu":
            return self.replica(device)
        if device not in self._elsewhere:
            self._elsewhere[device] = self.replica(device)
        return self._elsewhere[device]

    def initial(self, seed: int) -> Tensor:
        """(d,) initial parameters: the module's own initialisation under ``seed``."""
        module = _build_from_seed(self._build, seed)
        return torch.cat(
            [parameter.detach().flatten() for name, parameter in module.named_parameters() if name in self.shapes]
        )

    def filled(self, flat: Tensor) -> nn.Module:
        """A module of its own with the trained parameters ``flat`` (d,) beside the frozen ones."""
        module = copy.deepcopy(self.module)
        for name, values in self.unflatten(flat).items():
            module.get_parameter(name).data.copy_(values)
        return module

    def unflatten(self, flat: Tensor) -> dict[str, Tensor]:
        """``flat`` (..., d) as named parameters (..., *shape); views where ``flat`` is contiguous."""
        found = flat.shape[-1]
        precondition(found == self.dimension, f"expected {self.dimension} parameters, got {found}")
        parts = torch.split(flat, self.sizes, dim=-1)
        return {
            name: part.reshape(flat.shape[:-1] + shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def logits(self, flat: Tensor, inputs: Tensor) -> Tensor:
        """(B, num_classes) logits of ``inputs`` (B, *feature_shape) at the parameters ``flat`` (d,)."""
        return self.logits_at(self.unflatten(flat), inputs)

    def logits_at(self, parameters: dict[str, Tensor], inputs: Tensor) -> Tensor:
        """The same at named parameters, all of those that are trained."""
        frozen = self._frozen_as(next(iter(parameters.values())).dtype)
        return cast(Tensor, functional_call(self.module, {**frozen, **parameters}, (inputs,)))

    def _frozen_as(self, dtype: torch.dtype) -> dict[str, Tensor]:
        # Frozen parameters in the dtype of the computation, where it is not their own
        if not self.frozen or dtype == torch.float32:
            return {}
        return {name: self.module.get_parameter(name).to(dtype) for name in self.frozen}


def _build_from_seed(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    # Build with torch's CPU generator set to ``seed``, and put the generator back as it was.
    #
    # That generator looks at the low 32 bits of a seed only, so two seeds give the same initial model with probability
    # 2^-32. Other bits would be another initial model for every run on record, which a replay computes anew.
    with _SEEDED, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return build()
