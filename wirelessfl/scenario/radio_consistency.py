"""Contradictions of the radio: channel, power control and jammer that do not go together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from wirelessfl.scenario.channel import IndependentFading, RayleighFading, RecordedFading, RicianFading
from wirelessfl.scenario.geography import GivenPlacement, NoPathLoss
from wirelessfl.scenario.uplink import OverTheAir

if TYPE_CHECKING:
    from wirelessfl.scenario.scenario import Scenario

Contradiction = tuple[str, str, str]
"""Key path, what was found, what is allowed."""


def find_radio_contradictions(scenario: Scenario) -> Iterator[Contradiction]:
    """Everything in the channel and around it that does not go together."""
    yield from _fading(scenario)
    yield from _placement(scenario)


def _fading(scenario: Scenario) -> Iterator[Contradiction]:
    fading, correlation = scenario.channel.fading, scenario.channel.correlation
    if isinstance(fading, RecordedFading) and fading.file is None:
        yield "channel.fading.file", "null with the model recorded", "the file that holds the gains"
    if not isinstance(correlation, IndependentFading) and not isinstance(fading, RayleighFading | RicianFading):
        yield (
            "channel.correlation.model",
            f"{correlation.model} with {fading.model} fading",
            "independent, or rayleigh | rician fading, whose scattered part can be correlated",
        )


def _placement(scenario: Scenario) -> Iterator[Contradiction]:
    placement, count = scenario.channel.placement, scenario.clients.count
    if not isinstance(placement, GivenPlacement):
        return
    if (placement.points_m is None) == (placement.file is None):
        found = "neither points_m nor file" if placement.file is None else "both points_m and file"
        yield "channel.placement.points_m", found, "exactly one of points_m and file"
    elif placement.points_m is not None and len(placement.points_m) < count:
        yield (
            "channel.placement.points_m",
            f"{len(placement.points_m)} positions for {count} clients",
            f"at least {count}, one for each client",
        )
    uplink, located = scenario.uplink, not isinstance(scenario.channel.pathloss, NoPathLoss)
    jammer = uplink.jammer if isinstance(uplink, OverTheAir) else None
    if jammer is not None and jammer.role == "external" and jammer.position_m is None and located:
        yield "uplink.jammer.position_m", "null with channel.placement.scheme: positions", "the jammer's own [x, y]"
