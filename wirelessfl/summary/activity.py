"""From the events of a trace to what every node did from when to when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from wirelessfl.trace import SERVER_NODE, EventKind

if TYPE_CHECKING:
    import xarray as xr

Doing = Literal["broadcasts", "trains", "waits", "sends", "jams"]
"""What a node does over a stretch of time."""

_SENDS = {
    EventKind.TRANSMIT,
    EventKind.ADVERTISE_KEYS,
    EventKind.SHARE_KEYS,
    EventKind.MASKED_INPUT,
    EventKind.UNMASK,
}
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
    **dict.fromkeys(_SENDS, "sends"),
}
"""What a node does after an event of its own; None: nothing more in this round."""
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
"""What goes wrong, and at what time."""


@dataclass(frozen=True)
class Stretch:
    """Something that takes time.

    Attributes:
        node: client, server or jammer, in the numbers of the trace.
        doing: what it does.
        begin: simulated seconds.
        end: simulated seconds.
    """

    node: int
    doing: Doing
    begin: float
    end: float


@dataclass(frozen=True)
class Mark:
    """Something that happens at once.

    Attributes:
        node: client, server or jammer.
        kind: what.
        time: simulated seconds.
    """

    node: int
    kind: EventKind
    time: float


def activities(events: xr.Dataset) -> tuple[list[Stretch], list[Mark]]:
    """What all nodes did, in whole rounds, and what went wrong.

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

    columns = (events[name].to_numpy().tolist() for name in ("time", "node", "kind"))
    for time, node, code in zip(*columns, strict=True):
        kind = EventKind(code)
        if kind in (EventKind.BROADCAST, EventKind.SUPERPOSE, EventKind.EVALUATE):
            for each, (at_work, _) in list(going_on.items()):
                if kind == EventKind.SUPERPOSE or at_work not in ("trains", "sends"):
                    stop(each, time)
        if kind == EventKind.COMPUTE_START:
            stop(SERVER_NODE, time)
        if kind in _NEXT:
            stop(node, time)
            doing = _NEXT[kind]
            if doing is not None:
                going_on[node] = (doing, time)
        if kind in MARKED:
            marks.append(Mark(node, kind, time))
    for node in list(going_on):
        stop(node, time)
    return stretches, marks
