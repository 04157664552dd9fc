"""Digital: every client uploads its update by itself, in a band of its own, as soon as it has trained."""

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.conformance import given, method_at
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import CohortBlock
from wirelessfl.learning.compression import (
    FLOAT_BITS,
    Codec,
    DecidingCodec,
    ErrorFeedback,
    NoCodec,
    Payload,
    RoundCodec,
)
from wirelessfl.learning.robust import CollectedRows, Mean, RobustRule
from wirelessfl.privacy import BareRelease
from wirelessfl.radio import (
    DigitalLinks,
    Link,
    Moment,
    MultipleAccess,
    Ofdma,
    SpatialMultiplexing,
    Superposition,
    UploadLinks,
)
from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.cell import Cell, ClientTraining, TrainingTimes, train
from wirelessfl.simulation.medium import END_EVENT, Medium, Report, seconds, ticks
from wirelessfl.simulation.records import Round, TrainingRecord
from wirelessfl.simulation.uplinks.base import AuditView, Collected, NoNoise
from wirelessfl.simulation.uplinks.digital.round_links import (
    RoundLinks,
    Uploads,
    draw_links,
    outcome_of,
    record_uploads,
    upload,
)
from wirelessfl.simulation.uplinks.digital.shared_band import SharedBand
from wirelessfl.simulation.uplinks.digital.spatial_groups import SpatialGroups, spatial_client
from wirelessfl.simulation.uplinks.robust import note_kept
from wirelessfl.simulation.window import Window
from wirelessfl.trace import EventKind, Status


def digital_client(
    medium: Medium,
    training: ClientTraining,
    links: RoundLinks | SharedBand,
    bits: int,
    air_time: AirTime,
    channel: simpy.Resource,
    grant_ticks: int = 0,
) -> Generator[simpy.Event, Any, None]:
    """Train, and upload as soon as the channel is free.

    Args:
        medium: carries what the client says.
        training: the client's round.
        links: what the clients' channels carry.
        bits: size of the upload.
        air_time: notes when the client sent.
        channel: free for as many clients as may send at the same time, taken in the order in which they are ready.
        grant_ticks: from the client's request for the band to its grant.
    """
    try:
        if not (yield from train(medium, training)):
            return
        link = links.foreseen(training.position)
        if link is None or link.sends or link.pilot_s > 0:
            if grant_ticks:
                yield medium.env.timeout(grant_ticks)
            with channel.request() as turn:
                yield turn
                link = links.at(training.position, medium.now)
                yield from upload(medium, air_time, training.position, training.node, link, bits)
    except simpy.Interrupt:
        medium.note(EventKind.LATE, training.node)
        return
    outcome = outcome_of(link)
    medium.note(END_EVENT[outcome], training.node, bits if link.delivers else math.nan)
    medium.send(Report(training.position, outcome))


