"""Secure aggregation as an uplink: the part common to its protocols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.privacy import BareRelease, SecureSum
from wirelessfl.secagg import RoundAborted
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.medium import seconds
from wirelessfl.simulation.records import Energy, Round, SecAggRecord
from wirelessfl.simulation.uplinks.base import AuditView, Collected, NoNoise
from wirelessfl.simulation.uplinks.digital.round_links import energy_on_air, record_uploads
from wirelessfl.simulation.uplinks.secure_aggregation.protocol_run import Outcome, ProtocolRun, SecureUploads
from wirelessfl.simulation.uplinks.secure_aggregation.transport import StageCosts, Transport
from wirelessfl.trace import SERVER_NODE, EventKind, Role, SecAggStage, Status


@dataclass(frozen=True, kw_only=True)
class SecureUplink(SecureUploads, ABC):
    """An uplink over which the server learns the weighted mean of the updates and no single one."""

    @abstractmethod
    def begin(self, cell: Cell, this: Round, costs: StageCosts) -> ProtocolRun:
        """A run of the protocol for one round.

        Raises:
            ValueError: the protocol cannot be run with the clients selected.
        """

    @abstractmethod
    def opened_by(self, selected: int) -> int:
        """The number of colluding clients, of so many selected, that reveal single inputs."""

    def set_up(self, cell: Cell, costs: StageCosts) -> Generator[simpy.Event, Any, float]:
        """Set-up once in a run, before its first round; returns its seconds on the air. Here there is none."""
        yield from ()
        return 0.0

    def collect(self, cell: Cell, this: Round) -> Generator[simpy.Event, Any, Collected]:
        """Broadcast, let the clients train, aggregate."""
        costs = StageCosts()
        airtime = yield from self.set_up(cell, costs)
        this.slot_opens = seconds(cell.medium.now)
        try:
            run = self.begin(cell, this, costs)
        except ValueError as error:
            this.secagg = SecAggRecord(costs.table, abort_reason=str(error))
            if len(this.with_status(Status.NO_MODEL)):  # that too few have the model is known after the broadcast
                yield cell.broadcast(this)
            return self._give_up(cell, this, costs, airtime)
        outcome = yield from run.play()
        reason = outcome.reason if isinstance(outcome, RoundAborted) else ""
        this.secagg = SecAggRecord(costs.table, run.threshold, run.neighbours, run.attempts, reason)
        self._account(cell, this, run.transport)
        _note_statuses(this, run, outcome)
        airtime += run.transport.air_time.occupied()
        transmitted = run.transport.air_time.senders(SecAggStage.MASKED_INPUT)
        if isinstance(outcome, RoundAborted):
            cell.medium.note(EventKind.ABORT, SERVER_NODE)
            return self._collected(this, transmitted[:0], transmitted, None, airtime)
        heard = np.searchsorted(this.clients, outcome.contributors)
        mean = self.encoding.decode(outcome.total, cell.network.registry.samples[this.clients[heard]])
        sparse = self.sparse_of(this, cell.network.streams)
        if sparse is not None:
            mean = sparse.expanded(mean)
        return self._collected(this, heard, transmitted, mean, airtime)

    def audit_view(self) -> AuditView:
        """No noise: masks cancel in the sum. Noise at the clients is in the record."""
        return NoNoise(
            ("the cryptography of secure aggregation, what its drop-outs lay open, and the rounding into its ring",)
        )

    def _give_up(self, cell: Cell, this: Round, costs: StageCosts, airtime: float) -> Collected:
        # No protocol can be run with the clients selected: nobody trains, nothing is sent
        cell.medium.note(EventKind.ABORT, SERVER_NODE)
        this.energy = Energy().plus(costs.energy)
        this.status[this.with_status(Status.PARTICIPATED)] = Status.ABORTED
        nobody = np.zeros(0, dtype=np.int64)
        return self._collected(this, nobody, nobody, None, airtime)

    def _account(self, cell: Cell, this: Round, transport: Transport) -> None:
        # Energy, by client and by stage
        count = len(this.clients)
        cell.drain(this.clients, record_uploads(self.links, this, transport.air_time, self.payload_bits))
        for stage in SecAggStage:
            transport.costs.add(stage, energy=float(energy_on_air(self.links, transport.air_time, count, stage).sum()))
        this.energy = Energy().plus(transport.costs.energy)

    def _collected(
        self,
        this: Round,
        heard: NDArray[np.int64],
        transmitted: NDArray[np.int64],
        mean: NDArray[np.float64] | None,
        airtime: float,
    ) -> Collected:
        """The outcome with its records: whoever sent a masked input is charged, whether it was unmasked or not.

        Rounded Gaussian noise under integer masks is proven for single inputs only, hence ``integer`` (PRIVACY.md).
        """
        selected = len(this.clients)
        opened = self.opened_by(selected) if len(transmitted) else None
        # Noise of who does not follow the protocol hides nothing
        honest = heard if this.roles is None else heard[this.roles[heard] == Role.HONEST]
        return Collected(
            heard=heard,
            transmitted=transmitted,
            aggregate=mean,
            releases=(BareRelease(this.index, this.clients[transmitted]),),
            airtime=airtime,
            secure_sum=SecureSum(selected, len(honest), threshold=opened, arithmetic="integer"),
        )


def _note_statuses(this: Round, run: ProtocolRun, outcome: Outcome) -> None:
    # Who is in the sum, or was there when the round was given up; who of the others was lost, and who is late
    this.status[run.present] = Status.LATE
    for position, status in run.transport.lost.items():
        this.status[position] = status
    if isinstance(outcome, RoundAborted):
        this.status[sorted(run.window.ready)] = Status.ABORTED
    else:
        this.status[np.searchsorted(this.clients, outcome.contributors)] = Status.PARTICIPATED
