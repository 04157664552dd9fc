"""One communication round and its records, as frozen values; only the recorder uses the trace's names.

``positions`` are places among the n clients selected in the round. What receives a slot returns its records in a
``Reception`` and writes nothing into the round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.learning.drift import ClientDrift
from wirelessfl.learning.fairness import ClientAccuracies
from wirelessfl.privacy import Release
from wirelessfl.radio import Moment, SlotPlan
from wirelessfl.simulation.radio_records import LinkRecord, PilotRecord, SlotRecord, TransmissionRecord, UploadRecord
from wirelessfl.trace import Status


@dataclass(frozen=True, eq=False)
class TrainingRecord:
    """Local training of k clients.

    Attributes:
        positions: (k,) the clients.
        loss: (k,) mean loss of the local steps.
        norm_raw: (k,) norms of the updates before clipping.
        norm: (k,) norms of the updates.
        statistics: (k,) means over the steps of what private training reports of each, by name.
    """

    positions: NDArray[np.int64]
    loss: NDArray[np.float64]
    norm_raw: NDArray[np.float64]
    norm: NDArray[np.float64]
    statistics: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def of(cls, positions: NDArray[np.int64], block: CohortBlock) -> TrainingRecord:
        """The record of a block of clients, without their updates; NaN where no step reports a statistic."""
        means = {}
        for name, per_step in block.statistics.items():
            taken = np.isfinite(per_step)
            steps = np.where(taken.any(axis=1), taken.sum(axis=1), np.nan)
            means[name] = np.sum(per_step, axis=1, where=taken) / steps
        return cls(positions, block.train_loss, block.norm_raw, block.norm, means)


@dataclass(frozen=True)
class Energy:
    """Energy of a round in joules; NaN where watts are unknown.

    Attributes:
        joules: spent.
        nominal: spent at most, from public values alone. What stops a run must not follow private data, or the number
            of rounds tells of them.
    """

    joules: float = 0.0
    nominal: float = 0.0

    def plus(self, joules: float) -> Energy:
        """With joules added that depend on public values alone."""
        return Energy(self.joules + joules, self.nominal + joules)


@dataclass(frozen=True, eq=False)
class SecAggRecord:
    """Secure aggregation of a round.

    Attributes:
        costs: columns per stage, each (stages,), see ``/secagg`` in the trace.
        threshold: share holders that recover a secret; NaN where there are no shares.
        neighbours: clients with which each client has masks in common, as planned; NaN where nothing could be planned.
        attempts: attempts at the sum.
        abort_reason: why the round was given up; empty where it was not.
    """

    costs: Mapping[str, NDArray[np.float64]]
    threshold: float = math.nan
    neighbours: float = math.nan
    attempts: int = 0
    abort_reason: str = ""


@dataclass(frozen=True)
class ServerRecord:
    """The server's numbers at the end of a round.

    Attributes:
        participants: clients whose updates are in the aggregate.
        airtime_s: seconds for which the channel was occupied.
        model_version: steps that the global model has made.
        train_loss: mean training loss of the participants, weighted by samples; NaN without any.
        test_accuracy: of the global model; NaN where it was not evaluated.
        test_loss: likewise.
        validation_accuracy: on samples held out of the clients' shares; NaN without any.
        validation_loss: likewise.
        client_drift: root mean square distance of the updates trained from their mean; NaN where it is not measured.
        server_step_norm: ‖w_m − w_{m−1}‖ of the global model.
        sim_time_s: simulated seconds since the start.
        epsilon_published: of the worst client.
        epsilon_accounted: of the worst client.
        selection_epsilon: of the losses reported for the selection alone; NaN without any.
    """

    participants: int
    airtime_s: float
    model_version: int
    train_loss: float
    test_accuracy: float
    test_loss: float
    validation_accuracy: float
    validation_loss: float
    client_drift: float
    server_step_norm: float
    sim_time_s: float
    epsilon_published: float
    epsilon_accounted: float
    selection_epsilon: float = math.nan


@dataclass(frozen=True, eq=False)
class Before:
    """The part of a round before its clients are selected; nothing is spent in it by most rules.

    Attributes:
        airtime_s: seconds for which clients sent.
        joules: spent by clients, public values; NaN where watts are unknown.
        score: (n,) by which the selection preferred each client; None of rules without scores.
        asked: (a,) numbers of the candidates that answered a query; None without one.
    """

    airtime_s: float = 0.0
    joules: float = 0.0
    score: NDArray[np.float64] | None = None
    asked: NDArray[np.int64] | None = None


@dataclass
class Round:
    """One communication round over the ``n`` clients selected in it.

    Attributes:
        index: the round, from 1.
        clients: (n,) ascending client numbers; position i of every array belongs to ``clients[i]``.
        before: what was done before the clients were selected.
        reported: (n,) losses reported with uploads; None by rules that read none.
        loss_release: the record of reported losses with noise; None without.
        slot_opens: simulated seconds at which the uplink begins; with digital uplinks, the round.
        broadcast_s: seconds of the broadcast of the model.
        status: (n,) status of each client.
        worked: (n,) ticks for which each client has trained.
        compute_time: (n,) seconds that the whole training takes; NaN of clients that do not train.
        local_steps: (n,) local steps by the deadline, 0 of clients that do not train; None where all are taken.
        work_share: (n,) part of the whole training that they are.
        compute_joules: (n,) energy of local training; None where it is not counted.
        staleness: (n,) steps by which the model that a client trained is behind; None with rounds.
        roles: (n,) of clients that do not follow the protocol; None where all do.
        kept: (n,) part of each update that a robust rule kept; None without one.
        slot_group: (n,) group of clients in whose slot each sends, from 0; None where all send in one.
        slot_s: (n,) seconds of that slot; None where all send in one.
        starts: (m,) positions of clients and the model (d,) that they start from, by edge; none where all start from
            the global model.
        links: channels, later ones in place of earlier ones of the same client.
        training: local training of those who are heard.
        transmissions: analogue transmissions.
        uploads: digital transmissions; None without.
        pilots: None where they cost nothing.
        energy: of the round so far.
        slot: gains and noise of the slot; None without one.
        heard: the plan of the slot that the server received; None without one.
        secagg: secure aggregation; None with other uplinks.
        local_releases: the records for the privacy ledger of what clients do to their own data; none without.
        uplink_releases: those of the uplink, the server and reports; none where nothing else was released.
        drift: spread of the updates trained; empty where it is not measured.
        step_norm: ‖w_m − w_{m−1}‖ of the global model.
        accuracies: of the global model on the test samples of single clients; None where there are none, or it was not
            evaluated.
        personal_accuracies: of the clients' own models; None where there are none, or they were not evaluated.
        server: the server's numbers, there at the end.
        limits: keys of the limits of rounds and spending with which the run ends after this round.
        model_is_finite: whether all numbers of the global model after the round are finite.
        wall_time: seconds of real time since the start of the run, at the end of the round.
    """

    index: int
    clients: NDArray[np.int64]
    before: Before = field(default_factory=Before)
    reported: NDArray[np.float64] | None = None
    loss_release: Release | None = None
    slot_opens: float = 0.0
    broadcast_s: float = 0.0
    status: NDArray[np.uint8] = field(init=False)
    worked: NDArray[np.int64] = field(init=False)
    compute_time: NDArray[np.float64] = field(init=False)
    local_steps: NDArray[np.int64] | None = None
    work_share: NDArray[np.float64] = field(init=False)
    compute_joules: NDArray[np.float64] | None = None
    staleness: NDArray[np.float64] | None = None
    roles: NDArray[np.uint8] | None = None
    kept: NDArray[np.float64] | None = None
    slot_group: NDArray[np.float64] | None = None
    slot_s: NDArray[np.float64] | None = None
    starts: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = field(default_factory=list)
    links: list[LinkRecord] = field(default_factory=list)
    training: list[TrainingRecord] = field(default_factory=list)
    transmissions: list[TransmissionRecord] = field(default_factory=list)
    uploads: UploadRecord | None = None
    pilots: PilotRecord | None = None
    energy: Energy = field(default_factory=Energy)
    slot: SlotRecord | None = None
    heard: SlotPlan | None = None
    secagg: SecAggRecord | None = None
    local_releases: tuple[Release, ...] = ()
    uplink_releases: tuple[Release, ...] = ()
    drift: ClientDrift = field(default_factory=ClientDrift)
    step_norm: float = 0.0
    accuracies: ClientAccuracies | None = None
    personal_accuracies: ClientAccuracies | None = None
    server: ServerRecord = field(init=False)
    limits: list[str] = field(default_factory=list)
    model_is_finite: bool = True
    wall_time: float = math.nan

    def __post_init__(self) -> None:
        count = len(self.clients)
        self.status = np.full(count, Status.PARTICIPATED, dtype=np.uint8)
        self.worked = np.zeros(count, dtype=np.int64)
        self.compute_time = np.full(count, math.nan)
        self.work_share = np.ones(count)

    @property
    def releases(self) -> tuple[Release, ...]:
        """All records for the privacy ledger."""
        return self.local_releases + self.uplink_releases

    @property
    def moment(self) -> Moment:
        """The instant at which the uplink begins."""
        return Moment(self.index, self.slot_opens)

    def steps_of(self, clients: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """(k,) local steps of some of the clients selected, ascending or not; None where all are taken."""
        return None if self.local_steps is None else self.local_steps[np.searchsorted(self.clients, clients)]

    @property
    def time_on_air(self) -> NDArray[np.float64]:
        """(n,) seconds on the air of each client: of its digital upload, else of its slot."""
        if self.slot_s is not None:
            return self.slot_s
        if self.uploads is None:
            return np.full(len(self.clients), self.server.airtime_s - self.before.airtime_s)
        time = np.zeros(len(self.clients))
        time[self.uploads.positions] = self.uploads.airtime_s
        return time

    @property
    def not_finite(self) -> int:
        """The number of updates whose norm is not finite in single precision."""
        return sum(int(np.count_nonzero(~np.isfinite(record.norm_raw))) for record in self.training)

    def train_loss(self, positions: NDArray[np.int64]) -> NDArray[np.float64]:
        """(k,) mean local training loss of the clients at some positions."""
        loss = np.full(len(self.clients), math.nan)
        for record in self.training:
            loss[record.positions] = record.loss
        return loss[positions]

    def with_status(self, status: Status) -> NDArray[np.int64]:
        """Positions of the clients in a status."""
        return np.flatnonzero(self.status == status)
