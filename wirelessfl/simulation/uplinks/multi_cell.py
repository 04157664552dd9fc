"""Over the air in several cells at once: every base station hears its own clients, and those of all others."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.privacy import AirRelease
from wirelessfl.privacy.releases.air import AirTheorem
from wirelessfl.radio import (
    AdaptivePowerControl,
    AirInterface,
    PowerControl,
    SlotTransmission,
    Superposition,
    TransmitPlan,
    coordinate_ranges,
    largest_csi_ratio,
    worst_over_pieces,
)
from wirelessfl.radio.cellular import CellLinks, CellularNetwork
from wirelessfl.radio.slot_schedule import SlotSchedule
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.records import SlotRecord
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.slot_plan import SlotPlan
from wirelessfl.simulation.uplinks.air_policy import announced, caveat, credited, transmission_over_pieces
from wirelessfl.simulation.uplinks.air_records import Ranges, air_rule, amplified, note_transmission, renormalised
from wirelessfl.simulation.uplinks.audit_view import AuditView, ChannelNoise, Reading
from wirelessfl.simulation.uplinks.base import Collected
from wirelessfl.simulation.uplinks.edges import EdgeModels
from wirelessfl.simulation.uplinks.slot import Reception, SlotUplink
from wirelessfl.streams import Streams
from wirelessfl.trace import SERVER_NODE, EventKind


@dataclass(frozen=True, kw_only=True)
class CellsPlan(SlotPlan):
    """A slot in several cells.

    Attributes:
        links: the k senders' links.
        sends: (k, R, F) where each of them sends.
        transmit: what each base station with senders announces, by its number.
    """

    links: CellLinks
    sends: NDArray[np.bool_]
    transmit: dict[int, TransmitPlan]

    @property
    def reference_gain(self) -> float:
        """The largest α_u, in whose units the cells are compared."""
        return max(plan.server_gain for plan in self.transmit.values())


@dataclass
class MultiCell(SlotUplink):
    """One slot, many base stations, one server (or an edge model each) behind them.

    Interference is the waveform of the other cells' clients. It is never counted as noise that protects, and every
    base station adds to what an adversary behind them learns of a client.

    Attributes:
        network: the channels to all base stations.
        policies: (C,) power control of each base station.
        air: clip τ, receiver noise σ_c and dimension d.
        iq_packing: two coordinates a symbol.
        fade_threshold: g, a client with |ĥ|²/E|ĥ|² below it stays silent.
        schedule: pieces and pilots of a slot.
        airtime: seconds of a slot with the pilots of as many clients as a round can have.
        joules_per_unit: joules of one unit of normalised energy; NaN where watts are unknown.
        theorem: whose published privacy applies to the power control.
        backhaul_s: seconds between base stations and server, there and back, in every round.
        edges: models of the edges; None where the server takes everything in every round.
        gradient_step: as for one cell.
    """

    network: CellularNetwork
    policies: list[PowerControl]
    air: AirInterface
    iq_packing: bool
    fade_threshold: float
    schedule: SlotSchedule
    airtime: float
    joules_per_unit: float
    theorem: AirTheorem
    backhaul_s: float
    edges: EdgeModels | None = None
    gradient_step: int | None = None
    rotating_jammer: bool = False

    def collect(self, cell: Cell, this: Round) -> Generator[simpy.Event, Any, Collected]:
        """A slot, and the way over the backhaul."""
        collected = yield from super().collect(cell, this)
        if self.edges is None:
            yield cell.medium.occupy(self.backhaul_s)
        elif self.edges.is_averaging(this.index):
            yield cell.medium.occupy(self.edges.backhaul_s)
            cell.medium.note(EventKind.CLOUD, SERVER_NODE)
            self.edges.averaged()
        return collected

    @property
    def gain_shape(self) -> tuple[int, int, int]:
        """(T, F, A) of the gains: blocks of the slot, groups of subcarriers, antennas."""
        return (self.schedule.pieces, 1, 1)

    @property
    def ranges(self) -> Ranges:
        """The coordinates of each piece."""
        return coordinate_ranges(self.air.dimension, self.schedule.pieces, self.iq_packing)

    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> CellsPlan:
        """Draw the channels; every base station plans for its own clients."""
        instants = self.schedule.instants(len(ready))
        links = self.network.cell_links(this.clients[ready], this.moment, instants)
        this.note_links(ready, links.own)
        this.put("cell", ready, links.serving.astype(np.float64))
        sends = ~links.own.rows().in_deep_fade(self.fade_threshold).reshape(links.own.estimate.shape[:3])
        transmit: dict[int, TransmitPlan] = {}
        air = replace(self.air, dimension=self.air.dimension * self.schedule.estimates)
        for station in np.unique(links.serving[sends.any(axis=(1, 2))]).tolist():
            mine = np.flatnonzero(links.serving == station)
            heard = sends[mine]
            rows = links.own.take(mine).rows().take(heard.ravel())
            plan = announced(self.policies[station], rows, this.index, air)
            heard[heard] = ~plan.silent
            sends[mine] = heard
            if heard.any():
                transmit[station] = plan
        sending = np.flatnonzero(sends.any(axis=(1, 2)))
        silent = np.delete(ready, sending)
        this.put("truncated_share", silent, np.ones(len(silent)))
        return CellsPlan(
            senders=ready[sending],
            silent=silent,
            airtime=self.schedule.airtime(len(ready)),
            pilots=self.schedule.pilot_charge(len(ready), external_jammer=False),
            links=links.take(sending),
            sends=sends[sending],
            transmit=transmit,
        )

    def train(self, cell: Cell, this: Round, plan: SlotPlan) -> Iterator[CohortBlock]:
        """Local training from the global model, or from that of each client's edge."""
        if self.edges is None:
            yield from cell.train(this, plan.senders)
            return
        assert isinstance(plan, CellsPlan)
        models = self.edges.begin(cell.state.parameters)
        for station in plan.transmit:
            mine = np.flatnonzero(plan.links.serving == station)
            for block in cell.train(this, plan.senders[mine], models[station]):
                yield replace(block, positions=mine[block.positions])

    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reception:
        """Superpose at every base station, add its noise, undo its scale, and put the cells together."""
        if not isinstance(plan, CellsPlan):
            raise TypeError(f"a slot of several cells was planned by another uplink: {type(plan).__name__}")
        own, foreign = self._superposed(this, plan, blocks)
        sums, interference = {}, np.zeros(self.air.dimension)
        for station, cell_plan in plan.transmit.items():
            arrived = own[station] + foreign[station] + self._noise(this.index, station)
            sums[station] = arrived / cell_plan.receive_scale
            interference += foreign[station] / cell_plan.server_gain
        release, drain = self._release(this, plan), self._drain(plan)
        self._note_slot(this, plan, interference, drain)
        for station, cell_plan in plan.transmit.items():
            policy = self.policies[station]
            if isinstance(policy, AdaptivePowerControl):
                self.policies[station] = policy.after(cell_plan)
        return Reception(self._together(plan, sums), (release,), drain)

    def _superposed(
        self, this: Round, plan: CellsPlan, blocks: Iterable[CohortBlock]
    ) -> tuple[dict[int, NDArray[np.float64]], dict[int, NDArray[np.float64]]]:
        """(d,) what arrives at each base station of its own clients, and of all others."""
        shape = (self.air.dimension, self.iq_packing, self.schedule.pieces)
        own = {station: Superposition(*shape) for station in plan.transmit}
        foreign = {station: Superposition(*shape) for station in plan.transmit}
        late = self.network.late_arrival(this.clients[plan.senders], this.index)
        for block in blocks:
            serving, channel = plan.links.serving[block.positions], plan.links.channel[block.positions]
            sent = self._transmission(plan, block.positions, block.norm)
            offset = None if late is None else late[block.positions]
            passed = amplified(block, sent, self.air, self.ranges, self.iq_packing)
            for station in plan.transmit:
                arriving = channel[:, station].squeeze(axis=3) * sent.tx_gain
                mine = (serving == station)[:, None, None]
                own[station].add(passed[0], np.where(mine, arriving, 0), offset)
                foreign[station].add(passed[0], np.where(mine, 0, arriving), offset)
            senders = plan.senders[block.positions]
            note_transmission(this, senders, block, sent, passed, self.ranges, self.joules_per_unit)
        return _numbers(own), _numbers(foreign)

    def _transmission(
        self, plan: CellsPlan, positions: NDArray[np.int64], norms: NDArray[np.float64]
    ) -> SlotTransmission:
        """How some of the senders transmit, each after the plan of the base station that serves it."""
        sends = plan.sends[positions]
        gain, backoff = np.zeros(sends.shape, dtype=np.complex128), np.ones(sends.shape)
        serving = plan.links.serving[positions]
        for station, cell_plan in plan.transmit.items():
            mine = np.flatnonzero(serving == station)
            if len(mine):
                links = plan.links.own.take(positions[mine])
                sent = transmission_over_pieces(self.policies[station], cell_plan, links, sends[mine], norms[mine])
                gain[mine], backoff[mine] = sent.tx_gain, sent.each_backoff
        return SlotTransmission(gain, backoff)

    def _together(self, plan: CellsPlan, sums: dict[int, NDArray[np.float64]]) -> NDArray[np.float64]:
        """(d,) the step of the global model from what each base station read, Σ p_i Δ_i of its clients."""
        serving, weight = plan.links.serving, plan.links.own.weight
        by_piece = np.zeros((len(self.policies), *plan.sends.shape[1:]))
        np.add.at(by_piece, serving, weight[:, None, None] * plan.sends)
        if self.edges is None:
            total = np.asarray(sum(sums.values()))
            return renormalised(total, self.ranges, by_piece.sum(axis=0))
        by_station = np.zeros(len(self.policies))
        np.add.at(by_station, serving, weight)
        mean = np.zeros((len(self.policies), self.air.dimension))
        for station, total in sums.items():
            mean[station] = renormalised(total, self.ranges, by_piece[station])
        return self.edges.step(mean, by_station)

    def _noise(self, round_index: int, station: int) -> NDArray[np.float64]:
        """(d,) receiver noise of a base station."""
        generator = self.network.streams.generator("receiver_noise", round_index, station)
        return generator.standard_normal(self.air.dimension) * self.air.channel_noise_std

    def _drain(self, plan: CellsPlan) -> NDArray[np.float64]:
        """(k,) joules of an update of norm τ, a public bound on what is spent."""
        loudest = np.abs(self._at_the_clip(plan).tx_gain).max(axis=(1, 2))
        joules: NDArray[np.float64] = (loudest * self.air.clip) ** 2 * self.joules_per_unit
        return joules

    def _at_the_clip(self, plan: CellsPlan) -> SlotTransmission:
        everyone = np.arange(len(plan.senders))
        return self._transmission(plan, everyone, np.full(len(everyone), self.air.clip))

    def _credited(self, this: Round, plan: CellsPlan) -> SlotTransmission:
        """The gains of updates at the clip, with the back-off that the ledger may use."""
        sent = self._at_the_clip(plan)
        backoff = sent.each_backoff.copy()
        for station, cell_plan in plan.transmit.items():
            mine = np.flatnonzero(plan.links.serving == station)
            policy, sends = self.policies[station], plan.sends[mine]
            if policy.needs_norms:
                backoff[mine] = np.where(sends, this.slots["backoff"][plan.senders[mine]][:, None, None], 0.0)
                continue
            own = SlotTransmission(sent.tx_gain[mine], sent.each_backoff[mine])
            backoff[mine] = credited(policy, own, cell_plan, plan.links.own.take(mine), sends).each_backoff
        return SlotTransmission(sent.tx_gain, backoff)

    def _note_slot(
        self, this: Round, plan: CellsPlan, interference: NDArray[np.float64], drain_j: NDArray[np.float64]
    ) -> None:
        gains = np.array([cell_plan.server_gain for cell_plan in plan.transmit.values()])
        this.slot = SlotRecord(
            server_gain=plan.reference_gain,
            channel_noise_std=self.air.channel_noise_std,
            effective_noise_std=self.air.channel_noise_std * float(np.sqrt(np.sum(gains**-2.0))),
            aggregate_noise_std=self._aggregate_noise_std(plan),
            interference_std=float(np.linalg.norm(interference) / np.sqrt(self.air.dimension)),
        )
        this.put_energy(float(np.nansum(this.slots["tx_energy"])) * self.joules_per_unit, float(drain_j.sum()))

    def _aggregate_noise_std(self, plan: CellsPlan) -> float:
        """Receiver noise in the step of the one global model; NaN where edges have models of their own."""
        if self.edges is not None:
            return np.nan
        scales = np.array([cell_plan.receive_scale for cell_plan in plan.transmit.values()])
        return self.air.channel_noise_std * float(np.sqrt(np.sum(scales**-2.0)) / plan.links.own.weight.sum())

    def _release(self, this: Round, plan: CellsPlan) -> AirRelease:
        """One record for the ledger, in units of y/α_u at the largest α_u of the cells.

        A smaller α_u in a client's own cell acts as a back-off. All base stations hear a client, each under noise of
        its own: together they know it as well as its own one would with less noise, by |h_own|/‖h‖.
        """
        own, clients = plan.links.own, this.clients[plan.senders]
        reference, noise_std = plan.reference_gain, self.air.channel_noise_std / plan.reference_gain
        gain = np.array([plan.transmit[station].server_gain for station in plan.links.serving.tolist()])
        at_the_clip, counted = self._at_the_clip(plan), self._credited(this, plan)
        heard, everywhere = own.channel.squeeze(axis=3), plan.links.channel.squeeze(axis=4)
        worst = worst_over_pieces(
            np.abs(heard * at_the_clip.tx_gain) * self.air.clip / reference,
            noise_std * np.abs(heard) / np.linalg.norm(everywhere, axis=1),
        )
        return AirRelease(
            round_index=this.index,
            clients=clients,
            weight=own.weight,
            backoff=counted.backoff * reference / gain,
            received_bound=worst.received_bound,
            effective_noise_std=noise_std,
            accounted_noise_std=worst.noise_std,
            unjammed_noise_std=float(worst.noise_std.min()),
            csi_ratio=largest_csi_ratio(own, counted),
            backoff_is_public=not any(policy.needs_norms for policy in self.policies),
            theorem=self.theorem,
            caveat=next(filter(None, map(caveat, self.policies)), None),
            **air_rule(self.gradient_step, self.network.registry.samples[clients]),
        )

    def audit_view(self) -> AuditView:
        """The noise of every base station; those behind them see all receptions."""
        return ChannelNoise(self._overheard, self.gradient_step)

    def _overheard(self, streams: Streams, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reading:
        """What each base station with senders reads of a slot, at the largest α_u, with noise from other streams."""
        assert isinstance(plan, CellsPlan), "the rehearsal planned it"
        other, stations = replace(self, network=replace(self.network, streams=streams)), list(plan.transmit)
        own, foreign = other._superposed(this, plan, blocks)
        received = np.stack([own[c] + foreign[c] + other._noise(this.index, c) for c in stations])
        noise_std = self.air.channel_noise_std / plan.reference_gain
        return Reading(received / plan.reference_gain, np.full(len(stations), noise_std))

    def state(self) -> dict[str, Any]:
        """What power controls and edges remember."""
        adaptive = enumerate(self.policies)
        return {
            "policies": {str(c): dict(p.state()) for c, p in adaptive if isinstance(p, AdaptivePowerControl)},
            "edges": {} if self.edges is None else self.edges.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        for station, policy in enumerate(self.policies):
            if isinstance(policy, AdaptivePowerControl):
                self.policies[station] = policy.restored(dict(state["policies"][str(station)]))
        if self.edges is not None:
            self.edges.restore(state["edges"])


def _numbers(heard: dict[int, Superposition]) -> dict[int, NDArray[np.float64]]:
    return {station: np.asarray(air.received(), dtype=np.float64) for station, air in heard.items()}
