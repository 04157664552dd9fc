"""Asynchronous aggregation of a scenario."""

from wirelessfl.assembly.objects import make_object
from wirelessfl.learning.aggregation import Mixing, StalenessDiscount
from wirelessfl.scenario.timing import Asynchronous as AsynchronousSection
from wirelessfl.simulation.selection import JobsInFlight
from wirelessfl.simulation.uplinks import Asynchronous, DigitalUplink, IdealUplink, Uplink


def build_asynchronous(aggregation: AsynchronousSection, uplink: Uplink, jobs: JobsInFlight) -> Asynchronous:
    """The uplink of clients at their own pace, over the uplink of each."""
    assert isinstance(uplink, DigitalUplink | IdealUplink), "the scenario was checked"
    staleness = aggregation.staleness
    discount: StalenessDiscount = make_object("aggregation.staleness.name", staleness)
    return Asynchronous(
        uploads=uplink,
        dimension=uplink.dimension,
        buffer=aggregation.buffer,
        mixing=Mixing(aggregation.mixing, discount),
        mixes=aggregation.mixes,
        jobs=jobs,
    )
