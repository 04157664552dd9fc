"""Over the air: all clients send in one slot and the channel adds, at every receiver (DESIGN.md §3)."""

import math
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.conformance import returned
from wirelessfl.learning import CohortBlock
from wirelessfl.learning.aggregation import EdgeModels
from wirelessfl.learning.compression import ErrorFeedback
from wirelessfl.privacy import AirRelease, Caveat
from wirelessfl.privacy.releases import WaveformRelease
from wirelessfl.privacy.releases.air import AirTheorem
from wirelessfl.radio import (
    AdaptivePowerControl,
    AirInterface,
    Analog,
    CentredPowerControl,
    Heard,
    Instants,
    JammerLink,
    Jamming,
    Modulation,
    Moment,
    Network,
    Overheard,
    PowerControl,
    Receiver,
    SlotPlan,
    SlotSchedule,
    SumReceiver,
    Waveform,
    coordinate_ranges,
    jammer_energy,
    received_jamming_std,
)
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.radio_records import LinkRecord, TransmissionRecord
from wirelessfl.simulation.records import Energy, Round
from wirelessfl.simulation.roles import Roles
from wirelessfl.simulation.uplinks.air.antennas import antenna_readings
from wirelessfl.simulation.uplinks.air.every_antenna import complex_noise
from wirelessfl.simulation.uplinks.air.excess import Excess
from wirelessfl.simulation.uplinks.air.joint_readings import joint_readings
from wirelessfl.simulation.uplinks.air.plan import (
    AirPlan,
    AnnouncedSlot,
    announcements,
    combiners,
    decoded,
    noise_behind,
    vouched,
)
from wirelessfl.simulation.uplinks.air.ranges import Ranges, renormalised, scale_ranges
from wirelessfl.simulation.uplinks.air.records import (
    SlotNoise,
    air_release,
    observed_release,
    over_clients,
    slot_record,
)
from wirelessfl.simulation.uplinks.air.transmitters import Received, Transmitters
from wirelessfl.simulation.uplinks.base import AuditView, ChannelNoise, Collected, NotAuditable, Reading
from wirelessfl.simulation.uplinks.slot import Reception, SlotUplink
from wirelessfl.streams import Streams
from wirelessfl.trace import SERVER_NODE, EventKind


