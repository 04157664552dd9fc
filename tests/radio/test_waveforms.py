"""OBDA and FSK majority vote against their formulas: symbols, energies, votes and the probability of a vote."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import norm

from wirelessfl.radio import (
    AirInterface,
    FskVote,
    Heard,
    Links,
    NoCsi,
    Obda,
    Outgoing,
    SlotLinks,
    Superposition,
    TransmitPlan,
    Waveform,
)

CLIP, CLIENTS, DIMENSION = 0.7, 5, 24


def outgoing(updates: NDArray[np.float64]) -> Outgoing:
    rows = torch.from_numpy(updates.astype(np.float32))
    return Outgoing(rows, np.linalg.norm(updates, axis=1), CLIP, np.arange(len(updates)), 1)


def heard(count: int, symbols: int, dimension: int) -> Heard:
    ones = np.ones((count, 1, 1, 1), dtype=np.complex128)
    each = np.ones(count)
    links = SlotLinks(ones, ones, each / count, each, each, each)
    air = AirInterface(CLIP, 1.0, symbols)
    plan = TransmitPlan.undoing_the_clip(1.0, air, np.zeros(count, dtype=np.bool_))
    return Heard(plan, links, np.ones((count, 1, 1), dtype=np.bool_), ((0, symbols),), dimension, 1.0, 1)


@pytest.mark.parametrize("scheme", [Obda(0.01), FskVote(0.01)])
def test_symbols_have_the_norm_of_the_clip_and_none_for_zeros(scheme: Waveform) -> None:
    updates = np.random.default_rng(3).standard_normal((CLIENTS, DIMENSION)) * 1e-3
    updates[1, :6] = 0.0
    symbols, lengths = scheme.encode(outgoing(updates))
    assert tuple(symbols.shape) == (CLIENTS, scheme.symbol_count(DIMENSION))
    np.testing.assert_allclose(np.linalg.norm(symbols.numpy(), axis=1), lengths, rtol=1e-6)
    expected = np.full(CLIENTS, CLIP)
    expected[1] *= np.sqrt(18 / 24)
    np.testing.assert_allclose(lengths, expected, rtol=1e-6)


def test_without_noise_both_are_the_majority_of_signs() -> None:
    updates = np.random.default_rng(4).standard_normal((CLIENTS, DIMENSION))
    votes = np.sign(np.sign(updates).sum(axis=0))  # of five clients, never a tie
    for scheme in (Obda(0.01), FskVote(0.01)):
        symbols, _ = scheme.encode(outgoing(updates))
        total = symbols.sum(0).numpy().astype(np.float64)
        received = total[None].astype(np.complex128) if scheme.at_antennas else total
        np.testing.assert_allclose(scheme.decode(received, heard(CLIENTS, len(total), DIMENSION)), 0.01 * votes)


def test_absentees_send_neither_tone() -> None:
    scheme = FskVote(0.01, absentee_threshold=0.5)
    symbols, _ = scheme.encode(outgoing(np.array([[0.4, -0.5, 0.6, -0.7]])))
    assert (symbols[0] != 0).tolist() == [False, False, False, False, True, False, False, True]


def test_two_vote_vectors_are_no_further_apart_than_the_ledger_counts() -> None:
    updates = np.random.default_rng(5).standard_normal((1, DIMENSION))
    for scheme in (Obda(0.01), FskVote(0.01)):
        one, other = (scheme.encode(outgoing(sign * updates))[0].numpy() for sign in (1, -1))
        np.testing.assert_allclose(
            np.linalg.norm(one - other),
            {"opposite": 2.0, "non_negative": np.sqrt(2.0)}[scheme.signals] * CLIP,
            rtol=1e-6,
        )


def test_no_csi_sends_at_full_power_with_a_phase_that_no_channel_turns() -> None:
    generator = np.random.default_rng(6)
    drawn = generator.standard_normal((7, 2)) @ np.array([1.0, 1j])
    budget, each = generator.uniform(1.0, 9.0, 7), np.ones(7)
    links = Links(drawn, drawn, each / 7, budget, each, each)
    policy = NoCsi()
    sent = policy.transmit(policy.plan(links, 1, AirInterface(CLIP, 1.0, 10)), links)
    np.testing.assert_allclose(sent.tx_gain * CLIP, np.sqrt(budget), rtol=1e-12)


@pytest.mark.parametrize("antennas", [1, 3])
@pytest.mark.parametrize("positive", [1, 4, 6])
def test_the_probability_of_a_vote_over_channels(positive: int, antennas: int) -> None:
    """P(+) = (K₊E + σ²)/(KE + 2σ²) with one antenna: a channel for each coordinate, 20,000 of them.

    With A antennas the energies are Gamma(A), and P(+) that of a beta law. Fixed seed; a right detector fails with
    probability 1e-6 a case.
    """
    from scipy.stats import beta

    count, trials, energy, noise = 6, 20_000, 1.7, 0.9  # E of a tone, σ² of a complex tone
    generator = np.random.default_rng(100 * antennas + positive)
    signs = np.where(np.arange(count) < positive, 1.0, -1.0)
    updates = np.repeat(signs[:, None], trials, axis=1)
    scheme = FskVote(1.0)
    symbols, _ = scheme.encode(outgoing(updates))
    amplitude = np.sqrt(energy * trials) / CLIP  # |α|: a tone of energy E
    signal = np.zeros((antennas, 2 * trials), dtype=np.complex128)
    for antenna in signal:
        gains = (generator.standard_normal((count, trials, 2)) @ np.array([1.0, 1j])) / np.sqrt(2)
        ranges = amplitude * gains[:, None, :]  # a group for each coordinate: a pair of tones
        for quadrature, phase in ((1.0, 1.0), (1j, -1j)):
            air = Superposition(2 * trials, pieces=trials)
            air.add(symbols, phase * ranges)
            antenna += quadrature * np.asarray(air.received())
        antenna += np.sqrt(noise / 2) * (generator.standard_normal((2 * trials, 2)) @ np.array([1.0, 1j]))
    found = float((scheme.decode(signal, heard(count, 2 * trials, trials)) > 0).mean())
    plus, minus = positive * energy + noise, (count - positive) * energy + noise
    expected = plus / (count * energy + 2 * noise)
    if antennas > 1:  # P(X plus > Y minus), X and Y Gamma(A): X/(X+Y) is Beta(A, A)
        expected = float(beta(antennas, antennas).sf(minus / (plus + minus)))
    deviation = norm.isf(0.5e-6) * np.sqrt(expected * (1 - expected) / trials)
    assert abs(found - expected) < deviation


def test_votes_of_a_flat_slot_are_correlated() -> None:
    """Two clients for and two against, no noise: one channel decides all coordinates alike, several do not."""
    generator, trials = np.random.default_rng(8), 200
    scheme, signs = FskVote(1.0), np.array([1.0, 1.0, -1.0, -1.0])
    symbols, _ = scheme.encode(outgoing(np.repeat(signs[:, None], trials, axis=1)))
    decided = {}
    for pieces in (1, trials):
        gains = generator.standard_normal((4, 1, pieces, 2)) @ np.array([1.0, 1j])
        received = np.zeros((1, 2 * trials), dtype=np.complex128)
        for quadrature, phase in ((1.0, 1.0), (1j, -1j)):
            air = Superposition(2 * trials, pieces=pieces)
            air.add(symbols, phase * gains.transpose(0, 2, 1))
            received[0] += quadrature * np.asarray(air.received())
        decided[pieces] = scheme.decode(received, heard(4, 2 * trials, trials))
    assert abs(decided[1].sum()) == trials  # all alike
    assert abs(decided[trials].sum()) < trials / 2  # 7 standard deviations from as many votes either way
