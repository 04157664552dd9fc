"""Pieces of a slot: how many are needed, which coordinates they hold, and what arrives and is learned over them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import integrate, optimize, special

from wirelessfl.radio import (
    AirInterface,
    CrossLayer,
    FullPower,
    LateArrival,
    MinimumMse,
    PowerControl,
    SlotLinks,
    Superposition,
    coordinate_ranges,
    energy_shares,
    pieces_needed,
    range_energies,
    received_amplitude,
    self_distortion,
    transmit_over_pieces,
    worst_over_pieces,
)

AIR = AirInterface(clip=0.7, channel_noise_std=1.0, dimension=23)


def slot(clients: int, pieces: int, refreshed: bool, seed: int = 3) -> SlotLinks:
    generator = np.random.default_rng(seed)
    drawn = generator.standard_normal((2, clients, pieces, 1, 1, 2)) @ np.array([1.0, 1j]) / np.sqrt(2)
    estimate = drawn[0] + 0.2 * drawn[1]
    ones = np.ones(clients)
    budget = generator.uniform(0.5, 2.0, clients)
    return SlotLinks(drawn[0], estimate if refreshed else estimate[:, :1], ones / clients, budget, ones, 1.04 * ones)


@pytest.mark.parametrize(("doppler", "offset"), [(30.0, 0.0), (0.0, 12.0), (30.0, 12.0)])
def test_the_distortion_is_that_of_the_integral(doppler: float, offset: float) -> None:
    def changed(t: float) -> float:
        return float(2 - 2 * special.j0(2 * np.pi * doppler * t) * np.cos(2 * np.pi * offset * t))

    assert self_distortion(4e-3, doppler, offset) == pytest.approx(integrate.quad(changed, 0, 4e-3)[0] / 4e-3, rel=1e-9)


def test_a_piece_lasts_two_hundredths_of_a_doppler_period() -> None:
    """f_D T = 0.0219 at −25 dB, and one part more than fits makes two pieces."""
    longest = optimize.brentq(lambda t: self_distortion(t, 1.0) - 10**-2.5, 1e-3, 0.1)
    assert longest == pytest.approx(0.0219, abs=5e-5)
    assert pieces_needed(longest * 0.9999, 1.0) == 1 and pieces_needed(longest * 1.0001, 1.0) == 2
    assert pieces_needed(325.0, 1.0) == int(np.ceil(325.0 / longest))
    assert pieces_needed(1.0, 1e9) == pytest.approx(1e9 / longest, rel=1e-9), "without counting down to it"
    assert pieces_needed(1.0, 1e300) == pieces_needed(1.0, 0.0, 1e300) == 2**53


@pytest.mark.parametrize(("duration", "doppler", "offset"), [(0.1, 20.0, 0.0), (0.02, 5.0, 30.0), (1.0, 0.0, 1.0)])
def test_pieces_are_as_few_as_can_be(duration: float, doppler: float, offset: float) -> None:
    pieces = pieces_needed(duration, doppler, offset)
    assert self_distortion(duration / pieces, doppler, offset) <= 10**-2.5
    assert pieces > 1 and self_distortion(duration / (pieces - 1), doppler, offset) > 10**-2.5
    assert pieces_needed(duration, 0.0) == 1


@pytest.mark.parametrize("dimension", [1, 7, 23, 64])
@pytest.mark.parametrize("packing", [False, True])
def test_ranges_are_those_of_array_split(dimension: int, packing: bool) -> None:
    symbols = (dimension + 1) // 2 if packing else dimension
    for pieces in range(1, symbols + 1):
        found = coordinate_ranges(dimension, pieces, packing)
        split = np.array_split(np.arange(symbols), pieces)
        each = 2 if packing else 1
        assert found == tuple((each * part[0], min(each * (part[-1] + 1), dimension)) for part in split)
        assert not packing or all((end - first) % 2 == 0 for first, end in found[:-1])
    with pytest.raises(ValueError, match="cannot be divided"):
        coordinate_ranges(dimension, symbols + 1, packing)


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_every_piece_is_summed_with_its_own_coefficients(packing: bool, late: bool, kind: type) -> None:
    """Symbol by symbol, against one complex sum in Python."""
    generator, dimension, pieces, clients = np.random.default_rng(1), 23, 4, 5
    updates = generator.standard_normal((clients, dimension))
    coefficients = generator.standard_normal((clients, pieces)) + 1j * generator.standard_normal((clients, pieces))
    offset = generator.uniform(0, 0.9, clients) if late else None
    air = Superposition(dimension, packing, pieces)
    for rows in (slice(0, 2), slice(2, 5)):
        air.add(kind(updates[rows]), coefficients[rows], None if offset is None else LateArrival(offset[rows]))
    each = 2 if packing else 1
    symbols = np.pad(updates, ((0, 0), (0, dimension % each))).reshape(clients, -1, each) @ np.array([1, 1j][:each])
    piece_of = np.repeat(np.arange(pieces), [len(p) for p in np.array_split(symbols[0], pieces)])
    sent = coefficients[:, piece_of] * symbols
    delay = np.zeros(clients) if offset is None else offset
    arrived = ((1 - delay)[:, None] * sent).sum(axis=0)
    arrived[1:] += (delay[:, None] * sent).sum(axis=0)[:-1]
    expected = np.stack([arrived.real, arrived.imag][:each], axis=1).ravel()[:dimension]
    np.testing.assert_allclose(np.asarray(air.received()), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("policy", [CrossLayer(3.0), CrossLayer(3.0, backoff="actual"), MinimumMse(), FullPower()])
@pytest.mark.parametrize("refreshed", [False, True])
def test_no_update_exceeds_the_power_budget_or_the_ledgers_bound(policy: PowerControl, refreshed: bool) -> None:
    """The worst update of norm τ, found by brute force over directions: it lies in one piece."""
    links = slot(6, 4, refreshed)
    sends = np.abs(links.estimate) ** 2 > 0.1
    sends = sends.squeeze(axis=3)
    sends[:, 0] = True
    rows = links.rows().take(sends.ravel())
    plan = policy.plan(rows, 1, AIR)
    sent = transmit_over_pieces(policy.transmit, plan, links, sends, np.full(6, AIR.clip))
    ranges = coordinate_ranges(AIR.dimension, links.pieces)
    bound = received_amplitude(links, sent, plan).max(axis=(1, 2))
    channel = links.channel[:, :, 0, 0]
    gain = np.broadcast_to(sent.tx_gain[:, :, 0], channel.shape)
    directions = np.concatenate([np.eye(AIR.dimension), np.random.default_rng(0).standard_normal((500, AIR.dimension))])
    directions *= AIR.clip / np.linalg.norm(directions, axis=1, keepdims=True)
    piece_of = np.repeat(np.arange(links.pieces), [end - first for first, end in ranges])
    for i in range(6):
        energy = np.linalg.norm(gain[i, piece_of] * directions, axis=1) ** 2
        arrives = np.linalg.norm((channel * gain)[i, piece_of] * directions, axis=1) / plan.server_gain
        assert energy.max() <= links.power_budget[i] * (1 + 1e-12)
        assert arrives.max() == pytest.approx(bound[i], rel=1e-12)


def test_a_client_that_inverts_is_as_loud_in_every_piece() -> None:
    """RADIO: the back-off is the largest over the pieces of α_u p_i/(|ĥ_i| √P_i)."""
    links = slot(6, 5, refreshed=True)
    plan = CrossLayer(9.0).plan(links.rows(), 1, AIR)
    sent = transmit_over_pieces(
        CrossLayer(9.0).transmit, plan, links, np.ones((6, 5, 1), dtype=bool), np.full(6, AIR.clip)
    )
    wanted = 9.0 * links.weight / np.sqrt(links.power_budget) / np.abs(links.estimate).min(axis=(1, 2, 3))
    np.testing.assert_allclose(sent.backoff, np.maximum(1.0, wanted), rtol=1e-12)
    arrives = links.estimate[..., 0] * sent.tx_gain * AIR.clip
    np.testing.assert_allclose(arrives, np.broadcast_to((9.0 * links.weight / sent.backoff)[:, None, None], (6, 5, 1)))


def test_the_ledger_takes_the_worst_ratio_over_the_pieces() -> None:
    """Brute force over how an update is spread: max Σ R_t² u_t²/σ_t² over Σ u_t² = 1."""
    generator = np.random.default_rng(7)
    received, noise = generator.uniform(0.1, 2.0, (5, 4)), generator.uniform(0.5, 3.0, 4)
    received[0, 1] = 0.0
    worst = worst_over_pieces(received[..., None], noise[:, None])
    spread = generator.dirichlet(np.full(4, 0.1), 20_000)
    told = np.sqrt((received**2 / noise**2) @ spread.T).max(axis=1)
    ratio = worst.received_bound / worst.noise_std
    assert np.all(told <= ratio * (1 + 1e-12))
    np.testing.assert_allclose(told, ratio, rtol=1e-2)
    np.testing.assert_array_equal(worst.received_bound, received.max(axis=1))
    silent = worst_over_pieces(np.zeros((1, 2, 1)), np.ones((2, 1)))
    assert silent.received_bound[0] == 0.0 and silent.noise_std[0] == 1.0


def test_energy_is_counted_where_the_update_lies() -> None:
    updates: NDArray[np.float64] = np.array([[3.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    ranges = coordinate_ranges(3, 2)
    found = energy_shares(range_energies(updates, ranges), ranges)
    np.testing.assert_allclose(found, [[9 / 25, 16 / 25], [2 / 3, 1 / 3]])
    np.testing.assert_allclose(energy_shares(range_energies(torch.tensor(updates), ranges), ranges), found)
