"""The public check catches rules that break their promises."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from wirelessfl.errors import CheckFailed
from wirelessfl.privacy.clipping import Clipped, ClippingState, FlatClipping, Samples, Step, check_clipping_rule
from wirelessfl.privacy.clipping.base import Memoryless, shrink
from wirelessfl.privacy.laws import ClippingLaw, FixedClip


@dataclass(frozen=True)
class Broken(Memoryless):
    """Flat clipping at 1, with one promise broken."""

    how: str

    def law(self) -> ClippingLaw:
        return FixedClip()

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        norms = samples.norms()
        sensitivity = torch.ones(len(norms), dtype=norms.dtype)
        weights = shrink(norms, sensitivity[:, None])
        match self.how:
            case "forgets to clip":
                weights = torch.ones_like(norms)
            case "clips every second sample":
                weights[:, ::2] = 1.0
            case "grows small gradients":
                weights = (1.0 / norms).nan_to_num(0.0, posinf=1e9).clamp(max=10.0)
            case "lets what is no number pass":
                weights = torch.where(norms > 1.0, 1.0 / norms, 1.0)
            case "follows the largest norm":
                sensitivity = norms.where(samples.present, 0.0).amax(1)
                weights = torch.ones_like(norms).where(norms.isfinite(), 0.0)
                sensitivity = sensitivity.where(sensitivity.isfinite(), 1.0)
            case "counts padding":
                weights = weights * (0.5 + 0.5 * samples.present.double() * norms.min().clamp(max=1e-9))
                weights = weights / (1 + norms.nan_to_num(0.0, 0.0).sum(1, keepdim=True))
            case "looks at the neighbours":
                weights = weights / len(norms)
            case "draws from the global generator":
                weights = weights * torch.rand(())
            case "forgets the shape":
                weights = weights[:, :1]
            case "says infinite":
                sensitivity = sensitivity * torch.inf
        return Clipped(weights, sensitivity, state)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("forgets to clip", "times the norm of the sensitivity"),
        ("clips every second sample", "times the norm of the sensitivity"),
        ("grows small gradients", "outside"),
        ("lets what is no number pass", "a gradient of nan has a weight"),
        ("follows the largest norm", "follows this step's raw gradients"),
        ("counts padding", "padding changes the result"),
        ("looks at the neighbours", "depends on the other clients"),
        ("draws from the global generator", "a second call with equal arguments differs"),
        ("forgets the shape", "weights have shape"),
        ("says infinite", "not positive and finite"),
    ],
)
def test_a_broken_promise_is_named(how: str, message: str) -> None:
    with pytest.raises(CheckFailed, match=message):
        check_clipping_rule(Broken(how))


@dataclass(frozen=True)
class Hoarder(FlatClipping):
    """Gives back rows that it did not start with, or changes those it is given."""

    in_place: bool = False

    @property
    def lasting(self) -> tuple[str, ...]:
        return ("steps",)

    def start(self, clients: int, like: Tensor) -> ClippingState:
        return {"steps": like.new_zeros(clients)}

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        if self.in_place:
            state["steps"] += 1
        return super().clip(samples, state, step)

    def learn(self, released: Tensor, state: ClippingState, step: Step) -> ClippingState:
        return {"steps": state["steps"] + 1, "more": state["steps"]}


def test_rows_must_be_those_of_the_start() -> None:
    with pytest.raises(CheckFailed, match="learn gives rows"):
        check_clipping_rule(Hoarder(1.0))
    with pytest.raises(CheckFailed, match="clip changes the state it is given"):
        check_clipping_rule(Hoarder(1.0, in_place=True))


@dataclass(frozen=True)
class Forgetful(FlatClipping):
    @property
    def lasting(self) -> tuple[str, ...]:
        return ("steps",)


def test_lasting_rows_must_exist() -> None:
    with pytest.raises(CheckFailed, match="lasting names"):
        check_clipping_rule(Forgetful(1.0))
