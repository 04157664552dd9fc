"""The public check catches mechanisms that break their promises."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from wirelessfl.errors import CheckFailed
from wirelessfl.privacy.clipping import ClippingRule, Constant, Step
from wirelessfl.privacy.mechanisms import (
    GaussianMechanism,
    LocalSteps,
    NoiseMechanism,
    PerSampleGradients,
    check_noise_mechanism,
    divisible,
    is_divisible,
    standard_normals,
)
from wirelessfl.privacy.releases import Release


@dataclass(frozen=True)
class Broken(NoiseMechanism):
    """White noise of multiplier 1, with one promise broken."""

    how: str

    def squared_norms(self, gradients: PerSampleGradients) -> Tensor:
        if self.how == "measures by chunks":
            chunks = [
                part.square().sum((1, 2), keepdim=True).expand(-1, part.shape[1], 1) for _, part in gradients.formed()
            ]
            return torch.cat(chunks, 1)
        if self.how == "measures the fourth power":
            return gradients.squared_norms() ** 2
        return gradients.squared_norms()

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        purpose = "broken"
        noise = standard_normals(purpose, step, torch.empty_like(total))
        scale = sensitivity
        match self.how:
            case "forgets the noise":
                noise *= 0
            case "forgets the step":
                seed = step.streams.torch_seed("x", step.round_index)
                noise = torch.randn(total.shape, generator=torch.Generator().manual_seed(seed), dtype=total.dtype)
                noise *= torch.arange(1.0, len(total) + 1)[:, None]
            case "shares one draw":
                noise = noise[:1].expand_as(noise)
            case "has a mean":
                noise += 0.5
            case "draws from the global generator":
                noise = torch.randn_like(noise)
            case "follows the data":
                noise = noise * (1 + total.abs().mean())
            case "forgets the sensitivity":
                scale = torch.ones_like(sensitivity)
            case "grows with the divisor":
                scale = sensitivity * step.divisor
            case "depends on the place":
                noise = noise * torch.arange(1.0, len(noise) + 1)[:, None]
        total += noise * scale[:, None]
        return step.divisor if self.how == "reports the divisor" else torch.ones_like(sensitivity)

    def release(self, steps: LocalSteps, clipping: ClippingRule) -> Release:
        if self.how == "names other clients":
            steps = replace(steps, clients=np.sort(steps.clients))
        return GaussianMechanism(Constant(1.0)).release(steps, clipping)


@dataclass(frozen=True)
class ClaimsDivision(Broken):
    """The same, declared divisible."""

    add = divisible(lambda self, total, sensitivity, step: Broken.add(self, total, sensitivity, step))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("forgets the noise", "noise is zero"),
        ("forgets the step", "depends on the other clients|same in another step"),
        ("shares one draw", "depends on the other clients"),
        ("has a mean", "the noise has mean"),
        ("draws from the global generator", "hidden state"),
        ("follows the data", "depends on the data"),
        ("forgets the sensitivity", "not proportional"),
        ("depends on the place", "depends on the other clients"),
        ("measures by chunks", "how samples are handed out"),
        ("measures the fourth power", "do not scale"),
        ("names other clients", "names other clients"),
    ],
)
def test_a_broken_promise_is_named(how: str, message: str) -> None:
    with pytest.raises(CheckFailed, match=message):
        check_noise_mechanism(Broken(how))


def test_the_unbroken_one_passes() -> None:
    check_noise_mechanism(Broken("not at all"))


@pytest.mark.parametrize(
    ("how", "message"),
    [("grows with the divisor", "noise on the mean"), ("reports the divisor", "multiplier on the mean")],
)
def test_who_claims_to_be_divisible_is_held_to_it(how: str, message: str) -> None:
    check_noise_mechanism(ClaimsDivision("not at all"))
    check_noise_mechanism(Broken(how))
    with pytest.raises(CheckFailed, match=f"declared divisible.*{message}"):
        check_noise_mechanism(ClaimsDivision(how))


def test_another_add_does_not_inherit_the_claim() -> None:
    class Derived(GaussianMechanism):
        def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
            return super().add(total, sensitivity * step.divisor, step)

    class Renamed(GaussianMechanism):
        pass

    assert is_divisible(GaussianMechanism(Constant(1.0))) and is_divisible(Renamed(Constant(1.0)))
    assert not is_divisible(Derived(Constant(1.0)))
