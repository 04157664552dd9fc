"""How well a fixed clip fits the updates of a run: power and noise are set for the clip, not for the updates."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wirelessfl.errors import ScenarioError
from wirelessfl.scenario import Scenario, config, parse_scenario
from wirelessfl.scenario.mechanism import GradientNoise

if TYPE_CHECKING:
    import xarray as xr

TOLERATED_DB = 10.0
"""Decibels by which a clip may exceed the median norm before a user is told."""


@dataclass(frozen=True)
class ClipFit:
    """A clip beside the norms of the updates that were sent.

    Attributes:
        key: where the clip stands in the scenario.
        excess_db: 20 log10 of the clip over the median norm; what updates of that norm lose against the noise.
        fitting: the median norm.
        largest: the largest norm.
    """

    key: str
    excess_db: float
    fitting: float
    largest: float

    def warning(self) -> str | None:
        """What to tell the user; None where the clip fits."""
        if self.excess_db <= TOLERATED_DB:
            return None
        return (
            f"{self.key} is {self.excess_db:.1f} dB above the median norm of the updates: power and noise are set for "
            f"it, so that updates arrive that much weaker in the noise. {self.fitting:.3g} fits (the median; the "
            f"largest was {self.largest:.3g}). These norms are private data of the simulated clients, in the trace for "
            "whoever runs the simulation; a clip chosen by them is not accounted for"
        )


def clip_fit(trace: xr.Dataset) -> ClipFit | None:
    """The clip of a run beside its updates; None where nothing is scaled by a fixed clip, or nothing was sent.

    Args:
        trace: the opened trace, with the scenario in its attributes.
    """
    scenario = None
    with suppress(ScenarioError):  # of another version
        scenario = parse_scenario(str(trace.attrs["scenario"]), "trace")
    if scenario is None or "update_norm" not in trace:
        return None
    key, clips = _scales(scenario)
    if not clips:
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
    """The key by which power or noise is scaled, and its values by round, the last of which holds on.

    There are no values where norms in a file, or those of the round, set the scale.
    """
    uplink, mechanism = scenario.uplink, scenario.training.privacy
    if isinstance(uplink, config.OverTheAir):
        control = uplink.power_control
        if isinstance(control, config.Cotaf | config.Gbma) and control.expected_norms is not None:
            given = control.expected_norms
            return "uplink.power_control.expected_norms", given if isinstance(given, tuple) else ()
        return "uplink.clip", (uplink.clip,)
    if isinstance(mechanism, GradientNoise) and mechanism.unit == "client" and mechanism.clip is not None:
        fixed = isinstance(mechanism, config.GaussianNoise) and isinstance(mechanism.clipping, config.FlatClip)
        return "training.privacy.clip", (mechanism.clip,) if fixed else ()
    return "", ()
