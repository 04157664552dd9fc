"""The max–min beam: the weakest of the clients that send is received as loudly as possible."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.links import SlotLinks
from wirelessfl.radio.power_control import AirInterface
from wirelessfl.radio.reception.base import AdditiveNoise
from wirelessfl.radio.reception.least_distance import least_distance
from wirelessfl.streams import Streams

# Successive approximations of one start at most, and the relative gain below which they end
_STEPS, _ENOUGH = 60, 1e-6

# Relative difference of powers up to which clients are as weak as the weakest: rounding must not choose among them
_AS_WEAK = 1e-3

# With more antennas all starts take so many steps, and so many of the best go on until little is gained
_FEW_ANTENNAS, _FIRST, _BEST, _LITTLE = 8, 15, 3, 1e-4

# With more clients, too, only so many starts take part. Such clients are silenced by a share of those below the
# threshold at a time, and each further beam starts from the last one
_FEW_CLIENTS, _FEW_STARTS, _SHARE = 128, 4, 8

# Starts: so many principal directions of the clients' channels, channels of the weakest, and further directions
_WEAKEST, _DIRECTIONS = 4, 16


@dataclass(frozen=True)
class MaxMinBeam(AdditiveNoise):
    """f with ‖f‖ = 1 that maximises min_i |fᴴĥ_i|² P_i/p_i², for every block and group of subcarriers.

    The clients are those that the beam lets send: where |fᴴĥ_i|² is below g E|ĥ_i|² for the weakest, it is silent, and
    the beam is made for the others anew. Of several that are as weak the one with the least ‖ĥ_i‖² P_i/p_i² is silent;
    of more than 128 clients up to an eighth of those below at a time.

    Attributes:
        antennas: A.
        threshold: g, below which a client is silent; 0 for a beam that serves all.
    """

    antennas: int
    threshold: float = 0.0

    def combine(self, links: SlotLinks, round_index: int, air: AirInterface) -> NDArray[np.complex128]:
        """Unit vectors (R, F, A)."""
        # Without a power limit all clients count alike
        budget = np.where(np.isfinite(links.power_budget), links.power_budget, 1.0)
        scale = np.sqrt(budget) / links.weight
        weights = np.empty(links.estimate.shape[1:], dtype=np.complex128)
        for piece in np.ndindex(*weights.shape[:2]):
            weights[piece] = self._beam(links.estimate[(slice(None), *piece)], scale, links.mean_estimate_power)
        return weights

    def _beam(
        self, estimate: NDArray[np.complex128], scale: NDArray[np.float64], mean_power: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        # (A,) the beam of those that it does not silence
        kept, beam = np.arange(len(estimate)), None
        while True:
            near = beam if len(kept) > _FEW_CLIENTS else None
            beam = max_min_beam(estimate[kept] * scale[kept, None], near)
            relative = np.abs(estimate[kept] @ beam.conj()) ** 2 / mean_power[kept]
            if len(kept) == 1 or relative.min() >= self.threshold:
                return beam
            # The best beam hears several clients equally weakly: of these the one with the weakest channel goes
            weakest = np.flatnonzero(relative <= relative.min() * (1 + _AS_WEAK))
            strength = np.linalg.norm(estimate[kept[weakest]] * scale[kept[weakest], None], axis=1)
            below = int(np.count_nonzero(relative < self.threshold))
            some = max(1, below // _SHARE) if len(kept) > _FEW_CLIENTS else 1
            kept = np.delete(kept, weakest[strength.argsort(kind="stable")[:some]])


def max_min_beam(channel: NDArray[np.complex128], near: NDArray[np.complex128] | None = None) -> NDArray[np.complex128]:
    """The unit vector f (A,) with the largest min_i |fᴴg_i| that successive convex approximation finds.

    Least ‖f‖ with |fᴴg_i| >= 1: around f₀ the constraint is 2 Re(f₀ᴴg_i g_iᴴf) >= 1 + |g_iᴴf₀|², a half-space inside
    the set that is allowed, so that ‖f‖ falls from step to step (Sidiropoulos, Davidson, Luo 2006, who relax instead;
    the approximation after Beck, Ben-Tal, Tetruashvili 2010). A step is a least-distance problem, which non-negative
    least squares solves exactly (Lawson and Hanson 1974, chapter 23).

    Args:
        channel: g (n, A), n >= 1.
        near: a beam (A,) from which alone to start; None for starts in all directions.

    Raises:
        ValueError: if a channel is zero, as no beam receives it.
    """
    # The order of clients must not matter, not even for rounding: norms of rows round by their place in some processors
    channel = channel[np.lexsort((*channel.imag.T, *channel.real.T))]
    norms = np.linalg.norm(channel, axis=1)
    precondition(bool(np.all(norms > 0)), "a client without a channel cannot be served by a beam")
    if channel.shape[1] == 1:
        return np.ones(1, dtype=np.complex128)
    channel = channel[np.argsort(norms, kind="stable")] / norms.max()
    found = _raced(channel, _starts(channel) if near is None else [near])
    least = min(norm for _, norm in found)
    best = next(each for each in found if each[1] <= least * (1 + 10 * _ENOUGH))
    # Of all the same beams but for a phase the one with a first element that is real
    return np.asarray(best[0] * np.exp(-1j * np.angle(best[0][0])) / np.linalg.norm(best[0]))


def _starts(channel: NDArray[np.complex128]) -> list[NDArray[np.complex128]]:
    # Unit vectors to begin with, in none of which a client is nulled
    directions = channel / np.linalg.norm(channel, axis=1, keepdims=True)
    principal = np.linalg.eigh(directions.T @ directions.conj())[1].T[::-1][:_WEAKEST]
    inverse = np.linalg.lstsq(channel.conj(), np.ones(len(channel), dtype=np.complex128), rcond=None)[0]
    found = [*principal, *directions[:_WEAKEST], directions.sum(axis=0), inverse]
    heard = [beam / np.linalg.norm(beam) for beam in found if np.linalg.norm(beam) > 0]
    # A little of everything else: a start from which a client is nulled would never hear it
    return [beam + 1e-3 * directions.sum(axis=0) for beam in heard] + [*_spread(channel.shape[1])]


@cache
def _spread(antennas: int) -> NDArray[np.complex128]:
    # (n, A) the same beams always, in all directions; the fewer antennas, the more local optima there are to miss
    count = min(_DIRECTIONS, max(2, 64 // antennas))
    return Streams(0).nodes("beams", 0, np.arange(count)).complex_normal(antennas)


def _raced(
    channel: NDArray[np.complex128], starts: list[NDArray[np.complex128]]
) -> list[tuple[NDArray[np.complex128], float]]:
    # Beams at which approximations end, of all starts, or of those that are the best after a few steps
    count, antennas = channel.shape
    if antennas <= _FEW_ANTENNAS:
        return [_approximated(channel, start, _STEPS, _ENOUGH) for start in starts]
    if count > _FEW_CLIENTS:
        starts = starts[:: -(-len(starts) // _FEW_STARTS)]
    begun = [_approximated(channel, start, _FIRST, _LITTLE) for start in starts]
    best = sorted(begun, key=lambda each: each[1])[: _BEST if count <= _FEW_CLIENTS else 1]
    return [_approximated(channel, beam, _STEPS, _LITTLE) for beam, _ in best]


def _approximated(
    channel: NDArray[np.complex128], start: NDArray[np.complex128], steps: int, enough: float
) -> tuple[NDArray[np.complex128], float]:
    # The beam at which the approximations from a start end, with min_i |fᴴg_i| = 1, and its norm
    beam, norm = _scaled(channel, start)
    active = np.zeros(len(channel), dtype=np.bool_)
    for _ in range(steps):
        if not np.isfinite(norm):
            break
        arriving = channel @ beam.conj()  # (fᴴg_i)
        rows = arriving.conj()[:, None] * channel  # Re(rows · f*) = Re(f₀ᴴg_i · g_iᴴf), conjugated
        nearer, active = _least_norm(rows, (1.0 + np.abs(arriving) ** 2) / 2, active)
        following, smaller = _scaled(channel, nearer)
        if not smaller < norm:
            break
        gained, beam, norm = 1.0 - smaller / norm, following, smaller
        if gained < enough:
            break
    return beam, norm


def _scaled(channel: NDArray[np.complex128], beam: NDArray[np.complex128]) -> tuple[NDArray[np.complex128], float]:
    # The beam with min_i |fᴴg_i| = 1, and its norm; infinite where it nulls a client
    weakest = float(np.abs(channel @ beam.conj()).min())
    if weakest <= 1e-12 * float(np.linalg.norm(beam)):
        return beam, np.inf
    beam = beam / weakest
    return beam, float(np.linalg.norm(beam))


def _least_norm(
    rows: NDArray[np.complex128], least: NDArray[np.float64], active: NDArray[np.bool_]
) -> tuple[NDArray[np.complex128], NDArray[np.bool_]]:
    # f of least norm with Re(f^H r_i) >= b_i, and which of these hold it back; the last ones are a guess at them
    from scipy import optimize  # which takes a tenth of a second, and most scenarios need no beam

    real, antennas = np.concatenate([rows.real, rows.imag], axis=1), rows.shape[1]
    if len(least) > _FEW_CLIENTS:
        found, active = least_distance(real, least, active)
        return np.asarray(found[:antennas] + 1j * found[antennas:]), active
    problem = np.vstack([real.T, least])
    target = np.zeros(len(problem))
    target[-1] = 1.0
    multipliers, _ = optimize.nnls(problem, target, maxiter=50 * len(least))
    residual = problem @ multipliers - target
    beam = -residual[:-1] / residual[-1]
    return np.asarray(beam[:antennas] + 1j * beam[antennas:]), active
