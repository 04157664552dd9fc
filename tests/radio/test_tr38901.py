"""3GPP TR 38.901 against figures worked out by hand from its tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.radio import Tr38901, tr38901_los_probability, tr38901_path_loss_db
from wirelessfl.radio.tr38901 import LARGE_SCALE, Scenario

CARRIER = 3.5e9
HEIGHTS: dict[str, float] = {"uma": 25.0, "umi": 10.0, "inh": 3.0}
scenarios = st.sampled_from(["uma", "umi", "inh"])


def loss(scenario: Scenario, distance: float, los: bool, h_ut: float = 1.5) -> float:
    found = tr38901_path_loss_db(scenario, np.array([distance]), np.array([los]), CARRIER, HEIGHTS[scenario], h_ut)
    return float(found[0])


def breakpoint_of(scenario: Scenario) -> float:
    """4 (h_BS − 1 m)(h_UT − 1 m) f/c for terminals of 1.5 m."""
    return 4 * (HEIGHTS[scenario] - 1.0) * 0.5 * CARRIER / 299_792_458.0


@pytest.mark.parametrize(
    ("scenario", "with_los", "without", "probability", "breakpoint_m"),
    [("uma", 83.138, 103.038, 0.3477, 560.4), ("umi", 85.314, 104.644, 0.2310, 210.1)],
)
def test_the_figures_of_the_radio_page(
    scenario: Scenario, with_los: float, without: float, probability: float, breakpoint_m: float
) -> None:
    """At 3.5 GHz, 100 m, base stations of 25 and 10 m, terminals of 1.5 m."""
    assert loss(scenario, 100.0, True) == pytest.approx(with_los, abs=5e-4)
    assert loss(scenario, 100.0, False) == pytest.approx(without, abs=5e-4)
    assert tr38901_los_probability(scenario, np.array([100.0]), 1.5)[0] == pytest.approx(probability, abs=5e-5)
    assert breakpoint_of(scenario) == pytest.approx(breakpoint_m, abs=0.05)


def test_the_link_budget_at_500_metres() -> None:
    """UMa NLOS at 500 m: 129.9 dB (RADIO.md)."""
    assert loss("uma", 500.0, False) == pytest.approx(129.9, abs=0.05)


@pytest.mark.parametrize(
    ("scenario", "distance", "by_hand"),
    [
        (
            "uma",
            2000.0,
            28.0 + 40 * math.log10(math.hypot(2000, 23.5)) + 20 * math.log10(3.5) - 9 * math.log10(560.39**2 + 23.5**2),
        ),
        (
            "umi",
            1000.0,
            32.4 + 40 * math.log10(math.hypot(1000, 8.5)) + 20 * math.log10(3.5) - 9.5 * math.log10(210.15**2 + 8.5**2),
        ),
        ("inh", 30.0, 32.4 + 17.3 * math.log10(math.hypot(30, 1.5)) + 20 * math.log10(3.5)),
    ],
)
def test_line_of_sight_far_out_by_hand(scenario: Scenario, distance: float, by_hand: float) -> None:
    """The printed breakpoints carry five digits: 40 dB a decade then leave less than 1e-3 dB."""
    assert loss(scenario, distance, True) == pytest.approx(by_hand, abs=1e-3)


@pytest.mark.parametrize(
    ("scenario", "h_ut", "by_hand"),
    [
        ("uma", 10.0, 13.54 + 39.08 * math.log10(math.hypot(800, 15)) + 20 * math.log10(3.5) - 0.6 * 8.5),
        ("umi", 5.0, 22.4 + 35.3 * math.log10(math.hypot(800, 5)) + 21.3 * math.log10(3.5) - 0.3 * 3.5),
        ("inh", 1.0, 17.3 + 38.3 * math.log10(math.hypot(800, 2)) + 24.9 * math.log10(3.5)),
    ],
)
def test_without_line_of_sight_by_hand(scenario: Scenario, h_ut: float, by_hand: float) -> None:
    assert loss(scenario, 800.0, False, h_ut) == pytest.approx(by_hand, abs=1e-9)


@given(scenario=scenarios, distance=st.floats(1.0, 5000.0), h_ut=st.floats(1.1, 2.5))
def test_losing_sight_never_helps(scenario: Scenario, distance: float, h_ut: float) -> None:
    assert loss(scenario, distance, False, h_ut) >= loss(scenario, distance, True, h_ut)


def test_close_by_the_two_agree() -> None:
    """NLOS = max(LOS, NLOS′): indoors at 1 m the second formula would be 5 dB lower."""
    below = 17.3 + 38.3 * math.log10(math.hypot(1.0, 1.5)) + 24.9 * math.log10(3.5)
    assert below < loss("inh", 1.0, True) - 5
    assert loss("inh", 1.0, False) == loss("inh", 1.0, True)


@pytest.mark.parametrize("scenario", ["uma", "umi"])
def test_the_breakpoint_is_no_step(scenario: Scenario) -> None:
    at = breakpoint_of(scenario)
    assert loss(scenario, at * (1 + 1e-9), True) == pytest.approx(loss(scenario, at, True), abs=1e-6)


def test_links_of_one_call_are_independent() -> None:
    distance, los = np.array([[50.0, 700.0], [3000.0, 12.0]]), np.array([[True, False], [True, False]])
    found = tr38901_path_loss_db("uma", distance, los, CARRIER, 25.0, 1.5)
    expected = [[loss("uma", d, bool(s)) for d, s in zip(*row, strict=True)] for row in zip(distance, los, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("scenario", "distance", "expected"),
    [
        ("uma", 18.0, 1.0),
        ("umi", 5.0, 1.0),
        ("umi", 60.0, 18 / 60 + math.exp(-60 / 36) * (1 - 18 / 60)),
        ("inh", 1.2, 1.0),
        ("inh", 4.0, math.exp(-2.8 / 4.7)),
        ("inh", 20.0, 0.32 * math.exp(-13.5 / 32.6)),
    ],
)
def test_line_of_sight_probability_by_hand(scenario: Scenario, distance: float, expected: float) -> None:
    assert tr38901_los_probability(scenario, np.array([distance]), 1.5)[0] == pytest.approx(expected)


def test_high_terminals_see_further_in_urban_macro() -> None:
    plain = 18 / 200 + math.exp(-200 / 63) * (1 - 18 / 200)
    raised = plain * (1 + 1.25 * 2.0**3 * math.exp(-200 / 150) * 0.5**1.5)
    distance = np.array([200.0])
    assert tr38901_los_probability("uma", distance, 13.0)[0] == pytest.approx(plain)
    assert tr38901_los_probability("uma", distance, 18.0)[0] == pytest.approx(raised)
    assert tr38901_los_probability("umi", distance, 18.0)[0] == tr38901_los_probability("umi", distance, 1.5)[0]


def test_the_printed_product_is_capped_at_certainty() -> None:
    """At 18.125 m a terminal of 18 m would see its base station with probability 1.0006."""
    d = 18.125
    printed = (18 / d + math.exp(-d / 63) * (1 - 18 / d)) * (1 + 0.5**1.5 * 1.25 * (d / 100) ** 3 * math.exp(-d / 150))
    assert printed > 1.0005
    assert tr38901_los_probability("uma", np.array([d]), 18.0)[0] == 1.0


@given(scenario=scenarios, distance=st.floats(0, 1e4), h_ut=st.floats(1, 23))
def test_probabilities_are_probabilities(scenario: Scenario, distance: float, h_ut: float) -> None:
    assert 0 <= tr38901_los_probability(scenario, np.array([distance]), h_ut)[0] <= 1


def test_shadowing_of_the_radio_page() -> None:
    spread = {name: constants.shadowing_std_db for name, constants in LARGE_SCALE.items()}
    assert spread == {"uma": (4.0, 6.0), "umi": (4.0, 7.82), "inh": (3.0, 8.03)}


def test_where_the_model_holds() -> None:
    assert Tr38901("uma", CARRIER, 25.0, 1.5).in_range(np.array([9.9, 10.0, 5000.0, 5001.0])).tolist() == [
        False,
        True,
        True,
        False,
    ]
    assert Tr38901("inh", CARRIER, 3.0, 1.5).in_range(np.array([0.0, 150.0])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rma", np.ones(1), np.ones(1, bool), CARRIER, 25.0, 1.5), "scenario"),
        (("uma", -np.ones(1), np.ones(1, bool), CARRIER, 25.0, 1.5), "distances"),
        (("uma", np.ones(1), np.ones(1, bool), 0.0, 25.0, 1.5), "carrier"),
        (("uma", np.ones(1), np.ones(1, bool), CARRIER, 25.0, 1.0), "above"),
        (("inh", np.zeros(1), np.ones(1, bool), CARRIER, 1.5, 1.5), "at the place of the base station"),
    ],
)
def test_bad_path_loss_arguments_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tr38901_path_loss_db(*arguments)  # type: ignore[arg-type]


def test_bad_probability_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="23 m"):
        tr38901_los_probability("uma", np.ones(1), 24.0)
    with pytest.raises(ValueError, match="distances"):
        tr38901_los_probability("umi", -np.ones(1), 1.5)
