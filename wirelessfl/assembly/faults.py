"""What goes wrong in a scenario."""

from wirelessfl.assembly.objects import RunFacts, make_object
from wirelessfl.learning.faults import AvailabilityModel, Faults
from wirelessfl.scenario import Scenario


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
    model: AvailabilityModel = make_object("faults.availability.model", availability, context=RunFacts.of(scenario))
    return model
