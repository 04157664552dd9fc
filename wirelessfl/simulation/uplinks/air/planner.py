"""Plan of a slot over the air: channels, combiners, power control and jammer (DESIGN.md §3)."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.learning.aggregation import EdgeModels
from wirelessfl.learning.compression import ErrorFeedback
from wirelessfl.privacy import AirRelease, AirTheorem
from wirelessfl.radio import (
    AirInterface,
    Analog,
    CrossLayer,
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
)
from wirelessfl.simulation.radio_records import LinkRecord, TransmissionRecord
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.roles import Roles
from wirelessfl.simulation.uplinks.air.excess import Excess
from wirelessfl.simulation.uplinks.air.plan import (
    AirPlan,
    AnnouncedSlot,
    announcements,
    combiners,
    noise_behind,
    read_behind,
)
from wirelessfl.simulation.uplinks.air.ranges import Ranges
from wirelessfl.simulation.uplinks.slot import SlotUplink


@dataclass
class AirPlanner(SlotUplink):
    """Constants of an uplink over the air to C receivers, the base stations of as many cells, and the plan of a slot.

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

    @property
    def same_for_others(self) -> bool:
        """Whether any client would be heard under the same noise with R_j = p_j at most, whoever else sends.

        So it is with a fixed α_u and linear amplitudes, known channels, one receiver with one antenna, and nobody who
        jams or listens elsewhere.
        """
        policy, known = self.policies[0], self.schedule.pieces == 1 and self.network.clients.impairments.are_none
        fixed = type(policy) is CrossLayer and not policy.needs_norms and type(self.modulation) is Analog
        alone = len(self.policies) == 1 and type(self.receiver) is SumReceiver and self.receiver.antennas == 1
        return known and fixed and alone and self.jamming is None and self.network.observer is None

    def release_of_nobody(self, round_index: int) -> AirRelease:
        """The record without clients of a slot in which nobody sends."""
        none = np.zeros(0)
        policy, known = self.policies[0], self.same_for_others
        noise_std = self.air.channel_noise_std / policy.server_gain if known and isinstance(policy, CrossLayer) else 0.0
        return AirRelease(
            round_index,
            none.astype(np.int64),
            *(none, none, none, noise_std, none, noise_std),
            rule="whole_update" if self.gradient_step is None else "gradient_step",
            theorem=self.theorem,
            same_for_others=known,
        )

    @cached_property
    def ranges(self) -> Ranges:
        """The coordinates of each block and group of subcarriers."""
        blocks, subcarriers, _ = self.gain_shape
        return coordinate_ranges(self.air.dimension, blocks * subcarriers, self.iq_packing)

    @cached_property
    def air_of_all_rows(self) -> AirInterface:
        """The uplink where every estimate and group of subcarriers has a row: the noise of each against all rows.

        An update has a part of its energy in each row, so that the noise of a slot counts as often as there are rows.
        """
        rows_of_a_client = self.schedule.estimates * self.network.clients.groups
        return replace(self.air, dimension=self.air.dimension * rows_of_a_client)

    @override
    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> SlotPlan:
        """Plan of the slot: channels, gains that each receiver sets for its own clients, and jammer."""
        return self.plan_later(this, ready, jammer, 0.0)

    def plan_later(self, this: Round, ready: NDArray[np.int64], jammer: int | None, begins_s: float) -> AirPlan:
        """The same of a slot that begins some seconds after the uplink of the round."""
        external = self.jams and not self.rotating_jammer
        nodes = len(ready) + int(external or jammer is not None)
        instants = self.schedule.instants(nodes).later(begins_s)
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
            read_std = read_behind(self.air, slot.noise_std[station]).channel_noise_std
            transmit[station], gain = self.jamming.agree(policy, plan, slot.rows, self.air, weakest, apart, read_std)
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
            noise_std=slot.noise_std,
            jammer=jammer_link,
            jammer_behind=behind,
            round_index=this.index,
            clients=this.clients[ready[sending]],
            antenna_links=found.own.take(sending),
            overheard=self._overheard_links(this, ready, jammer, instants, sending),
            excess=Excess.of(self.roles, this.clients[ready[sending]], links.own.power_budget[sending], self.air.clip),
        )

    def sharing_a_slot(self, clients: NDArray[np.int64], round_index: int) -> list[NDArray[np.int64]]:
        """The clients (n,) of a round by the slot that they share: all of them."""
        return [clients]

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
        noise_std, planned = noise_behind(self.receiver, weights, self.air), planned or moment.round_index
        transmit = announcements(self.policies, links, sends, planned, self.air_of_all_rows, noise_std)
        return AnnouncedSlot(found, weights, links, noise_std, sends, transmit)

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
