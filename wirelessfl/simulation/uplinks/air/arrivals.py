"""Superposition of the signals of a slot over the air at its receivers, block by block."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.radio import (
    CentredPowerControl,
    LateArrival,
    NormScaledPowerControl,
    SumParts,
    Superposition,
    TransmitPlan,
)
from wirelessfl.radio.ris_fl import coordinate_means
from wirelessfl.simulation.radio_records import TransmissionRecord
from wirelessfl.simulation.records import TrainingRecord
from wirelessfl.simulation.uplinks.air.every_antenna import EveryAntenna
from wirelessfl.simulation.uplinks.air.plan import AirPlan
from wirelessfl.simulation.uplinks.air.ranges import over_ranges
from wirelessfl.simulation.uplinks.air.transmitters import Transmitters


@dataclass(frozen=True, eq=False)
class Received:
    """The signals of a slot at its receivers, of those with senders.

    Attributes:
        plan: of the slot, at the scale at which everybody sent.
        signal: y (d,) of each receiver, with noise; (A, m) complex where all antennas are read.
        interference: (d,) what of it other receivers' clients sent, without noise; none with one receiver.
        training: of the senders.
        transmissions: of the senders.
    """

    plan: AirPlan
    signal: dict[int, NDArray[Any]]
    interference: dict[int, NDArray[np.float64]]
    training: tuple[TrainingRecord, ...]
    transmissions: tuple[TransmissionRecord, ...]


@dataclass(frozen=True, eq=False)
class ArrivedPart:
    """The part of k senders in the signal of the only receiver, without noise.

    Attributes:
        positions: (k,) among the senders.
        signal: of the sum.
        training: of the k senders.
        transmission: of the k senders.
        norms: (k,) of the updates as they were sent.
        means: (k,) of their coordinates, where these are told apart.
    """

    positions: NDArray[np.int64]
    signal: SumParts
    training: TrainingRecord
    transmission: TransmissionRecord
    norms: NDArray[np.float64]
    means: NDArray[np.float64]


class Arrivals:
    """The signals at receivers without noise, of their own clients and of all others.

    Args:
        transmitters: of the slot.
        late: how late the senders arrive, or None.
    """

    def __init__(self, transmitters: Transmitters, late: LateArrival | None) -> None:
        plan, self._several = transmitters.plan, len(transmitters.policies) > 1
        shape = (transmitters.air.dimension, transmitters.iq_packing, len(transmitters.ranges))
        self._transmitters, self._late = transmitters, late
        self._array = EveryAntenna(plan.heard.shape[4], *shape) if transmitters.reads_antennas else None
        self._own = {station: Superposition(*shape) for station in plan.transmit if self._array is None}
        self._foreign = {station: Superposition(*shape) for station in plan.transmit if self._several}
        self._training, self._transmissions = list[TrainingRecord](), list[TransmissionRecord]()
        self._norms, self._means = np.zeros(len(plan.senders)), np.zeros(len(plan.senders))

    def add(self, block: CohortBlock) -> None:
        """Addition of what a block of senders sends."""
        transmitters, plan, positions = self._transmitters, self._transmitters.plan, block.positions
        told = transmitters.centred(block)
        sent, energies = transmitters.sent(told), None
        symbols, tx_gain = sent.symbols, sent.gains.tx_gain
        offset = None if self._late is None else self._late[positions]
        if self._array is not None:
            heard = plan.heard[positions, 0].transpose(3, 0, 1, 2)
            self._array.add(symbols, heard * tx_gain, offset)
        serving, channel = plan.links.serving[positions], plan.links.channel[positions, ..., 0]
        for station, own in self._own.items():
            arriving, there = channel[:, station] * tx_gain, (serving == station)[:, None, None]
            energies = own.add(symbols, np.where(there, arriving, 0) if self._several else arriving, offset)
            if self._several:
                self._foreign[station].add(symbols, np.where(there, 0, arriving), offset)
        self._training.append(TrainingRecord.of(plan.senders[positions], block))
        self._transmissions.append(transmitters.record(positions, sent, energies))
        self._norms[positions] = told.norm
        if transmitters.told_apart:
            self._means[positions] = coordinate_means(block.updates)

    def part(self, block: CohortBlock) -> ArrivedPart:
        """The part of a block of senders in the signal of the only receiver."""
        own = Arrivals(self._transmitters, self._late)
        own.add(block)
        ((_, air),), (training,), (transmission,) = own._own.items(), own._training, own._transmissions
        here = block.positions
        return ArrivedPart(here, air.parts(), training, transmission, own._norms[here], own._means[here])

    def merge(self, part: ArrivedPart) -> None:
        """Addition of a part that was formed where its clients were trained."""
        ((_, air),) = self._own.items()
        air.merge(part.signal)
        self._training.append(part.training)
        self._transmissions.append(part.transmission)
        self._norms[part.positions], self._means[part.positions] = part.norms, part.means

    def finished(self, noise: dict[int, NDArray[Any]]) -> Received:
        """The signals of all blocks together.

        Args:
            noise: (d,) at each receiver with senders; becomes its signal. Complex (A, m) where all antennas are read.
        """
        plan, transmissions = self._transmitters.plan, self._transmissions
        arrived = {station: np.asarray(air.received()) for station, air in self._own.items()}
        interference = {station: np.asarray(air.received(), dtype=np.float64) for station, air in self._foreign.items()}
        louder, settled = 1.0, self._settled()
        if settled is not None:
            ((station, announced),) = plan.transmit.items()
            louder = settled.server_gain / announced.server_gain
            plan = replace(plan, transmit={station: settled})
            arrived = {station: signal * louder for station, signal in arrived.items()}
            transmissions = [record.scaled(louder) for record in transmissions]
            if self._transmitters.told_apart:
                arrived[station] += settled.receive_scale * self._mean_of_sum()
        for station, signal in noise.items():
            if self._array is None:
                signal += arrived[station] + interference[station] if self._several else arrived[station]
            else:
                self._array.add_to(signal.real, signal.imag, louder)
        return Received(plan, noise, interference, tuple(self._training), tuple(transmissions))

    def _settled(self) -> TransmitPlan | None:
        # The plan of the only receiver at the scale that follows from the norms of all that was sent; None where the
        # scale was announced
        policy, plan = self._transmitters.policies[0], self._transmitters.plan
        if not isinstance(policy, NormScaledPowerControl | CentredPowerControl):
            return None
        (announced,) = plan.transmit.values()
        if isinstance(policy, NormScaledPowerControl):
            return policy.settled(announced, self._norms)
        rows = plan.links.own.rows().take(plan.sends.ravel())
        norms = np.repeat(self._norms, plan.sends.sum(axis=(1, 2)))
        return policy.settled_by_variances(announced, rows, norms, self._transmitters.air)

    def _mean_of_sum(self) -> NDArray[np.float64]:
        # (d,) Σ p_i m_i of those who send in each block and group of subcarriers
        plan = self._transmitters.plan
        told = np.einsum("krf,k->rf", plan.sends, plan.links.own.weight * self._means)
        return over_ranges(told, self._transmitters.ranges)
