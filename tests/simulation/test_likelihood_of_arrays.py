"""The ledger at small arrays against likelihood ratios of whole runs, sampled from the signals at all antennas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from tests.simulation.scenarios import run, small
from wirelessfl.simulation import FinishedRound

TRIALS = 100_000
DELTA = 0.05
JAMMED = {"epsilon": 0.015, "calibration": "theorem"}


def real(values: NDArray[np.complex128]) -> NDArray[np.float64]:
    """Complex readings (..., m) as real ones (..., 2m)."""
    return np.concatenate([values.real, values.imag], axis=-1)


def covariance(jamming: NDArray[np.complex128]) -> NDArray[np.float64]:
    """Σ (2A, 2A) of the quadratures at A antennas: unit noise at each, and circular jamming (A,) of unit variance."""
    turned = np.stack([real(jamming), real(1j * jamming)])
    return np.asarray(np.eye(2 * len(jamming)) + turned.T @ turned)


def log_ratio(
    this: FinishedRound, client: int, updates: NDArray[np.float64], jammed: bool, random: np.random.Generator
) -> NDArray[np.float64]:
    """(TRIALS,) log p(y | Δ)/p(y | Δ') of one slot, y drawn under Δ at all antennas and coordinates.

    Args:
        this: the round, of which the channels and gains as recorded are used.
        client: whose update differs.
        updates: (2, d) its two updates Δ and Δ'.
        jammed: whether a jammer sends.
        random: the source of the noise.
    """
    columns = this.slots
    (row,) = np.flatnonzero(this.round.clients == client)
    channel = np.atleast_1d((columns["channel_re"] + 1j * columns["channel_im"])[row])
    jamming = np.zeros(len(channel), dtype=np.complex128)
    if jammed:
        recorded = this.blocks if len(channel) > 1 else this.values
        jammer_channel = np.atleast_1d(recorded["jammer_channel_re"] + 1j * recorded["jammer_channel_im"])
        jamming = np.asarray(this.values["jammer_gain"] * jammer_channel, dtype=np.complex128)
        assert np.linalg.norm(jamming) > 1  # louder than the noise of an antenna
    arriving_at = channel * columns["tx_gain_abs"][row]
    total, law = np.zeros(TRIALS), covariance(jamming)
    for first, second in updates.T:
        thermal = random.standard_normal((2, TRIALS, len(channel)))
        jammer = random.standard_normal((2, TRIALS, 1))
        noise = thermal[0] + 1j * thermal[1] + jamming * (jammer[0] + 1j * jammer[1])
        heard = real(arriving_at * first + noise)
        total += multivariate_normal.logpdf(heard, real(arriving_at * first), law)
        total -= multivariate_normal.logpdf(heard, real(arriving_at * second), law)
    return total


def delta_of(ratio: NDArray[np.float64], epsilon: float) -> float:
    """E[1 − e^{ε−L}]₊ over log-likelihood ratios L: the δ that goes with ε, by definition."""
    return float(np.maximum(-np.expm1(epsilon - ratio), 0.0).mean())


@pytest.mark.parametrize("antennas", [1, 2, 3])
@pytest.mark.parametrize("jammed", [False, True])
def test_the_accounted_epsilon_is_that_of_the_likelihood_ratio(antennas: int, jammed: bool) -> None:
    """At the accounted ε of a client opposite updates at the clip cost the run's δ, and no other pair costs more."""
    overrides: dict[str, Any] = {"uplink__jammer": JAMMED} if jammed else {}
    scenario = small(
        rounds=2,
        privacy__delta=DELTA,
        uplink__receiver={"antennas": antennas, "combiner": "sum"},
        uplink__power_control={"policy": "cross_layer", "server_gain": 2.0},
        **overrides,
    )
    simulation, rounds, _ = run(scenario)
    epsilons = simulation.ledger.client_epsilons()[1]
    random = np.random.default_rng([antennas, jammed])
    worst = int(np.argmax(epsilons))
    epsilon, clip = float(epsilons[worst]), scenario.uplink.clip
    assert 0.05 < epsilon < 20 and clip is not None
    along = np.array([0.6, -0.8])
    others = random.standard_normal((2, 2))
    others *= clip / np.linalg.norm(others, axis=1, keepdims=True)
    found = {}
    for name, updates in {"opposite": clip * np.stack([along, -along]), "other": others}.items():
        ratio = sum(log_ratio(this, worst, updates, jammed, random) for this in rounds)
        found[name] = delta_of(np.asarray(ratio), epsilon)
    assert found["opposite"] == pytest.approx(DELTA, rel=0.04)
    assert found["other"] <= DELTA * 1.04
