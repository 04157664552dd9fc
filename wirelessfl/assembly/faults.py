"""What goes wrong in a scenario."""

from __future__ import annotations

from typing import assert_never

from wirelessfl.assembly.objects import make_object
from wirelessfl.assembly.recordings import load_presence
from wirelessfl.scenario import Scenario, config
from wirelessfl.simulation.availability import (
    AvailabilityModel,
    BernoulliAvailability,
    GilbertElliott,
    RecordedAvailability,
)
from wirelessfl.simulation.faults import Faults


def build_faults(scenario: Scenario) -> Faults:
    """What goes wrong.

    Raises:
        DataError: a recording of who is there cannot be read, or is too short.
        ScenarioError: an availability model of the user's own cannot be used.
    """
    faults = scenario.faults
    return Faults(
        availability=build_availability(scenario),
        crash_rate_per_s=faults.crash_rate_per_s,
        battery_j=faults.battery_j,
        restart_probability=faults.server_restart.p,
        downtime_s=faults.server_restart.downtime_s,
    )


def build_availability(scenario: Scenario) -> AvailabilityModel:
    """Who can be reached."""
    availability = scenario.faults.availability
    match availability:
        case config.BernoulliAvailability():
            return BernoulliAvailability(availability.p)
        case config.GilbertElliottAvailability():
            return GilbertElliott(availability.p_leave, availability.p_return)
        case config.RecordedAvailability():
            assert availability.file is not None, "the scenario was checked"
            return RecordedAvailability(load_presence(availability.file, scenario.rounds, scenario.clients.count))
        case config.ExternalAvailability():
            model: AvailabilityModel = make_object("faults.availability.model", availability)
            return model
        case _:
            assert_never(availability)
