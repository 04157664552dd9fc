"""The distinguishing game: two worlds that differ in one canary, played many times on the simulator's own chain.

What the adversary is taken to know is fixed once, from the scenario's own streams: channels, who takes part, and
batches for whose secrecy the ledger gives no credit. What protects (noise, and sampling that the ledger counts) is
drawn anew in every trial, and is the same in both worlds of a trial, so that they differ in the canary alone. Each
event, a slot or a local step, gives one number: the projection of what is seen on the direction in which the canary
moves it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.analysis.audit.slots import Slot, Slots
from wirelessfl.learning import CohortBlock
from wirelessfl.simulation.uplinks.base import Listen
from wirelessfl.streams import Streams

Values = NDArray[np.float64]
LEAST_NOISE = 1e-100
"""A standard deviation below which noise counts as none, as the squares of what is seen in its unit overflow."""
# Seconds on one core of a common server, as measured: of a slot, of each element of it, and of each under Haar noise.
_SLOT_SECONDS, _ELEMENT_SECONDS, _HAAR_ELEMENT_SECONDS = 6e-4, 2.5e-8, 1e-7
Advance = Callable[[float], None]
"""Function that receives the part of the game that was played since its last call."""


@dataclass(frozen=True, eq=False)
class Observations:
    """View of the adversary on n trials of either world, E events each.

    Attributes:
        plus: (n, E) projections with the canary.
        minus: (n, E) with its opposite, or without it.
        shift: (E,) by how much the canary moves an event that it is in, relative to the noise there, up to a factor.
        exchange: whether ``minus`` holds the opposite canary.
        sample_rate: with which probability the canary is in an event; 1 where the adversary knows in which events it
            is, and only these are listed.
        included: (n, E) in which events it is (or would be), the same in both worlds.
        gaussian: whether the noise is Gaussian and independent of the canary.
        silent: (2, n, E) events in which nothing is released, with the canary and without; None where there are none.
        statistic: what tells the worlds apart, in words.
        separable: whether what an event shows depends on the canary in that event alone.
        recorded_std: (E,) the standard deviation on record of the noise of an event, in the unit of what is seen; None
            where the record speaks of other directions than that of the canary, or there is none.
        independent: whether the canary is in every event independently of all others.
    """

    plus: Values
    minus: Values
    shift: Values
    exchange: bool
    sample_rate: float
    included: NDArray[np.bool_]
    gaussian: bool
    statistic: str = "matched filter, in standard deviations of the noise"
    separable: bool = False
    silent: NDArray[np.bool_] | None = None
    recorded_std: Values | None = None
    independent: bool = False


class Uploads(Protocol):
    """Uploads of the canary's client."""

    def of(self, round_index: int, sign: int, trials: int) -> CohortBlock:
        """One row for each of the trials, or one for all; sign 1 is the canary, −1 its opposite, 0 nothing.

        Rounds come in order, as training may remember earlier ones.
        """


@dataclass(frozen=True)
class FixedUpload(Uploads):
    """The same upload in every round.

    Attributes:
        blocks: the block of one row for each sign.
    """

    blocks: dict[int, CohortBlock]

    @override
    def of(self, round_index: int, sign: int, trials: int) -> CohortBlock:
        return self.blocks[sign]


class Game(Protocol):
    """A distinguishing game."""

    def play(self, trials: int, advance: Advance) -> Observations:
        """Both worlds, ``trials`` times; ``advance`` is called with the part that is done."""


