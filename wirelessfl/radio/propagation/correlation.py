"""Fading that is correlated in time: a first-order recursion and Clarke's isotropic scattering.

Both describe the scattered part, of mean power 1 at any instant: Rayleigh fading as it stands, Rician through
`Rician.around`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.errors import precondition
from wirelessfl.memory import NodeMemory, RemembersNodes
from wirelessfl.radio.fading import FadingModel
from wirelessfl.radio.propagation.doppler import Doppler
from wirelessfl.radio.propagation.fading import AT_START, DirectRay
from wirelessfl.radio.propagation.placement import Draws, Moment
from wirelessfl.streams import NodeStream

NUM_SINUSOIDS = 64
"""N, sinusoids a link; `clarke_fading` states the errors, which fall as 1/N."""

# Sinusoids evaluated at once, which bounds the memory
_BLOCK = 1 << 18


def jakes_correlation(doppler_hz: NDArray[np.float64] | float, interval_s: float) -> NDArray[np.float64]:
    """J0(2π f_D T), in the shape of f_D: Clarke's correlation of two gains T seconds apart; may be negative."""
    return np.asarray(special.j0(2.0 * np.pi * np.asarray(doppler_hz) * interval_s))


def gauss_markov(
    previous: NDArray[np.complex128],
    rounds_since: NDArray[np.float64],
    fading_correlation: NDArray[np.float64] | float,
    innovation: NDArray[np.complex128],
) -> NDArray[np.complex128]:
    """The next gains of an AR(1) process: ρ^k h' + sqrt(1 − ρ^{2k}) w after k rounds.

    The correlation is ρ at lag 1 and ρ^k at lag k, which is not Clarke's beyond lag 1. Who was not active for some
    rounds is carried over all of them in one step.

    Args:
        previous: (n,) the gains when the nodes were last active; any finite number where that was never.
        rounds_since: (n,) k >= 1, rounds since then; infinity for a first appearance.
        fading_correlation: ρ in [−1, 1], (n,) or one number, for instance `jakes_correlation` of the round duration.
        innovation: (n,) independent CN(0, 1) numbers of this round.

    Returns:
        (n,) CN(0, 1) gains; also the state to hand in next time.

    Raises:
        ValueError: if ρ or a number of rounds is out of range.
    """
    if not np.all(np.abs(fading_correlation) <= 1):
        raise ValueError(f"fading_correlation must lie between -1 and 1, not {fading_correlation}")
    precondition(np.all(rounds_since >= 1), "rounds_since must be at least 1 for every node")
    first = np.isinf(rounds_since)
    memory = np.where(first, 0.0, np.power(fading_correlation, np.where(first, 1.0, rounds_since)))
    return np.asarray(memory * previous + np.sqrt(1.0 - memory**2) * innovation)


def clarke_fading(
    times: NDArray[np.float64], doppler_hz: NDArray[np.float64] | float, links: int, generator: np.random.Generator
) -> NDArray[np.complex128]:
    """Clarke's fading of independent links at common times: complex (links, times).

    h(t) = N^{−1/2} Σ_n e^{j(2π f_D t cos θ_n + φ_n)} with N = `NUM_SINUSOIDS`, angles of arrival θ_n = π(n + u)/N with
    one uniform u a link, and independent uniform phases φ_n (Clarke 1968; sums of sinusoids of random phase after Xiao,
    Zheng, Beaulieu 2006).

    Over the ensemble the autocorrelation is J0(2π f_D τ) exactly, at any lag. A gain at one instant is a sum of N
    phasors and CN(0, 1) up to 1/N: E|h|⁴ = 2 − 1/N, a deep fade is less likely than e^{−g} says by the part 1/(2N), and
    so is the level-crossing rate sqrt(2π) f_D ρ e^{−ρ²}. In one link averaged over all times the power is 1, and while
    2π f_D τ < 3N/2 the autocorrelation is J0 to rounding in its real part and 0 within 1/N in its imaginary part.

    Args:
        times: (T,) seconds.
        doppler_hz: f_D >= 0, the largest Doppler shift, (links,) or one number.
        links: how many links to draw.
        generator: source of angles and phases.

    Raises:
        ValueError: if a Doppler shift is negative.
    """
    shifts = np.broadcast_to(doppler_hz, (links,))
    precondition(np.all(shifts >= 0), "doppler_hz must be at least 0")
    return _sum_of_sinusoids(shifts[:, None] * np.asarray(times)[None, :], generator.random((links, NUM_SINUSOIDS + 1)))


