"""Low-rank adaptation (LoRA): fixed weights W plus the product of two narrow matrices that are trained.

Hu et al., "LoRA: Low-rank adaptation of large language models", ICLR 2022: W' = W + (α/r) B A, A of shape (r, inputs)
random, B of shape (outputs, r) zero at the beginning, so that training begins at W. The kernel of a convolution counts
as a matrix (filters, channels · height · width).
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from wirelessfl.errors import ScenarioError, precondition

FACTORS = ("lora_A", "lora_B")
"""Names of A and B in their layer."""


class LowRankLinear(nn.Linear):
    """A linear layer with weights W + scale · B A.

    Args:
        layer: Whose W and bias it has.
        rank: r.
        scale: α/r.
    """

    def __init__(self, layer: nn.Linear, rank: int, scale: float) -> None:
        nn.Module.__init__(self)
        _take_over(self, layer)
        self.scale = scale
        self.lora_A, self.lora_B = _factors(layer.weight, rank)

    @override
    def forward(self, input: Tensor) -> Tensor:
        narrow = functional.linear(input, self.lora_A)
        return super().forward(input) + self.scale * functional.linear(narrow, self.lora_B)


class LowRankConv2d(nn.Conv2d):
    """A convolution in one group with the kernel W + scale · B A: A is one of r filters, B one of a single pixel.

    Args:
        layer: Whose W, bias and geometry it has.
        rank: r.
        scale: α/r.
    """

    def __init__(self, layer: nn.Conv2d, rank: int, scale: float) -> None:
        nn.Module.__init__(self)
        _take_over(self, layer)
        self.scale = scale
        self.lora_A, self.lora_B = _factors(layer.weight, rank)

    @override
    def forward(self, input: Tensor) -> Tensor:
        filters = self.lora_A.view(len(self.lora_A), *self.weight.shape[1:])
        narrow = self._conv_forward(input, filters, None)
        wide = functional.conv2d(narrow, self.lora_B[:, :, None, None])
        return super().forward(input) + self.scale * wide


def merge_adapters(module: nn.Module) -> nn.Module:
    """The module with plain layers of weights W + scale · B A in the place of adapted ones; changed in place."""
    for name, layer in list(module.named_modules()):
        if isinstance(layer, LowRankLinear | LowRankConv2d):
            plain = nn.Module.__new__(nn.Linear if isinstance(layer, LowRankLinear) else nn.Conv2d)
            _take_over(plain, layer)
            product = layer.scale * (layer.lora_B @ layer.lora_A).detach()
            plain.weight = nn.Parameter(layer.weight.detach() + product.view_as(layer.weight))
            for factor in FACTORS:
                del plain._parameters[factor]
            del plain.__dict__["scale"]
            if not name:
                return plain
            _put(module, name, plain)
    return module


@dataclass(frozen=True)
class LowRankAdaptation:
    """Which layers are adapted, and how.

    Attributes:
        rank: r, at most the smaller side of each layer's matrix.
        alpha: α of the scale α/r.
        targets: Regular expression that the whole name of a layer matches; linear layers and convolutions in one group
            are adapted.
        unfrozen: Regular expression that the whole name of a parameter matches which is trained beside the adapters;
            None for none.
    """

    rank: int
    alpha: float
    targets: str = ".*"
    unfrozen: str | None = None

    def adapted(self, module: nn.Module) -> nn.Module:
        """The module with adapters in the layers that ``targets`` names; changed in place.

        Random numbers of the matrices A are taken from torch's generator, in the order of the layers.

        Raises:
            ScenarioError: no layer has such a name, or one has a matrix with a side below the rank.
        """
        layers = {name: layer for name, layer in module.named_modules() if _is_adaptable(layer)}
        chosen = {name: layer for name, layer in layers.items() if re.fullmatch(self.targets, name)}
        where = f"the whole name of a layer {', '.join(layers)}" if layers else "none: the model has no such layer"
        precondition(chosen, f"model.lora.targets: found {self.targets}; allowed: what matches {where}", ScenarioError)
        for name, layer in chosen.items():
            side = min(_matrix_shape(layer.weight))
            precondition(
                self.rank <= side,
                f"model.lora.rank: found {self.rank}; allowed: at most {side}, the smaller side of layer {name}, or "
                "other model.lora.targets",
                ScenarioError,
            )
            scale = self.alpha / self.rank
            adapted: nn.Module = (
                LowRankConv2d(layer, self.rank, scale)
                if isinstance(layer, nn.Conv2d)
                else LowRankLinear(layer, self.rank, scale)
            )
            if not name:
                return adapted
            _put(module, name, adapted)
        return module


@dataclass(frozen=True)
class TrainedPart:
    """The parameters that are trained; all others are frozen.

    Attributes:
        trainable: Regular expression that the whole name of a trained parameter matches.
        adaptation: With it, the matrices A and B alone are trained and what it leaves unfrozen; None for none.
    """

    trainable: str = ".*"
    adaptation: LowRankAdaptation | None = None

    def names(self, module: nn.Module) -> list[str]:
        """Names of the trained parameters, in the order of ``module.named_parameters()``.

        Raises:
            ScenarioError: no parameter is trained, or none is left unfrozen.
        """
        every = [name for name, _ in module.named_parameters()]
        open_to_training = every
        if self.adaptation is not None:
            factors = [name for name in every if name.rpartition(".")[2] in FACTORS]
            beside = [name for name in every if self.adaptation.unfrozen and name not in factors]
            unfrozen = _matching("model.lora.unfrozen", self.adaptation.unfrozen, beside) if beside else []
            open_to_training = [name for name in every if name in {*factors, *unfrozen}]
        return _matching("model.trainable", self.trainable, open_to_training)


def _matching(key: str, pattern: str | None, names: Iterable[str]) -> list[str]:
    every = list(names)
    found = [name for name in every if re.fullmatch(pattern or "", name)]
    allowed = f"what matches the whole name of a parameter {', '.join(every)}"
    precondition(found, f"{key}: found {pattern}; allowed: {allowed}", ScenarioError)
    return found


def _put(module: nn.Module, name: str, layer: nn.Module) -> None:
    parent, _, own = name.rpartition(".")
    setattr(module.get_submodule(parent), own, layer)


def _take_over(adapted: nn.Module, layer: nn.Module) -> None:
    # Geometry, hooks and parameters of a layer, of which later additions to ``adapted`` leave it alone
    adapted.__dict__.update(layer.__dict__)
    adapted._parameters = dict(layer._parameters)


def _is_adaptable(layer: nn.Module) -> TypeGuard[nn.Linear | nn.Conv2d]:
    # By exact type: what a subclass does with its weights is not known
    return type(layer) is nn.Linear or (type(layer) is nn.Conv2d and layer.groups == 1)


def _matrix_shape(weight: Tensor) -> tuple[int, int]:
    return len(weight), math.prod(weight.shape[1:])


def _factors(weight: Tensor, rank: int) -> tuple[nn.Parameter, nn.Parameter]:
    # A drawn as torch draws the weights of a linear layer, and B of zeros
    outputs, inputs = _matrix_shape(weight)
    first = torch.empty(rank, inputs)
    nn.init.kaiming_uniform_(first, a=math.sqrt(5))
    return nn.Parameter(first), nn.Parameter(torch.zeros(outputs, rank))
