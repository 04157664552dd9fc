"""A client of asynchronous aggregation: its training and upload go on across rounds."""

from collections.abc import Generator
from typing import Any

import simpy

from wirelessfl.simulation.jobs import Job
from wirelessfl.simulation.medium import Medium


def asynchronous_client(medium: Medium, job: Job, since: int) -> Generator[simpy.Event, Any, None]:
    """Training and upload across rounds; messages carry the client's number in place of a position in a round.

    Args:
        medium: carries what the client says.
        job: its training and upload.
        since: ticks up to which everything has happened already.
    """
    # All timers are set at once, so that the first to start comes first at one instant, also in a resumed run.
    ahead = [(medium.env.timeout(time - medium.now), kind, bits) for time, kind, bits in job.events() if time > since]
    for timer, kind, bits in ahead:
        yield timer
        medium.note(kind, job.client, bits)
    medium.send(job.report)