@dataclass(frozen=True)
class SlotGame(Game):
    """The canary's upload goes through the uplink, round after round.

    Attributes:
        listen: what an adversary reads of a slot on the uplink of the scenario.
        slots: what is heard when.
        uploads: what the canary's client sends.
        probe: uploads of one row whose signal shows in which direction a canary moves a reception.
        exchange: whether the other world holds the opposite canary.
        sample_rate: with which probability the client is in a slot.
        gaussian: whether the uploads themselves are fixed, so that all noise is the uplink's.
        streams: randomness of the audit.
        white: whether the record names the size of the noise on every coordinate.
    """

    listen: Listen
    slots: Slots
    uploads: Uploads
    probe: Uploads
    exchange: bool
    sample_rate: float
    gaussian: bool
    streams: Streams
    white: bool = True

    @override
    def play(self, trials: int, advance: Advance) -> Observations:
        secrets = [Streams(self.streams.torch_seed("trial", 0, trial)) for trial in range(trials)]
        rounds = self.slots.rounds
        seen = np.zeros((2, trials, len(rounds)))
        there, silent = np.zeros((trials, len(rounds)), dtype=np.bool_), np.zeros(seen.shape, dtype=np.bool_)
        shift, recorded = np.zeros((2, len(rounds)))
        for event, round_index in enumerate(rounds):
            direction, shift[event] = self._signal(round_index)
            recorded[event] = np.linalg.norm(direction)
            for world, sign in enumerate(self._signs):
                block = self.uploads.of(round_index, sign, trials)
                for trial, secret in enumerate(secrets):
                    slot = self.slots.drawn(round_index, secret)
                    there[trial, event] = slot.position is not None
                    if self.slots.is_released(slot, absent=sign == 0):
                        seen[world, trial, event] = direction @ self.hear(secret, slot, block, trial).ravel()
                    else:
                        silent[world, trial, event] = True
            advance(1 / len(rounds))
        return Observations(
            *(seen[0], seen[1], shift, self.exchange, self.sample_rate, there, self.gaussian),
            separable=self.gaussian,
            silent=silent if silent.any() else None,
            recorded_std=recorded if self.gaussian and self.white else None,
        )

    def hear(self, streams: Streams, slot: Slot, block: CohortBlock | None, row: int = 0) -> Values:
        """(S, d) received sums for one row of a block, or for its only one; all other clients send zeros.

        In units of the noise that the privacy record counts, where it counts any.
        """
        heard = [] if slot.position is None or block is None else [_alone(block, row, slot.position)]
        reading = self.listen(streams, slot.this, slot.plan, heard)
        unit = np.where(reading.noise_std > LEAST_NOISE, reading.noise_std, 1.0)
        return reading.values if np.all(unit == 1.0) else np.asarray(reading.values / unit[:, None])

    def cost(self, dimension: int, haar_noise: bool) -> float:
        """Seconds of both worlds of a trial."""
        return 2 * len(self.slots.rounds) * hearing_cost(dimension, haar_noise)

    @property
    def _signs(self) -> tuple[int, int]:
        return 1, -1 if self.exchange else 0

    def _signal(self, round_index: int) -> tuple[Values, float]:
        # What to project a reception on, so that the noise has size 1, and by how much the canary moves it then.
        #
        # Two receptions under the same noise differ in the signal alone. They are no part of the trials.
        slot, pilot = self.slots.with_canary(round_index), Streams(self.streams.torch_seed("pilot"))
        signal, middle = (self.hear(pilot, slot, self.probe.of(round_index, sign, 1)).ravel() for sign in self._signs)
        signal -= middle
        size = float(np.linalg.norm(signal))
        if self.exchange:
            middle += signal / 2
        noise = float(np.sqrt(np.mean(np.square(middle, out=middle))))
        if size == 0:
            return signal, 0.0
        signal /= size**2 if noise == 0 else size * noise
        return signal, 1.0 if noise == 0 else size / noise


def hearing_cost(dimension: int, haar_noise: bool) -> float:
    """Seconds to compute one slot of so many numbers that are read, by counting operations."""
    return _SLOT_SECONDS + dimension * (_HAAR_ELEMENT_SECONDS if haar_noise else _ELEMENT_SECONDS)


def _alone(block: CohortBlock, row: int, position: int) -> CohortBlock:
    part = slice(0, 1) if len(block.positions) == 1 else slice(row, row + 1)
    rows = block.updates[part], block.norm_raw[part], block.norm[part], block.train_loss[part]
    return CohortBlock(np.array([position]), *rows)
