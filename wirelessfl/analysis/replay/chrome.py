"""The events of a run as a timeline for trace viewers: Perfetto and chrome://tracing."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, assert_never

import numpy as np
import xarray as xr

from wirelessfl.analysis.replay.recording import Recording
from wirelessfl.errors import InputError
from wirelessfl.trace import JAMMER_NODE, SERVER_NODE, EventKind, read_group

_MICROSECONDS = 1e6
_LANES = {SERVER_NODE: ("server", 0), JAMMER_NODE: ("jammer", 1)}
_FIRST_CLIENT_LANE = 2
_COUNTERS = ("test_accuracy", "participants", "epsilon_published", "epsilon_accounted")

# Events that begin something, with its name; the others are instants.
_BARS = {
    EventKind.BROADCAST: "broadcast",
    EventKind.COMPUTE_START: "compute",
    EventKind.TRANSMIT: "transmit",
    EventKind.JAM: "jam",
}


class _Moment(NamedTuple):
    # Simulated seconds and round of an event, and the size of its message in bits.
    time: float
    round_index: int
    bits: float


# What goes on: the kind of event that began it, and its node.
_Begun = dict[tuple[EventKind, int], _Moment]


def timeline(recording: Recording) -> dict[str, Any]:
    """The events as trace-event JSON, for Perfetto or chrome://tracing: one lane a node, times in microseconds.

    Broadcast, local training, transmission and jamming are bars; the rest are instants. Accuracy, participants and
    both ε are counters at the end of each round.

    Raises:
        InputError: the run kept no events.
    """
    events = events_of(recording)
    if not events.sizes["event"]:
        raise InputError(
            f"--export chrome: {recording.path} holds no events of these rounds; allowed: a run with trace.events: true"
        )
    nodes = np.unique(events["node"].values).tolist()
    rows = [*[_lane_name(node) for node in nodes], *_bars_and_instants(events), *_counters(recording)]
    name = f"{recording.dataset.attrs['name']}, seed {recording.dataset.attrs['seed']}"
    head = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": name}}
    return {"displayTimeUnit": "ms", "traceEvents": [head, *rows]}


def _lane(node: int) -> int:
    return _LANES[node][1] if node in _LANES else node + _FIRST_CLIENT_LANE


def _lane_name(node: int) -> dict[str, Any]:
    name = _LANES[node][0] if node in _LANES else f"client {node}"
    return {"ph": "M", "name": "thread_name", "pid": 1, "tid": _lane(node), "args": {"name": name}}


def _bars_and_instants(events: xr.Dataset) -> Iterator[dict[str, Any]]:
    # Bars where an event begins something that ends, instants for all others.
    columns = [events[name].values.tolist() for name in ("time", "node", "kind", "round", "bits")]
    going_on: _Begun = {}
    for time, node, code, round_index, bits in zip(*columns, strict=True):
        kind = EventKind(code)
        for begun in _ended_by(kind, node, going_on):
            row = _row(_BARS[begun[0]], begun[1], going_on.pop(begun))
            yield {**row, "ph": "X", "dur": time * _MICROSECONDS - row["ts"]}
        moment = _Moment(time, round_index, bits)
        if kind in _BARS:
            if (kind, node) in going_on:
                yield _instant(kind, node, going_on.pop((kind, node)))
            going_on[kind, node] = moment
        elif kind is not EventKind.COMPUTE_END:
            yield _instant(kind, node, moment)
    yield from (_instant(kind, node, moment) for (kind, node), moment in going_on.items())


def _ended_by(kind: EventKind, node: int, going_on: _Begun) -> list[tuple[EventKind, int]]:
    # What an event brings to its end: a client's own training or upload, the broadcast for all, everybody's slot.
    match kind:
        case EventKind.COMPUTE_END | EventKind.CRASH:
            ended = [(EventKind.COMPUTE_START, node)]
        case EventKind.ARRIVE | EventKind.DEEP_FADE | EventKind.OUTAGE:
            ended = [(EventKind.TRANSMIT, node)]
        case EventKind.LATE:
            ended = [(EventKind.COMPUTE_START, node), (EventKind.TRANSMIT, node)]
        case EventKind.COMPUTE_START:
            ended = [(EventKind.BROADCAST, SERVER_NODE)]
        case EventKind.SUPERPOSE:
            ended = [begun for begun in going_on if begun[0] in (EventKind.TRANSMIT, EventKind.JAM)]
        case (
            EventKind.BROADCAST
            | EventKind.TRANSMIT
            | EventKind.JAM
            | EventKind.AGGREGATE
            | EventKind.EVALUATE
            | EventKind.UNAVAILABLE
            | EventKind.BATTERY_EMPTY
            | EventKind.ADVERTISE_KEYS
            | EventKind.SHARE_KEYS
            | EventKind.MASKED_INPUT
            | EventKind.UNMASK
            | EventKind.REQUEST
            | EventKind.VANISH
            | EventKind.REFUSE
            | EventKind.TIME_OUT
            | EventKind.ABORT
            | EventKind.JAMMER_FAILURE
            | EventKind.SERVER_RESTART
            | EventKind.CLOUD
        ):
            ended = []
        case _:
            assert_never(kind)
    return [begun for begun in ended if begun in going_on]


def _row(name: str, node: int, moment: _Moment) -> dict[str, Any]:
    arguments = {"round": moment.round_index} | ({} if math.isnan(moment.bits) else {"bits": moment.bits})
    place = {"ts": moment.time * _MICROSECONDS, "pid": 1, "tid": _lane(node)}
    return {"name": name, "cat": "node", **place, "args": arguments}


def _instant(kind: EventKind, node: int, moment: _Moment) -> dict[str, Any]:
    return {**_row(kind.name.lower().replace("_", " "), node, moment), "ph": "i", "s": "t"}


def _counters(recording: Recording) -> Iterator[dict[str, Any]]:
    # JSON has neither NaN nor infinity: where there is no number there is no point.
    clock = recording.dataset["sim_time"].values.tolist()
    for name in _COUNTERS:
        for time, value in zip(clock, recording.dataset[name].values.tolist(), strict=True):
            if math.isfinite(value):
                yield {"ph": "C", "name": name, "pid": 1, "ts": time * _MICROSECONDS, "args": {name: value}}


def events_of(recording: Recording) -> xr.Dataset:
    """The events of the rounds of a recording."""
    events = read_group(recording.path, "events")
    return events.isel(event=(events["round"].values >= recording.first) & (events["round"].values <= recording.last))
