"""The figure ``timeline``: outcomes of the clients, and activities of all nodes, over simulated time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure

from wirelessfl.summary.drawing import broken, drawing
from wirelessfl.summary.overview import draw_overview
from wirelessfl.summary.picture import run_title
from wirelessfl.summary.style import PAGE_IN, ROLES, STYLE
from wirelessfl.trace import JAMMER_NODE, SERVER_NODE, AnyRoot, EventKind, Events, Status, StoredVariable, axis_label

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
    EventKind.NO_MODEL: None,
    EventKind.VANISH: None,
    EventKind.TRANSMIT: "sends",
    EventKind.ADVERTISE_KEYS: "sends",
    EventKind.SHARE_KEYS: "sends",
    EventKind.MASKED_INPUT: "sends",
    EventKind.UNMASK: "sends",
}
# Rounds and clients whose every step is shown; where rounds are single steps of an asynchronous run, as many rounds
# as bring back as many clients.
_ZOOM_ROUNDS, _ZOOM_CLIENTS = 3, 40
_TITLE_IN, _OVERVIEW_IN, _AROUND_IN, _ROW_IN, _LEGEND_ENTRY_IN = 0.3, 2.3, 1.0, 0.11, 1.15

DOING_COLOURS: dict[Doing, str] = {
    "broadcasts": ROLES["server"],
    "trains": ROLES["compute"],
    "waits": ROLES["wait"],
    "sends": ROLES["send"],
    "jams": ROLES["jam"],
}
MARKS = {
    EventKind.UNAVAILABLE: ("unavailable", "_", ROLES["unavailable"]),
    EventKind.BATTERY_EMPTY: ("battery empty", "s", ROLES["battery_empty"]),
    EventKind.CRASH: ("crashed", "x", ROLES["crashed"]),
    EventKind.LATE: ("late", ">", ROLES["late"]),
    EventKind.DEEP_FADE: ("deep fade", "v", ROLES["deep_fade"]),
    EventKind.OUTAGE: ("outage", "1", ROLES["outage"]),
    EventKind.NO_MODEL: ("no model", "2", ROLES["no_model"]),
    EventKind.VANISH: ("vanished", "X", ROLES["crashed"]),
    EventKind.REFUSE: ("refused", "P", ROLES["lost"]),
    EventKind.TIME_OUT: ("time-out", "d", ROLES["late"]),
    EventKind.ABORT: ("aborted", "D", ROLES["aborted"]),
    EventKind.JAMMER_FAILURE: ("jammer failed", "x", ROLES["jam"]),
    EventKind.SERVER_RESTART: ("server restarts", "*", ROLES["server"]),
}
"""Failures, which have a time and no duration, with label, marker and colour."""


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


def activities(events: Events) -> tuple[list[Stretch], list[Mark]]:
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

    for time, node, code in zip(*(events[name].values.tolist() for name in ("time", "node", "kind")), strict=True):
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
        if kind in MARKS:
            marks.append(Mark(node, kind, time))
    for node in list(going_on):
        stop(node, time)
    return stretches, marks


def draw_timeline(trace: AnyRoot, events: Events, path: Path, width_in: float = PAGE_IN) -> None:
    """Figure of all clients in all rounds, and of the first rounds step by step where events were kept.

    Args:
        trace: the opened trace.
        events: its ``/events``; may be empty.
        path: where the figure goes; its suffix is the format.
        width_in: width (inches).
    """
    first = trace["round"].values[: _zoom_rounds(trace)]
    shown = np.isin(events["round"].values, first)
    zoom = {name: StoredVariable(("event",), events[name].values[shown]) for name in ("time", "node", "kind")}
    rows = _zoom_rows(zoom)
    heights = [_OVERVIEW_IN, _AROUND_IN + _ROW_IN * len(rows)] if rows else [_OVERVIEW_IN]
    with drawing(path, run_title(trace), (width_in, _TITLE_IN + sum(heights)), {**STYLE, "axes.grid": False}) as figure:
        above, *below = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        _finish(above, draw_overview(above, trace), width_in)
        for part in below:
            axes = part.subplots()
            axes.set_title(broken(_steps_title(len(first), zoom, rows), width_in, STYLE["axes.titlesize"]))
            _finish(part, _steps(axes, *activities(zoom), rows), width_in)


def _finish(part: SubFigure, handles: Sequence[Any], width_in: float) -> None:
    # Label of the time, and a legend below
    part.axes[0].set_xlabel(axis_label("sim_time"))
    if handles:
        part.legend(handles=handles, loc="outside lower center", ncols=max(1, int(width_in / _LEGEND_ENTRY_IN)))


def _zoom_rounds(trace: AnyRoot) -> int:
    # Rounds in which as many clients return as in ``_ZOOM_ROUNDS`` rounds in which all do
    status = trace["status"].values
    active = np.count_nonzero(status != Status.EMPTY_SLOT, axis=1)
    back = np.cumsum(active - np.count_nonzero(status == Status.UNDERWAY, axis=1))
    return max(_ZOOM_ROUNDS, int(np.searchsorted(back, np.cumsum(active)[:_ZOOM_ROUNDS].max(initial=0))) + 1)


def _zoom_rows(events: Events) -> dict[int, int]:
    # Row of each node that is shown step by step, from the top: server, jammer, client 0 and the other clients
    nodes = np.unique(events["node"].values)
    clients = nodes[nodes >= 0][:_ZOOM_CLIENTS].tolist()
    others = [node for node in (SERVER_NODE, JAMMER_NODE) if node in nodes]
    return {int(node): row for row, node in enumerate([*others, *clients])}


def _steps_title(rounds: int, events: Events, rows: Mapping[int, int]) -> str:
    # Which rounds, and of how many clients where not all of those at work are shown
    words = f"the first {rounds} rounds step by step" if rounds > 1 else "round 1 step by step"
    clients = np.unique(events["node"].values)
    count, shown = np.count_nonzero(clients >= 0), sum(node >= 0 for node in rows)
    return words if shown == count else f"{words}, the first {shown} of {count} clients"


def _steps(axes: Axes, stretches: list[Stretch], marks: list[Mark], rows: dict[int, int]) -> list[Any]:
    handles: list[Any] = []
    for doing, colour in DOING_COLOURS.items():
        shown = [stretch for stretch in stretches if stretch.doing == doing and stretch.node in rows]
        if shown:
            handles.append(
                axes.barh(
                    [rows[stretch.node] for stretch in shown],
                    [stretch.end - stretch.begin for stretch in shown],
                    left=[stretch.begin for stretch in shown],
                    height=0.75,
                    color=colour,
                    # An edge keeps a slot visible that is much shorter than the training before it.
                    edgecolor=colour,
                    linewidth=0.0 if doing == "waits" else 0.6,
                    label=doing,
                    zorder=1 if doing == "waits" else 2,
                )
            )
    for kind, (label, marker, colour) in MARKS.items():
        hit = [mark for mark in marks if mark.kind == kind and mark.node in rows]
        if hit:
            handles.append(
                axes.scatter(
                    [mark.time for mark in hit],
                    [rows[mark.node] for mark in hit],
                    marker=marker,
                    s=12,
                    color=colour,
                    label=label,
                    zorder=3,
                    clip_on=False,
                )
            )
    ends = [*(stretch.end for stretch in stretches), *(mark.time for mark in marks)]
    names = {SERVER_NODE: "server", JAMMER_NODE: "jammer"}
    axes.set_yticks(list(rows.values()), [names.get(node, str(node)) for node in rows])
    axes.set(ylim=(len(rows) - 0.3, -0.7), xlim=(0.0, 1.01 * max(ends, default=1.0)), ylabel="client")
    return handles
