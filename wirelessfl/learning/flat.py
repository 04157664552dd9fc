"""A model as a function of one flat parameter vector."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from wirelessfl.learning.models.checks import check_module


class FlatModel:
    """A torch module whose parameters are one float32 vector of dimension d.

    The order is that of ``module.named_parameters()``, each parameter row by row.

    Args:
        build: Makes the module; called once here and once for each ``initial``. Its random initialisation
            is taken from the seed given there, never from torch's global generator.
        feature_shape: Shape of one sample.
        num_classes: Number of logits.

    Attributes:
        module: The module; holds structure and buffers, its own parameter values are never used.
        dimension: d, the number of trainable parameters.
        shapes: Name of each parameter to its shape, in flat order.

    Raises:
        ValueError: if the module cannot be trained sample by sample (see ``check_module``).
    """

    def __init__(self, build: Callable[[], nn.Module], feature_shape: Sequence[int], num_classes: int) -> None:
        self._build = build
        self.feature_shape = tuple(feature_shape)
        self.num_classes = num_classes
        self.module = _build_from_seed(build, 0)
        check_module(self.module, self.feature_shape, num_classes)
        self.shapes = {name: parameter.shape for name, parameter in self.module.named_parameters()}
        self.sizes = [math.prod(shape) for shape in self.shapes.values()]
        self.dimension = sum(self.sizes)
        self._elsewhere: dict[torch.device, FlatModel] = {}

    def replica(self, device: torch.device) -> FlatModel:
        """The same model around a module of its own on ``device``, for use in another thread."""
        twin = copy.copy(self)
        twin.module = copy.deepcopy(self.module).to(device)
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
        return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])

    def unflatten(self, flat: Tensor) -> dict[str, Tensor]:
        """``flat`` (..., d) as named parameters (..., *shape); views where ``flat`` is contiguous."""
        if flat.shape[-1] != self.dimension:
            raise ValueError(f"expected {self.dimension} parameters, got {flat.shape[-1]}")
        parts = torch.split(flat, self.sizes, dim=-1)
        return {
            name: part.reshape(flat.shape[:-1] + shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def logits(self, flat: Tensor, inputs: Tensor) -> Tensor:
        """(B, num_classes) logits of ``inputs`` (B, *feature_shape) at the parameters ``flat`` (d,)."""
        output: Tensor = functional_call(self.module, self.unflatten(flat), (inputs,))
        return output


def _build_from_seed(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    # Build with torch's CPU generator set to ``seed``, and put the generator back as it was.
    #
    # That generator looks at the low 32 bits of a seed only, so two seeds give the same initial model with probability
    # 2^-32. Other bits would be another initial model for every run on record, which a replay computes anew.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return build()