def clarke_gains(cycles: NDArray[np.float64], stream: NodeStream) -> NDArray[np.complex128]:
    """Clarke's fading in closed form: the gains of the stream's nodes, in the shape of ``cycles``.

    A node's whole path follows from its row of the stream, so there is no state: use the same round index (0) at all
    times. Two gains of a node Δ cycles apart have the correlation J0(2πΔ); the errors are those of `clarke_fading`.

    Args:
        cycles: (n,) or (n, T), f_D t, or wavelengths travelled where a node's speed changes.
        stream: one row a node.
    """
    drawn = stream.uniform(NUM_SINUSOIDS + 1)
    by_link = cycles if cycles.ndim == 2 else cycles[:, None]
    return _sum_of_sinusoids(by_link, drawn).reshape(cycles.shape)


def _sum_of_sinusoids(cycles: NDArray[np.float64], drawn: NDArray[np.float64]) -> NDArray[np.complex128]:
    # (links, times) from uniform numbers (links, N + 1): N phases, and the offset of the angles
    angles = np.pi / NUM_SINUSOIDS * np.arange(NUM_SINUSOIDS)
    offset = np.pi / NUM_SINUSOIDS * drawn[:, -1:]
    # cos(a + b), for one cosine and sine a link.
    cosines = np.cos(offset) * np.cos(angles) - np.sin(offset) * np.sin(angles)
    gains = np.empty(cycles.shape, dtype=np.complex128)
    links, times = len(cycles), cycles.shape[1]
    times_at_once = min(max(times, 1), _BLOCK // NUM_SINUSOIDS)
    links_at_once = _BLOCK // (NUM_SINUSOIDS * times_at_once)
    for link, time in itertools.product(range(0, links, links_at_once), range(0, times, times_at_once)):
        rows, columns = slice(link, link + links_at_once), slice(time, time + times_at_once)
        turns = cosines[rows, None, :] * cycles[rows, columns, None] + drawn[rows, None, :-1]
        gains[rows, columns] = np.exp(2j * np.pi * turns).sum(axis=2)
    return np.asarray(gains / np.sqrt(NUM_SINUSOIDS))


@dataclass(frozen=True)
class ScatteredFading(ABC):
    """Scattering beside a direct ray: what is the same however the scattered part goes on in time.

    Attributes:
        ray: the direct part of the links.
        doppler: shifts of the links.
        draws: streams of the links.
    """

    ray: DirectRay
    doppler: Doppler
    draws: Draws

    @abstractmethod
    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) gains at T times of a slot that begins at a moment."""

    def gains(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment
    ) -> NDArray[np.complex128]:
        """(n,) gains at the moment itself."""
        return self.over(nodes, line_of_sight, moment, AT_START)[:, 0]

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) the direct rays."""
        return self.ray.alone(nodes, line_of_sight, moment, offsets)

    def shift_hz(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n,) f_D of the scattered part."""
        return self.doppler.shift_hz(nodes, moment)

    def law_of(self, in_sight: bool) -> FadingModel:
        """The law of a gain at one instant."""
        return self.ray.law_of(in_sight)


@dataclass(frozen=True)
class GaussMarkovFading(ScatteredFading, RemembersNodes):
    """First-order recursion from one use of a link to its next, with the correlation J0(2π f_D Δt) of that time.

    Within a slot the scattered part is Gaussian with Clarke's correlation J0(2π f_D t) at any lag, given its value at
    the slot's beginning.

    Attributes:
        interval_s: T, where rounds count as that far apart whatever the clock says: one gain a round, J0(2π f_D T)^k
            after k rounds, f_D the mean one since a link was last used. None goes by simulated time.
        nodes: scattered part of each link in the round it was last used in.
    """

    interval_s: float | None
    nodes: NodeMemory = field(
        default_factory=lambda: NodeMemory(scatter=0j, round=0, cycles=np.nan, time=np.nan, drawn=0)
    )

    @property
    def varies(self) -> bool:
        """Whether gains go by simulated time."""
        return self.interval_s is None

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) gains, with h(t) = J0 h(0) + g(t) − J0 g(0) for the scattered part, g Clarke's fading."""
        scatter = self._scatter(nodes, moment)[:, None]
        if offsets is not AT_START:
            times = np.pad(np.atleast_2d(offsets), ((0, 0), (1, 0)))
            cycles = self.doppler.shift_hz(nodes, moment)[:, None] * times
            purpose = f"fading_in_slot/{moment.transmission}" if moment.transmission else "fading_in_slot"
            other = clarke_gains(cycles, self.draws.nodes(purpose, moment.round_index, nodes))
            memory = special.j0(2.0 * np.pi * cycles[:, 1:])
            scatter = memory * scatter + (other[:, 1:] - memory * other[:, :1])
        return self.ray.beside(scatter, nodes, line_of_sight, moment, offsets)

    def _scatter(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.complex128]:
        # (n,) scattered parts at the beginning of the slot
        known, before = self.nodes.recall(nodes)
        time = np.broadcast_to(np.asarray(moment.time_s, dtype=np.float64), (len(nodes),))
        cycles = self.doppler.cycles(nodes, moment)
        elapsed = np.where(known, time - before["time"], 0.0)
        rounds = moment.round_index - before["round"]
        if self.interval_s is None:
            steps, moved = np.ones(len(nodes)), elapsed > 0
            # J0 of the cycles themselves, those of f_D Δt where f_D is given.
            correlation = jakes_correlation(np.where(moved, cycles - before["cycles"], 0.0), 1.0)
        else:
            steps, moved = np.maximum(rounds, 1.0), rounds > 0
            shift = self.doppler.mean_shift_hz(cycles, elapsed, before["cycles"])
            correlation = jakes_correlation(shift, self.interval_s)
        drawn = np.where(known & (rounds == 0), before["drawn"], 0)
        innovation = self.draws.nodes("fading", moment.round_index, nodes).at_block(slice(None), drawn)
        steps = np.where(known, steps, np.inf)
        stepped = gauss_markov(before["scatter"], steps, correlation, innovation.complex_normal()[:, 0])
        scatter = np.where(moved | ~known, stepped, before["scatter"])
        self.nodes.write(
            nodes,
            scatter=scatter,
            round=np.full(len(nodes), moment.round_index),
            cycles=cycles,
            time=time,
            drawn=drawn + (moved | ~known),
        )
        return scatter


@dataclass(frozen=True)
class ClarkeFading(ScatteredFading):
    """Isotropic scattering at simulated time, in closed form: nothing has to be remembered."""

    varies: ClassVar[bool] = True

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) gains at the times themselves; a node keeps its speed within the slot."""
        cycles = self.doppler.cycles(nodes, moment)[:, None]
        if offsets is not AT_START:
            cycles = cycles + self.doppler.shift_hz(nodes, moment)[:, None] * offsets
        scatter = clarke_gains(cycles, self.draws.nodes("fading", 0, nodes))
        return self.ray.beside(scatter, nodes, line_of_sight, moment, offsets)

    def drawn_from(self, draws: Draws) -> ClarkeFading:
        """The same fading with other streams."""
        return replace(self, draws=draws, ray=self.ray.drawn_from(draws), doppler=self.doppler.drawn_from(draws))
