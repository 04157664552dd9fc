"""Late arrival with OFDM, against the modulation written out: inverse transform, cyclic prefix, delay, transform."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from wirelessfl.radio import LateArrival, Superposition
from wirelessfl.radio.slot_schedule import coordinate_ranges

CLIENTS = 5
GENERATOR = np.random.default_rng(61)
COEFFICIENTS = GENERATOR.standard_normal(CLIENTS) + 1j * GENERATOR.standard_normal(CLIENTS)


def over_ofdm(symbols: np.ndarray, prefix: int, late: int) -> np.ndarray:
    """One OFDM symbol through a delay of whole samples: what the receiver's transform finds on the subcarriers."""
    samples = np.fft.ifft(symbols)
    sent = np.concatenate([samples[-prefix:], samples])
    arrived = np.concatenate([np.zeros(late), sent])
    return np.fft.fft(arrived[prefix : prefix + len(symbols)])


@pytest.mark.parametrize("late", [0, 1, 3, 8])
def test_a_delay_within_the_prefix_is_a_phase_ramp(late: int) -> None:
    symbols = GENERATOR.standard_normal(64) + 0j
    rotations = LateArrival(np.array([late / 64]), 64).rotations(64)[0]
    np.testing.assert_allclose(over_ofdm(symbols, 8, late), rotations * symbols, atol=1e-12)


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize(
    ("dimension", "subcarriers"), [(1, 1), (7, 3), (10, 64), (33, 8), (1001, 4), (640, 64), (500, 5)]
)
def test_the_sum_is_that_of_all_symbols_one_by_one(dimension: int, subcarriers: int, packing: bool) -> None:
    updates, offset = GENERATOR.standard_normal((CLIENTS, dimension)), GENERATOR.uniform(0, 0.07, CLIENTS)
    padded = np.pad(updates, ((0, 0), (0, dimension % 2)))
    symbols = padded[:, 0::2] + 1j * padded[:, 1::2] if packing else updates + 0j
    carrier = np.concatenate(
        [np.full(len(part), k) for k, part in enumerate(np.array_split(np.arange(symbols.shape[1]), subcarriers))]
    )
    turned = np.exp(-2j * np.pi * carrier * offset[:, None])
    if symbols.shape[1] < subcarriers:
        np.testing.assert_array_equal(carrier, np.arange(symbols.shape[1]))
    received = (COEFFICIENTS[:, None] * turned * symbols).sum(axis=0)
    expected = np.stack([received.real, received.imag], axis=1).ravel()[:dimension] if packing else received.real
    late, air = LateArrival(offset, subcarriers), Superposition(dimension, packing)
    air.add(updates[:2], COEFFICIENTS[:2], late[:2])
    air.add(updates[2:], COEFFICIENTS[2:], late[2:])
    np.testing.assert_allclose(air.received(), expected, rtol=1e-12, atol=1e-12)
    on_torch = Superposition(dimension, packing)
    on_torch.add(torch.tensor(updates), COEFFICIENTS, late)
    np.testing.assert_allclose(on_torch.received().numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("packing", [False, True])
def test_turning_subcarriers_keeps_the_energy_of_both_quadratures(packing: bool) -> None:
    """The adversary sees both: what can arrive from a client is as much as without the offset."""
    update = GENERATOR.standard_normal((1, 200))
    parts = []
    for turn in (1.0, 1j):
        air = Superposition(200, packing)
        air.add(update, np.array([turn]) + 0j, LateArrival(np.array([0.05]), 20))
        parts.append(np.asarray(air.received()))
    energy = float(np.sum(parts[0] ** 2)) if packing else float(np.sum(parts[0] ** 2 + parts[1] ** 2))
    assert energy == pytest.approx(float(np.sum(update**2)), rel=1e-12)


def test_prompt_clients_are_not_changed() -> None:
    updates = GENERATOR.standard_normal((CLIENTS, 96))
    prompt, plain = Superposition(96), Superposition(96)
    prompt.add(updates, COEFFICIENTS, LateArrival(np.zeros(CLIENTS), 12))
    plain.add(updates, COEFFICIENTS)
    # The terms are of size 1: where they cancel, rounding is relative to them and not to the sum
    np.testing.assert_allclose(prompt.received(), plain.received(), rtol=1e-13, atol=1e-14)


def test_ranges_are_those_of_array_split() -> None:
    def lengths(dimension: int, packing: bool) -> NDArray[np.int64]:
        return np.array([hi - lo for lo, hi in coordinate_ranges(dimension, 7, packing)])

    np.testing.assert_array_equal(lengths(100, False), [len(part) for part in np.array_split(np.arange(100), 7)])
    np.testing.assert_array_equal(lengths(99, True)[:-1] % 2, 0)
    assert lengths(99, True).sum() == 99


def test_a_single_carrier_has_no_subcarriers_to_turn() -> None:
    np.testing.assert_array_equal(LateArrival(np.array([0.3])).rotations(10), [[1.0]])
