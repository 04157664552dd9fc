"""Asynchronous aggregation: clients train and upload at their own pace, the server steps the model as updates come in.

A round is one step. It lasts until enough updates have arrived, while the jobs of all other clients go on; a client
whose update has arrived waits for the new model and starts again from it.
"""

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.learning.aggregation import Mixing
from wirelessfl.privacy import BareRelease
from wirelessfl.radio import Superposition
from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.jobs import Job, JobsInFlight
from wirelessfl.simulation.medium import Medium, all_seconds, seconds, ticks
from wirelessfl.simulation.records import Round, TrainingRecord
from wirelessfl.simulation.uplinks.base import AuditView, Collected, NoNoise
from wirelessfl.simulation.uplinks.digital.round_links import outcome_of
from wirelessfl.simulation.uplinks.digital.uplink import DigitalUplink
from wirelessfl.simulation.uplinks.exact import IdealUplink
from wirelessfl.simulation.window import WaitFor, Window
from wirelessfl.trace import Status


def asynchronous_client(medium: Medium, job: Job, since: int) -> Generator[simpy.Event, Any, None]:
    """Training and upload across rounds; messages carry the client's number in place of a position in a round.

    Args:
        medium: carries what the client says.
        job: its training and upload.
        since: ticks up to which everything has happened already.
    """
    # All timers are set at once, so that the first to start comes first at one instant, also in a resumed run.
    ahead = [(medium.env.timeout(time - medium.now), kind, bits) for time, kind, bits in job.events() if time > since]
    for timer, kind, bits in ahead:
        yield timer
        medium.note(kind, job.client, bits)
    medium.send(job.report)


