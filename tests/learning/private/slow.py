"""Private training the slow, obvious way: one sample after the other with autograd, rules and noise as scalars.

Nothing here uses the package's rules, mechanisms or wavelets; only the names of the random streams are shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wirelessfl.normals import add_normal
from wirelessfl.streams import Streams

Norm = Callable[[Tensor], float]
Memory = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where in a run a step is."""

    streams: Streams
    round_index: int
    client: int
    step: int
    divisor: float
    learning_rate: float

    def draw(self, length: int) -> Tensor:
        """This client's own draw, made alone."""
        alone = torch.zeros(1, length, dtype=torch.float64)
        client = np.array([self.client])
        one = torch.ones(1, dtype=torch.float64)
        return add_normal(alone, one, self.streams, "gradient_noise", self.round_index, client, self.step)[0]


class SlowFlat:
    """g · min(1, C/‖g‖)."""

    def __init__(self, clip: float) -> None:
        self.initial_clip = clip

    def clip(self, gradients: list[Tensor], norm: Norm, memory: Memory, place: Place) -> tuple[list[Tensor], float]:
        clip = memory.setdefault("clip", self.initial_clip)
        return [gradient * min(1.0, clip / norm(gradient)) for gradient in gradients], clip

    def learn(self, noised: Tensor, noise: Tensor, clip: float, memory: Memory, place: Place) -> None:
        pass


class SlowPerLayer(SlowFlat):
    """Each layer on its own."""

    def __init__(self, clips: list[float], layers: list[int]) -> None:
        self.clips = clips
        self.layers = layers  # sizes of the layers in the flat vector

    def clip(self, gradients: list[Tensor], norm: Norm, memory: Memory, place: Place) -> tuple[list[Tensor], float]:
        clipped = []
        for gradient in gradients:
            pieces = torch.split(gradient, self.layers)
            clipped.append(
                torch.cat([p * min(1.0, c / float(p.norm())) for p, c in zip(pieces, self.clips, strict=True)])
            )
        return clipped, math.sqrt(sum(c * c for c in self.clips))


class SlowDynamic(SlowFlat):
    """C decays by equal factors over the rounds."""

    def __init__(self, first: float, ratio: float, rounds: int) -> None:
        super().__init__(first)
        self.first, self.ratio, self.rounds = first, ratio, rounds

    def clip(self, gradients: list[Tensor], norm: Norm, memory: Memory, place: Place) -> tuple[list[Tensor], float]:
        memory["clip"] = self.first * self.ratio ** ((place.round_index - 1) / self.rounds)
        return super().clip(gradients, norm, memory, place)


class SlowQuantile(SlowFlat):
    """Andrew et al., counting one by one."""

    def __init__(self, clip: float, quantile: float, rate: float, count_noise_std: float) -> None:
        super().__init__(clip)
        self.quantile, self.rate, self.count_noise_std = quantile, rate, count_noise_std

    def clip(self, gradients: list[Tensor], norm: Norm, memory: Memory, place: Place) -> tuple[list[Tensor], float]:
        clipped, clip = super().clip(gradients, norm, memory, place)
        count = 0.0
        for gradient in gradients:
            count += 0.5 if norm(gradient) <= clip else -0.5
        stream = place.streams.nodes(f"clip_count_noise/{place.step}", place.round_index, np.array([place.client]))
        count += self.count_noise_std * float(stream.normal(1)[0, 0])
        memory["clip"] = clip * math.exp(-self.rate * (0.5 + count / place.divisor - self.quantile))
        return clipped, clip


class SlowMoo(SlowFlat):
    """The update of C by scalars; both kinds of feedback."""

    def __init__(self, clip: float, penalty: float, rate: float, feedback: str) -> None:
        super().__init__(clip)
        self.penalty, self.rate, self.feedback = penalty, rate, feedback

    def _update(self, gradient: Tensor, memory: Memory, place: Place) -> None:
        if place.step > 0:
            fall = place.learning_rate * float(gradient @ memory["slope"])
            memory["clip"] = max(memory["clip"] - self.rate * (self.penalty - fall / memory["clip"]), 1e-3)

    def clip(self, gradients: list[Tensor], norm: Norm, memory: Memory, place: Place) -> tuple[list[Tensor], float]:
        memory.setdefault("clip", self.initial_clip)
        if self.feedback == "published":
            raw = torch.zeros_like(memory["zero"])
            for gradient in gradients:
                raw = raw + gradient / place.divisor
            self._update(raw, memory, place)
        clipped, clip = super().clip(gradients, norm, memory, place)
        memory["directions"] = [gradient / norm(gradient) for gradient in gradients if norm(gradient) > clip]
        return clipped, clip

    def learn(self, noised: Tensor, noise: Tensor, clip: float, memory: Memory, place: Place) -> None:
        if self.feedback == "published":
            slope = noise / clip
            for direction in memory["directions"]:
                slope = slope + direction
            memory["slope"] = slope / place.divisor
        else:
            self._update(noised / place.divisor, memory, place)
            memory["slope"] = noised / place.divisor / clip


