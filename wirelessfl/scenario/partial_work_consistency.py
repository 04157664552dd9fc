"""Contradictions of local training that stops at a deadline: with uplinks, and with deadlines that are not there."""

from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.timing import Asynchronous
from wirelessfl.scenario.uplink import DigitalLink


def partial_work_rules(scenario: Sections) -> list[Rule]:
    """Rules of ``training.partial_work``."""
    timing, uplink, partial = scenario.timing, scenario.uplink, scenario.training.partial_work
    one_by_one = isinstance(uplink, DigitalLink)
    if not partial:
        found, allowed = f"{timing.compute_deadline_s} without training.partial_work", "null, or partial_work: true"
        return [(timing.compute_deadline_s is not None, "timing.compute_deadline_s", found, allowed)]
    ends, key = timing.compute_deadline_s, "training.partial_work"
    return [
        (
            isinstance(scenario.aggregation, Asynchronous),
            key,
            "true with aggregation.mode: asynchronous, where nobody is waited for and nobody is cut off",
            "false, or synchronous",
        ),
        (
            one_by_one and ends is None,
            "timing.compute_deadline_s",
            f"null with training.partial_work and uplink.kind: {uplink.kind}, whose uploads take times of their own",
            "seconds after which clients stop training and begin to upload",
        ),
        (
            ends is None and timing.deadline_s is None and not one_by_one,
            key,
            "true without a deadline, so that nobody is cut off",
            "false, or timing.deadline_s or timing.compute_deadline_s",
        ),
        (
            ends is not None and timing.deadline_s is not None and ends > timing.deadline_s,
            "timing.compute_deadline_s",
            f"{ends} with timing.deadline_s: {timing.deadline_s}",
            "at most timing.deadline_s",
        ),
    ]
