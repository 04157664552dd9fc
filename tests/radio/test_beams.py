"""Combiners of arrays: the max–min beam against brute force, random beams against their law."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from wirelessfl.radio import AirInterface, SlotLinks
from wirelessfl.radio.reception import MaxMinBeam, RandomBeam, SumReceiver, max_min, max_min_beam
from wirelessfl.radio.reception.conformance import check_receiver
from wirelessfl.radio.reception.least_distance import least_distance
from wirelessfl.streams import Streams

AIR = AirInterface(clip=1.0, channel_noise_std=1.0, dimension=10)


def drawn(generator: np.random.Generator, *shape: int) -> NDArray[np.complex128]:
    """Independent CN(0, 1) numbers."""
    return np.asarray(generator.standard_normal((*shape, 2)) @ np.array([1.0, 1j]) / np.sqrt(2), np.complex128)


def slot(channel: NDArray[np.complex128], weight: NDArray[np.float64] | None = None) -> SlotLinks:
    """Links (n, A) of one block, known exactly."""
    ones, wide = np.ones(len(channel)), channel[:, None, None]
    return SlotLinks(wide, wide, ones / len(ones) if weight is None else weight, ones, ones, ones)


def test_the_max_min_beam_reaches_the_brute_force_optimum() -> None:
    """Two antennas: f = (cos θ, sin θ e^{jφ}) on a grid of half a degree by one; 100 draws of 2 to 12 clients."""
    generator = np.random.default_rng(1)
    theta, phi = np.linspace(0, np.pi / 2, 181)[:, None], np.linspace(0, 2 * np.pi, 361)[None]
    parts = np.broadcast_arrays(np.cos(theta) + 0j, np.sin(theta) * np.exp(1j * phi))
    grid = np.stack(parts, axis=-1).reshape(-1, 2)
    for _ in range(100):
        clients = int(generator.integers(2, 13))
        channel = np.asarray(drawn(generator, clients, 2) * generator.uniform(0.3, 3.0, (clients, 1)))
        best = (np.abs(grid.conj() @ channel.T).min(axis=1) ** 2).max()
        beam = max_min_beam(channel)
        assert np.linalg.norm(beam) == pytest.approx(1.0, rel=1e-12)
        assert np.abs(channel @ beam.conj()).min() ** 2 >= 0.98 * best


def test_many_clients_reach_the_brute_force_optimum_too() -> None:
    """More than 128, of which few hold the beam back: 4 draws of 140 clients at two antennas, on the same grid."""
    generator = np.random.default_rng(7)
    theta, phi = np.linspace(0, np.pi / 2, 181)[:, None], np.linspace(0, 2 * np.pi, 361)[None]
    parts = np.broadcast_arrays(np.cos(theta) + 0j, np.sin(theta) * np.exp(1j * phi))
    grid = np.stack(parts, axis=-1).reshape(-1, 2)
    for _ in range(4):
        channel = drawn(generator, 140, 2) + np.array([1.0, 0.5j])
        best = (np.abs(grid.conj() @ channel.T).min(axis=1) ** 2).max()
        assert np.abs(channel @ max_min_beam(channel).conj()).min() ** 2 >= 0.98 * best


def test_the_best_starts_lead_nearly_as_far_as_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """At many antennas only the best starts go on: in the mean 97 % of the power of the weakest, never below 90 %."""
    channels = [drawn(np.random.default_rng(seed), 30, 12) for seed in range(8)]
    some = [np.abs(channel @ max_min_beam(channel).conj()).min() ** 2 for channel in channels]
    monkeypatch.setattr(max_min, "_FEW_ANTENNAS", 12)
    every = [np.abs(channel @ max_min_beam(channel).conj()).min() ** 2 for channel in channels]
    ratio = np.array(some) / np.array(every)
    assert ratio.mean() > 0.97 and ratio.min() > 0.9


def test_many_clients_are_silenced_by_and_by_in_any_order() -> None:
    """Those that remain are above the threshold, however the clients are numbered."""
    channel, receiver = drawn(np.random.default_rng(9), 200, 3), MaxMinBeam(3, threshold=0.2)
    beam = receiver.combine(slot(channel), 1, AIR)[0, 0]
    power = np.abs(channel @ beam.conj()) ** 2
    assert 20 < np.count_nonzero(power >= 0.2) < 200
    other = receiver.combine(slot(channel[::-1]), 1, AIR)[0, 0]
    np.testing.assert_allclose(other, beam, rtol=1e-6)


@pytest.mark.slow
def test_a_thousand_clients_and_64_antennas_end_in_seconds() -> None:
    """Of the processor; without a threshold, and with one that silences hundreds of clients."""
    channel = drawn(np.random.default_rng(4), 1000, 64)
    for threshold in (0.0, 0.5):
        begun = time.process_time()
        beam = MaxMinBeam(64, threshold).combine(slot(channel), 1, AIR)[0, 0]
        assert time.process_time() - begun < 60.0
        assert np.count_nonzero(np.abs(channel @ beam.conj()) ** 2 >= threshold) > 700


@pytest.mark.parametrize(("count", "length"), [(5, 8), (40, 6), (300, 12)])
def test_the_shortest_vector_in_half_spaces(count: int, length: int) -> None:
    """Against SciPy's non-negative least squares on the dual problem, from no guess, a wrong one, and the right one."""
    generator = np.random.default_rng(count)
    rows, least = generator.standard_normal((count, length)) + 1.5, generator.uniform(0.5, 2.0, count)
    problem, target = np.vstack([rows.T, least]), np.append(np.zeros(length), 1.0)
    residual = problem @ optimize.nnls(problem, target, maxiter=100 * count)[0] - target
    expected = -residual[:-1] / residual[-1]
    guess = np.zeros(count, dtype=np.bool_)
    for _ in range(2):
        found, held = least_distance(rows, least, guess)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert np.all(rows @ found >= least * (1 - 1e-8))
        np.testing.assert_allclose(rows[held] @ found, least[held], rtol=1e-6)
        guess = held
    wrong = generator.uniform(size=count) < min(1.0, length / 2 / count)
    np.testing.assert_allclose(least_distance(rows, least, wrong)[0], expected, rtol=1e-6)


