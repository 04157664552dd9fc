"""Plan of a slot over the air, and its division into pilots for channel estimates and pieces of constant channels.

The receiver knows a channel as it was at the beginning of a piece. Until its end h has moved on, and the difference
acts as noise that is proportional to the signal: the self-distortion.
"""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.errors import precondition

MAX_DISTORTION = 10.0**-2.5
"""Self-distortion up to which a piece is short enough: −25 dB."""
MOST = 2.0**53
"""Pieces beyond which nothing is counted."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


def self_distortion(duration_s: float, doppler_hz: float, cfo_hz: float = 0.0) -> float:
    """D = (1/T) ∫₀ᵀ E|h(t) − h(0)|² dt of a channel of mean power 1, over a stretch of T seconds.

    With Clarke's correlation and a carrier that is off by f_o, E|h(t) − h(0)|² = 2(1 − J0(2π f_D t) cos(2π f_o t));
    for short stretches D ≈ (2π T)² (f_D²/6 + f_o²/3). Valid while the two turn by a few radians at most.

    Args:
        duration_s: T.
        doppler_hz: f_D, the largest Doppler shift.
        cfo_hz: f_o, the carrier frequency offset.
    """
    phase = np.pi * duration_s * (_NODES + 1.0)
    return float(_WEIGHTS @ (1.0 - special.j0(doppler_hz * phase) * np.cos(cfo_hz * phase)))


def pieces_needed(duration_s: float, doppler_hz: float, cfo_hz: float = 0.0) -> int:
    """The smallest number of equal pieces of a slot whose self-distortion stays within −25 dB.

    Without a frequency offset a piece may last 0.0219/f_D. A number above 2⁵³ is given as that.
    """
    fastest = max(doppler_hz, cfo_hz)
    if duration_s == 0.0 or fastest == 0.0:
        return 1
    doppler, offset = doppler_hz / fastest, cfo_hz / fastest

    def excess(cycles: float) -> float:
        return self_distortion(cycles, doppler, offset) - MAX_DISTORTION

    # The parabola lies above the distortion: a piece as long as it allows is short enough, one twice as long is not.
    by_parabola = math.sqrt(MAX_DISTORTION / (doppler**2 / 6.0 + offset**2 / 3.0)) / (2.0 * math.pi)
    longest = _root(excess, by_parabola * (1.0 - 1e-9), 2.0 * by_parabola, xtol=1e-15)
    pieces = min(duration_s * fastest / longest, MOST)
    return max(1, math.ceil(pieces))


def _root(function: Callable[[float], float], low: float, high: float, **tolerance: float) -> float:
    from scipy import optimize  # which takes a tenth of a second, and channels that do not change have no pieces

    return float(optimize.brentq(function, low, high, **tolerance))


@functools.cache
def _piece_cycles() -> float:
    # f_D T of the longest piece whose self-distortion stays within −25 dB: 0.0219
    return _root(lambda cycles: self_distortion(cycles, 1.0) - MAX_DISTORTION, 0.01, 0.1)


def longest_piece(doppler_hz: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seconds (n,) of the longest piece of each link; infinite where nothing changes."""
    with np.errstate(divide="ignore"):
        return np.asarray(_piece_cycles() / np.asarray(doppler_hz))


def coherence_time(doppler_hz: float) -> float:
    """Seconds in which a channel keeps half of its correlation: 0.423/f_D (Rappaport 2002, eq. 5.40.c)."""
    return math.sqrt(9.0 / (16.0 * math.pi)) / doppler_hz if doppler_hz > 0 else math.inf


@functools.cache
def coordinate_ranges(dimension: int, pieces: int, iq_packing: bool = False) -> tuple[tuple[int, int], ...]:
    """Coordinates of each of T·F pieces: the ranges of `np.array_split`, first and one past the last.

    With I/Q packing whole symbols are divided, so that every range but the last is of even length.

    Raises:
        ValueError: if a piece would be left empty.
    """
    symbols = (dimension + 1) // 2 if iq_packing else dimension
    precondition(1 <= pieces <= symbols, f"{symbols} symbols cannot be divided into {pieces} pieces")
    size, longer = divmod(symbols, pieces)
    ends = size * np.arange(pieces + 1) + np.minimum(np.arange(pieces + 1), longer)
    edges: list[int] = np.minimum(ends * (2 if iq_packing else 1), dimension).tolist()
    return tuple(itertools.pairwise(edges))


