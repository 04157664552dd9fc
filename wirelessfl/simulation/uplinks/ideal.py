"""The noise-free reference: every update arrives exactly, at no cost of time or energy."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.learning.timing import BITS_PER_PARAMETER
from wirelessfl.privacy import BareRelease
from wirelessfl.radio import Superposition
from wirelessfl.radio.digital_links import Link
from wirelessfl.radio.network import Registry
from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.records import Energy, TrainingRecord
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.slot_plan import SlotPlan
from wirelessfl.simulation.uplinks.audit_view import AuditView, NoNoise
from wirelessfl.simulation.uplinks.slot import Reception, SlotUplink


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
    airtime: float = 0.0

    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> SlotPlan:
        """Plan in which all clients that reported are heard, at once."""
        return SlotPlan(senders=ready, silent=ready[:0], airtime=0.0)

    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reception:
        """The weighted mean; its release has no noise, so that no guarantee holds."""
        clients = this.clients[plan.senders]
        weight = self.registry.weight(clients)
        total, training = Superposition(self.dimension), []
        for block in blocks:
            total.add(block.updates, weight[block.positions].astype(np.complex128))
            training.append(TrainingRecord.of(plan.senders[block.positions], block))
        return Reception(
            aggregate=np.asarray(total.received(), dtype=np.float64) / weight.sum(),
            releases=(BareRelease(this.index, clients),),
            battery_drain_j=np.zeros(len(clients)),
            training=tuple(training),
            energy=Energy(math.nan, math.nan),
        )

    def audit_view(self) -> AuditView:
        """No noise."""
        return NoNoise()

    @property
    def payload_bits(self) -> int:
        """Size of an update."""
        return BITS_PER_PARAMETER * self.dimension

    def offer(self, this: Round, positions: NDArray[np.int64], share: float, begins: NDArray[np.float64]) -> list[Link]:
        """Links on which an upload takes no time, for clients that do not send together."""
        return [Link(0.0)] * len(positions)

    def decoded(self, cell: Cell, this: Round, positions: NDArray[np.int64], block: CohortBlock) -> Any:
        """(k, d) the updates of a block of clients, as they are."""
        return block.updates

    def note_energy(self, this: Round, air_time: AirTime) -> NDArray[np.float64]:
        """(n,) joules of the clients of a round: nothing, as far as anybody knows."""
        this.energy = Energy(math.nan, math.nan)
        return np.zeros(len(this.clients))
