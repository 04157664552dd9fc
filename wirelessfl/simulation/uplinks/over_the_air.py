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
    Links,
    NormScaledPowerControl,
    PowerControl,
    Superposition,
    TransmitPlan,
    accounted_noise_std,
    effective_noise_std,
    jammer_energy,
    received_bound,
    received_jamming_std,
)
from wirelessfl.simulation.network import JammerLink, Network
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.uplinks.air_policy import announced, caveat, recorded_backoff, transmission
from wirelessfl.simulation.uplinks.air_records import air_rule, amplified, note_transmission, scale_transmission
from wirelessfl.simulation.uplinks.audit_view import AuditView, ChannelNoise, Reading
from wirelessfl.simulation.uplinks.slot import Reception, SlotPlan, SlotUplink
from wirelessfl.streams import Streams

_UNKNOWN = complex(np.nan, np.nan)


@dataclass(frozen=True, kw_only=True)
class AirPlan(SlotPlan):
    """A slot over the air.

    Attributes:
        links: (k,) the senders' links.
        transmit: what the server announces.
        jammer: the jammer's link, or None without one.
    """

    links: Links
    transmit: TransmitPlan
    jammer: JammerLink | None


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
        airtime: seconds of a slot.
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

    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> AirPlan:
        """Draw the channels, let the server plan and the jammer agree."""
        links = self.network.links(this.clients[ready], this.moment)
        this.note_links(ready, links)
        faded = links.in_deep_fade(self.fade_threshold)
        transmit = announced(self.policy, links.take(~faded), this.index, self.air)
        sending = np.flatnonzero(~faded)[~transmit.silent]
        heard = links.take(sending)
        jammer_link = self._jammer_link(this, jammer)
        gain = 0.0
        if self.jamming is not None and jammer_link is not None and len(heard):
            transmit, gain = self.jamming.agree(self.policy, transmit, heard, self.air, jammer_link.estimate)
        failed = gain > 0 and self._jammer_fails(this.index)
        return AirPlan(
            senders=ready[sending],
            silent=np.delete(ready, sending),
            airtime=self.airtime,
            jammer_gain=0.0 if failed else gain,
            jammer_failed=failed,
            links=heard,
            transmit=transmit,
            jammer=jammer_link,
        )

    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reception:
        """Superpose the signals block by block, add jamming and receiver noise, undo the scale."""
        if not isinstance(plan, AirPlan):
            raise TypeError(f"an over-the-air slot was planned by another uplink: {type(plan).__name__}")
        on_the_air = Superposition(self.air.dimension, self.iq_packing)
        late = self.network.late_arrival(this.clients[plan.senders], this.index)
        received = self._noise(this.index, plan)  # while the workers train
        drain = self._drain(plan)
        for block in blocks:
            links = plan.links.take(block.positions)
            sent = transmission(self.policy, plan.transmit, links, block.norm)
            offset = None if late is None else late[block.positions]
            updates, norm = amplified(block, sent, self.air, self.iq_packing)
            on_the_air.add(updates, links.channel * sent.tx_gain, offset)
            note_transmission(this, plan.senders[block.positions], block, sent, norm, self.joules_per_unit)
        heard = np.asarray(on_the_air.received())
        if isinstance(self.policy, NormScaledPowerControl):
            plan, louder = self._settled(self.policy, this, plan)
            heard = heard * louder
        received += heard
        self._note_slot(this, plan, drain)
        release = self._release(this, plan)
        if isinstance(self.policy, AdaptivePowerControl):
            self.policy = self.policy.after(plan.transmit)
        # Weights are renormalised after reception: the noise scales with them and ε does not change.
        received /= plan.transmit.receive_scale
        received /= plan.links.weight.sum()
        return Reception(received, (release,), drain)

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
        scale = plan.links.weight.sum() * plan.transmit.receive_scale / plan.transmit.server_gain
        (release,) = reception.releases
        assert isinstance(release, AirRelease), "as this uplink makes them"
        whole = self.jamming is None or self.jamming.noise == "complex"
        counted = release.effective_noise_std if whole else release.unjammed_noise_std
        return Reading(reception.aggregate[None] * scale, np.array([counted]))

    def state(self) -> dict[str, Any]:
        """What an adaptive power control remembers."""
        return dict(self.policy.state()) if isinstance(self.policy, AdaptivePowerControl) else {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        if isinstance(self.policy, AdaptivePowerControl):
            self.policy = self.policy.restored(dict(state))

    def _jammer_link(self, this: Round, jammer: int | None) -> JammerLink | None:
        if self.jamming is None:
            return None
        if not self.rotating_jammer:
            return self.network.jammer_link(this.moment)
        if jammer is None:
            return None
        position = np.array([jammer])
        link = self.network.links(this.clients[position], this.moment)
        this.note_links(position, link)
        return JammerLink(complex(link.channel[0]), complex(link.estimate[0]), float(link.path_gain[0]))

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
            noise += jamming_std * streams.generator("jammer_noise", round_index).standard_normal(dimension)
        return noise

    def _note_slot(self, this: Round, plan: AirPlan, drain_j: NDArray[np.float64]) -> None:
        jammer = plan.jammer or JammerLink(_UNKNOWN, _UNKNOWN, np.nan)
        energy = 0.0
        if self.jamming is not None:
            energy = jammer_energy(plan.jammer_gain, self.num_symbols, self.jamming.noise)
        transmitted = float(np.nansum(this.slots["tx_energy"]))
        this.values.update(
            server_gain=plan.transmit.server_gain,
            channel_noise_std=self.air.channel_noise_std,
            effective_noise_std=self._published_noise_std(plan),
            jammer_gain=plan.jammer_gain,
            jammer_channel_re=jammer.channel.real,
            jammer_channel_im=jammer.channel.imag,
            jammer_csi_re=jammer.estimate.real,
            jammer_csi_im=jammer.estimate.imag,
            jammer_path_gain=jammer.path_gain,
            jammer_energy=energy,
        )
        this.put_energy(
            (transmitted + energy) * self.joules_per_unit, float(drain_j.sum()) + energy * self.joules_per_unit
        )

    def _drain(self, plan: AirPlan) -> NDArray[np.float64]:
        """(k,) joules of an update of norm τ, a public bound on what is spent."""
        clip = np.full(len(plan.links), self.air.clip)
        at_the_clip = self.policy.transmit(plan.transmit, plan.links, clip)
        joules: NDArray[np.float64] = (np.abs(at_the_clip.tx_gain) * clip) ** 2 * self.joules_per_unit
        return joules

    def _published_noise_std(self, plan: AirPlan) -> float:
        channel = plan.jammer.channel if plan.jammer is not None else 0j
        return effective_noise_std(plan.jammer_gain, channel, plan.transmit.server_gain, self.air.channel_noise_std)

    def _phase_errors(self, this: Round, plan: AirPlan) -> NDArray[np.float64]:
        """(k, F) radians by which signals arrive off the real axis, on each subcarrier where timing turns them."""
        mismatch = (plan.links.channel / plan.links.estimate)[:, None]
        late = self.network.late_arrival(this.clients[plan.senders], this.index)
        return np.angle(mismatch if late is None else mismatch * late.rotations(self.num_symbols))

    def _release(self, this: Round, plan: AirPlan) -> AirRelease:
        """The record for the ledger: what could arrive from each client, and under how much noise."""
        links, transmit = plan.links, plan.transmit
        counted = self.air.channel_noise_std / transmit.server_gain
        if plan.jammer is not None and self.jamming is not None:
            counted = float(
                accounted_noise_std(
                    plan.jammer_gain,
                    plan.jammer.channel,
                    transmit.server_gain,
                    self.air.channel_noise_std,
                    self.jamming.noise,
                    plan.jammer.phase_error - self._phase_errors(this, plan),
                ).min()
            )
        return AirRelease(
            round_index=this.index,
            clients=this.clients[plan.senders],
            weight=links.weight,
            backoff=recorded_backoff(self.policy, transmit, links, this.slots["backoff"][plan.senders]),
            received_bound=received_bound(self.policy, transmit, links),
            effective_noise_std=self._published_noise_std(plan),
            accounted_noise_std=counted,
            unjammed_noise_std=self.air.channel_noise_std / transmit.server_gain,
            csi_ratio=np.abs(links.channel) / np.abs(links.estimate),
            backoff_is_public=not self.policy.needs_norms,
            theorem=self.theorem,
            caveat=caveat(self.policy),
            **air_rule(self.gradient_step, self.network.registry.samples[this.clients[plan.senders]]),
        )