def range_energies(updates: Any, ranges: tuple[tuple[int, int], ...]) -> NDArray[np.float64]:
    """(k, T) Σ Δ_i² in each range of coordinates.

    Args:
        updates: Δ (k, d), NumPy or torch.
        ranges: as `coordinate_ranges` gives them.
    """
    return np.concatenate([_energies(updates, *alike) for alike in alike_ranges(ranges)], axis=1)


def energy_shares(energy: NDArray[np.float64], ranges: tuple[tuple[int, int], ...]) -> NDArray[np.float64]:
    """(k, T) the part of ‖Δ_i‖² in each range of coordinates; an update of zeros counts as spread evenly.

    Args:
        energy: (k, T) Σ Δ_i² in each range.
        ranges: as `coordinate_ranges` gives them.
    """
    total = energy.sum(axis=1, keepdims=True)
    if np.all(total > 0):
        return np.asarray(energy / total)
    lengths = np.array([hi - lo for lo, hi in ranges], dtype=np.float64)
    energy = np.where(total > 0, energy, lengths)
    return np.asarray(energy / energy.sum(axis=1, keepdims=True))


@functools.cache
def alike_ranges(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int, int], ...]:
    """First coordinate, number and length of neighbouring ranges of one length, of which there are a few kinds."""
    found = list[tuple[int, int, int]]()
    for length, alike in itertools.groupby(ranges, key=lambda ends: ends[1] - ends[0]):
        some = list(alike)
        found.append((some[0][0], len(some), length))
    return tuple(found)


def _energies(updates: Any, first: int, count: int, length: int) -> NDArray[np.float64]:
    # (k, n) Σ Δ² over ranges of one length, all in one pass without a copy of the updates and, from a GPU, in one copy
    parts = updates[:, first : first + count * length].reshape(updates.shape[0], count, length)
    norms = parts.norm(dim=2).cpu().numpy() if hasattr(parts, "cpu") else np.linalg.norm(parts, axis=2)
    return np.asarray(norms**2, dtype=np.float64)


Refresh = Literal["slot", "piece"]


@dataclass(frozen=True)
class Pilots:
    """The pilot symbols of a node.

    Attributes:
        symbols: n, for each estimate.
        symbol_snr: energy of a symbol over N0, before path loss; in a part of the band by its inverse more.
        joules: energy of the n symbols, as that of one; NaN where watts are unknown.
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


@dataclass(frozen=True)
class SlotPlan:
    """Plan of the uplink slot, made before any training is computed.

    Attributes:
        senders: (k,) positions of the clients that will be heard, ascending.
        silent: (s,) positions of those who reported and stay silent in a deep fade.
        airtime: seconds of the slot.
        jammer_gain: α_CJ, 0 without jamming.
        jammer_failed: whether jamming was agreed on and does not come.
        pilots: what pilots take; None where they cost nothing.
    """

    senders: NDArray[np.int64]
    silent: NDArray[np.int64]
    airtime: float
    jammer_gain: float = 0.0
    jammer_failed: bool = False
    pilots: PilotCharge | None = None

    @property
    def superpositions(self) -> tuple["SlotPlan", ...]:
        """The plans of the sums in which the senders are, each in one of them: here of one sum."""
        return (self,)


@dataclass(frozen=True, eq=False)
class Instants:
    """Times within a slot or an upload, in seconds from its beginning, for all nodes or for each.

    Attributes:
        estimates: (R,) or (n, R) at which channels are estimated.
        pieces: (T,) or (n, T) at which the pieces of the data begin.
    """

    estimates: NDArray[np.float64]
    pieces: NDArray[np.float64]

    def later(self, seconds: float) -> "Instants":
        """The same times some seconds later."""
        return self if seconds == 0.0 else Instants(self.estimates + seconds, self.pieces + seconds)


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
        """Time and energy of the pilots of a slot of so many nodes, an external jammer among them or not."""
        if self.pilots is None:
            return None
        joules = self.estimates * self.pilots.joules
        return PilotCharge(self.estimates * self.pilot_s(nodes), joules, joules if external_jammer else 0.0)

    def instants(self, nodes: int) -> Instants:
        """Instants at which channels are estimated and used, with the pilots of so many nodes."""
        pilot_s, piece_s = self.pilot_s(nodes), self.data_s / self.pieces
        if self.pieces == 1 and pilot_s == 0.0:
            return AT_ONCE
        piece = np.arange(float(self.pieces))
        estimates = np.arange(float(self.estimates)) * (pilot_s + piece_s)
        begun = piece + 1 if self.refresh == "piece" else np.ones(self.pieces)
        return Instants(estimates, piece * piece_s + begun * pilot_s)
