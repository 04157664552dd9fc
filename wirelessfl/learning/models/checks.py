"""Conditions on a module for clients and samples to be trained side by side."""

import copy
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

from wirelessfl.errors import precondition

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
        precondition(
            not isinstance(layer, _BatchNorm) or isinstance(layer, _InstanceNorm),
            f"layer {name!r} ({type(layer).__name__}) mixes the samples of a batch; use GroupNorm",
        )
        precondition(
            not getattr(layer, "track_running_stats", False),
            f"layer {name!r} ({type(layer).__name__}) keeps running statistics; switch them off",
        )
        precondition(
            not isinstance(layer, _DropoutNd) or layer.p <= 0,
            f"layer {name!r} ({type(layer).__name__}) is random; results would depend on batching",
        )
    parameters = list(module.named_parameters())
    precondition(parameters, "the model has no parameters to train")
    for name, parameter in parameters:
        precondition(
            parameter.dtype == torch.float32,
            f"parameter {name!r} is {parameter.dtype}; all parameters must be torch.float32",
        )
        precondition(parameter.requires_grad, f"parameter {name!r} is frozen; register constants as buffers")
    _check_logits(module, feature_shape, num_classes)


def _check_logits(module: nn.Module, feature_shape: Sequence[int], num_classes: int) -> None:
    probe = copy.deepcopy(module).double()
    generator = torch.Generator().manual_seed(0)
    samples = torch.rand(_PROBE_SAMPLES, *feature_shape, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        together = probe(samples)
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