@dataclass
class Asynchronous:
    """Steps of the model from updates as they arrive, late ones discounted.

    Attributes:
        uploads: how a single update reaches the server, of clients that need not send together.
        dimension: d.
        buffer: updates that make a step; more where they arrive at one instant.
        mixing: what an update weighs.
        mixes: "models" moves w towards the clients' models w_i, "updates" adds their updates Δ_i.
        jobs: the work in flight.
    """

    uploads: DigitalUplink | IdealUplink
    dimension: int
    buffer: int
    mixing: Mixing
    mixes: Literal["models", "updates"]
    jobs: JobsInFlight
    _alive: simpy.Environment | None = field(default=None, init=False)

    def collect(self, cell: Cell, this: Round) -> Generator[simpy.Event, Any, Collected]:
        """Broadcast of the model to the clients that are idle, and the updates that arrive."""
        medium, jobs = cell.medium, self.jobs
        begin = jobs.accounted_until
        self._resume(medium)
        self._start(cell, this)
        if len(jobs):
            window = Window(medium.env, WaitFor(count=self.buffer), len(jobs), set(jobs.clients.tolist()))
            medium.listen(window.take)
            for job in jobs.in_order():
                if job.ends <= medium.now and job.round_index < this.index:  # while the server was down
                    window.take(job.report)
            yield window.closed
        else:
            yield cell.broadcast(this)
        closed, restarts = medium.now, cell.faults.server_restarts(this.index, cell.network.streams)
        if restarts:  # others go on meanwhile: what they begin to send is of this round, which may be the last
            yield cell.restart_server()
        collected = replace(self._account(cell, this, begin, closed), after_restart=restarts)
        jobs.accounted_until = medium.now
        return collected

    def audit_view(self) -> AuditView:
        """No noise: updates come one by one, over links that add none."""
        return NoNoise(("asynchronous arrivals: what their order, times and staleness tell",))

    def _resume(self, medium: Medium) -> None:
        # After a resumption, start the processes of the jobs in flight
        if self._alive is not medium.env:
            self._alive = medium.env
            for job in self.jobs.in_order():
                if job.ends > medium.now:
                    medium.env.process(asynchronous_client(medium, job, since=medium.now))

    def _start(self, cell: Cell, this: Round) -> None:
        # Jobs of the clients that are idle and can be reached
        idle, medium = this.with_status(Status.PARTICIPATED), cell.medium
        if not len(idle):
            if len(self.jobs) and len(this.with_status(Status.NO_MODEL)):
                cell.broadcast(this)  # in vain
            return
        this.slot_opens = seconds(medium.now)
        trainings = cell.training_times(this, idle).by_client(cell.broadcast(this))
        arrives = medium.now + ticks(this.broadcast_s)
        # Nobody interrupts a client: when it will begin to send is known when it starts.
        begins = all_seconds([arrives + training.ticks for training in trainings])
        links = self.uploads.offer(this, idle, 1.0 / len(this.clients), begins)
        compute_s, bits = this.compute_time[idle].tolist(), self.uploads.payload_bits
        for training, link, duration in zip(trainings, links, compute_s, strict=True):
            crashes, training_ends = training.crash_ticks is not None, arrives + training.ticks
            sends = link.sends and not crashes
            on_air = sends or (link.pilot_s > 0 and not crashes)
            job = Job(
                client=training.node,
                round_index=this.index,
                version=cell.state.model_version,
                model_arrives=arrives,
                training_ends=training_ends,
                ends=training_ends + (ticks(link.duration(bits)) if on_air else 0),
                compute_s=duration,
                bits=bits,
                sends=sends,
                outcome=int(Status.CRASHED if crashes else outcome_of(link)),
                link=link,
            )
            self.jobs.start(job, cell.state.parameters)
            medium.env.process(asynchronous_client(medium, job, since=medium.now - 1))

    def _account(self, cell: Cell, this: Round, begin: int, closed: int) -> Collected:
        # Account for what was done since ``begin``, and step by what had arrived when the window closed
        now, at_work = cell.medium.now, self.jobs.clients
        positions, jobs = np.searchsorted(this.clients, at_work), self.jobs.of(at_work)
        air_time, began_to_send = AirTime(), []
        for position, job in zip(positions.tolist(), jobs, strict=True):
            this.status[position] = job.outcome if job.ends <= closed else Status.UNDERWAY
            began, stopped = _part(job.model_arrives, job.training_ends, begin, now)
            this.worked[position] = stopped - began
            fresh = job.round_index == this.index or job.training_ends > begin
            began_to_send.append(job.sends and fresh and job.training_ends <= now)
            first, last = _part(job.training_ends, job.ends, begin, now)
            if last > first or (began_to_send[-1] and job.ends <= now):
                air_time.note(position, first, last, 0, *job.shares(first, last), sends=job.sends)
        this.compute_time[positions] = [job.compute_s for job in jobs]
        cell.drain(this.clients, self.uploads.note_energy(this, air_time))
        transmitted = positions[np.array(began_to_send, dtype=np.bool_)]
        back = np.array([job.ends <= closed for job in jobs], dtype=np.bool_)
        heard = this.with_status(Status.PARTICIPATED)
        aggregate = self._step(cell, this, heard) if len(heard) else None
        self.jobs.finish(at_work[back])
        return Collected(
            heard=heard,
            transmitted=transmitted,
            aggregate=aggregate,
            releases=(BareRelease(this.index, this.clients[transmitted]),),
            airtime=air_time.occupied(),
        )

    def _step(self, cell: Cell, this: Round, heard: NDArray[np.int64]) -> NDArray[np.float64]:
        # (d,) the step of the global model: Σ α s p_i Δ_i/Σ p, plus the way to the models they started from
        jobs, state = self.jobs.of(this.clients[heard]), cell.state
        started_in = np.array([job.round_index for job in jobs])
        staleness = np.array([state.model_version - job.version for job in jobs], dtype=np.float64)
        weight = cell.network.registry.weight(this.clients[heard])
        share = self.mixing.shares(weight, staleness)
        this.staleness = np.full(len(this.clients), np.nan)
        this.staleness[heard] = staleness
        total, to_start = Superposition(self.dimension), np.zeros(self.dimension)
        for round_index in np.unique(started_in).tolist():
            group = np.flatnonzero(started_in == round_index)
            model = self.jobs.models[jobs[group[0]].version]
            to_start += share[group].sum() * (model.astype(np.float64) - state.parameters)
            for block in cell.train(this, heard[group], model, round_index):
                trained = group[block.positions]
                this.training.append(TrainingRecord.of(heard[trained], block))
                decoded = self.uploads.decoded(cell, this, heard[trained], block)
                total.add(decoded, share[trained].astype(np.complex128))
        received = np.asarray(total.received(), dtype=np.float64)
        return np.asarray((received + to_start if self.mixes == "models" else received) / weight.sum())


def _part(begin: int, end: int, first: int, last: int) -> tuple[int, int]:
    # The part of a stretch of time that lies between two instants; empty at one of them if there is none
    return min(max(begin, first), last), min(max(end, first), last)