@dataclass(frozen=True)
class DigitalUplink:
    """Uploads that arrive one by one; the server waits for arrivals.

    Attributes:
        links: what the clients' channels carry.
        dimension: numbers of an upload, d or a multiple.
        access: how clients share the band.
        codec: how vectors of length d become bits.
        vectors: P, of length d, in an upload.
        numbers: of 32 bits, beside the vectors.
        residuals: what the codec lost of the clients' earlier uploads; None where that is forgotten.
        rule: how the server combines what has arrived.
        sharing: clients that send in the same band at once; None where each has a band or a time of its own.
    """

    links: UploadLinks
    dimension: int
    access: MultipleAccess = field(default_factory=Ofdma)
    codec: Codec = field(default_factory=NoCodec)
    vectors: int = 1
    numbers: int = 0
    residuals: ErrorFeedback | None = None
    rule: RobustRule = field(default_factory=Mean)
    sharing: SpatialMultiplexing | None = None

    def audit_view(self) -> AuditView:
        """No noise: no theorem covers the error of a codec."""
        return NoNoise(("the digital links: nothing is claimed for rounding, outages and lost uploads",))

    @property
    def payload_bits(self) -> int:
        """Size of an upload."""
        of_a_vector = given("codec", self.codec, "bits", self.codec.bits(self.dimension // self.vectors), int)
        return self.vectors * of_a_vector + FLOAT_BITS * self.numbers

    def collect(self, cell: Cell, this: Round) -> Generator[simpy.Event, Any, Collected]:
        """Broadcast, wait for arrivals, average what has arrived."""
        medium, present, air_time = cell.medium, this.with_status(Status.PARTICIPATED), AirTime()
        this.slot_opens = seconds(medium.now)
        arrives, times = cell.broadcast(this), cell.training_times(this, present)
        start = self._alone if self.sharing is None else partial(self._together, self.sharing)
        processes = start(cell, this, times, arrives, air_time)
        yield arrives
        medium.note(EventKind.COMPUTE_START, this.clients[present])
        window = Window(medium.env, cell.wait_for, len(this.clients), set(processes))
        medium.listen(window.take)
        yield window.closed
        for position in sorted(window.outstanding):
            processes[position].interrupt()
        yield medium.occupy(0.0)  # those who were interrupted stop sending
        window.write_statuses(this.status)
        cell.drain(this.clients, self.note_energy(this, air_time))
        heard, transmitted = np.array(sorted(window.ready), dtype=np.int64), air_time.senders()
        aggregate = None
        if len(heard):
            aggregate, heard = self._aggregate(cell, this, heard)
        return Collected(
            heard=heard,
            transmitted=transmitted,
            aggregate=aggregate,
            releases=(BareRelease(this.index, this.clients[transmitted]),),
            airtime=air_time.occupied(),
        )

    def _aggregate(
        self, cell: Cell, this: Round, heard: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.int64]]:
        # (d,) what the rule makes of the arrivals, None of too few, of whom nobody is trained; and whose they are
        if isinstance(self.rule, Mean):
            return self._mean(cell, this, heard), heard
        found, finite = None, np.zeros(len(heard), dtype=np.bool_)
        if len(heard) >= self.rule.least():
            rows = CollectedRows(self.rule, cell.network.registry.weight(this.clients[heard]), self.dimension)
            for block in cell.train(this, heard):
                positions = heard[block.positions]
                this.training.append(TrainingRecord.of(positions, block))
                decoded = self.decoded(cell, this, positions, block)
                if block.is_rehearsed:
                    rows.rehearse(block.positions)
                else:
                    rows.add(decoded, block.positions)
            found, finite = rows.combined(), rows.finite
        kept = np.zeros(len(heard)) if found is None else found.kept
        given = note_kept(cell, this, heard, kept, finite, found is not None)
        return None if found is None else found.value, given

    def _alone(
        self, cell: Cell, this: Round, times: TrainingTimes, arrives: simpy.Event, air_time: AirTime
    ) -> dict[int, simpy.Process]:
        # Processes of the clients, each with a band or a time of its own, by position
        medium, present, bits = cell.medium, times.positions, self.payload_bits
        share, at_a_time = self.access.bandwidth_share(max(1, len(present))), self.access.at_a_time(len(present))
        uploads, grant, model_arrives = None, ticks(self.links.grant_s), medium.now + ticks(this.broadcast_s)
        if at_a_time >= len(present):  # nobody waits for the channel
            latest, needed = cell.wait_for.closes_after(), cell.wait_for.needed(len(this.clients))
            uploads = Uploads.after(times, model_arrives, latest, needed, bits, grant)
        links: RoundLinks | SharedBand
        if isinstance(self.access, Ofdma) and self.access.reallocates:
            assert isinstance(self.links, DigitalLinks), "the scenario was checked: a log knows no share of the band"
            links = SharedBand(self.links, this, times, model_arrives, bits, grant)
        else:
            links = RoundLinks(self.links, this, present, share, bits, uploads)
        channel = simpy.Resource(medium.env, at_a_time)
        return {
            training.position: medium.env.process(
                digital_client(medium, training, links, bits, air_time, channel, grant)
            )
            for training in times.by_client(arrives)
        }

    def _together(
        self,
        sharing: SpatialMultiplexing,
        cell: Cell,
        this: Round,
        times: TrainingTimes,
        arrives: simpy.Event,
        air_time: AirTime,
    ) -> dict[int, simpy.Process]:
        # Processes of the clients, in groups that share a band, by position
        medium, present, grant = cell.medium, times.positions, ticks(self.links.grant_s)
        bands = max(1, math.ceil(len(present) / sharing.streams))
        share = self.access.bandwidth_share(bands)
        groups = SpatialGroups(medium, sharing, this, present, share, self.access.at_a_time(bands))
        return {
            training.position: medium.env.process(
                spatial_client(medium, training, groups, self.payload_bits, air_time, grant)
            )
            for training in times.by_client(arrives)
        }

    def _mean(self, cell: Cell, this: Round, heard: NDArray[np.int64]) -> NDArray[np.float64]:
        # (d,) Σ p_i Δ_i / Σ p_i over the arrivals
        weight = cell.network.registry.weight(this.clients[heard])
        total = Superposition(self.dimension)
        for block in cell.train(this, heard):
            positions = heard[block.positions]
            this.training.append(TrainingRecord.of(positions, block))
            total.add(self.decoded(cell, this, positions, block), weight[block.positions].astype(np.complex128))
        mean: NDArray[np.float64] = np.asarray(total.received(), dtype=np.float64) / weight.sum()
        return self.codec.decided(mean) if isinstance(self.codec, DecidingCodec) else mean

    def offer(self, this: Round, positions: NDArray[np.int64], share: float, begins: NDArray[np.float64]) -> list[Link]:
        """The links of clients that start now and send from (n,) seconds on, each with a share of the band."""
        moment = Moment(this.index, begins) if self.links.vary else this.moment
        return draw_links(self.links, this, positions, share, moment, self.payload_bits)

    def note_energy(self, this: Round, air_time: AirTime) -> NDArray[np.float64]:
        """Record of the time on the air of the clients of a round, and its cost; returns (n,) joules."""
        return record_uploads(self.links, this, air_time, self.payload_bits)

    def decoded(self, cell: Cell, this: Round, positions: NDArray[np.int64], block: CohortBlock) -> Any:
        """(k, P·d) the uploads of a block of clients as they come out of the links.

        Raises:
            ScenarioError: a codec from outside takes other bits than it said, or gives other rows back.
        """
        if type(self.codec) is NoCodec:  # nothing is copied
            return block.updates
        streams, sent = cell.network.streams, block.updates.cpu().numpy()
        clients = this.clients[positions]
        if self.residuals is not None:
            sent = self.residuals.added(clients, sent)
        codec, generators = self.codec, [streams.generator("quantiser", this.index, one) for one in clients.tolist()]
        if isinstance(codec, RoundCodec):
            codec = codec.drawn(streams.generator("common_coordinates", this.index))
        parts = [self._carried(codec, vectors, generators) for vectors in np.split(sent, self.vectors, axis=1)]
        arrived = np.concatenate(parts, axis=1)
        if self.residuals is not None:
            with np.errstate(invalid="ignore", over="ignore"):
                left = sent - arrived
            # An upload that is not finite is lost, and all that was left before it is still to come
            finite = np.isfinite(left).all(axis=1)
            self.residuals.keep(clients[finite], left[finite])
        return arrived

    def _carried(
        self, codec: Codec, vectors: NDArray[np.float32], generators: list[np.random.Generator]
    ) -> NDArray[np.float32]:
        # Vectors (k, d) encoded and decoded again
        payload = given("codec", codec, "encode", codec.encode(vectors, generators), Payload)
        bits = codec.bits(vectors.shape[1])
        rows = np.asarray(codec.decode(payload))
        if payload.bits != bits or rows.shape != vectors.shape or rows.dtype.kind not in "fiu":
            raise ScenarioError(
                f"uplink.codec.name: {type(self.codec).__name__} makes payloads of {payload.bits} bits and decodes "
                f"shape {rows.shape} in {rows.dtype}; allowed: {bits} bits, as it said, and {vectors.shape} in "
                f"{vectors.dtype}; `check_codec` tests it{method_at(self.codec, 'decode')}"
            )
        return rows.astype(vectors.dtype, copy=False)
