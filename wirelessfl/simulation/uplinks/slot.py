"""Uplinks with one slot for all: the server waits until enough clients are ready, then everybody sends at once.

One process plays the training of all clients, one their transmission, one the cooperative jammer.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.learning import BlockSum, CohortBlock
from wirelessfl.learning.cohort import SummedBlock
from wirelessfl.privacy import Release
from wirelessfl.radio.slot_schedule import SlotPlan
from wirelessfl.simulation.cell import Cell, TrainingTimes
from wirelessfl.simulation.medium import Medium, Reports, SlotGrant, seconds
from wirelessfl.simulation.radio_records import PilotRecord, SlotRecord, TransmissionRecord
from wirelessfl.simulation.records import Energy, Round, TrainingRecord
from wirelessfl.simulation.uplinks.base import AuditView, Collected, NotAuditable, Vector
from wirelessfl.simulation.uplinks.robust import note_kept
from wirelessfl.simulation.window import Window
from wirelessfl.trace import JAMMER_NODE, SERVER_NODE, EventKind, Status


def jammer(medium: Medium, node: int, slot_opens: simpy.Event) -> Generator[simpy.Event, Any, None]:
    """One round of the jammer, a node of its own or a client whose turn it is.

    Args:
        medium: the air.
        node: the client's number, or ``JAMMER_NODE``.
        slot_opens: fires with the server's ``SlotGrant``, which carries the gain that was agreed.
    """
    grant: SlotGrant = yield slot_opens
    if grant.jammer_gain > 0:
        medium.note(EventKind.JAM, node)


def slot_training(
    medium: Medium, times: TrainingTimes, enough: int, model_arrives: simpy.Event
) -> Generator[simpy.Event, Any, NDArray[np.int64]]:
    """Reception of the model, training, and a report.

    One process plays all clients of a slot, as nothing passes between them. It sleeps until enough have come to the
    end, which nobody asks before, and then logs what each has done at the time at which it did it.

    Args:
        medium: carries what the clients say.
        times: durations of the clients' training.
        enough: ticks for which they train; who takes longer is late.
        model_arrives: fires when the broadcast is over.

    Returns:
        Which of the n clients are ready, in the order in which they became so.
    """
    yield model_arrives
    begin = medium.now
    yield medium.env.timeout(enough)
    over = times.over(enough)
    crashes, ends = times.crashes[over], times.ends[over].tolist()
    kinds = np.where(crashes, EventKind.CRASH, EventKind.COMPUTE_END).astype(np.uint8)
    medium.note(kinds, times.nodes[over], past=[begin + end for end in ends])
    medium.note(EventKind.LATE, times.nodes[times.ends > enough])
    times.worked[times.positions] = np.minimum(times.ends, enough)
    ready = over[~crashes]
    medium.send(Reports(ready=times.positions[ready], crashed=times.positions[over[crashes]]))
    return ready


def slot_transmission(
    medium: Medium, times: TrainingTimes, training: simpy.Process, slot_opens: simpy.Event
) -> Generator[simpy.Event, Any, None]:
    """Transmission of the clients that are ready, in the slot that the server opens for all.

    Args:
        medium: carries what the clients say.
        times: durations of the clients' training.
        training: ends with who is ready.
        slot_opens: fires with the server's ``SlotGrant``.
    """
    ready: NDArray[np.int64] = yield training
    grant: SlotGrant = yield slot_opens
    silent = grant.silent[times.positions[ready]]
    medium.note(np.where(silent, EventKind.DEEP_FADE, EventKind.TRANSMIT).astype(np.uint8), times.nodes[ready])


@dataclass(frozen=True)
class Reception:
    """The server's reception of a slot, with its records.

    Attributes:
        aggregate: (d,) the weighted mean update as received.
        releases: the records for the privacy ledger, one for each way in which the updates are protected.
        battery_drain_j: (k,) joules that leave each sender's battery. Nominal, from public bounds: a battery that
            drained with the realised energy would make participation depend on private data (PRIVACY.md).
        training: local training of the senders.
        transmissions: of the senders, where they are analogue.
        slot: gains and noise; None where there are none.
        energy: of the slot, without pilots.
        kept: (k,) part of each update that a robust rule kept; None without one.
        finite: (k,) which updates it was given, as they are finite; None without one.
        steps: whether the model is stepped: not so where too few updates for a robust rule arrived.
        unheard: (d,) of which coordinates of the aggregate nobody sent anything; None where all were heard.
    """

    aggregate: Vector
    releases: tuple[Release, ...]
    battery_drain_j: NDArray[np.float64]
    training: tuple[TrainingRecord, ...] = ()
    transmissions: tuple[TransmissionRecord, ...] = ()
    slot: SlotRecord | None = None
    energy: Energy | None = None
    kept: NDArray[np.float64] | None = None
    finite: NDArray[np.bool_] | None = None
    steps: bool = True
    unheard: NDArray[np.bool_] | None = None


class SlotUplink(ABC):
    """An uplink whose clients all send in one slot.

    Attributes:
        rotating_jammer: whether one of the selected clients jams instead of training.
        airtime: seconds of a slot, which is over by the deadline; 0 where updates take no time.
    """

    rotating_jammer: bool
    airtime: float

    @property
    def jams(self) -> bool:
        """Whether there is a cooperative jammer."""
        return False

    @property
    def steps_without_senders(self) -> bool:
        """Whether the server also steps the model if no client sends, so that the model does not reveal this."""
        return False

    @property
    def hidden_share(self) -> float | None:
        """The share of all samples that the aggregate counts as, where noise hides who came; else None."""
        return None

    @abstractmethod
    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> SlotPlan:
        """Plan of the slot for the clients at the positions ``ready``; ``jammer`` is the position of one that jams."""

    def block_sum(self, this: Round, plan: SlotPlan) -> BlockSum | None:
        """The sum of the senders' signals, whose parts may replace their blocks: formed where these are trained.

        None where the server needs single updates, or where it would take more than the updates.
        """
        return None

    @abstractmethod
    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reception:
        """Reception of the updates, block by block, and the uplink's columns of the round.

        An uplink with a ``block_sum`` also takes summed blocks, whose parts are of that sum.
        """

    def audit_view(self) -> AuditView:
        """View of the adversary in an audit, which each kind of uplink defines itself."""
        return NotAuditable(f"{type(self).__name__} does not say what an adversary hears of it (audit_view)")

    def train(self, cell: Cell, this: Round, plan: SlotPlan) -> Iterator[CohortBlock] | Iterator[SummedBlock]:
        """Local training of those who send."""
        total = self.block_sum(this, plan)
        return cell.train(this, plan.senders) if total is None else cell.train_for_sum(this, plan.senders, total)

    def collect(self, cell: Cell, this: Round) -> Generator[simpy.Event, Any, Collected]:
        """Broadcast, wait for reports, open the slot, receive."""
        slot_opens = cell.medium.env.event()
        jamming = self._appoint_jammer(cell, this, slot_opens)
        yield from _wait_for_reports(cell, this, slot_opens, self.airtime)
        this.slot_opens = seconds(cell.medium.now)
        plan = self.plan(this, this.with_status(Status.PARTICIPATED), jamming)
        this.status[plan.silent] = Status.DEEP_FADE
        silent = np.zeros(len(this.clients), dtype=np.bool_)
        silent[plan.silent] = True
        if plan.jammer_failed:
            cell.medium.note(EventKind.JAMMER_FAILURE, JAMMER_NODE if jamming is None else this.clients[[jamming]])
        slot_opens.succeed(SlotGrant(silent, plan.jammer_gain))
        if not (len(plan.senders) or self.steps_without_senders):
            spent_s = 0.0 if plan.pilots is None else plan.pilots.seconds
            yield cell.medium.occupy(spent_s)  # those in a deep fade say so before the round is over
            _pay_for_pilots(cell, this, plan, jamming)
            return Collected(plan.senders, plan.senders, None, (), spent_s)
        blocks: Iterable[Any] = ()
        if len(plan.senders):
            blocks = self.train(cell, this, plan)  # workers train while the events of the slot pass by
        yield cell.medium.occupy(plan.airtime)
        reception = self.receive(this, plan, blocks)
        this.heard = plan
        this.training += reception.training
        this.transmissions += reception.transmissions
        this.slot = reception.slot or this.slot
        this.energy = reception.energy or this.energy
        cell.medium.note(EventKind.SUPERPOSE, SERVER_NODE)
        cell.drain(this.clients[plan.senders], reception.battery_drain_j)
        _pay_for_pilots(cell, this, plan, jamming)
        heard = plan.senders
        if reception.kept is not None and reception.finite is not None:
            heard = note_kept(cell, this, heard, reception.kept, reception.finite, reception.steps)
        aggregate = reception.aggregate if reception.steps else None
        return Collected(
            *(heard, plan.senders, aggregate, reception.releases, plan.airtime),
            unheard=reception.unheard,
            hidden_share=self.hidden_share,
        )

    def _appoint_jammer(self, cell: Cell, this: Round, slot_opens: simpy.Event) -> int | None:
        """Start of the jammer; where its role goes round, the clients present take turns and the jammer does not train.

        Returns:
            The position of the client that jams, None where the jammer is a node of its own or there is none.
        """
        if not self.jams:
            return None
        env = cell.medium.env
        if not self.rotating_jammer:
            env.process(jammer(cell.medium, JAMMER_NODE, slot_opens))
            return None
        present = this.with_status(Status.PARTICIPATED)
        if len(present) < 2:
            return None
        position = int(present[this.index % len(present)])
        this.status[position] = Status.JAMMING
        env.process(jammer(cell.medium, int(this.clients[position]), slot_opens))
        return position


def single_updates(blocks: Iterable[CohortBlock | SummedBlock]) -> Iterator[CohortBlock]:
    """The blocks of an uplink that asks for no sum, ``SlotUplink.block_sum``."""
    for block in blocks:
        if isinstance(block, SummedBlock):
            raise TypeError("an uplink that needs single updates asked for a sum of them")
        yield block


def _pay_for_pilots(cell: Cell, this: Round, plan: SlotPlan, jammer: int | None) -> None:
    # Energy of pilots of all clients that sent them, also of those that were silent afterwards or jammed
    if plan.pilots is None:
        return
    asked = np.concatenate([plan.senders, plan.silent, [] if jammer is None else [jammer]]).astype(np.int64)
    this.pilots = PilotRecord(asked, np.full(len(asked), plan.pilots.joules))
    total = len(asked) * plan.pilots.joules + plan.pilots.jammer_joules
    this.energy = this.energy.plus(total)
    cell.drain(this.clients[asked], np.full(len(asked), plan.pilots.joules))


def _wait_for_reports(
    cell: Cell, this: Round, slot_opens: simpy.Event, airtime_s: float
) -> Generator[simpy.Event, Any, None]:
    """Broadcast the model, wait until the window closes, and write the statuses of late and lost clients.

    How long training takes is nominal and public, and a client says so when the model arrives: the server waits for
    nobody who will be ready later than one airtime before the deadline. That somebody crashes is not known beforehand.
    """
    medium, env = cell.medium, cell.medium.env
    arrives = cell.broadcast(this)
    active, needed = this.with_status(Status.PARTICIPATED), cell.wait_for.needed(len(this.clients))
    times, latest = cell.training_times(this, active, airtime_s), cell.wait_for.closes_after(airtime_s)
    training = env.process(slot_training(medium, times, times.enough(needed, latest), arrives))
    env.process(slot_transmission(medium, times, training, slot_opens))
    yield arrives
    medium.note(EventKind.COMPUTE_START, this.clients[active])
    too_late = frozenset(active[~times.in_time(latest)].tolist())
    window = Window(env, cell.wait_for, len(this.clients), set(active.tolist()), too_late)
    medium.listen(window.take)
    yield window.closed
    window.write_statuses(this.status)
