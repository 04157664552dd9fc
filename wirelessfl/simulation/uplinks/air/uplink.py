"""Over the air: all clients send in one slot and the channel adds, at every receiver (DESIGN.md §3)."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, assert_never

import numpy as np
import simpy
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.conformance import returned
from wirelessfl.learning import BlockSum, CohortBlock
from wirelessfl.learning.cohort import SummedBlock
from wirelessfl.privacy import AirRelease, Caveat
from wirelessfl.privacy.releases import WaveformRelease
from wirelessfl.radio import (
    AdaptivePowerControl,
    CentredPowerControl,
    Heard,
    Overheard,
    SlotPlan,
    Waveform,
    jammer_energy,
    received_jamming_std,
)
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.records import Energy, Round
from wirelessfl.simulation.uplinks.air.antennas import antenna_readings
from wirelessfl.simulation.uplinks.air.arrivals import Arrivals, Received
from wirelessfl.simulation.uplinks.air.every_antenna import complex_noise
from wirelessfl.simulation.uplinks.air.joint_readings import joint_readings
from wirelessfl.simulation.uplinks.air.plan import AirPlan, decoded, vouched
from wirelessfl.simulation.uplinks.air.planner import AirPlanner
from wirelessfl.simulation.uplinks.air.ranges import over_ranges, renormalised, scale_ranges
from wirelessfl.simulation.uplinks.air.records import (
    air_release,
    observed_release,
    over_clients,
    slot_record,
)
from wirelessfl.simulation.uplinks.air.slot_noise import SlotNoise
from wirelessfl.simulation.uplinks.air.transmitters import Transmitters
from wirelessfl.simulation.uplinks.base import AuditView, ChannelNoise, Collected, NotAuditable, Reading
from wirelessfl.simulation.uplinks.slot import Reception
from wirelessfl.streams import Streams
from wirelessfl.trace import SERVER_NODE, EventKind


@dataclass
class OverTheAir(AirPlanner):
    """The superposing uplink: a slot as it was planned, what receivers make of it, and what an adversary reads."""

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
    def block_sum(self, this: Round, plan: SlotPlan) -> BlockSum | None:
        """The signal of the only receiver, where it is linear in the updates and one block of one group of subcarriers.

        Of several receivers there are as many signals; those of several blocks or groups are summed update by update.
        """
        return self.arrivals(this, self._mine(plan)) if self.sends_parts else None

    @property
    def sends_parts(self) -> bool:
        """Whether a part of the signal, of some clients, can be formed by itself, as in another process."""
        linear = not isinstance(self.modulation, Waveform)
        return linear and len(self.policies) == 1 and len(self.ranges) == 1

    @override
    def train(self, cell: Cell, this: Round, plan: SlotPlan) -> Iterator[CohortBlock] | Iterator[SummedBlock]:
        """Local training from the global model, or from that of each client's edge."""
        return super().train(cell, this, plan) if self.edges is None else self._train_at_edges(cell, this, plan)

    def _train_at_edges(self, cell: Cell, this: Round, plan: SlotPlan) -> Iterator[CohortBlock]:
        assert isinstance(plan, AirPlan) and self.edges is not None
        models = self.edges.begin(cell.state.parameters)
        for station in plan.transmit:
            mine = np.flatnonzero(plan.links.serving == station)
            this.starts.append((plan.senders[mine], models[station]))
            for block in cell.train(this, plan.senders[mine], models[station]):
                yield replace(block, positions=mine[block.positions])

    @override
    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock | SummedBlock]) -> Reception:
        """Reception: superposition, jamming and noise at every receiver, scaled back; the cells are put together."""
        plan = self._mine(plan)
        received = self._received(this, plan, blocks)
        reception = self.reception(this, plan, received)
        parts = (self.receiver, self.modulation)
        air = (release for release in reception.releases if isinstance(release, AirRelease))
        counted = tuple(vouched(release, parts, self.unvouched) for release in air)
        for station, announced_plan in received.plan.transmit.items():
            policy = self.policies[station]
            if isinstance(policy, AdaptivePowerControl):
                self.policies[station] = policy.after(announced_plan)
        return replace(reception, releases=counted)

    def reception(self, this: Round, plan: AirPlan, received: Received) -> Reception:
        """Reception of a slot's signals, with the record of linear amplitudes at one antenna for the ledger."""
        transmitters, unit = self._transmitters(plan), self.joules_per_unit
        drain = transmitters.nominal_amplitude**2 * unit
        if received.plan is not plan:
            transmitters = self._transmitters(received.plan)
        plan, noise = received.plan, self._slot_noise(this, received.plan)
        jamming = 0.0 if self.jamming is None else jammer_energy(plan.jammer_gain, self.num_symbols, self.jamming.noise)
        transmitted = float(np.nansum(over_clients(received.transmissions, "energy", len(this.clients))))
        energy = Energy((transmitted + jamming) * unit, float(drain.sum()) + jamming * unit)
        rule = (self.theorem, self.gradient_step, self.network.registry.samples[this.clients[plan.senders]])
        release = air_release(this, transmitters, noise, received.transmissions, *rule)
        release = replace(release, same_for_others=self.same_for_others)
        waveform = self.modulation if isinstance(self.modulation, Waveform) else None
        if waveform is not None:
            release = WaveformRelease.of(release, waveform.signals)
            if waveform.private_scale:
                release = replace(release, caveat=Caveat.OWN_NORM)
        slot = slot_record(received, noise, jamming, self.has_cells, self.edges is None and waveform is None)
        step = self._sum(received) if waveform is None else self._step(waveform, received)
        records = (received.training, received.transmissions)
        return Reception(step, (release,), drain, *records, slot, energy, unheard=self._unheard(plan))

    @override
    def audit_view(self) -> AuditView:
        """The noise of receivers and jammer; those behind several receivers or antennas see all receptions."""
        if isinstance(self.modulation, Waveform):
            return NotAuditable(
                "uplink.modulation sends other symbols than a canary's update, and games play sums of updates"
            )
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
        """State of power controls; edges have a memory of their own."""
        adaptive = enumerate(self.policies)
        return {"policies": {str(c): dict(p.state()) for c, p in adaptive if isinstance(p, AdaptivePowerControl)}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Power control as a state has it."""
        for station, policy in enumerate(self.policies):
            if isinstance(policy, AdaptivePowerControl):
                self.policies[station] = policy.restored(dict(state["policies"][str(station)]))

    def _transmitters(self, plan: AirPlan) -> Transmitters:
        constants = (self.air, self.ranges, self.iq_packing, self.joules_per_unit)
        return Transmitters(plan, self.policies, self.modulation, *constants, self.residuals)

    def _received(self, this: Round, plan: AirPlan, blocks: Iterable[CohortBlock | SummedBlock]) -> Received:
        arrivals, noise = self.arrivals(this, plan), self.noise(this, plan)  # while the workers train
        for block in blocks:
            match block:
                case CohortBlock():
                    arrivals.add(block)
                case SummedBlock():
                    arrivals.merge(block.part)
                case _:
                    assert_never(block)
        return arrivals.finished(noise)

    def arrivals(self, this: Round, plan: AirPlan) -> Arrivals:
        """The signals of a slot before the first sender."""
        return Arrivals(self._transmitters(plan), self.network.late_arrival(this.clients[plan.senders], this.index))

    def noise(self, this: Round, plan: AirPlan) -> dict[int, NDArray[Any]]:
        """The noise at each receiver with senders: (d,), or complex (A, m) where all antennas are read."""
        draw = self._noise_of_antennas if self._transmitters(plan).reads_antennas else self._noise
        return {station: draw(this.index, plan, station) for station in plan.transmit}

    def _mine(self, plan: SlotPlan) -> AirPlan:
        if not isinstance(plan, AirPlan):
            raise TypeError(f"an over-the-air slot was planned by another uplink: {type(plan).__name__}")
        return plan

    def _noise_of_antennas(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.complex128]:
        stream = self.network.streams.generator("array_noise", round_index, station)
        return complex_noise(stream, plan.heard.shape[4], self.num_symbols, self.air.channel_noise_std)

    def _noise(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.float64]:
        # (d,) receiver noise, and jamming, as they add to the coordinates of the sum at a receiver
        streams, dimension = self.network.streams, self.air.dimension
        noise = streams.generator("receiver_noise", round_index, station + plan.group).standard_normal(dimension)
        scale_ranges(noise, self.ranges, np.broadcast_to(plan.noise_std[station], self.gain_shape[:2]))
        if plan.jammer_behind is not None and self.jamming is not None and plan.jammer_gain > 0:
            jammer = plan.jammer_behind.equivalent  # the sum of independent streams is noise of one
            channel, phase = jammer.channel, jammer.phase_error
            received = received_jamming_std(plan.jammer_gain, channel, self.jamming.noise, phase)
            noise += scale_ranges(self._jammer_noise(round_index, plan.group), self.ranges, received)
        return noise

    def _jammer_noise(self, round_index: int, group: int) -> NDArray[np.float64]:
        # (d,) jamming in what the server reads, in units of what arrives of it
        return self.network.streams.generator("jammer_noise", round_index, group).standard_normal(self.air.dimension)

    def _step(self, waveform: Waveform, received: Received) -> NDArray[np.float64]:
        # (d,) the step that a scheme makes of the signal of the only receiver
        ((station, signal),) = received.signal.items()
        plan, constants = received.plan, (self.ranges, self.dimension, self.air.channel_noise_std)
        heard = Heard(plan.transmit[station], plan.antenna_links, plan.sends, *constants, plan.round_index)
        return returned("modulation", waveform, "decode", waveform.decode(signal, heard), (self.dimension,))

    def _unheard(self, plan: AirPlan) -> NDArray[np.bool_] | None:
        # (d,) of which coordinates nobody sends anything; models of edges stay there by themselves
        spread = isinstance(self.modulation, Waveform) and self.modulation.spreads
        nobody = ~np.asarray(plan.sends.any(axis=0))
        if spread or self.edges is not None or not nobody.any():
            return None
        return np.asarray(over_ranges(nobody, self.ranges).reshape(self.dimension, -1).all(axis=1))

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
        given = (
            self._transmitters(plan),
            signals,
            sent,
            others._jammer_noise(this.index, plan.group),
            streams,
            this.index,
        )
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
