"""Path loss and line-of-sight probability of 3GPP TR 38.901 (V16), Tables 7.4.1-1 and 7.4.2-1.

Urban macro (``uma``), urban micro street canyon (``umi``) and indoor hotspot, mixed office (``inh``), outdoors to
outdoors or indoors to indoors. Breakpoints use an effective environment height of 1 m; for urban-macro terminals above
13 m the standard draws a larger one at times.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.units import SPEED_OF_LIGHT

Scenario = Literal["uma", "umi", "inh"]
ENVIRONMENT_HEIGHT = 1.0
"""h_E in metres."""


@dataclass(frozen=True)
class LargeScale:
    """The constants of one scenario; pairs are (line of sight, without).

    Attributes:
        near: intercept and slope over log10(d_3D) of the line-of-sight loss, dB.
        far_height: factor of log10(d_BP² + (h_BS − h_UT)²) beyond the breakpoint, where the slope is 40; None without
            a breakpoint.
        beyond: intercept, slope over log10(d_3D), slope over log10(f/GHz) and loss per metre above 1.5 m without line
            of sight.
        shadowing_std_db: σ_SF.
        decorrelation_distance: of the shadowing, in metres (Table 7.5-6).
        sight_decorrelation: of the state of the line of sight, in metres (Table 7.6.3.1-2).
        rician_k_db: mean K factor with line of sight (Table 7.5-6).
        valid: smallest and largest distance in metres.
    """

    near: tuple[float, float]
    far_height: float | None
    beyond: tuple[float, float, float, float]
    shadowing_std_db: tuple[float, float]
    decorrelation_distance: tuple[float, float]
    sight_decorrelation: float
    rician_k_db: float
    valid: tuple[float, float]


LARGE_SCALE: dict[Scenario, LargeScale] = {
    "uma": LargeScale(
        (28.0, 22.0), 9.0, (13.54, 39.08, 20.0, 0.6), (4.0, 6.0), (37.0, 50.0), 50.0, 9.0, (10.0, 5000.0)
    ),
    "umi": LargeScale((32.4, 21.0), 9.5, (22.4, 35.3, 21.3, 0.3), (4.0, 7.82), (10.0, 13.0), 50.0, 9.0, (10.0, 5000.0)),
    "inh": LargeScale((32.4, 17.3), None, (17.3, 38.3, 24.9, 0.0), (3.0, 8.03), (10.0, 6.0), 10.0, 7.0, (1.0, 150.0)),
}


def tr38901_path_loss_db(
    scenario: Scenario,
    distance_2d: NDArray[np.float64],
    los: NDArray[np.bool_],
    carrier_hz: float,
    h_bs: float,
    h_ut: float,
) -> NDArray[np.float64]:
    """Path loss in dB without shadowing; without line of sight it is never below that with it.

    Args:
        scenario: "uma", "umi" or "inh".
        distance_2d: horizontal distances in metres, at least 0; see `Tr38901.in_range` for where the model holds.
        los: which links have a line of sight, in the shape of ``distance_2d``.
        carrier_hz: carrier frequency; the model is meant for 0.5 to 100 GHz.
        h_bs: height of the base station in metres.
        h_ut: height of the terminals in metres.

    Raises:
        ValueError: if the scenario is unknown, or a distance, height or frequency out of range.
    """
    constants = _constants(scenario)
    distance_2d = np.asarray(distance_2d, dtype=np.float64)
    precondition(np.all(distance_2d >= 0) and carrier_hz > 0, "distances must be at least 0 and carrier_hz positive")
    precondition(
        constants.far_height is None or min(h_bs, h_ut) > ENVIRONMENT_HEIGHT,
        f"antennas must stand above {ENVIRONMENT_HEIGHT} m, not at h_bs={h_bs} and h_ut={h_ut}",
    )
    distance_3d = np.hypot(distance_2d, h_bs - h_ut)
    precondition(np.all(distance_3d > 0), "a terminal is at the place of the base station")
    with_los = _line_of_sight_loss(constants, distance_2d, distance_3d, carrier_hz, h_bs, h_ut)
    intercept, slope, frequency_slope, height_slope = constants.beyond
    without = intercept + slope * np.log10(distance_3d) + frequency_slope * np.log10(carrier_hz / 1e9)
    without = without - height_slope * (h_ut - 1.5)
    return np.where(los, with_los, np.maximum(with_los, without))


def tr38901_los_probability(scenario: Scenario, distance_2d: NDArray[np.float64], h_ut: float) -> NDArray[np.float64]:
    """Probability of a line of sight at horizontal distances in metres (Table 7.4.2-1); ``inh`` is the mixed office.

    Args:
        scenario: "uma", "umi" or "inh".
        distance_2d: metres, at least 0.
        h_ut: height of the terminals in metres; matters for uma between 13 and 23 m.

    Raises:
        ValueError: if the scenario is unknown, a distance negative, or an urban-macro terminal higher than 23 m.
    """
    _constants(scenario)
    distance_2d = np.asarray(distance_2d, dtype=np.float64)
    precondition(np.all(distance_2d >= 0), "distances must be at least 0")
    if scenario == "inh":
        middle = np.exp(-(distance_2d - 1.2) / 4.7)
        far = 0.32 * np.exp(-(distance_2d - 6.5) / 32.6)
        return np.where(distance_2d <= 1.2, 1.0, np.where(distance_2d < 6.5, middle, far))
    outside = np.maximum(distance_2d, 18.0)
    reach = 63.0 if scenario == "uma" else 36.0
    probability = 18.0 / outside + np.exp(-outside / reach) * (1.0 - 18.0 / outside)
    if scenario == "uma":
        # As printed, the product exceeds 1 by up to a few per mille just beyond 18 m.
        probability = np.minimum(probability * _high_terminal_factor(outside, h_ut), 1.0)
    return np.where(distance_2d <= 18.0, 1.0, probability)


def _line_of_sight_loss(
    constants: LargeScale,
    distance_2d: NDArray[np.float64],
    distance_3d: NDArray[np.float64],
    carrier_hz: float,
    h_bs: float,
    h_ut: float,
) -> NDArray[np.float64]:
    intercept, slope = constants.near
    at_carrier = intercept + 20.0 * np.log10(carrier_hz / 1e9)
    near = at_carrier + slope * np.log10(distance_3d)
    if constants.far_height is None:
        return np.asarray(near)
    heights = (h_bs - ENVIRONMENT_HEIGHT) * (h_ut - ENVIRONMENT_HEIGHT)
    breakpoint_2d = 4.0 * heights * carrier_hz / SPEED_OF_LIGHT
    far = at_carrier + 40.0 * np.log10(distance_3d)
    far = far - constants.far_height * np.log10(breakpoint_2d**2 + (h_bs - h_ut) ** 2)
    return np.asarray(np.where(distance_2d <= breakpoint_2d, near, far))


def _high_terminal_factor(distance_2d: NDArray[np.float64], h_ut: float) -> NDArray[np.float64] | float:
    precondition(h_ut <= 23, f"urban macro is defined for terminals up to 23 m, not {h_ut} m")
    if h_ut <= 13:
        return 1.0
    height = ((h_ut - 13.0) / 10.0) ** 1.5
    return np.asarray(1.0 + height * 1.25 * (distance_2d / 100.0) ** 3 * np.exp(-distance_2d / 150.0))


def _constants(scenario: Scenario) -> LargeScale:
    precondition(scenario in get_args(Scenario), f"scenario must be one of {get_args(Scenario)}, not {scenario!r}")
    return LARGE_SCALE[scenario]
