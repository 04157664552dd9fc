"""Activities of every node over simulated time, from the events of a trace."""

from dataclasses import dataclass
from typing import Literal

import xarray as xr

from wirelessfl.trace import SERVER_NODE, EventKind

Doing = Literal["broadcasts", "trains", "waits", "sends", "jams"]
"""Activity of a node."""

# Activity of a node after an event of its own; None: no more in this round
_NEXT: dict[EventKind, Doing | None] = {
    EventKind.BROADCAST: "broadcasts",
    EventKind.COMPUTE_START: "trains",
    EventKind.COMPUTE_END: "waits",
    EventKind.JAM: "jams",
    EventKind.ARRIVE: "waits",
    EventKind.LATE: None,
    EventKind.CRASH: None,
    EventKind.DEEP_FADE: None,
    EventKind.OUTAGE: None,
    EventKind.VANISH: None,
    EventKind.TRANSMIT: "sends",
    EventKind.ADVERTISE_KEYS: "sends",
    EventKind.SHARE_KEYS: "sends",
    EventKind.MASKED_INPUT: "sends",
    EventKind.UNMASK: "sends",
}
MARKED = (
    EventKind.UNAVAILABLE,
    EventKind.BATTERY_EMPTY,
    EventKind.CRASH,
    EventKind.LATE,
    EventKind.DEEP_FADE,
    EventKind.OUTAGE,
    EventKind.VANISH,
    EventKind.REFUSE,
    EventKind.TIME_OUT,
    EventKind.ABORT,
    EventKind.JAMMER_FAILURE,
    EventKind.SERVER_RESTART,
)
"""Failures, which have a time and no duration."""


@dataclass(frozen=True)
class Stretch:
    """Activity of a node over an interval.

    Attributes:
        node: client, server or jammer, in the numbers of the trace.
        doing: the activity.
        begin: simulated time (s).
        end: simulated time (s).
    """

    node: int
    doing: Doing
    begin: float
    end: float


@dataclass(frozen=True)
class Mark:
    """Failure at a time.

    Attributes:
        node: client, server or jammer.
        kind: its event.
        time: simulated time (s).
    """

    node: int
    kind: EventKind
    time: float


def activities(events: xr.Dataset) -> tuple[list[Stretch], list[Mark]]:
    """Activities of all nodes in whole rounds, and failures.

    The end of a slot (``superpose``) ends everything that is still going on; the end of a round (``evaluate``) ends
    all waiting, but not what clients of an asynchronous run are at; the start of local training ends the broadcast,
    and the broadcast a set-up in which all registered clients took part. What is still going on at the end of the
    events is shown up to there.

    Args:
        events: the events of some rounds, in their order.
    """
    stretches: list[Stretch] = []
    marks: list[Mark] = []
    going_on: dict[int, tuple[Doing, float]] = {}

    def stop(node: int, time: float) -> None:
        if node in going_on:
            doing, begin = going_on.pop(node)
            if time > begin:
                stretches.append(Stretch(node, doing, begin, time))

    for time, node, code in zip(*(events[name].to_numpy().tolist() for name in ("time", "node", "kind")), strict=True):
        kind = EventKind(code)
        if kind in (EventKind.BROADCAST, EventKind.SUPERPOSE, EventKind.EVALUATE):
            for each, (at_work, _) in list(going_on.items()):
                if kind == EventKind.SUPERPOSE or at_work not in ("trains", "sends"):
                    stop(each, time)
        if kind == EventKind.COMPUTE_START:
            stop(SERVER_NODE, time)
        if kind in _NEXT:
            stop(node, time)
            if (doing := _NEXT[kind]) is not None:
                going_on[node] = (doing, time)
        if kind in MARKED:
            marks.append(Mark(node, kind, time))
    for node in list(going_on):
        stop(node, time)
    return stretches, marks
