"""The rule of RIS-FL against its equation, client by client, with P, weights and variances that differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.radio.strategies import CLIP, example_links, rounds
from wirelessfl.radio import AirInterface, CentredPowerControl, Links, NormScaledPowerControl, RisFl
from wirelessfl.radio.conformance import check_power_control

AIR = AirInterface(clip=CLIP, channel_noise_std=0.8, dimension=30)


@pytest.mark.parametrize("floor", [1e-9, 1e-3, 10.0])
def test_it_conforms(floor: float) -> None:
    check_power_control(RisFl(floor))
    assert isinstance(RisFl(floor), CentredPowerControl) and not isinstance(RisFl(floor), NormScaledPowerControl)


@given(links=rounds(), floor=st.floats(1e-6, 1.0), seed=st.integers(0, 1000))
def test_the_scale_is_that_of_the_equation(links: Links, floor: float, seed: int) -> None:
    """η = min_i P_i |ĥ_i|²/(d p_i² v_i); √η p_i (Δ_i − m_i)/ĥ_i stays within P_i and reaches it above the floor."""
    updates = np.random.default_rng(seed).normal(0.2, 1.0, (len(links), AIR.dimension))
    updates *= CLIP * np.random.default_rng(seed + 1).uniform(0.1, 1.0, (len(links), 1)) / AIR.dimension**0.5 / 3
    policy = RisFl(floor)
    plan = policy.plan(links, 1, AIR)
    heard, sent = links.take(~plan.silent), updates[~plan.silent]
    if not len(heard):
        return
    eta = np.inf
    for i, row in enumerate(sent):
        variance = max(float(np.var(row)), floor)
        power = heard.power_budget[i] / AIR.dimension * abs(heard.estimate[i]) ** 2
        eta = min(eta, power / (heard.weight[i] ** 2 * variance))
    centred = sent - sent.mean(axis=1, keepdims=True)
    settled = policy.settled_by_variances(plan, heard, np.linalg.norm(centred, axis=1), AIR)
    assert settled.receive_scale == pytest.approx(np.sqrt(eta), rel=1e-9)
    assert settled.server_gain == pytest.approx(CLIP * np.sqrt(eta), rel=1e-9)
    gain = policy.transmit(settled, heard).tx_gain
    np.testing.assert_allclose(gain, np.sqrt(eta) * heard.weight / heard.estimate, rtol=1e-9)
    spent = np.abs(gain) ** 2 * (centred**2).sum(axis=1) / heard.power_budget
    assert spent.max() <= 1 + 1e-9
    if np.all(sent.var(axis=1) >= floor):
        assert spent.max() == pytest.approx(1.0, rel=1e-9)


def test_what_is_announced_is_the_least_scale_of_all_updates_within_the_clip() -> None:
    links, policy = example_links(6), RisFl(1e-3)
    plan = policy.plan(links, 1, AIR)
    for fill in (0.01, 0.5, 1.0):
        settled = policy.settled_by_variances(plan, links, np.full(6, fill * CLIP), AIR)
        assert settled.server_gain >= plan.server_gain * (1 - 1e-12)
    assert settled.server_gain == pytest.approx(plan.server_gain, rel=1e-12)


def test_below_the_floor_the_scale_does_not_depend_on_updates() -> None:
    links, policy = example_links(6), RisFl(CLIP**2 / AIR.dimension)
    plan = policy.plan(links, 1, AIR)
    for fill in (0.0, 0.3, 1.0):
        settled = policy.settled_by_variances(plan, links, np.full(6, fill * CLIP), AIR)
        assert settled.server_gain == pytest.approx(plan.server_gain, rel=1e-12)


@pytest.mark.parametrize("floor", [0.0, -1.0, np.inf, np.nan])
def test_bad_floors_are_refused(floor: float) -> None:
    with pytest.raises(ValueError, match="variance_floor must be positive and finite"):
        RisFl(floor)


def test_unlimited_power_is_refused_and_nobody_to_plan_for_is_no_error() -> None:
    with pytest.raises(ValueError, match="finite power budget"):
        RisFl().plan(replace(example_links(2), power_budget=np.full(2, np.inf)), 1, AIR)
    assert RisFl().plan(example_links(3).take(np.array([], dtype=np.int64)), 1, AIR).server_gain == 1.0