def test_one_client_gets_the_matched_filter() -> None:
    channel = drawn(np.random.default_rng(2), 1, 8)
    beam = max_min_beam(channel)
    assert np.abs(channel @ beam.conj())[0] == pytest.approx(np.linalg.norm(channel), rel=1e-9)


def test_orthogonal_clients_share_the_beam_by_their_strength() -> None:
    """Channels a e₁ and b e₂: both arrive with ab/√(a² + b²)."""
    beam = max_min_beam(np.diag([3.0, 4.0]).astype(np.complex128))
    np.testing.assert_allclose(np.abs(np.diag([3.0, 4.0]) @ beam.conj()), 12.0 / 5.0, rtol=1e-6)


def test_weights_count_in_the_beam() -> None:
    """A client of twice the weight needs twice the amplitude: |fᴴĥ|²P/p² is what is made even."""
    beam = MaxMinBeam(2).combine(slot(np.eye(2, dtype=np.complex128), np.array([2 / 3, 1 / 3])), 1, AIR)[0, 0]
    assert abs(beam[0]) / abs(beam[1]) == pytest.approx(2.0, rel=1e-6)


def test_whom_the_beam_would_silence_does_not_shape_it() -> None:
    """The weakest of three is left out, and the beam is that of the other two."""
    channel = np.array([[1.0, 0.2], [0.2, 1.0], [0.01, -0.01]], dtype=np.complex128)
    some = MaxMinBeam(2, threshold=0.3).combine(slot(channel), 1, AIR)[0, 0]
    np.testing.assert_allclose(some, max_min_beam(channel[:2]), rtol=1e-9)
    served = MaxMinBeam(2).combine(slot(channel), 1, AIR)[0, 0]
    assert np.abs(channel @ served.conj()).min() > np.abs(channel @ some.conj()).min()


@pytest.mark.parametrize(("gamma_db", "published"), [(0.0, 22.07), (4.0, 40.30), (8.0, 51.21)])
def test_random_beams_serve_as_many_clients_as_published(gamma_db: float, published: float) -> None:
    """K e^{−1/γ} of 60 clients have |fᴴh|² >= 1/γ (Kim, Swindlehurst, Park 2023, Fig. 2, random beam)."""
    generator, rounds, clients, gamma = np.random.default_rng(3), 400, 60, 10 ** (gamma_db / 10)
    receiver, heard = RandomBeam(4, Streams(3)), 0
    for round_index in range(1, rounds + 1):
        links = slot(drawn(generator, clients, 4))
        behind = links.combined(receiver.combine(links, round_index, AIR)[None])
        heard += int(np.count_nonzero(np.abs(behind.estimate[:, 0, 0, 0]) ** 2 >= 1 / gamma))
    probability = np.exp(-1 / gamma)
    assert clients * probability == pytest.approx(published, abs=0.005)
    error = np.sqrt(rounds * clients * probability * (1 - probability))
    assert abs(heard - rounds * clients * probability) < 4.5 * error  # one false alarm in 1.5e5


@pytest.mark.slow
@pytest.mark.parametrize(
    "receiver", [SumReceiver(3), RandomBeam(3, Streams(1)), MaxMinBeam(3), MaxMinBeam(2, 0.3), MaxMinBeam(1)]
)
def test_receivers_keep_their_promises(receiver: SumReceiver | RandomBeam | MaxMinBeam) -> None:
    check_receiver(receiver)


def test_a_client_without_a_channel_has_no_beam() -> None:
    with pytest.raises(ValueError, match="cannot be served"):
        max_min_beam(np.zeros((1, 2), dtype=np.complex128))
