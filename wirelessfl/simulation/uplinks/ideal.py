"""The noise-free reference: every update arrives exactly, at no cost of time or energy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.privacy import BareRelease
from wirelessfl.radio import Superposition
from wirelessfl.simulation.network import Registry
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.uplinks.slot import Reception, SlotPlan, SlotUplink


@dataclass(frozen=True)
class IdealUplink(SlotUplink):
    """Exact aggregation Σ p_i Δ_i / Σ p_i over those who reported.

    Attributes:
        registry: the registered clients.
        dimension: d.
    """

    registry: Registry
    dimension: int
    rotating_jammer: bool = False

    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> SlotPlan:
        """Everyone who reported is heard, at once."""
        return SlotPlan(senders=ready, silent=ready[:0], airtime=0.0)

    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reception:
        """The weighted mean; its release has no noise, so that no guarantee holds."""
        clients = this.clients[plan.senders]
        weight = self.registry.weight(clients)
        total = Superposition(self.dimension)
        for block in blocks:
            total.add(block.updates, weight[block.positions].astype(np.complex128))
            this.note_training(plan.senders[block.positions], block)
        this.values["energy"] = math.nan
        return Reception(
            aggregate=np.asarray(total.received(), dtype=np.float64) / weight.sum(),
            releases=(BareRelease(this.index, clients),),
            battery_drain_j=np.zeros(len(clients)),
        )
