"""Fixed clip beside the norms of the updates: power and noise are set for the clip."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wirelessfl.errors import ScenarioError
from wirelessfl.scenario import Scenario, parse_scenario
from wirelessfl.scenario.mechanism import FlatClip, GaussianNoise, GradientNoise
from wirelessfl.scenario.power_control import Cotaf, Gbma
from wirelessfl.scenario.uplink import OverTheAir

if TYPE_CHECKING:
    import xarray as xr

TOLERATED_DB = 10.0
"""Decibels by which a clip may exceed the median norm before a user is told."""


@dataclass(frozen=True)
class ClipFit:
    """Fixed clip beside the norms of the transmitted updates.

    Attributes:
        key: scenario key of the clip.
        excess_db: 20 log10 of the clip over the median norm; what updates of that norm lose against the noise.
        fitting: the median norm.
        largest: the largest norm.
    """

    key: str
    excess_db: float
    fitting: float
    largest: float

    def warning(self) -> str | None:
        """Warning to the user; None where the clip fits."""
        if self.excess_db <= TOLERATED_DB:
            return None
        return (
            f"{self.key} is {self.excess_db:.1f} dB above the median norm of the updates: power and noise are set for "
            f"it, so that updates arrive that much weaker in the noise. {self.fitting:.3g} fits (the median; the "
            f"largest was {self.largest:.3g}). These norms are private data of the simulated clients, in the trace for "
            "whoever runs the simulation; a clip chosen by them is not accounted for"
        )


def clip_fit(trace: xr.Dataset) -> ClipFit | None:
    """Fit of the clip of a run; None where nothing is scaled by a fixed clip, or nothing was sent.

    Args:
        trace: the opened trace, with the scenario in its attributes.
    """
    try:
        key, clips = _scales(parse_scenario(str(trace.attrs["scenario"]), "trace"))
    except ScenarioError:  # of another version
        return None
    if not clips or "update_norm" not in trace:
        return None
    norm = trace["update_norm"].values
    rounds = trace["round"].values.astype(np.int64)
    scale = np.array([clips[min(index, len(clips)) - 1] for index in rounds.tolist()])[:, None]
    sent = np.isfinite(norm)
    ratio = float(np.median((norm / scale)[sent])) if sent.any() else 0.0
    if ratio == 0.0:
        return None
    return ClipFit(key, -20.0 * math.log10(ratio), float(np.median(norm[sent])), float(norm[sent].max()))


def _scales(scenario: Scenario) -> tuple[str, tuple[float, ...]]:
    # Key of the clip that scales power or noise, and its values by round; none where other norms set the scale
    uplink, mechanism = scenario.uplink, scenario.training.privacy
    if isinstance(uplink, OverTheAir):
        control = uplink.power_control
        if isinstance(control, Cotaf | Gbma) and control.expected_norms is not None:
            given = control.expected_norms
            return "uplink.power_control.expected_norms", given if isinstance(given, tuple) else ()
        return "uplink.clip", (uplink.clip,)
    if isinstance(mechanism, GradientNoise) and mechanism.unit == "client" and mechanism.clip is not None:
        fixed = isinstance(mechanism, GaussianNoise) and isinstance(mechanism.clipping, FlatClip)
        return "training.privacy.clip", (mechanism.clip,) if fixed else ()
    return "", ()
