"""Unit conversions against RADIO.md's link budget and against each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.radio import units


def watts_to_dbm(watts: float) -> float:
    return 10 * math.log10(watts / 1e-3)


def snr_of_budget(budget: Any, dimension: int, channel_noise_std: float = 1.0) -> Any:
    """SNR_i = P_i/(d σ_c²) per real coordinate, before path loss."""
    return budget / (dimension * channel_noise_std**2)


def test_the_link_budget_of_the_radio_page() -> None:
    """23 dBm over 1 MHz with a noise figure of 5 dB: 2p/(N0 B) = 135.0 dB; 129.9 dB of path loss leave 5 dB."""
    noise_density = units.thermal_noise_density(5.0)
    dimension, bandwidth = 4096, 1e6
    slot = units.slot_duration(dimension, bandwidth, iq_packing=False)
    budget = units.power_budget_from_watts(units.dbm_to_watts(23.0), slot, noise_density)
    snr_db = units.linear_to_db(snr_of_budget(budget, dimension))
    assert snr_db == pytest.approx(135.0, abs=0.05)
    assert snr_db - 129.9 == pytest.approx(5.0, abs=0.1)
    assert snr_db == pytest.approx(units.linear_to_db(2 * 10**-0.7 / (noise_density * bandwidth)), abs=1e-9)


def test_noise_density_at_290_kelvin_is_minus_174_dbm_per_hertz() -> None:
    assert watts_to_dbm(units.thermal_noise_density(0.0)) == pytest.approx(-173.975, abs=5e-4)


def test_packing_halves_the_slot_and_the_budget() -> None:
    plain, packed = (units.slot_duration(1000, 1e6, packing) for packing in (False, True))
    assert (plain, packed) == (1e-3, 5e-4)
    budgets = [units.power_budget_from_watts(0.2, slot, 1e-20) for slot in (plain, packed)]
    assert budgets[0] == pytest.approx(2 * budgets[1])


def test_an_odd_dimension_is_padded() -> None:
    assert units.num_symbols(7, iq_packing=True) == 4
    assert units.num_symbols(7, iq_packing=False) == 7


@given(db=st.floats(-200, 200))
def test_decibels_round_trip(db: float) -> None:
    assert units.linear_to_db(units.db_to_linear(db)) == pytest.approx(db, abs=1e-9)
    assert watts_to_dbm(units.dbm_to_watts(db)) == pytest.approx(db, abs=1e-9)


@given(watts=st.floats(1e-6, 100), slot=st.floats(1e-6, 10))
def test_watts_and_budgets_round_trip(watts: float, slot: float) -> None:
    noise_density = units.thermal_noise_density(7.0)
    budget = units.power_budget_from_watts(watts, slot, noise_density)
    assert budget * noise_density / (2 * slot) == pytest.approx(watts)
    assert units.joules(budget, noise_density) == pytest.approx(watts * slot)


def test_snr_and_budgets_round_trip_on_arrays() -> None:
    snr = np.array([0.1, 1.0, 10.0])
    budget = units.power_budget_from_snr(snr, 650, channel_noise_std=2.0)
    np.testing.assert_allclose(budget, snr * 650 * 4)
    np.testing.assert_allclose(snr_of_budget(budget, 650, 2.0), snr)
