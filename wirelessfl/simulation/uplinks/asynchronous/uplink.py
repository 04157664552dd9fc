"""Asynchronous aggregation: clients train and upload at their own pace, the server steps the model as updates come in.

A round is one step. It lasts until enough updates have arrived, while everybody else goes on with what they are at;
who is back by then waits for the new model and sets out again with it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.learning.staleness import Mixing
from wirelessfl.privacy import BareRelease
from wirelessfl.radio import Superposition
from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.client import Job
from wirelessfl.simulation.clock import all_seconds, seconds, ticks
from wirelessfl.simulation.errands import Errand, Errands
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.records import TrainingRecord
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.uplinks.asynchronous.client import asynchronous_client
from wirelessfl.simulation.uplinks.audit_view import AuditView, NoNoise
from wirelessfl.simulation.uplinks.base import Collected
from wirelessfl.simulation.uplinks.digital.links import Link
from wirelessfl.simulation.window import WaitFor, Window
from wirelessfl.trace import Status


class SeparateUploads(Protocol):
    """An uplink whose clients need not send together."""

    @property
    def payload_bits(self) -> int:
        """Size of an upload."""
        ...

    def offer(self, this: Round, positions: NDArray[np.int64], share: float, begins: NDArray[np.float64]) -> list[Link]:
        """The links of clients that set out now and send from (n,) seconds on, each with a share of the band.

        They are written to the round.
        """
        ...

    def decoded(self, cell: Cell, this: Round, positions: NDArray[np.int64], block: CohortBlock) -> Any:
        """(k, d) the updates of a block of clients as they come out of the links."""
        ...

    def note_energy(self, this: Round, air_time: AirTime) -> NDArray[np.float64]:
        """Write how long the clients of a round were on the air, and what that cost; returns (n,) joules."""
        ...


@dataclass
class Asynchronous:
    """Steps of the model from updates as they arrive, late ones discounted.

    Attributes:
        uploads: how a single update reaches the server.
        dimension: d.
        buffer: updates that make a step; more where they arrive at one instant.
        mixing: what an update weighs.
        mixes: "models" moves w towards the clients' models w_i, "updates" adds their updates Δ_i.
        errands: the work in flight.
    """

    uploads: SeparateUploads
    dimension: int
    buffer: int
    mixing: Mixing
    mixes: Literal["models", "updates"]
    errands: Errands
    _alive: simpy.Environment | None = field(default=None, init=False)

    def collect(self, cell: Cell, this: Round) -> Generator[simpy.Event, Any, Collected]:
        """Send the model to those who are not at work, and wait for updates."""
        medium, errands = cell.medium, self.errands
        begin = errands.settled_until
        self._wake(medium)
        self._set_out(cell, this)
        if len(errands):
            window = Window(medium.env, WaitFor(count=self.buffer), len(errands), set(errands.clients.tolist()))
            medium.listen(window.take)
            for errand in errands.in_order():
                if errand.ends <= medium.now and errand.round_index < this.index:  # while the server was down
                    window.take(errand.news)
            yield window.closed
        else:
            yield cell.broadcast()
        collected = self._settle(cell, this, begin)
        errands.settled_until = medium.now
        return collected

    def audit_view(self) -> AuditView:
        """No noise: updates come one by one, over links that add none."""
        return NoNoise()

    def _wake(self, medium: Medium) -> None:
        """After a resumption, clients at work go on from where they are."""
        if self._alive is not medium.env:
            self._alive = medium.env
            for errand in self.errands.in_order():
                if errand.ends > medium.now:
                    medium.env.process(asynchronous_client(medium, errand, since=medium.now))

    def _set_out(self, cell: Cell, this: Round) -> None:
        """Clients that are not at work, and can be reached, get the model and set out."""
        idle, medium = this.with_status(Status.PARTICIPATED), cell.medium
        if not len(idle):
            return
        this.slot_opens = seconds(medium.now)
        jobs = cell.jobs(this, idle, cell.broadcast())
        arrives = medium.now + ticks(cell.broadcast_s)
        # Nobody interrupts a client: when it will begin to send is settled when it sets out.
        begins = all_seconds([arrives + job.training_ticks for job in jobs])
        links = self.uploads.offer(this, idle, 1.0 / len(this.clients), begins)
        compute_s = this.compute_time[idle].tolist()
        for job, link, duration in zip(jobs, links, compute_s, strict=True):
            errand = self._errand(this.index, cell.state.model_version, arrives, job, link, duration)
            self.errands.set_out(errand, cell.state.parameters)
            medium.env.process(asynchronous_client(medium, errand, since=medium.now - 1))

    def _errand(self, round_index: int, version: int, arrives: int, job: Job, link: Link, compute_s: float) -> Errand:
        crashes, bits = job.crash_ticks is not None, self.uploads.payload_bits
        training_ends = arrives + job.training_ticks
        sends = link.sends and not crashes
        outcome = Status.CRASHED if crashes else link.outcome
        return Errand(
            client=job.node,
            round_index=round_index,
            version=version,
            model_arrives=arrives,
            training_ends=training_ends,
            ends=training_ends + (link.ticks(bits) if sends else 0),
            compute_s=compute_s,
            bits=bits,
            sends=sends,
            outcome=int(outcome),
            active=link.active,
        )

    def _settle(self, cell: Cell, this: Round, begin: int) -> Collected:
        """Book what was done since ``begin``, and take what has arrived."""
        now, at_work = cell.medium.now, self.errands.clients
        positions, errands = np.searchsorted(this.clients, at_work), self.errands.of(at_work)
        air_time, began_to_send = AirTime(), []
        for position, errand in zip(positions.tolist(), errands, strict=True):
            this.status[position] = errand.outcome if errand.ends <= now else Status.UNDERWAY
            this.worked[position] = _overlap(errand.model_arrives, errand.training_ends, begin, now)
            fresh = errand.round_index == this.index or errand.training_ends > begin
            began_to_send.append(errand.sends and fresh and errand.training_ends <= now)
            first, last = _part(errand.training_ends, errand.ends, begin, now)
            if errand.sends and (last > first or (began_to_send[-1] and errand.ends <= now)):
                air_time.note(position, first, last, active=errand.active)
        this.compute_time[positions] = [errand.compute_s for errand in errands]
        cell.drain(this.clients, self.uploads.note_energy(this, air_time))
        transmitted = positions[np.array(began_to_send, dtype=np.bool_)]
        back = np.array([errand.ends <= now for errand in errands], dtype=np.bool_)
        heard = this.with_status(Status.PARTICIPATED)
        aggregate = self._step(cell, this, heard) if len(heard) else None
        self.errands.finish(at_work[back])
        return Collected(
            heard=heard,
            transmitted=transmitted,
            aggregate=aggregate,
            releases=(BareRelease(this.index, this.clients[transmitted]),),
            airtime=air_time.occupied(),
        )

    def _step(self, cell: Cell, this: Round, heard: NDArray[np.int64]) -> NDArray[np.float64]:
        """(d,) the step of the global model: Σ α s p_i Δ_i/Σ p, plus the way back to the models they started from."""
        errands, state = self.errands.of(this.clients[heard]), cell.state
        set_out_in = np.array([errand.round_index for errand in errands])
        staleness = np.array([state.model_version - errand.version for errand in errands], dtype=np.float64)
        weight = cell.network.registry.weight(this.clients[heard])
        share = self.mixing.shares(weight, staleness)
        this.staleness = np.full(len(this.clients), np.nan)
        this.staleness[heard] = staleness
        total, way_back = Superposition(self.dimension), np.zeros(self.dimension)
        for round_index in np.unique(set_out_in).tolist():
            group = np.flatnonzero(set_out_in == round_index)
            model = self.errands.model(errands[group[0]].version)
            way_back += share[group].sum() * (model.astype(np.float64) - state.parameters)
            for block in cell.learner.train(model, state, this.clients[heard[group]], round_index):
                trained = group[block.positions]
                this.training.append(TrainingRecord.of(heard[trained], block))
                decoded = self.uploads.decoded(cell, this, heard[trained], block)
                total.add(decoded, share[trained].astype(np.complex128))
        received = np.asarray(total.received(), dtype=np.float64)
        return np.asarray((received + way_back if self.mixes == "models" else received) / weight.sum())


def _part(begin: int, end: int, first: int, last: int) -> tuple[int, int]:
    """The part of a stretch of time that lies between two instants; empty at one of them if there is none."""
    return min(max(begin, first), last), min(max(end, first), last)


def _overlap(begin: int, end: int, first: int, last: int) -> int:
    start, stop = _part(begin, end, first, last)
    return stop - start
