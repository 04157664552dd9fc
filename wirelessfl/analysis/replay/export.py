"""A recorded run in the formats of other tools: tables, netCDF, and a timeline for Perfetto and chrome://tracing."""

import io
import json
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, assert_never

import numpy as np
import pandas as pd
import xarray as xr

from wirelessfl.analysis.replay.recording import Recording
from wirelessfl.errors import InputError, precondition
from wirelessfl.outputs import refuse_inputs, replacing, writing
from wirelessfl.trace import (
    EMPTY_CLIENT,
    GAIN_AXES,
    GROUPS,
    JAMMER_AXIS,
    JAMMER_NODE,
    SERVER_NODE,
    EventKind,
    Status,
    has_group,
    read_group,
    run_name,
    trace_errors,
)

Format = Literal["parquet", "csv", "netcdf", "chrome"]

_MICROSECONDS = 1e6
# Name and lane of the nodes that are no clients; these come below.
_LANES = {SERVER_NODE: ("server", 0), JAMMER_NODE: ("jammer", 1)}
_COUNTERS = ("test_accuracy", "participants", "epsilon_published", "epsilon_accounted")

# Events that begin something, with its name; the others are instants.
_BARS = {
    EventKind.BROADCAST: "broadcast",
    EventKind.COMPUTE_START: "compute",
    EventKind.TRANSMIT: "transmit",
    EventKind.JAM: "jam",
}


def tables(recording: Recording) -> dict[str, pd.DataFrame]:
    """The recording as flat tables.

    Returns:
        ``rounds`` (one row a round), ``slots`` (a row for each client selected in a round), ``clients`` (totals of the
        whole run) and ``events`` (in order of simulated time; kinds and statuses by name). Where slots have several
        pieces also ``blocks`` (a row for each client and piece).
    """
    dataset = recording.dataset
    rounds, slots, clients = (
        dataset[[name for name, variable in dataset.data_vars.items() if variable.dims == dims]]
        .to_dataframe()
        .reset_index()
        for dims in (("round",), ("round", "slot"), ("client",))
    )
    slots = slots[slots["client_id"] != EMPTY_CLIENT].drop(columns="slot").reset_index(drop=True)
    slots = slots[["round", "client_id", *(name for name in slots if name not in ("round", "client_id"))]]
    slots["status"] = _names(slots["status"], Status)
    events = events_of(recording).to_dataframe().reset_index(drop=True)[["time", "round", "node", "kind", "bits"]]
    events["kind"] = _names(events["kind"], EventKind)
    found = {"rounds": rounds, "slots": slots, "clients": clients, "events": events}
    axes = [axis for axis in GAIN_AXES if axis in dataset.dims]
    if JAMMER_AXIS in dataset.dims:
        jammer = [name for name, variable in dataset.data_vars.items() if JAMMER_AXIS in variable.dims]
        found["jammer"], dataset = dataset[jammer].to_dataframe().reset_index(), dataset.drop_vars(jammer)
    return {**found, "blocks": _gains(dataset, axes)} if axes else found


def _gains(dataset: xr.Dataset, axes: list[str]) -> pd.DataFrame:
    # The channels over their axes, a row for each client selected in a round and, say, piece of the slot.
    names = [name for name, variable in dataset.data_vars.items() if axes[0] in variable.dims]
    table = dataset[["client_id", *names]].to_dataframe().reset_index()
    table = table[table["client_id"] != EMPTY_CLIENT].sort_values(["round", "client_id", *axes])
    return table[["round", "client_id", *axes, *names]].reset_index(drop=True)


def _names(codes: "pd.Series[int]", kinds: type[Status] | type[EventKind]) -> "pd.Series[str]":
    return codes.map({int(kind): kind.name.lower() for kind in kinds})


