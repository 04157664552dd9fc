"""Whether the sampling of clients amplifies the privacy of central noise."""

from wirelessfl.privacy.releases import NoAmplification
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.clients import ExternalAvailability, SelectAll
from wirelessfl.simulation.window import WaitFor


def why_unamplified(scenario: Scenario, wait_for: WaitFor) -> NoAmplification | None:
    """Why an observer of the released models earns no amplification from the sampling of clients; None if it does.

    Amplification needs that a client takes part independently of all others and of earlier rounds. Availability,
    crashes and a deadline are a client's own affair: with selection at rate q it then takes part with probability q or
    less. A quorum is not: whoever is fast decides who else is in the sum, also where a fixed number is selected, as
    clients that become ready at one instant are all in time.

    Args:
        scenario: the scenario.
        wait_for: when the server stops waiting.
    """
    selection = scenario.clients.selection
    if isinstance(selection, SelectAll):
        return None
    if wait_for.stops_early(scenario.clients.most):
        return NoAmplification.QUORUM
    if scenario.stop.sim_time_s is not None:
        return NoAmplification.STOPPED_BY_CLOCK
    if isinstance(scenario.faults.availability, ExternalAvailability):
        return NoAmplification.FOREIGN_AVAILABILITY
    return None
