"""Checks for a clipping rule of your own: what the engine and the ledger rely on.

Call it from a test: it returns nothing where all is well and raises `wirelessfl.errors.CheckFailed` with the first
broken promise. The package's own rules are tested with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.errors import require
from wirelessfl.privacy.clipping.base import Clipped, ClippingRule, ClippingState, Samples
from wirelessfl.streams import Streams

ROUNDING = 1e-9
"""Relative error that double precision may leave."""

_CLIENTS, _BATCH, _STEPS = 5, 7, 3


@dataclass(frozen=True)
class ExampleStep:
    """A ``Step`` made of plain values."""

    streams: Streams
    round_index: int
    step: int
    clients: NDArray[np.int64]
    divisor: Tensor
    learning_rate: float = 0.1

    def take(self, rows: NDArray[np.int64]) -> ExampleStep:
        """The same step of some of the clients."""
        return replace(self, clients=self.clients[rows], divisor=self.divisor[rows])


@dataclass
class FormedGradients:
    """``PerSampleGradients`` of formed gradients (k, B, d) whose parts have these sizes, handed out ``at_once``."""

    gradients: Tensor
    present: Tensor
    parts: tuple[int, ...]
    at_once: int = 2

    def squared_norms(self) -> Tensor:
        """(k, B, L)."""
        pieces = torch.split(self.gradients, list(self.parts), dim=-1)
        return torch.stack([piece.square().sum(-1) for piece in pieces], dim=-1)

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """(k, d)."""
        return (_of_elements(weights, self.parts) * self.gradients).where(self.present[..., None], 0.0).sum(1)

    def inner(self, vectors: Tensor) -> Tensor:
        """(k, B)."""
        return torch.einsum("kbd,kd->kb", self.gradients, vectors)

    def pieces(self) -> Iterator[list[tuple[Tensor, None]]]:
        """In one piece."""
        return ([(part, None)] for _, part in self.formed())

    def formed(self) -> Iterator[tuple[slice, Tensor]]:
        """Copies, ``at_once`` samples at a time."""
        for first in range(0, self.gradients.shape[1], self.at_once):
            part = slice(first, first + self.at_once)
            yield part, self.gradients[:, part].clone()


def _of_elements(weights: Tensor, parts: Sequence[int]) -> Tensor:
    # (k, B, 1) weights of samples (k, B), (k, B, d) of their parts (k, B, L).
    return weights[..., None] if weights.ndim == 2 else weights.repeat_interleave(torch.tensor(parts), dim=2)


def check_clipping_rule(rule: ClippingRule, parts: Sequence[int] = (6, 4, 3, 1), seed: int = 0) -> None:
    """Checks a rule on gradients from vanishing to huge, over two rounds of several steps.

    Weighted gradients are within the sensitivity, and that of a step does not depend on the step's gradients, both
    unless the rule's law says that nothing is proven; weights lie in [0, 1] and are 0 for a gradient that is not a
    number; padding counts for nothing; a client's rows depend neither on the other clients nor on earlier calls;
    arguments are left alone.

    Args:
        rule: The rule to check.
        parts: Sizes of the parts (parameters) of a gradient, to fit a rule that tells them apart.
        seed: Seed of the example gradients.

    Raises:
        CheckFailed: With what was promised and what was found.
    """
    generator = torch.Generator().manual_seed(seed)
    clients = np.array([11, 3, 42, 7, 5])
    state = rule.start(_CLIENTS, torch.zeros(sum(parts), dtype=torch.float64))
    _check_rows(state, state, "start")
    require(set(rule.lasting) <= state.keys(), f"lasting names {rule.lasting}, the state has {list(state)}")
    for round_index in (1, 2):
        for index in range(_STEPS):
            step = ExampleStep(Streams(seed), round_index, index, clients, torch.full((_CLIENTS,), 5.0).double())
            gradients, present = _example_gradients(parts, generator)
            clipped = _check_step(rule, gradients, present, parts, state, step)
            released = torch.randn(_CLIENTS, sum(parts), generator=generator, dtype=torch.float64)
            given = {name: rows.clone() for name, rows in clipped.state.items()} | {"released": released.clone()}
            before, state = state, rule.learn(released, clipped.state, step)
            _check_rows(state, before, "learn")
            _require_equal(clipped.state | {"released": released}, given, "learn changes what it is given")


def samples_of(gradients: Tensor, present: Tensor, parts: Sequence[int]) -> Samples:
    """The ``Samples`` of formed gradients (k, B, d), whose parts have these sizes."""
    formed = FormedGradients(gradients, present, tuple(parts))
    return Samples(formed.squared_norms(), present, formed.weighted_sum, formed.inner)


def _check_step(
    rule: ClippingRule,
    gradients: Tensor,
    present: Tensor,
    parts: Sequence[int],
    state: ClippingState,
    step: ExampleStep,
) -> Clipped:
    samples = samples_of(gradients, present, parts)
    before = {name: rows.clone() for name, rows in state.items()}
    clipped = rule.clip(samples, state, step)
    _check_weights(clipped, present, parts)
    if rule.law().unproven is None:
        _check_bound(clipped, gradients, present, parts)
    _require_equal(state, before, "clip changes the state it is given")
    _require_same(rule.clip(samples, state, step), clipped, present, "a second call with equal arguments differs")
    padded = samples_of(torch.where(present[..., None], gradients, 7.0), present, parts)
    _require_same(rule.clip(padded, state, step), clipped, present, "padding changes the result")
    rows = np.array([3, 0])
    alone = samples_of(gradients[rows], present[rows], parts)
    few = rule.clip(alone, _rows_of(state, rows), step.take(rows))
    expected = Clipped(clipped.weights[rows], clipped.sensitivity[rows], _rows_of(clipped.state, rows))
    _require_same(few, expected, present[rows], "a client's result depends on the other clients")
    if rule.law().unproven is None:
        other = rule.clip(samples_of(3 * gradients.flip(1), present, parts), state, step)
        require(
            torch.equal(other.sensitivity, clipped.sensitivity),
            "the sensitivity follows this step's raw gradients, and the law does not say so",
        )
    for broken in (float("nan"), float("inf")):
        spoilt = gradients.clone()
        spoilt[:, 0] = broken
        of_spoilt = rule.clip(samples_of(spoilt, present, parts), state, step)
        require(bool((of_spoilt.weights[:, 0] == 0).all()), f"a gradient of {broken} has a weight")
        require(bool(of_spoilt.sensitivity.isfinite().all()), f"a gradient of {broken} makes the sensitivity infinite")
    return clipped


def _check_weights(clipped: Clipped, present: Tensor, parts: Sequence[int]) -> None:
    weights, sensitivity = clipped.weights, clipped.sensitivity
    shapes = (present.shape, (*present.shape, len(parts)))
    require(weights.shape in shapes, f"weights have shape {tuple(weights.shape)} for samples {tuple(present.shape)}")
    require(sensitivity.shape == (len(present),), f"sensitivity has shape {tuple(sensitivity.shape)}")
    require(
        bool(((sensitivity > 0) & sensitivity.isfinite()).all()),
        f"sensitivity {sensitivity.tolist()} is not positive and finite",
    )
    require(bool(((weights >= 0) & (weights <= 1))[present].all()), "weights lie outside [0, 1]")


def _check_bound(clipped: Clipped, gradients: Tensor, present: Tensor, parts: Sequence[int]) -> None:
    weighted = _of_elements(clipped.weights, parts) * gradients
    reach = torch.linalg.vector_norm(weighted, dim=-1) / clipped.sensitivity[:, None]
    farthest = float(reach[present].max())
    require(farthest <= 1 + ROUNDING, f"a weighted gradient has {farthest:.9g} times the norm of the sensitivity")


def _check_rows(rows: ClippingState, like: ClippingState, source: str) -> None:
    require(rows.keys() == like.keys(), f"{source} gives rows {sorted(rows)}, start gives {sorted(like)}")
    for name, values in rows.items():
        require(values.shape == like[name].shape, f"{source} changes the shape of {name} to {tuple(values.shape)}")
        require(len(values) == _CLIENTS, f"{source} gives {len(values)} rows of {name} for {_CLIENTS} clients")


def _require_same(found: Clipped, expected: Clipped, present: Tensor, message: str) -> None:
    require(torch.allclose(found.weights[present], expected.weights[present], rtol=ROUNDING, atol=0), message)
    require(torch.allclose(found.sensitivity, expected.sensitivity, rtol=ROUNDING, atol=0), message)
    _require_equal(found.state, expected.state, message)


def _require_equal(found: ClippingState, expected: ClippingState, message: str) -> None:
    close = found.keys() == expected.keys() and all(
        torch.allclose(rows, expected[name], rtol=ROUNDING, atol=ROUNDING * float(expected[name].abs().max()))
        for name, rows in found.items()
    )
    require(close, message)


def _rows_of(state: ClippingState, rows: NDArray[np.int64]) -> ClippingState:
    return {name: values[rows] for name, values in state.items()}


def _example_gradients(parts: Sequence[int], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    # (k, B, d) gradients with norms from 1e-6 to 1e6 and some zeros, and (k, B) which of them are present.
    directions = torch.randn(_CLIENTS, _BATCH, sum(parts), generator=generator, dtype=torch.float64)
    exponents = torch.rand(_CLIENTS, _BATCH, 1, generator=generator, dtype=torch.float64) * 12 - 6
    gradients = directions * 10.0**exponents
    gradients[:, 1] = 0.0
    present = torch.rand(_CLIENTS, _BATCH, generator=generator) < 0.7
    present[:, :2] = True
    return gradients, present