def export(recording: Recording, form: Format, folder: Path) -> list[Path]:
    """Export of a recording in another format.

    Args:
        recording: what to write.
        form: ``parquet`` and ``csv`` write four tables, ``netcdf`` one file with the groups of the trace, ``chrome``
            one timeline.
        folder: where to; it is made where it is missing.

    Returns:
        The files.

    Raises:
        OutputError: the folder cannot be written.
        InputError: a timeline is asked for and the run kept no events, or CSV and a variable has a name that a
            spreadsheet could take for a formula.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with trace_errors(recording.path):
        files = _files(recording, form)
        for name, write in files.items():
            refuse_inputs([folder / name], [recording.path])
            with replacing(folder / name) as new:
                write(new)
    return [folder / name for name in files]


def _files(recording: Recording, form: Format) -> Mapping[str, Callable[[Path], object]]:
    # Name of each file, and what writes it; CSV has every digit, so that the numbers read back are the same.
    match form:
        case "parquet" | "csv":
            found = tables(recording)
            for table in found.values() if form == "csv" else ():
                _refuse_formulas(recording, table)
            writers = {name: table.to_csv if form == "csv" else table.to_parquet for name, table in found.items()}
            return {f"{name}.{form}": partial(write, index=False) for name, write in writers.items()}
        case "netcdf":
            content = _netcdf(recording).getbuffer()
            return {f"{recording.path.stem}.nc": lambda new: new.write_bytes(content)}
        case "chrome":
            text = json.dumps(timeline(recording), allow_nan=False)
            return {"timeline.json": lambda new: new.write_text(text, encoding="utf-8")}
        case _:
            assert_never(form)


def _refuse_formulas(recording: Recording, table: pd.DataFrame) -> None:
    # Checks the names of variables, the only free text of a table: a spreadsheet would compute one with = in front.
    strange = [name for name in table.columns if not str(name).isidentifier()]
    if strange:
        raise InputError(
            f"--export csv: {recording.path}: found a variable with the name {strange[0]!a:.80}; allowed: letters, "
            "digits and _"
        )


def _netcdf(recording: Recording) -> io.BytesIO:
    # Every group of the trace as one netCDF file, made in memory: on a full disk the HDF5 library crashes.
    made = io.BytesIO()
    recording.dataset.to_netcdf(made, engine="h5netcdf")
    for group in GROUPS:
        if group.path != "/" and has_group(recording.path, group.path):
            dataset = read_group(recording.path, group.path)
            for axis in dict.fromkeys(dataset["round"].dims if "round" in dataset.variables else ()):
                dataset = _inside(recording, dataset, axis)
            dataset.to_netcdf(made, engine="h5netcdf", group=group.path, mode="a")
    return made


def events_of(recording: Recording) -> xr.Dataset:
    """The events of the rounds of a recording."""
    return _inside(recording, read_group(recording.path, "events"), "event")


def _inside(recording: Recording, dataset: xr.Dataset, axis: Hashable) -> xr.Dataset:
    # The part of a dataset that belongs to the rounds of a recording, by its variable ``round`` along an axis.
    rounds = dataset["round"].values
    return dataset.isel({axis: (rounds >= recording.first) & (rounds <= recording.last)})


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
    precondition(
        events.sizes["event"],
        f"--export chrome: {recording.path} holds no events of these rounds; allowed: a run with trace.events: true",
        InputError,
    )
    title = f"{run_name(recording.dataset.attrs)}, seed {recording.dataset.attrs['seed']}"
    lanes = map(_lane, np.unique(events["node"].values).tolist())
    names = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": title}},
        *({"ph": "M", "name": "thread_name", "pid": 1, "tid": lane, "args": {"name": name}} for name, lane in lanes),
    ]
    return {"displayTimeUnit": "ms", "traceEvents": [*names, *_bars_and_instants(events), *_counters(recording)]}


def _lane(node: int) -> tuple[str, int]:
    return _LANES.get(node, (f"client {node}", node + len(_LANES)))


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
            | EventKind.NO_MODEL
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
            | EventKind.REPORT_LOSS
        ):
            ended = []
        case _:
            assert_never(kind)
    return [begun for begun in ended if begun in going_on]


def _row(name: str, node: int, moment: _Moment) -> dict[str, Any]:
    arguments = {"round": moment.round_index} | ({} if math.isnan(moment.bits) else {"bits": moment.bits})
    place = {"ts": moment.time * _MICROSECONDS, "pid": 1, "tid": _lane(node)[1]}
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
