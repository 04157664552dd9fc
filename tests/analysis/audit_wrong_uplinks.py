"""Channels and servers that are wrong on purpose: what they record is not what they do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.learning.cohort import SummedBlock
from wirelessfl.learning.private import CentralNoise
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks import OverTheAir, Reception, SlotPlan, TrustedServer
from wirelessfl.simulation.uplinks.air.arrivals import Received
from wirelessfl.simulation.uplinks.air.plan import AirPlan
from wirelessfl.simulation.uplinks.slot import single_updates


class Noiseless(OverTheAir):
    """Forgets all noise."""

    def _noise(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.float64]:
        return np.zeros(self.air.dimension)


class HalfTheNoise(OverTheAir):
    """Halves the noise."""

    def _noise(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.float64]:
        return super()._noise(round_index, plan, station) / 2


class JammerAsleep(OverTheAir):
    """Forgets the jammer."""

    def _noise(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.float64]:
        return super()._noise(round_index, replace(plan, jammer_behind=None), station)


class SameNoiseInAllRounds(OverTheAir):
    """Draws the noise of the first round in every round."""

    def _noise(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.float64]:
        return super()._noise(1, plan, station)


class AlternatingNoise(OverTheAir):
    """Takes in every second round the noise of the round before, turned round."""

    def _noise(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.float64]:
        even = round_index % 2 == 0
        return np.asarray(super()._noise(round_index - even, plan, station) * (-1.0 if even else 1.0))


class NoiseInHalfOfTheCoordinates(OverTheAir):
    """Forgets every second coordinate, and makes up for the variance in the others."""

    def _noise(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.float64]:
        there = np.arange(self.air.dimension) % 2
        return np.asarray(super()._noise(round_index, plan, station) * np.sqrt(2) * there)


class SilentServer(CentralNoise):
    """Forgets the noise."""

    def noise(self, dimension: int, round_index: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """None."""
        return np.zeros(dimension)


class QuietServer(CentralNoise):
    """Halves the noise."""

    def noise(self, dimension: int, round_index: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Half of it."""
        return super().noise(dimension, round_index, generator) / 2


class OneNoiseForTheServer(CentralNoise):
    """Adds the same noise in every second round, whatever the seed."""

    def noise(self, dimension: int, round_index: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """One for all odd rounds and one for all even ones."""
        return super().noise(dimension, round_index, np.random.default_rng(round_index % 2))


class UnclippingServer(CentralNoise):
    """Takes updates as they come."""

    def clip_block(self, block: CohortBlock, round_index: int) -> CohortBlock:
        """Nothing."""
        return block


class SkipsEmptyRounds(TrustedServer):
    """Leaves the model as it is where nobody was selected, and does not record it."""

    @property
    def steps_without_senders(self) -> bool:
        """No."""
        return False


class OneRoundWithoutNoise(OverTheAir):
    """Forgets the noise of round 17."""

    def _noise(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.float64]:
        return np.asarray(super()._noise(round_index, plan, station) * (round_index != 17))


class OneJammerNoiseForAllRounds(OverTheAir):
    """The jammer sends the noise of round 1 in every round; that of the receiver is new."""

    def _noise(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.float64]:
        unjammed = replace(plan, jammer_behind=None)
        jamming = super()._noise(1, plan, station) - super()._noise(1, unjammed, station)
        return np.asarray(super()._noise(round_index, unjammed, station) + jamming)


class SameNoiseInBothQuadratures(OverTheAir):
    """With two coordinates a symbol, one number as the noise of both."""

    def _noise(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.float64]:
        return np.repeat(super()._noise(round_index, plan, station)[::2], 2)[: self.air.dimension]


class LouderThanRecorded(OverTheAir):
    """Client 3 sends twice as much as the record says."""

    def _received(self, this: Round, plan: AirPlan, blocks: Iterable[CohortBlock | SummedBlock]) -> Received:
        return super()._received(
            this, plan, (_doubled(block, this.clients[plan.senders]) for block in single_updates(blocks))
        )


def _doubled(block: CohortBlock, clients: NDArray[np.int64]) -> CohortBlock:
    scale = torch.from_numpy(np.where(clients[block.positions] == 3, 2.0, 1.0)).to(block.updates)
    return replace(block, updates=block.updates * scale[:, None])


class OneUnclipped(CentralNoise):
    """Clips everybody but the client in place 3."""

    def clip_block(self, block: CohortBlock, round_index: int) -> CohortBlock:
        """As it should be for the others."""
        clipped = super().clip_block(block, round_index)
        there = torch.from_numpy(block.positions == 3)[:, None]
        return replace(clipped, updates=torch.where(there, block.updates, clipped.updates))


class NoNoiseWithoutClients(TrustedServer):
    """Steps in rounds without clients, and adds no noise there."""

    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock | SummedBlock]) -> Reception:
        """Nothing where nobody is there."""
        reception = super().receive(this, plan, blocks)
        return replace(reception, aggregate=reception.aggregate * (len(plan.senders) > 0))


class NoiseByAttendance(TrustedServer):
    """Noise that grows with the number of clients, from half in rounds without any."""

    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock | SummedBlock]) -> Reception:
        """All of it where all are there."""
        nobody = replace(plan, senders=plan.senders[:0])
        noise = super().receive(this, nobody, ()).aggregate
        missing = 0.5 * (1 - len(plan.senders) / self.registry.count)
        reception = super().receive(this, plan, blocks)
        return replace(reception, aggregate=reception.aggregate - missing * noise)
