"""One communication round, with the records of server, uplink and clients so far."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy import Release
from wirelessfl.radio.propagation import Moment
from wirelessfl.simulation.records import (
    Energy,
    LinkRecord,
    PilotRecord,
    SecAggRecord,
    ServerRecord,
    SlotRecord,
    TrainingRecord,
    TransmissionRecord,
    UploadRecord,
)
from wirelessfl.simulation.slot_plan import SlotPlan
from wirelessfl.trace import Status


@dataclass
class Round:
    """One communication round over the ``n`` clients selected in it.

    Attributes:
        index: the round, from 1.
        clients: (n,) ascending client numbers; position i of every array belongs to ``clients[i]``.
        slot_opens: simulated seconds at which the uplink begins; with digital uplinks, the round.
        status: (n,) status of each client.
        worked: (n,) ticks for which each client has trained.
        compute_time: (n,) seconds that the whole training takes; NaN of clients that do not train.
        compute_joules: (n,) energy of local training; None where it is not counted.
        staleness: (n,) steps by which the model that a client trained is behind; None with rounds.
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
        server: the server's numbers, there at the end.
        wall_time: seconds of real time since the start of the run, at the end of the round.
    """

    index: int
    clients: NDArray[np.int64]
    slot_opens: float = 0.0
    status: NDArray[np.uint8] = field(init=False)
    worked: NDArray[np.int64] = field(init=False)
    compute_time: NDArray[np.float64] = field(init=False)
    compute_joules: NDArray[np.float64] | None = None
    staleness: NDArray[np.float64] | None = None
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
    server: ServerRecord = field(init=False)
    wall_time: float = math.nan

    def __post_init__(self) -> None:
        count = len(self.clients)
        self.status = np.full(count, Status.PARTICIPATED, dtype=np.uint8)
        self.worked = np.zeros(count, dtype=np.int64)
        self.compute_time = np.full(count, math.nan)

    @property
    def releases(self) -> tuple[Release, ...]:
        """All records for the privacy ledger."""
        return self.local_releases + self.uplink_releases

    @property
    def moment(self) -> Moment:
        """The instant at which the uplink begins."""
        return Moment(self.index, self.slot_opens)

    @property
    def not_finite(self) -> int:
        """The number of updates that are not finite."""
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
