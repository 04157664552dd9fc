"""What the audit does not know it refuses, and names it; it never plays it as something that it knows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import Tensor

from tests.analysis.audit_examples import audited, built, local, trusted
from wirelessfl.errors import InfeasibleError
from wirelessfl.learning.selection import Selection, SelectionContext
from wirelessfl.privacy.clipping import Clipped, ClippingState, FlatClipping, Samples, Step
from wirelessfl.privacy.clipping.base import Memoryless
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.uplinks import NotAuditable


class Delegate:
    """Does what another object does, and is of no class that anybody knows."""

    def __init__(self, other: Any) -> None:
        self._other = other

    def __getattr__(self, name: str) -> Any:
        return getattr(self._other, name)


class OwnNoise(Delegate):
    """White noise of one's own."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        out: Tensor = self._other.add(total, sensitivity, step)
        return out


@dataclass(frozen=True)
class OwnClipping(Memoryless):
    """Flat clipping of one's own."""

    rule: FlatClipping

    def law(self) -> Any:
        return self.rule.law()

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        return self.rule.clip(samples, state, step)


class OwnSelection(Selection):
    """A third of the clients, who take turns."""

    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        return np.arange(context.round_index % 3, context.registered, 3)


class OwnUplink(Delegate):
    """An uplink that nobody has said how to attack."""

    def audit_view(self) -> NotAuditable:
        return NotAuditable("carrier pigeons are not modelled")


def own_noise() -> Simulation:
    return with_private_parts(noise=OwnNoise)


def own_clipping() -> Simulation:
    return with_private_parts(clipping=OwnClipping)


def with_private_parts(**classes: Any) -> Simulation:
    """Local training with parts of one's own around those that it has."""
    simulation = local()
    learner: Any = simulation.deployment.learner
    gradients = learner.private.gradients
    parts = {name: own(getattr(gradients, name)) for name, own in classes.items()}
    private = replace(learner.private, gradients=replace(gradients, **parts))
    simulation.deployment = replace(simulation.deployment, learner=replace(learner, private=private))
    return simulation


def own_selection() -> Simulation:
    simulation = trusted(clients__selection={"scheme": "uniform", "count": 2})
    selection = replace(simulation.deployment.selection, rule=OwnSelection())
    simulation.deployment = replace(simulation.deployment, selection=selection)
    return simulation


def own_uplink() -> Simulation:
    simulation = built()
    uplink: Any = OwnUplink(simulation.deployment.uplink)
    simulation.deployment = replace(simulation.deployment, uplink=uplink)
    return simulation


@pytest.mark.parametrize(
    ("build", "missing"),
    [
        (own_noise, "the noise mechanism OwnNoise"),
        (own_clipping, "the clipping rule OwnClipping"),
        (own_selection, "the selection OwnSelection"),
        (own_uplink, "carrier pigeons"),
    ],
)
def test_unknown_parts_are_named(build: Any, missing: str) -> None:
    with pytest.raises(InfeasibleError, match=f"cannot be audited: .*{missing}"):
        audited(build(), 10)
