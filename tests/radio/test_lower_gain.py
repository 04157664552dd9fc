"""Lowering α_u instead of jamming: the same noise, by the same calibrations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.radio.strategies import CLIP, example_links, rounds
from wirelessfl.privacy import noise_std_theorem
from wirelessfl.radio import (
    AirInterface,
    ExactCalibration,
    Links,
    LowerGain,
    TheoremCalibration,
    check_power_control,
    received_bound,
)

AIR = AirInterface(clip=CLIP, channel_noise_std=1.3, dimension=30)
EXACT = ExactCalibration(rounds=20, gdp_mu=1.7, reach=2.0)


def test_by_the_theorem_it_is_the_gain_that_meets_epsilon_in_every_round() -> None:
    calibration = TheoremCalibration(noise_std_theorem(2.0, 1e-5, 20, 800))
    plan = LowerGain(calibration).plan(example_links(5), 1, AIR)
    assert plan.server_gain == pytest.approx(1.3 / noise_std_theorem(2.0, 1e-5, 20, 800), rel=1e-12)
    assert plan.receive_scale == pytest.approx(plan.server_gain / CLIP)
    assert LowerGain(calibration, "none").plan(example_links(5), 1, AIR).receive_scale == plan.server_gain


@given(links=rounds(), scale=st.floats(1e-3, 1e3))
def test_exactly_the_loudest_client_just_meets_the_budget(links: Links, scale: float) -> None:
    """2R √M/σ_m = μ*, unless even full power of everybody stays below."""
    links = replace(links, power_budget=links.power_budget * scale)
    policy = LowerGain(EXACT)
    plan = policy.plan(links, 1, AIR)
    spent = 2 * received_bound(policy, plan, links).max() * np.sqrt(20) / (1.3 / plan.server_gain)
    assert spent <= 1.7 * (1 + 1e-9)
    full = np.abs(links.channel) * np.sqrt(links.power_budget)
    if 2 * full.max() * np.sqrt(20) / 1.3 > 1.7:
        assert spent == pytest.approx(1.7, rel=1e-9)
    else:
        assert plan.server_gain == pytest.approx(
            np.max(np.abs(links.estimate) * np.sqrt(links.power_budget) / links.weight)
        )


def test_it_keeps_the_promises_of_a_power_control() -> None:
    check_power_control(LowerGain(EXACT))
    check_power_control(LowerGain(TheoremCalibration(0.01), "none"))


def test_nobody_and_nonsense() -> None:
    nobody = example_links(3).take(np.array([], dtype=np.int64))
    assert LowerGain(EXACT).plan(nobody, 1, AIR).server_gain == 1.0
    with pytest.raises(ValueError, match="rescale"):
        LowerGain(EXACT, "half")  # type: ignore[arg-type]