@dataclass
class OverTheAir(SlotUplink):
    """The superposing uplink with C receivers, the base stations of as many cells.

    The waveform of other cells' clients interferes. It is never counted as noise that protects, and every base station
    adds to what an adversary behind them learns of a client.

    Attributes:
        network: the channels.
        policies: (C,) power control of each receiver; an adaptive one gives way to its successor after every slot.
        air: clip τ, receiver noise σ_c and real symbols of a client: d of linear amplitudes.
        iq_packing: two coordinates a symbol.
        fade_threshold: g, a client with |ĥ|²/E|ĥ|² below it stays silent.
        schedule: pieces and pilots of a slot.
        airtime: seconds of a slot with the pilots of as many clients as a round can have.
        num_symbols: channel uses of a slot.
        dimension: d, coordinates of an update.
        joules_per_unit: joules of one unit of normalised energy, N0/2; NaN where watts are unknown.
        theorem: whose published privacy applies to the power control.
        gradient_step: samples in the batch of a client whose update is one step on per-sample-clipped gradients with
            τ = η·clip, so that one sample reaches no further than its share; None for any other local training.
        receiver: how each receiver combines its antennas.
        modulation: how updates become symbols.
        jamming: the cooperative jammer, or None; with one receiver.
        rotating_jammer: whether its role goes round among the clients.
        jammer_failure: how often in a round the jammer does not jam, which nobody notices.
        backhaul_s: seconds between receivers and server, there and back: in every round, or where edges are averaged.
        edges: models of the edges; None where the server takes everything in every round.
        has_cells: whether receivers are the base stations of cells, which the records then name.
        unvouched: whether receiver or modulation come from outside and leave no release of their own.
        residuals: what a modulation left of the clients' earlier updates; None where all is sent.
        roles: of clients that do not follow the protocol; None without any.
    """

    network: Network
    policies: list[PowerControl]
    air: AirInterface
    iq_packing: bool
    fade_threshold: float
    schedule: SlotSchedule
    airtime: float
    num_symbols: int
    dimension: int
    joules_per_unit: float
    theorem: AirTheorem
    gradient_step: int | None = None
    receiver: Receiver = field(default_factory=SumReceiver)
    modulation: Modulation | Waveform = field(default_factory=Analog)
    jamming: Jamming | None = None
    rotating_jammer: bool = False
    jammer_failure: float = 0.0
    backhaul_s: float = 0.0
    edges: EdgeModels | None = None
    has_cells: bool = False
    unvouched: bool = False
    residuals: ErrorFeedback | None = None
    roles: Roles | None = None

    @property
    @override
    def jams(self) -> bool:
        return self.jamming is not None

    @property
    def gain_shape(self) -> tuple[int, int, int]:
        """(T, F, A) of the gains: blocks of the slot, groups of subcarriers, antennas."""
        return (self.schedule.pieces, self.network.clients.groups, self.receiver.antennas)

    @property
    def jammer_antennas(self) -> int:
        """N of an external jammer; 1 for one that rotates, or none."""
        return len(self.network.jammer_antennas)

    @cached_property
    def ranges(self) -> Ranges:
        """The coordinates of each block and group of subcarriers."""
        blocks, subcarriers, _ = self.gain_shape
        return coordinate_ranges(self.air.dimension, blocks * subcarriers, self.iq_packing)

    @cached_property
    def air_of_all_rows(self) -> AirInterface:
        """The uplink where every piece has a row: the noise of the whole slot against the signals of all rows."""
        return replace(self.air, dimension=self.air.dimension * self.schedule.estimates)

    @override
    def collect(self, cell: Cell, this: Round) -> Generator[simpy.Event, Any, Collected]:
        """A slot, and the way over the backhaul."""
        collected = yield from super().collect(cell, this)
        averages = self.edges is not None and self.edges.is_averaging(this.index)
        if self.backhaul_s > 0 and (averages or self.edges is None):
            yield cell.medium.occupy(self.backhaul_s)
        if self.edges is not None and averages:
            cell.medium.note(EventKind.CLOUD, SERVER_NODE)
            self.edges.averaged()
        return collected

    @override
    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> AirPlan:
        """Plan of the slot: channels, gains that each receiver sets for its own clients, and jammer."""
        external = self.jams and not self.rotating_jammer
        nodes = len(ready) + int(external or jammer is not None)
        instants = self.schedule.instants(nodes)
        slot = self.announce(this.clients[ready], this.moment, instants)
        found, links, sends = slot.found, slot.links, slot.sends
        this.links.append(LinkRecord(ready, found.own, found.serving if self.has_cells else None))
        sending = np.flatnonzero(sends.any(axis=(1, 2)))
        silent = np.delete(ready, sending)
        unknown = np.full(len(silent), math.nan)
        this.transmissions.append(TransmissionRecord(silent, *(unknown,) * 4, np.ones(len(silent))))
        jammer_link, gain = self._jammer_link(this, jammer, instants), 0.0
        behind = None if jammer_link is None else jammer_link.combined(slot.weights[0])  # the only receiver's
        transmit = slot.transmit
        if self.jamming is not None and jammer_link is not None and behind is not None and transmit:
            ((station, plan),) = transmit.items()
            _, subcarriers, antennas = self.gain_shape
            apart = slot.each_antenna(jammer_link) if subcarriers * antennas > 1 else None
            weakest, policy = behind.equivalent.weakest_estimate, self.policies[station]
            transmit[station], gain = self.jamming.agree(policy, plan, slot.rows, self.air, weakest, apart)
        failed = gain > 0 and self._jammer_fails(this.index)
        return AirPlan(
            senders=ready[sending],
            silent=silent,
            airtime=self.schedule.airtime(nodes),
            pilots=self.schedule.pilot_charge(nodes, external),
            jammer_gain=0.0 if failed else gain,
            jammer_failed=failed,
            links=links.take(sending),
            heard=found.channel[sending],
            sends=sends[sending],
            transmit=transmit,
            noise_std=noise_behind(self.receiver, slot.weights, self.air),
            jammer=jammer_link,
            jammer_behind=behind,
            round_index=this.index,
            clients=this.clients[ready[sending]],
            antenna_links=found.own.take(sending),
            overheard=self._overheard_links(this, ready, jammer, instants, sending),
            excess=Excess.of(self.roles, this.clients[ready[sending]], links.own.power_budget[sending], self.air.clip),
        )

    def announce(
        self, clients: NDArray[np.int64], moment: Moment, instants: Instants, planned: int | None = None
    ) -> AnnouncedSlot:
        """The channels of clients over a slot, the combiners, and what each receiver tells its own clients.

        Args:
            clients: registered clients.
            moment: of the slot's beginning.
            instants: of estimates and blocks.
            planned: the round that power control plans; None for that of the moment.
        """
        found = self.network.cell_links(clients, moment, instants)
        weights = combiners(self.receiver, found, len(self.policies), moment.round_index, self.air)
        links = found.combined(weights)
        sends = ~links.own.rows().in_deep_fade(self.fade_threshold).reshape(links.own.estimate.shape[:3])
        transmit = announcements(self.policies, links, sends, planned or moment.round_index, self.air_of_all_rows)
        return AnnouncedSlot(found, weights, links, sends, transmit)

    @override
    def train(self, cell: Cell, this: Round, plan: SlotPlan) -> Iterator[CohortBlock]:
        """Local training from the global model, or from that of each client's edge."""
        if self.edges is None:
            yield from cell.train(this, plan.senders)
            return
        assert isinstance(plan, AirPlan)
        models = self.edges.begin(cell.state.parameters)
        for station in plan.transmit:
            mine = np.flatnonzero(plan.links.serving == station)
            for block in cell.train(this, plan.senders[mine], models[station]):
                yield replace(block, positions=mine[block.positions])

    @override
    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reception:
        """Reception: superposition, jamming and noise at every receiver, scaled back; the cells are put together."""
        if not isinstance(plan, AirPlan):
            raise TypeError(f"an over-the-air slot was planned by another uplink: {type(plan).__name__}")
        transmitters, unit = self._transmitters(plan), self.joules_per_unit
        drain = transmitters.nominal_amplitude**2 * unit
        received = self._received(this, plan, blocks)
        if received.plan is not plan:
            transmitters = self._transmitters(received.plan)
        plan, noise = received.plan, self._slot_noise(this, received.plan)
        jamming = 0.0 if self.jamming is None else jammer_energy(plan.jammer_gain, self.num_symbols, self.jamming.noise)
        transmitted = float(np.nansum(over_clients(received.transmissions, "energy", len(this.clients))))
        energy = Energy((transmitted + jamming) * unit, float(drain.sum()) + jamming * unit)
        rule = (self.theorem, self.gradient_step, self.network.registry.samples[this.clients[plan.senders]])
        release = air_release(this, transmitters, noise, received.transmissions, *rule)
        waveform = self.modulation if isinstance(self.modulation, Waveform) else None
        if waveform is not None:
            release = WaveformRelease.of(release, waveform.signals)
            if waveform.private_scale:
                release = replace(release, caveat=Caveat.REALISED_NORMS)
        counted = vouched(release, (self.receiver, self.modulation), self.unvouched)
        slot = slot_record(received, noise, jamming, self.has_cells, self.edges is None and waveform is None)
        for station, announced_plan in plan.transmit.items():
            policy = self.policies[station]
            if isinstance(policy, AdaptivePowerControl):
                self.policies[station] = policy.after(announced_plan)
        step = self._sum(received) if waveform is None else self._step(waveform, received)
        records = (received.training, received.transmissions)
        return Reception(step, (counted,), drain, *records, slot, energy)

    @override
    def audit_view(self) -> AuditView:
        """The noise of receivers and jammer; those behind several receivers or antennas see all receptions."""
        if isinstance(self.modulation, Waveform):
            scheme = type(self.modulation).__name__
            return NotAuditable(f"{scheme} sends other symbols than a canary's update, and games play sums of updates")
        hears_apart = self.network.observer is not None or self.receiver.antennas > 1
        if hears_apart and isinstance(self.policies[0], CentredPowerControl):
            return NotAuditable("a canary is a constant vector, of which nothing is sent beside the mean told apart")
        several = ("interference: clients of all cells but the canary send zeros",) if len(self.policies) > 1 else ()
        if self.network.observer is not None:
            told = "how much models tell of the server's reading: the reading itself is taken"
            if several:
                told = "how much models tell of the readings of base stations: the readings themselves are taken"
            readings = len(self.policies) + (1 if self.iq_packing else 2) * len(self.network.observer.clients.antennas)
            return ChannelNoise(
                self._observed, self.gradient_step, self.jamming, (*several, told), readings, joint=True
            )
        array = ("the noise behind the server's own combiner: the game is played at all antennas",)
        left_out = (*several, *(array if self.receiver.antennas > 1 else ()))
        readings = 1 if self.receiver.antennas == 1 else 2 * self.receiver.antennas * len(self.policies)
        return ChannelNoise(self._overheard, self.gradient_step, self.jamming, left_out, readings)

    def observed(self, plan: AirPlan, release: AirRelease, heard: Iterable[Overheard]) -> list[AirRelease]:
        """The records of a slot for observers at other places, from that for the one of the scenario."""
        transmitters = self._transmitters(plan)
        return [observed_release(transmitters, release, one, self.jamming) for one in heard]

    def state(self) -> dict[str, Any]:
        """State of power controls and edges."""
        adaptive = enumerate(self.policies)
        return {
            "policies": {str(c): dict(p.state()) for c, p in adaptive if isinstance(p, AdaptivePowerControl)},
            "edges": {} if self.edges is None else self.edges.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Power control as a state has it."""
        for station, policy in enumerate(self.policies):
            if isinstance(policy, AdaptivePowerControl):
                self.policies[station] = policy.restored(dict(state["policies"][str(station)]))
        if self.edges is not None:
            self.edges.restore(state["edges"])

    def _jammer_link(self, this: Round, jammer: int | None, instants: Instants) -> JammerLink | None:
        if jammer is None:
            alone = self.jams and not self.rotating_jammer
            return self.network.jammer_link(this.moment, instants) if alone else None
        position = np.array([jammer])
        link = self.network.slot_links(this.clients[position], this.moment, instants)
        this.links.append(LinkRecord(position, link))
        return JammerLink.of([link])

    def _overheard_links(
        self, this: Round, ready: NDArray[np.int64], jammer: int | None, instants: Instants, sending: NDArray[np.int64]
    ) -> Overheard | None:
        # The senders' channels to an external observer, and those of a client that jams
        if self.network.observer is None:
            return None
        jams = None if jammer is None else this.clients[[jammer]]
        return self.network.observer.hears(this.clients[ready], sending, jams, this.moment, instants)

    def _jammer_fails(self, round_index: int) -> bool:
        drawn = self.network.streams.nodes("jammer_failure", round_index, np.zeros(1, dtype=np.int64)).uniform()[0, 0]
        return bool(drawn < self.jammer_failure)

    def _transmitters(self, plan: AirPlan) -> Transmitters:
        constants = (self.air, self.ranges, self.iq_packing, self.joules_per_unit)
        return Transmitters(plan, self.policies, self.modulation, *constants, self.residuals)

    def _received(self, this: Round, plan: AirPlan, blocks: Iterable[CohortBlock]) -> Received:
        late = self.network.late_arrival(this.clients[plan.senders], this.index)
        # Drawn while the workers train
        transmitters = self._transmitters(plan)
        draw = self._noise_of_antennas if transmitters.reads_antennas else self._noise
        noise = {station: draw(this.index, plan, station) for station in plan.transmit}
        return transmitters.received(blocks, late, noise)

    def _noise_of_antennas(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.complex128]:
        stream = self.network.streams.generator("array_noise", round_index, station)
        return complex_noise(stream, plan.heard.shape[4], self.num_symbols, self.air.channel_noise_std)

    def _noise(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.float64]:
        # (d,) receiver noise, and jamming, as they add to the coordinates of the sum at a receiver
        streams, dimension = self.network.streams, self.air.dimension
        noise = streams.generator("receiver_noise", round_index, station).standard_normal(dimension)
        scale_ranges(noise, self.ranges, np.broadcast_to(plan.noise_std[station], self.gain_shape[:2]))
        if plan.jammer_behind is not None and self.jamming is not None and plan.jammer_gain > 0:
            jammer = plan.jammer_behind.equivalent  # the sum of independent streams is noise of one
            channel, phase = jammer.channel, jammer.phase_error
            received = received_jamming_std(plan.jammer_gain, channel, self.jamming.noise, phase)
            noise += scale_ranges(self._jammer_noise(round_index), self.ranges, received)
        return noise

    def _jammer_noise(self, round_index: int) -> NDArray[np.float64]:
        # (d,) jamming in what the server reads, in units of what arrives of it
        return self.network.streams.generator("jammer_noise", round_index).standard_normal(self.air.dimension)

    def _step(self, waveform: Waveform, received: Received) -> NDArray[np.float64]:
        # (d,) the step that a scheme makes of the signal of the only receiver
        ((station, signal),) = received.signal.items()
        plan, constants = received.plan, (self.ranges, self.dimension, self.air.channel_noise_std)
        heard = Heard(plan.transmit[station], plan.antenna_links, plan.sends, *constants, plan.round_index)
        return returned("modulation", waveform, "decode", waveform.decode(signal, heard), (self.dimension,))

    def _sum(self, received: Received) -> NDArray[np.float64]:
        plan, modulation = received.plan, self.modulation
        assert not isinstance(modulation, Waveform)
        return self._together(
            plan, {c: decoded(modulation, signal, plan.transmit[c]) for c, signal in received.signal.items()}
        )

    def _together(self, plan: AirPlan, sums: dict[int, NDArray[np.float64]]) -> NDArray[np.float64]:
        """(d,) the step of the global model from what each receiver read, Σ p_i Δ_i of its clients.

        Weights are renormalised after reception: the noise scales with them and ε does not change.
        """
        heard = np.stack([plan.heard_weight(station) for station in range(len(self.policies))])
        if self.edges is None:
            return renormalised(reduce(np.add, sums.values()), self.ranges, heard.sum(axis=0))
        mean = np.zeros((len(self.policies), self.air.dimension))
        for station, total in sums.items():
            mean[station] = renormalised(total, self.ranges, heard[station])
        serving, weight = plan.links.serving, plan.links.own.weight
        return self.edges.step(mean, np.bincount(serving, weight, len(self.policies)).astype(np.float64))

    def _slot_noise(self, this: Round, plan: AirPlan) -> SlotNoise:
        late = self.network.late_arrival(this.clients[plan.senders], this.index)
        return SlotNoise(plan, self.air.channel_noise_std, self.jamming, late, self.num_symbols)

    def _observed(self, streams: Streams, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reading:
        """Readings of an observer: the receivers', with noise from other streams, and those of its own antennas."""
        assert isinstance(plan, AirPlan), "the rehearsal planned it"
        others, sent = replace(self, network=replace(self.network, streams=streams)), list(blocks)
        signals = others._received(this, plan, sent).signal
        given = (self._transmitters(plan), signals, sent, others._jammer_noise(this.index), streams, this.index)
        readings = joint_readings(*given)
        return Reading(readings, np.ones(len(readings)))

    def _overheard(self, streams: Streams, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reading:
        """Readings of a slot at each receiver with senders, at the largest α_u, with noise from other streams.

        Of real jamming a part may be in the other quadrature: the receiver's own noise alone is sure to be here.
        """
        assert isinstance(plan, AirPlan), "the rehearsal planned it"
        if self.receiver.antennas > 1:
            late = self.network.late_arrival(this.clients[plan.senders], this.index)
            given = (self._transmitters(plan), blocks, late, self.air.channel_noise_std, streams, this.index)
            heard = antenna_readings(*given)
            return Reading(heard, np.ones(len(heard)))
        received = replace(self, network=replace(self.network, streams=streams))._received(this, plan, blocks)
        readings = np.stack(list(received.signal.values())) / received.plan.loudest.server_gain
        noise = self._slot_noise(this, received.plan)
        whole = self.jamming is None or self.jamming.noise == "complex"
        counted = noise.published_std if whole else noise.unjammed_std
        if whole:  # the noise of each piece as little as in the one with the least
            scale_ranges(readings, self.ranges, counted / noise.counted_std())
        return Reading(readings, np.full(len(readings), counted))
