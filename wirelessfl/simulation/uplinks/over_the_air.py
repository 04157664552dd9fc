"""Over the air: all clients send in one slot and the channel adds (DESIGN.md §3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.privacy import AirRelease
from wirelessfl.privacy.releases.air import AirTheorem
from wirelessfl.radio import (
    AdaptivePowerControl,
    AirInterface,
    Jamming,
    NormScaledPowerControl,
    PowerControl,
    SlotTransmission,
    Superposition,
    coordinate_ranges,
    jammer_energy,
    largest_csi_ratio,
    received_amplitude,
    received_jamming_std,
    worst_over_pieces,
)
from wirelessfl.radio.network import JammerLink, Network
from wirelessfl.radio.slot_schedule import Instants, SlotSchedule
from wirelessfl.simulation.records import SlotRecord
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.slot_plan import SlotPlan
from wirelessfl.simulation.uplinks.air_noise import AirPlan, SlotNoise
from wirelessfl.simulation.uplinks.air_policy import announced, caveat, credited, transmission_over_pieces
from wirelessfl.simulation.uplinks.air_records import (
    Ranges,
    air_rule,
    amplified,
    note_transmission,
    renormalised,
    scale_transmission,
)
from wirelessfl.simulation.uplinks.audit_view import AuditView, ChannelNoise, Reading
from wirelessfl.simulation.uplinks.slot import Reception, SlotUplink
from wirelessfl.streams import Streams


@dataclass
class OverTheAir(SlotUplink):
    """The superposing uplink.

    Attributes:
        network: draws the channels.
        policy: power control; an adaptive one gives way to its successor after every slot.
        air: clip τ, receiver noise σ_c and dimension d.
        jamming: the cooperative jammer, or None.
        rotating_jammer: whether its role goes round among the clients.
        iq_packing: two coordinates a symbol.
        fade_threshold: g, a client with |ĥ|²/E|ĥ|² below it stays silent.
        schedule: pieces and pilots of a slot.
        airtime: seconds of a slot with the pilots of as many clients as a round can have.
        num_symbols: channel uses of a slot.
        joules_per_unit: joules of one unit of normalised energy, N0/2; NaN where watts are unknown.
        theorem: whose published privacy applies to the power control.
        gradient_step: samples in the batch of a client whose update is one step on per-sample-clipped gradients with
            τ = η·clip, so that one sample reaches no further than its share; None for any other local training.
        jammer_failure: how often in a round the jammer does not jam, which nobody notices.
    """

    network: Network
    policy: PowerControl
    air: AirInterface
    jamming: Jamming | None
    rotating_jammer: bool
    iq_packing: bool
    fade_threshold: float
    schedule: SlotSchedule
    airtime: float
    num_symbols: int
    joules_per_unit: float
    theorem: AirTheorem
    gradient_step: int | None = None
    jammer_failure: float = 0.0

    @property
    def jams(self) -> bool:
        """Whether there is a cooperative jammer."""
        return self.jamming is not None

    @property
    def gain_shape(self) -> tuple[int, int, int]:
        """(T, F, A) of the gains: blocks of the slot, groups of subcarriers, antennas."""
        return (self.schedule.pieces, 1, 1)

    @property
    def ranges(self) -> Ranges:
        """The coordinates of each piece."""
        return coordinate_ranges(self.air.dimension, self.schedule.pieces, self.iq_packing)

    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> AirPlan:
        """Draw the channels, let the server plan and the jammer agree."""
        external = self.jams and not self.rotating_jammer
        nodes = len(ready) + int(external or jammer is not None)
        instants = self.schedule.instants(nodes)
        slot = self.network.slot_links(this.clients[ready], this.moment, instants)
        this.note_links(ready, slot)
        rows = slot.rows()
        faded = rows.in_deep_fade(self.fade_threshold)
        transmit = announced(self.policy, rows.take(~faded), this.index, self.air_of_all_rows)
        sends = ~faded
        sends[sends] = ~transmit.silent
        by_piece = sends.reshape(slot.estimate.shape[:3])
        sending = np.flatnonzero(by_piece.any(axis=(1, 2)))
        silent = np.delete(ready, sending)
        this.put("truncated_share", silent, np.ones(len(silent)))
        jammer_link = self._jammer_link(this, jammer, instants)
        gain = 0.0
        if self.jamming is not None and jammer_link is not None and len(sending):
            heard = rows.take(sends)
            transmit, gain = self.jamming.agree(self.policy, transmit, heard, self.air, jammer_link.weakest_estimate)
        failed = gain > 0 and self._jammer_fails(this.index)
        return AirPlan(
            senders=ready[sending],
            silent=silent,
            airtime=self.schedule.airtime(nodes),
            pilots=self.schedule.pilot_charge(nodes, external),
            jammer_gain=0.0 if failed else gain,
            jammer_failed=failed,
            links=slot.take(sending),
            sends=by_piece[sending],
            transmit=transmit,
            jammer=jammer_link,
        )

    @property
    def air_of_all_rows(self) -> AirInterface:
        """Where every piece has a row, the noise of the whole slot stands against the signals of all rows."""
        return replace(self.air, dimension=self.air.dimension * self.schedule.estimates)

    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reception:
        """Superpose the signals block by block, add jamming and receiver noise, undo the scale."""
        if not isinstance(plan, AirPlan):
            raise TypeError(f"an over-the-air slot was planned by another uplink: {type(plan).__name__}")
        on_the_air = Superposition(self.air.dimension, self.iq_packing, self.schedule.pieces)
        late = self.network.late_arrival(this.clients[plan.senders], this.index)
        received = self._noise(this.index, plan)  # while the workers train
        drain = self._drain(plan)
        for block in blocks:
            links, sends = plan.take(block.positions)
            sent = transmission_over_pieces(self.policy, plan.transmit, links, sends, block.norm)
            offset = None if late is None else late[block.positions]
            passed = amplified(block, sent, self.air, self.ranges, self.iq_packing)
            on_the_air.add(passed[0], links.channel.squeeze(axis=3) * sent.tx_gain, offset)
            senders = plan.senders[block.positions]
            note_transmission(this, senders, block, sent, passed, self.ranges, self.joules_per_unit)
        arrived = np.asarray(on_the_air.received())
        if isinstance(self.policy, NormScaledPowerControl):
            plan, louder = self._settled(self.policy, this, plan)
            arrived = arrived * louder
        received += arrived
        self._note_slot(this, plan, drain)
        release = self._release(this, plan)
        if isinstance(self.policy, AdaptivePowerControl):
            self.policy = self.policy.after(plan.transmit)
        # Weights are renormalised after reception: the noise scales with them and ε does not change.
        received /= plan.transmit.receive_scale
        return Reception(renormalised(received, self.ranges, plan.heard_weight), (release,), drain)

    def _settled(self, policy: NormScaledPowerControl, this: Round, plan: AirPlan) -> tuple[AirPlan, float]:
        """The plan at the scale that the realised norms give, and the factor by which everybody sends louder."""
        transmit = policy.settled(plan.transmit, this.slots["update_norm"][plan.senders])
        louder = transmit.server_gain / plan.transmit.server_gain
        scale_transmission(this, plan.senders, louder)
        return replace(plan, transmit=transmit), louder

    def audit_view(self) -> AuditView:
        """The noise of the receiver and the jammer."""
        return ChannelNoise(self._overheard, self.gradient_step)

    def _overheard(self, streams: Streams, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reading:
        """What the server reads of a slot, in units of y/α_u, with noise from other streams.

        Of real jamming a part may be in the other quadrature: the receiver's own noise alone is sure to be here.
        """
        assert isinstance(plan, AirPlan), "the rehearsal planned it"
        other = replace(self, network=replace(self.network, streams=streams))
        reception = other.receive(this, plan, blocks)
        (release,) = reception.releases
        assert isinstance(release, AirRelease), "as this uplink makes them"
        whole = self.jamming is None or self.jamming.noise == "complex"
        counted = release.effective_noise_std if whole else release.unjammed_noise_std
        reading = other._as_heard(this, plan, reception.aggregate) / plan.transmit.server_gain
        if whole:  # the noise of each piece as little as in the one with the least
            each = self._slot_noise(this, plan).counted_std()
            for (first, end), noise_std in zip(self.ranges, each.ravel().tolist(), strict=True):
                reading[first:end] *= counted / noise_std
        return Reading(reading[None], np.array([counted]))

    def _as_heard(self, this: Round, plan: AirPlan, aggregate: NDArray[np.float64]) -> NDArray[np.float64]:
        """(d,) the received signal again, out of the mean update; in pieces in which nobody sent, the noise alone."""
        heard = np.broadcast_to(plan.heard_weight, plan.links.channel.shape[1:3]).ravel()
        weight = np.repeat(heard, [end - first for first, end in self.ranges])
        received = aggregate * plan.transmit.receive_scale * weight
        if not heard.all():
            received = np.where(weight > 0, received, self._noise(this.index, plan))
        return received

    def state(self) -> dict[str, Any]:
        """What an adaptive power control remembers."""
        return dict(self.policy.state()) if isinstance(self.policy, AdaptivePowerControl) else {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        if isinstance(self.policy, AdaptivePowerControl):
            self.policy = self.policy.restored(dict(state))

    def _jammer_link(self, this: Round, jammer: int | None, instants: Instants) -> JammerLink | None:
        if self.jamming is None:
            return None
        if not self.rotating_jammer:
            return self.network.jammer_link(this.moment, instants)
        if jammer is None:
            return None
        position = np.array([jammer])
        link = self.network.slot_links(this.clients[position], this.moment, instants)
        this.note_links(position, link)
        return JammerLink(link.channel[0], link.estimate[0], float(link.path_gain[0]))

    def _jammer_fails(self, round_index: int) -> bool:
        drawn = self.network.streams.nodes("jammer_failure", round_index, np.zeros(1, dtype=np.int64)).uniform()[0, 0]
        return bool(drawn < self.jammer_failure)

    def _noise(self, round_index: int, plan: AirPlan) -> NDArray[np.float64]:
        """(d,) receiver noise and jamming as they add to the coordinates of the sum."""
        streams: Streams = self.network.streams
        dimension = self.air.dimension
        noise = streams.generator("receiver_noise", round_index).standard_normal(dimension)
        noise *= self.air.channel_noise_std
        if plan.jammer is not None and self.jamming is not None and plan.jammer_gain > 0:
            jamming_std = received_jamming_std(
                plan.jammer_gain, plan.jammer.channel, self.jamming.noise, plan.jammer.phase_error
            )
            jamming = streams.generator("jammer_noise", round_index).standard_normal(dimension)
            for (first, end), std in zip(self.ranges, jamming_std.ravel().tolist(), strict=True):
                noise[first:end] += std * jamming[first:end]
        return noise

    def _note_slot(self, this: Round, plan: AirPlan, drain_j: NDArray[np.float64]) -> None:
        energy = 0.0
        if self.jamming is not None:
            energy = jammer_energy(plan.jammer_gain, self.num_symbols, self.jamming.noise)
        transmitted = float(np.nansum(this.slots["tx_energy"]))
        noise_std = self._slot_noise(this, plan).published_std
        this.slot = SlotRecord(
            server_gain=plan.transmit.server_gain,
            channel_noise_std=self.air.channel_noise_std,
            effective_noise_std=noise_std,
            aggregate_noise_std=noise_std
            * plan.transmit.server_gain
            / plan.transmit.receive_scale
            / plan.links.weight.sum(),
            jammer_gain=plan.jammer_gain,
            jammer_energy=energy,
            jammer=plan.jammer,
        )
        this.put_energy(
            (transmitted + energy) * self.joules_per_unit, float(drain_j.sum()) + energy * self.joules_per_unit
        )

    def _at_the_clip(self, plan: AirPlan) -> SlotTransmission:
        """How the senders would transmit updates of norm τ."""
        clip = np.full(len(plan.links), self.air.clip)
        return transmission_over_pieces(self.policy, plan.transmit, plan.links, plan.sends, clip)

    def _drain(self, plan: AirPlan) -> NDArray[np.float64]:
        """(k,) joules of an update of norm τ, a public bound on what is spent."""
        loudest = np.abs(self._at_the_clip(plan).tx_gain).max(axis=(1, 2))
        joules: NDArray[np.float64] = (loudest * self.air.clip) ** 2 * self.joules_per_unit
        return joules

    def _slot_noise(self, this: Round, plan: AirPlan) -> SlotNoise:
        """What hides the signals of a slot."""
        late = self.network.late_arrival(this.clients[plan.senders], this.index)
        return SlotNoise(plan, self.air.channel_noise_std, self.jamming, late, self.num_symbols)

    def _release(self, this: Round, plan: AirPlan) -> AirRelease:
        """The record for the ledger: what could arrive from each client, and under how much noise."""
        links, transmit = plan.links, plan.transmit
        at_the_clip = self._at_the_clip(plan)
        counted = credited(self.policy, at_the_clip, transmit, links, plan.sends)
        noise = self._slot_noise(this, plan)
        worst = worst_over_pieces(received_amplitude(links, at_the_clip, transmit), noise.hiding_std())
        return AirRelease(
            round_index=this.index,
            clients=this.clients[plan.senders],
            weight=links.weight,
            backoff=this.slots["backoff"][plan.senders] if self.policy.needs_norms else counted.backoff,
            received_bound=worst.received_bound,
            effective_noise_std=noise.published_std,
            accounted_noise_std=worst.noise_std,
            unjammed_noise_std=self.air.channel_noise_std / transmit.server_gain,
            csi_ratio=largest_csi_ratio(links, counted),
            backoff_is_public=not self.policy.needs_norms,
            theorem=self.theorem,
            caveat=caveat(self.policy),
            **air_rule(self.gradient_step, self.network.registry.samples[this.clients[plan.senders]]),
        )
