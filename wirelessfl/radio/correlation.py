"""Fading that is correlated in time: a first-order recursion and Clarke's isotropic scattering.

Both describe the scattered part, CN(0, 1) at any instant: Rayleigh fading as it stands, Rician through `Rician.around`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.streams import NodeStream

NUM_SINUSOIDS = 32
"""Sinusoids a link; each link's own spectrum is then exact up to a lag of about NUM_SINUSOIDS/(2π f_D)."""


def jakes_correlation(doppler_hz: float, interval_s: float) -> float:
    """J0(2π f_D T): Clarke's correlation of two gains T seconds apart; may be negative."""
    return float(special.j0(2.0 * np.pi * doppler_hz * interval_s))


def gauss_markov(
    previous: NDArray[np.complex128],
    rounds_since: NDArray[np.float64],
    fading_correlation: float,
    innovation: NDArray[np.complex128],
) -> NDArray[np.complex128]:
    """The next gains of an AR(1) process: ρ^k h' + sqrt(1 − ρ^{2k}) w after k rounds.

    The correlation is ρ at lag 1 and ρ^k at lag k, which is not Clarke's beyond lag 1. Who was not active for some
    rounds is carried over all of them in one step.

    Args:
        previous: (n,) the gains when the nodes were last active; any finite number where that was never.
        rounds_since: (n,) k >= 1, rounds since then; infinity for a first appearance.
        fading_correlation: ρ in [−1, 1], for instance `jakes_correlation` of the round duration.
        innovation: (n,) independent CN(0, 1) numbers of this round.

    Returns:
        (n,) CN(0, 1) gains; also the state to hand in next time.

    Raises:
        ValueError: if ρ or a number of rounds is out of range.
    """
    if not -1 <= fading_correlation <= 1:
        raise ValueError(f"fading_correlation must lie between -1 and 1, not {fading_correlation}")
    if not np.all(rounds_since >= 1):
        raise ValueError("rounds_since must be at least 1 for every node")
    first = np.isinf(rounds_since)
    memory = np.where(first, 0.0, np.power(fading_correlation, np.where(first, 1.0, rounds_since)))
    return np.asarray(memory * previous + np.sqrt(1.0 - memory**2) * innovation)


def clarke_fading(
    times: NDArray[np.float64], doppler_hz: float, links: int, generator: np.random.Generator
) -> NDArray[np.complex128]:
    """Clarke's fading of independent links at common times: complex (links, times).

    h(t) = Σ_n a_n e^{j 2π f_D t cos θ_n} with a_n ~ CN(0, 1/N) and N angles of arrival evenly spaced around the circle
    from a random start (Clarke 1968; sum of sinusoids after Jakes 1974). The gain is CN(0, 1) at every instant, its
    autocorrelation J0(2π f_D τ) and its level-crossing rate sqrt(2π) f_D ρ e^{−ρ²}, all exactly, over the ensemble.

    Args:
        times: (T,) seconds.
        doppler_hz: f_D >= 0, the largest Doppler shift.
        links: how many links to draw.
        generator: source of amplitudes and angles.
    """
    drawn = generator.standard_normal((links, NUM_SINUSOIDS + 1, 2)) @ np.array([1.0, 1j]) / np.sqrt(2.0)
    return _sum_of_sinusoids(np.asarray(times)[None, :], np.full((links, 1), doppler_hz), drawn)


def clarke_gains(times: NDArray[np.float64], doppler_hz: float, stream: NodeStream) -> NDArray[np.complex128]:
    """Clarke's fading in closed form: the gains (n,) of the stream's nodes at one time each.

    A node's whole path over time follows from its row of the stream, so there is no state: use the same round index
    (0) at all times.

    Args:
        times: (n,) seconds.
        doppler_hz: f_D >= 0.
        stream: one row a node.
    """
    drawn = stream.complex_normal(NUM_SINUSOIDS + 1)
    return _sum_of_sinusoids(np.asarray(times)[:, None], np.full((len(drawn), 1), doppler_hz), drawn)[:, 0]


def _sum_of_sinusoids(
    times: NDArray[np.float64], doppler_hz: NDArray[np.float64], drawn: NDArray[np.complex128]
) -> NDArray[np.complex128]:
    """(links, times) from CN(0, 1) numbers (links, N + 1): N amplitudes, and one whose phase turns the angles."""
    if np.any(doppler_hz < 0):
        raise ValueError("doppler_hz must be at least 0")
    amplitudes, start = drawn[:, :-1] / np.sqrt(NUM_SINUSOIDS), np.angle(drawn[:, -1:])
    gains = np.zeros((len(drawn), times.shape[1]), dtype=np.complex128)
    for n in range(NUM_SINUSOIDS):
        angle_of_arrival = (2.0 * np.pi * n + start) / NUM_SINUSOIDS
        gains += amplitudes[:, n : n + 1] * np.exp(2j * np.pi * doppler_hz * times * np.cos(angle_of_arrival))
    return gains
