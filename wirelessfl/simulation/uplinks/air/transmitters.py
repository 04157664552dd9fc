"""The signals of clients in a slot over the air: power control, amplifiers, and their cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.conformance import pair, returned
from wirelessfl.learning import CohortBlock
from wirelessfl.learning.compression import ErrorFeedback, largest
from wirelessfl.radio import (
    AirInterface,
    CentredPowerControl,
    Modulation,
    Outgoing,
    PowerControl,
    SlotTransmission,
    Waveform,
    credited_over_pieces,
    energy_shares,
    limit_amplitude,
    range_energies,
    row_norms,
    transmit_over_pieces,
)
from wirelessfl.radio.modulation.conformance import ROUNDING
from wirelessfl.simulation.radio_records import TransmissionRecord
from wirelessfl.simulation.uplinks.air.excess import amplified
from wirelessfl.simulation.uplinks.air.plan import AirPlan, transmission
from wirelessfl.simulation.uplinks.air.ranges import Ranges


@dataclass(frozen=True, eq=False)
class Sent:
    """The signals of a block of k clients.

    Attributes:
        symbols: (k, d), with no one above the peak.
        gains: of the symbols.
        norm: (k,) ‖symbols‖, of a rehearsal what an update would have.
    """

    symbols: Any
    gains: SlotTransmission
    norm: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Transmitters:
    """The clients' side of a slot.

    Attributes:
        plan: of the slot.
        policies: (C,) power control of each receiver's clients.
        modulation: how updates become symbols.
        air: constants of the uplink.
        ranges: of the T·F blocks and groups of subcarriers.
        iq_packing: two coordinates a symbol.
        joules_per_unit: joules of one unit of normalised energy; NaN where watts are unknown.
        residuals: what a modulation left of the clients' earlier updates; None where all is sent.
    """

    plan: AirPlan
    policies: Sequence[PowerControl]
    modulation: Modulation | Waveform
    air: AirInterface
    ranges: Ranges
    iq_packing: bool
    joules_per_unit: float
    residuals: ErrorFeedback | None = None

    def send(self, block: CohortBlock) -> Sent:
        """Signals of a block of clients.

        Raises:
            ScenarioError: a modulation from outside says norms that no symbols may have.
        """
        return self.sent(self.centred(block))

    def sent(self, block: CohortBlock) -> Sent:
        """The same for a block as it is sent."""
        symbols, norm = self._encoded(block)
        if norm is not block.norm:  # norms that clients report are theirs, within the clip or not
            most = self.air.clip * (1 + ROUNDING)
            norm = returned("modulation", self.modulation, "encode", norm, block.norm.shape, 0.0, most)
        sent = self.gains(block.positions, norm)
        if self.plan.excess is not None:
            amplitude = self._amplitude(np.abs(sent.tx_gain), symbols, None) * norm
            sent = amplified(sent, self.plan.excess.louder(block.positions, sent, amplitude))
        if not np.isinf(self.air.symbol_energy):
            symbols = self._limited(symbols, sent)
            limited = row_norms(symbols)
            norm = np.where(limited > 0, limited, norm)  # a rehearsal has a norm and no update
        return Sent(symbols, sent, norm)

    def record(
        self, positions: NDArray[np.int64], sent: Sent, energies: NDArray[np.float64] | None
    ) -> TransmissionRecord:
        """Record of the signals of the senders at ``positions`` (k,).

        Args:
            positions: among the senders.
            sent: the signals.
            energies: (k, T·F) Σ of the squared symbols in each range, where known.
        """
        gain = np.abs(sent.gains.tx_gain)
        energy = (self._amplitude(gain, sent.symbols, energies) * sent.norm) ** 2
        truncated = (sent.gains.tx_gain == 0).mean(axis=(1, 2))
        loudest, joules = gain.max(axis=(1, 2)), energy * self.joules_per_unit
        return TransmissionRecord(self.plan.senders[positions], sent.gains.backoff, loudest, energy, joules, truncated)

    def centred(self, block: CohortBlock) -> CohortBlock:
        """The block with updates and norms as they are sent: without their means, where policies send these apart."""
        if not self.told_apart:
            return block
        rows = block.updates - block.updates.mean(1, keepdim=True)
        norm = row_norms(rows)
        if not norm.all():  # a rehearsal has a norm and no update: it sends what an update would at most
            norm = np.where(row_norms(block.updates) == 0, block.norm, norm)
        return replace(block, updates=rows, norm=norm)

    def _encoded(self, block: CohortBlock) -> tuple[Any, NDArray[np.float64]]:
        # Symbols (k, n) of a block, and their norms (k,)
        if isinstance(self.modulation, Waveform):
            clients = self.plan.clients[block.positions]
            updates = block.updates if self.residuals is None else self._sparse(self.residuals, clients, block.updates)
            outgoing = Outgoing(updates, block.norm, self.air.clip, clients, self.plan.round_index)
            symbols, norm = self.modulation.encode(outgoing)
            silent = norm == 0
            if silent.any():  # a rehearsal has a norm and no update: it sends what an update would
                absent = (block.norm > 0) & (row_norms(block.updates) == 0)
                norm = np.where(silent & absent, self.air.clip, norm)
            return symbols, norm
        encoded = self.modulation.encode(block.updates, block.norm, self.air.clip)
        symbols, norm = pair("modulation", self.modulation, "encode", encoded)
        returned("modulation", self.modulation, "encode (symbols)", symbols, tuple(block.updates.shape))
        return symbols, norm

    def _sparse(self, residuals: ErrorFeedback, clients: NDArray[np.int64], updates: Any) -> Any:
        # The part of the updates (k, d), with what was left of earlier ones, that is sent; the rest is kept
        assert isinstance(self.modulation, Waveform)
        whole = residuals.added(clients, updates.cpu().numpy())
        count, part = self.modulation.coordinates_sent(whole.shape[1]), np.zeros_like(whole)
        for row, sent in zip(whole, part, strict=True):
            places = largest(row, count)
            sent[places] = row[places]
        residuals.keep(clients, whole - part)
        return torch.from_numpy(part)

    @cached_property
    def told_apart(self) -> bool:
        """Whether clients send their updates without their means, and tell these apart."""
        return isinstance(self.policies[0], CentredPowerControl)

    @cached_property
    def reads_antennas(self) -> bool:
        """Whether the receiver reads the complex signals of all its antennas, and not the sum behind a combiner."""
        return isinstance(self.modulation, Waveform) and self.modulation.at_antennas

    def gains(self, positions: NDArray[np.int64], norms: NDArray[np.float64]) -> SlotTransmission:
        """Transmission of some of the senders, each after the plan of the receiver that serves it."""
        sends, serving = self.plan.sends[positions], self.plan.links.serving[positions]
        gain, backoff = np.zeros(sends.shape, dtype=np.complex128), np.zeros(sends.shape)
        for station, announced in self.plan.transmit.items():
            mine = np.flatnonzero(serving == station)
            links = self.plan.links.own.take(positions[mine])
            transmit = partial(transmission, self.policies[station])
            sent = transmit_over_pieces(transmit, announced, links, sends[mine], norms[mine])
            gain[mine], backoff[mine] = sent.tx_gain, sent.each_backoff
        return SlotTransmission(gain, backoff)

    @cached_property
    def at_the_clip(self) -> SlotTransmission:
        """Transmission of updates of norm τ by all senders."""
        count = len(self.plan.senders)
        return self.gains(np.arange(count), np.full(count, self.air.clip))

    @cached_property
    def nominal_amplitude(self) -> NDArray[np.float64]:
        """(k,) ‖x_i‖ of all senders for updates of norm τ, at most; it does not depend on their data."""
        if self.told_apart:
            return np.sqrt(self.plan.links.own.power_budget)
        sent, excess = self.at_the_clip, self.plan.excess
        loudest = np.abs(sent.tx_gain).max(axis=(1, 2)) * self.air.clip
        if excess is not None:
            loudest = loudest * excess.louder(np.arange(len(loudest)), sent, loudest)
        return np.asarray(loudest)

    def credited(self, sent: SlotTransmission) -> SlotTransmission:
        """A transmission of all senders with the back-off that the ledger may use.

        Where it earns credit, it is no more than the gains bear out.
        """
        backoff = sent.each_backoff.copy()
        for station, announced in self.plan.transmit.items():
            if not self.policies[station].needs_norms:
                mine = np.flatnonzero(self.plan.links.serving == station)
                own, links = SlotTransmission(sent.tx_gain[mine], backoff[mine]), self.plan.links.own.take(mine)
                backoff[mine] = credited_over_pieces(own, announced, links, self.plan.sends[mine]).each_backoff
        return SlotTransmission(sent.tx_gain, backoff)

    def _limited(self, symbols: Any, sent: SlotTransmission) -> Any:
        # (k, d) the symbols behind the amplifiers
        with np.errstate(divide="ignore"):
            amplitude = np.sqrt(self.air.symbol_energy) / np.abs(sent.tx_gain)
        columns = self._each_range(amplitude).T
        ranges = ((0, self.air.dimension),) if len(columns) == 1 else self.ranges
        parts = [
            limit_amplitude(symbols[:, first:end], column, self.iq_packing)
            for (first, end), column in zip(ranges, columns, strict=True)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _each_range(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        # (k, T F) values (k, R, F) of all blocks and groups; (k, 1) where all coordinates share one
        count, estimates, groups = values.shape
        if estimates * groups == 1:
            return values[:, 0]
        blocks = len(self.ranges) // groups
        return np.repeat(values, blocks // estimates, axis=1).reshape(count, -1)

    def _amplitude(
        self, gain: NDArray[np.float64], symbols: Any, energies: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        # (k,) ‖x_i‖ over the norm of the symbols: the gain (k, R, F), in the mean of its square by where they lie
        each = self._each_range(gain)
        if each.shape[1] == 1:
            return each[:, 0]
        known = range_energies(symbols, self.ranges) if energies is None else energies
        return np.asarray(np.sqrt((each**2 * energy_shares(known, self.ranges)).sum(axis=1)))