class SlowSampleMoo(SlowMoo):
    """Algorithm 1 of the paper, lines 13 to 23, sample after sample."""

    def __init__(self, clip: float, penalty: float, rate: float) -> None:
        super().__init__(clip, penalty, rate, "published")

    def clip(self, gradients: list[Tensor], norm: Norm, memory: Memory, place: Place) -> tuple[list[Tensor], float]:
        c = memory.setdefault("clip", self.initial_clip)
        clipped: list[Tensor] = []
        memory["directions"] = []
        for gradient in gradients:
            fall = place.learning_rate * float(gradient @ memory["slope"]) if place.step > 0 else 0.0
            c = max(c - self.rate * (self.penalty - fall / c), 1e-3)
            if norm(gradient) > c:
                memory["directions"].append(gradient / norm(gradient))
            clipped.append(gradient / max(1.0, norm(gradient) / c))
        memory["clip"] = c
        return clipped, c


@dataclass(frozen=True)
class SlowGaussian:
    """White noise of multiplier z."""

    multiplier: float

    def norm(self, vector: Tensor) -> float:
        return float(vector.norm())

    def noise(self, dimension: int, sensitivity: float, place: Place) -> Tensor:
        return self.multiplier * sensitivity * place.draw(dimension)


@dataclass(frozen=True)
class SlowMeanGaussian(SlowGaussian):
    """White noise of standard deviation ``multiplier`` on the mean."""

    def noise(self, dimension: int, sensitivity: float, place: Place) -> Tensor:
        return self.multiplier * place.divisor * place.draw(dimension)


@dataclass(frozen=True)
class SlowHaar:
    """Noise on the coefficients of a tree of means and half differences, built node by node."""

    multiplier: float
    clip_domain: str

    def norm(self, vector: Tensor) -> float:
        if self.clip_domain == "gradient":
            return float(vector.norm())
        length = 1 << math.ceil(math.log2(len(vector)))
        means = vector.tolist() + [0.0] * (length - len(vector))
        squares, level = 0.0, 0
        while len(means) > 1:
            level += 1
            weight = 2.0**level if self.clip_domain == "weighted" else 1.0
            pairs = [(means[i], means[i + 1]) for i in range(0, len(means), 2)]
            squares += sum((weight * (left - right) / 2) ** 2 for left, right in pairs)
            means = [(left + right) / 2 for left, right in pairs]
        weight = length if self.clip_domain == "weighted" else 1.0
        return math.sqrt(squares + (weight * means[0]) ** 2)

    def noise(self, dimension: int, sensitivity: float, place: Place) -> Tensor:
        length = 1 << math.ceil(math.log2(dimension))
        drawn = place.draw(length).tolist()
        values = [drawn[0] / length]
        block = length
        while len(values) < length:
            details = drawn[len(values) : 2 * len(values)]
            values = [v + s * c / block for v, c in zip(values, details, strict=True) for s in (1, -1)]
            block //= 2
        return self.multiplier * sensitivity * torch.tensor(values[:dimension], dtype=torch.float64)


@dataclass
class SlowPrivacy:
    """A gradient rule for ``tests.learning.plain_loop.train_client``."""

    rule: SlowFlat
    noise: SlowGaussian | SlowHaar
    streams: Streams
    round_index: int
    learning_rate: float
    memories: dict[int, Memory] = field(default_factory=dict)

    def __call__(
        self, module: nn.Module, inputs: Tensor, targets: Tensor, divisor: float, client: int, step: int
    ) -> list[Tensor]:
        parameters = [one for one in module.parameters() if one.requires_grad]
        gradients = []
        for sample, target in zip(inputs, targets, strict=True):
            loss = nn.functional.cross_entropy(module(sample[None]), target[None])
            gradients.append(torch.cat([part.flatten() for part in torch.autograd.grad(loss, parameters)]))
        dimension = sum(parameter.numel() for parameter in parameters)
        memory = self.memories.setdefault(client, {"zero": torch.zeros(dimension, dtype=torch.float64)})
        place = Place(self.streams, self.round_index, client, step, divisor, self.learning_rate)
        clipped, sensitivity = self.rule.clip(gradients, self.noise.norm, memory, place)
        noise = self.noise.noise(dimension, sensitivity, place)
        total = noise.clone()
        for gradient in clipped:
            total += gradient
        self.rule.learn(total, noise, sensitivity, memory, place)
        pieces = torch.split(total / divisor, [parameter.numel() for parameter in parameters])
        return [piece.view_as(parameter) for piece, parameter in zip(pieces, parameters, strict=True)]
