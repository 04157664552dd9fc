"""Schedule of a slot over the air: pilots for channel estimates, and pieces of constant channels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Refresh = Literal["slot", "piece"]


@dataclass(frozen=True)
class Pilots:
    """The pilot symbols of a node.

    Attributes:
        symbols: n, for each estimate.
        symbol_snr: energy of a symbol over N0, before path loss.
        joules: energy of the n symbols; NaN where watts are unknown.
    """

    symbols: int
    symbol_snr: float
    joules: float


@dataclass(frozen=True)
class PilotCharge:
    """Time and energy of the pilots of a slot.

    Attributes:
        seconds: of the pilots of all nodes, which pass also where nobody sends afterwards.
        joules: of each node.
        jammer_joules: of an external jammer.
    """

    seconds: float
    joules: float
    jammer_joules: float


@dataclass(frozen=True, eq=False)
class Instants:
    """Times within a slot or an upload, in seconds from its beginning, for all nodes or for each.

    Attributes:
        estimates: (R,) or (n, R) at which channels are estimated.
        pieces: (T,) or (n, T) at which the pieces of the data begin.
    """

    estimates: NDArray[np.float64]
    pieces: NDArray[np.float64]


AT_ONCE = Instants(np.zeros(1), np.zeros(1))
"""A slot of one piece, with an estimate of that instant."""


@dataclass(frozen=True)
class SlotSchedule:
    """Division of a slot into pilots and pieces.

    Attributes:
        data_s: seconds of the data.
        duration: seconds of a number of channel uses.
        pieces: T, in each of which the channel counts as constant.
        refresh: whether channels are estimated once, at the slot's beginning, or before every piece.
        pilots: what the estimates are made from; None where they cost nothing.
    """

    data_s: float
    duration: Callable[[int], float]
    pieces: int = 1
    refresh: Refresh = "slot"
    pilots: Pilots | None = None

    @property
    def estimates(self) -> int:
        """R, how often channels are estimated in a slot."""
        return self.pieces if self.refresh == "piece" else 1

    def pilot_s(self, nodes: int) -> float:
        """Seconds in which so many nodes, one after the other, send the pilots of one estimate."""
        return 0.0 if self.pilots is None or not nodes else self.duration(nodes * self.pilots.symbols)

    def airtime(self, nodes: int) -> float:
        """Seconds of the slot, pilots of so many nodes included."""
        return self.data_s + self.estimates * self.pilot_s(nodes)

    def pilot_charge(self, nodes: int, external_jammer: bool) -> PilotCharge | None:
        """What the pilots of a slot of so many nodes take, an external jammer among them or not."""
        if self.pilots is None:
            return None
        joules = self.estimates * self.pilots.joules
        return PilotCharge(self.estimates * self.pilot_s(nodes), joules, joules if external_jammer else 0.0)

    def instants(self, nodes: int) -> Instants:
        """When channels are estimated and used, with the pilots of so many nodes."""
        pilot_s, piece_s = self.pilot_s(nodes), self.data_s / self.pieces
        if self.pieces == 1 and pilot_s == 0.0:
            return AT_ONCE
        piece = np.arange(float(self.pieces))
        estimates = np.arange(float(self.estimates)) * (pilot_s + piece_s)
        begun = piece + 1 if self.refresh == "piece" else np.ones(self.pieces)
        return Instants(estimates, piece * piece_s + begun * pilot_s)
