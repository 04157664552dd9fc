"""Digital uploads of all clients in one slot at the capacity of the multiple-access channel (D-DSGD)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.learning import CohortBlock
from wirelessfl.learning.cohort import SummedBlock
from wirelessfl.learning.compression import ErrorFeedback, SparseMean
from wirelessfl.privacy import BareRelease
from wirelessfl.radio import DDsgd, SlotPlan
from wirelessfl.simulation.radio_records import UploadRecord
from wirelessfl.simulation.records import Energy, Round
from wirelessfl.simulation.uplinks.base import AuditView, NoNoise
from wirelessfl.simulation.uplinks.exact import ExactUplink, WeightedSum
from wirelessfl.simulation.uplinks.slot import Reception, single_updates


@dataclass(frozen=True)
class CapacityUplink(ExactUplink):
    """Sparse means of updates that arrive without error, as many bits each as the senders' common capacity carries.

    Attributes:
        code: how many bits a slot carries.
        joules_per_unit: joules of one unit of normalised energy, N0/2; NaN where watts are unknown.
        airtime: seconds of a slot.
        residuals: what was not sent of the clients' earlier updates.
    """

    code: DDsgd
    joules_per_unit: float
    airtime: float = 0.0
    residuals: ErrorFeedback = field(default_factory=ErrorFeedback)

    @override
    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> SlotPlan:
        """Plan in which all clients that reported share the capacity."""
        return SlotPlan(senders=ready, silent=ready[:0], airtime=self.airtime)

    @override
    def block_sum(self, this: Round, plan: SlotPlan) -> None:
        """None: what is not sent of each update is kept."""

    @override
    def weighted_sum(self, this: Round, plan: SlotPlan) -> WeightedSum:
        weight = self.registry.weight(this.clients[plan.senders])
        return WeightedSum(plan.senders, weight, self.dimension, None, this.index)

    @override
    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock | SummedBlock]) -> Reception:
        """The weighted mean of what was sent; its release has no noise of the channel."""
        clients, budget = this.clients[plan.senders], self.registry.power_budget
        codec = SparseMean(self.code.kept(self.dimension, len(clients), budget))
        of_senders = self.weighted_sum(this, plan)
        total, training = self.summed(of_senders, self._sent(codec, clients, single_updates(blocks)))
        energy = np.full(len(clients), budget)
        joules = energy * self.joules_per_unit
        airtime = np.full(len(clients), self.airtime)
        this.uploads = UploadRecord(plan.senders, airtime, energy, joules, codec.bits(self.dimension))
        return Reception(
            aggregate=np.divide(total, of_senders.weight.sum(), dtype=np.float64),  # NumPy 1.26 would stay in float32
            releases=(BareRelease(this.index, clients),),
            battery_drain_j=joules,
            training=training,
            energy=Energy().plus(float(joules.sum())),
        )

    @override
    def audit_view(self) -> AuditView:
        """No noise: no theorem covers what a code leaves out."""
        return NoNoise(("the digital code: nothing is claimed for what it leaves out",))

    def _sent(
        self, codec: SparseMean, clients: NDArray[np.int64], blocks: Iterable[CohortBlock]
    ) -> Iterator[CohortBlock]:
        # Blocks with what arrives of updates and residuals
        for block in blocks:
            mine = clients[block.positions]
            whole = self.residuals.added(mine, block.updates.cpu().numpy().astype(np.float32, copy=False))
            arrived = codec.decode(codec.encode(whole, ()))
            self.residuals.keep(mine, whole - arrived)
            yield replace(block, updates=torch.from_numpy(arrived))
