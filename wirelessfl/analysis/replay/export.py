"""A recorded run in the formats of other tools: tables, netCDF, and a timeline for trace viewers."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import pandas as pd
import xarray as xr

from wirelessfl.analysis.replay.chrome import events_of, timeline
from wirelessfl.analysis.replay.recording import Recording
from wirelessfl.errors import InputError, OutputError
from wirelessfl.outputs import refuse_inputs, replacing
from wirelessfl.trace import (
    EMPTY_CLIENT,
    GAIN_AXES,
    GROUPS,
    EventKind,
    Status,
    has_group,
    read_group,
    trace_errors,
)

Format = Literal["parquet", "csv", "netcdf", "chrome"]


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
    writers: Mapping[Format, Callable[[Recording, Path], list[Path]]] = {
        "parquet": partial(_write_tables, ending="parquet"),
        "csv": partial(_write_tables, ending="csv"),
        "netcdf": _write_netcdf,
        "chrome": _write_chrome,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror}") from error
    with trace_errors(recording.path):
        return writers[form](recording, folder)


@contextmanager
def _placing(recording: Recording, path: Path) -> Iterator[Path]:
    # A new file that takes its place when it is whole, unless the recording itself lies there.
    refuse_inputs([path], [recording.path])
    with replacing(path) as new:
        yield new


def _write_tables(recording: Recording, folder: Path, ending: Literal["parquet", "csv"]) -> list[Path]:
    # CSV has every digit, so that the numbers read back are the same.
    paths = []
    for name, table in tables(recording).items():
        if ending == "csv":
            _refuse_formulas(recording, table)
        paths.append(folder / f"{name}.{ending}")
        with _placing(recording, paths[-1]) as new:
            (table.to_csv if ending == "csv" else table.to_parquet)(new, index=False)
    return paths


def _refuse_formulas(recording: Recording, table: pd.DataFrame) -> None:
    # Checks the names of variables, the only free text of a table: a spreadsheet would compute one with = in front.
    strange = [name for name in table.columns if not str(name).isidentifier()]
    if strange:
        raise InputError(
            f"--export csv: {recording.path}: found a variable with the name {strange[0]!a:.80}; allowed: letters, "
            "digits and _"
        )


def _write_netcdf(recording: Recording, folder: Path) -> list[Path]:
    path = folder / f"{recording.path.stem}.nc"
    with _placing(recording, path) as new:
        new.write_bytes(_netcdf(recording).getbuffer())
    return [path]


def _netcdf(recording: Recording) -> io.BytesIO:
    # Every group of the trace as one netCDF file, made in memory: on a full disk the HDF5 library crashes.
    made = io.BytesIO()
    recording.dataset.to_netcdf(made, engine="h5netcdf")
    for group in GROUPS:
        if group.path == "/" or not has_group(recording.path, group.path):
            continue
        dataset = read_group(recording.path, group.path)
        for axis in dict.fromkeys(dataset["round"].dims if "round" in dataset.variables else ()):
            inside = (dataset["round"].values >= recording.first) & (dataset["round"].values <= recording.last)
            dataset = dataset.isel({axis: inside})
        dataset.to_netcdf(made, engine="h5netcdf", group=group.path, mode="a")
    return made


def _write_chrome(recording: Recording, folder: Path) -> list[Path]:
    path = folder / "timeline.json"
    text = json.dumps(timeline(recording), allow_nan=False)
    with _placing(recording, path) as new:
        new.write_text(text, encoding="utf-8")
    return [path]
