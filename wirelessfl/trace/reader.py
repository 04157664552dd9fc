"""Reading of traces: finished, interrupted, or left by a killed process. Nothing here writes.

xarray is imported where it is used, so that the command line starts quickly.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import TraceError, precondition
from wirelessfl.trace.failures import trace_errors
from wirelessfl.trace.layout import EMPTY_CLIENT, GAIN_AXES, JAMMER_AXIS
from wirelessfl.trace.opening import opened_trace
from wirelessfl.trace.schema import EVENTS, GROUPS, MODEL, ROOT
from wirelessfl.trace.storage import committed_rounds, committed_snapshots, dataset_path
from wirelessfl.trace.values import AnyVariable

if TYPE_CHECKING:
    import xarray as xr


def read_attributes(path: str | Path, group: str = "/") -> dict[str, Any]:
    """The attributes of a group as plain Python values.

    Args:
        path: The trace file.
        group: ``/``, ``privacy``, ``events``, ``model`` or ``secagg``.

    Raises:
        TraceError: Not a readable trace of this version, or no such group.
    """
    _check_present(Path(path), known := _known_group(group))
    with opened_trace(Path(path)) as file:
        attributes = file[known].attrs.items()
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in attributes}


def open_trace(path: str | Path) -> xr.Dataset:
    """The root group: everything per round, per round and slot, and per client.

    Values are read when they are used; close the dataset (or use it in a ``with`` block) to let go of the file. Of a
    trace whose process was killed, exactly the committed rounds are shown.

    Args:
        path: The trace file.

    Returns:
        Dataset over ``round``, ``slot`` and ``client``.

    Raises:
        TraceError: Not a readable trace of this version, or a run holds it.
    """
    return _open(Path(path), ROOT.path)


def read_group(path: str | Path, group: str) -> xr.Dataset:
    """One group, read into memory, without what a killed process left behind.

    Args:
        path: The trace file.
        group: ``privacy``, ``events``, ``model`` or ``secagg``.

    Raises:
        TraceError: Not a readable trace of this version, or no such group.
    """
    with open_group(path, group) as dataset:
        return in_memory(dataset, Path(path))


def open_group(path: str | Path, group: str) -> xr.Dataset:
    """One group, its values read when they are used; close it, or use it in a ``with`` block.

    Args:
        path: The trace file.
        group: ``privacy``, ``events``, ``model`` or ``secagg``.

    Raises:
        TraceError: Not a readable trace of this version, or no such group.
    """
    return _open(Path(path), _known_group(group))


def in_memory(dataset: xr.Dataset, path: Path) -> xr.Dataset:
    """A dataset of a trace with all its values read.

    Raises:
        TraceError: They take more memory than there is, or cannot be read.
    """
    available = available_memory()
    precondition(
        dataset.nbytes <= available,
        f"{path}: found {dataset.nbytes / 2**30:,.1f} GiB of values to read at once; "
        f"allowed: what memory can take, {available / 2**30:,.1f} GiB",
        TraceError,
    )
    with trace_errors(path):
        return dataset.load()


def available_memory() -> float:
    """Bytes of memory that can be taken without swapping; infinite where the system does not say."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as file:
            lines = dict(line.split(":") for line in file)
        return float(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return math.inf


def round_labels(path: str | Path) -> NDArray[np.int64]:
    """The numbers of the rounds (M,), the committed ones first; −1 in rows that a killed process left behind.

    Raises:
        TraceError: Not a readable trace of this version.
    """
    with opened_trace(Path(path)) as file:
        return np.asarray(file["round"][()], dtype=np.int64)


def has_group(path: str | Path, group: str) -> bool:
    """Whether a trace has an optional group, such as ``secagg``.

    Raises:
        TraceError: It cannot be read.
    """
    with opened_trace(Path(path)) as file:
        return _known_group(group) in file


def model_weights(path: str | Path, round_index: int | None = None) -> NDArray[np.float32]:
    """A stored global model.

    Args:
        path: The trace file.
        round_index: Round after which it was stored; 0 for the model before round 1, None for the last one.

    Returns:
        (d,) flat parameters.

    Raises:
        TraceError: Not a readable trace of this version, or it keeps no such model.
    """
    path = Path(path)
    lengths = _committed_lengths(path)
    with opened_trace(path) as file:
        rounds = [int(label) for label in file[dataset_path(MODEL, "round")][: lengths["snapshot"]]]
        wanted = rounds[-1] if rounds and round_index is None else round_index
        if wanted == 0 and (path_of_initial := dataset_path(MODEL, "initial")) in file:  # earlier versions wrote none
            initial = np.asarray(file[path_of_initial], dtype=np.float32)
            if not np.isnan(initial).all():
                return initial
        if wanted not in rounds:
            kept = f"of rounds {', '.join(map(str, rounds))}" if rounds else "none (scenario key trace.models)"
            raise TraceError(f"{path}: no such model; those kept: {kept}")
        return np.asarray(file[dataset_path(MODEL, "weights")][rounds.index(wanted)], dtype=np.float32)


def at_slot_start(variable: AnyVariable) -> NDArray[Any]:
    """The values of a variable without axes of gains: those of the first piece, subcarriers and antennas."""
    axes = (*GAIN_AXES, JAMMER_AXIS)
    return np.asarray(variable[tuple(0 if axis in axes else slice(None) for axis in variable.dims)])


def gain_shape(dataset: xr.Dataset) -> tuple[int, ...]:
    """(T, F, A) of the gains of a trace."""
    return tuple(dataset.sizes.get(axis, 1) for axis in GAIN_AXES)


def by_client(dataset: xr.Dataset) -> xr.Dataset:
    """Pivot every variable over (round, slot) to (round, client); absent clients are NaN, and 0 in ``status``.

    Args:
        dataset: What ``open_trace`` returned, or rounds selected from it.

    Returns:
        Dataset over ``round`` and the clients that were ever selected, ascending.

    Raises:
        ValueError: It is no such dataset, for one of a single round without its dimension.
    """
    import xarray as xr

    found = dataset.get("client_id") if isinstance(dataset, xr.Dataset) else None
    words = f"none in a {type(dataset).__name__}" if found is None else f"one over {found.dims}"
    fits = found is not None and found.dims == ("round", "slot")
    precondition(fits, f"client_id: found {words}; allowed: one over round and slot, as in what open_trace gives")
    ids = dataset["client_id"].to_numpy()
    rows, slots = np.nonzero(ids != EMPTY_CLIENT)
    clients, column = np.unique(ids[rows, slots], return_inverse=True)
    fills = {variable.name: variable.fill for variable in ROOT.variables}
    pivoted = {}
    for name, variable in dataset.drop_vars("client_id").data_vars.items():
        if variable.dims[:2] == ("round", "slot"):
            values = np.full(
                (len(ids), len(clients), *variable.shape[2:]), fills.get(str(name), np.nan), variable.dtype
            )
            values[rows, column] = variable.to_numpy()[rows, slots]
            pivoted[name] = (("round", "client", *variable.dims[2:]), values, variable.attrs)
    return xr.Dataset(pivoted, {"round": dataset["round"], "client": clients}, dataset.attrs)


def _open(path: Path, group: str) -> xr.Dataset:
    import xarray as xr

    from wirelessfl.trace.lazy import TraceBackend

    lengths = _committed_lengths(path)
    _check_present(path, group)
    with trace_errors(path):
        dataset = xr.open_dataset(path, engine=TraceBackend, group=group, lengths=lengths)
    if group == ROOT.path or "round" not in dataset.dims:
        return dataset
    with opened_trace(path) as file:
        labelled = dataset.assign_coords(round=file["round"][: lengths["round"]])
    labelled.set_close(dataset.close)
    return labelled


def _committed_lengths(path: Path) -> dict[str, int]:
    # How much of each growing dimension belongs to committed rounds, and how many clients have their labels.
    with opened_trace(path) as file:
        rounds = committed_rounds(file)
        return {
            "round": rounds,
            "client": int(np.count_nonzero(file["client"][()] >= 0)),
            EVENTS.dimensions[0]: int(file["event_count"][rounds - 1]) if rounds else 0,
            MODEL.dimensions[0]: committed_snapshots(file),
        }


def _check_present(path: Path, group: str) -> None:
    precondition(
        has_group(path, group),
        f"{path}: no group {group} in this trace; only runs with secure aggregation have it",
        TraceError,
    )


def _known_group(group: str) -> str:
    path, known = f"/{group.strip('/')}", [known.path for known in GROUPS]
    precondition(path in known, f"no group {group!r} in a trace; there are {', '.join(known)}", TraceError)
    return path
