"""Every client in every round, for the page: outcomes and all that the trace holds of them, read block by block."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from wirelessfl.analysis.report.charts import thinned
from wirelessfl.analysis.report.packing import (
    COARSE,
    FINE,
    Blobs,
    Extent,
    Planes,
    Scale,
    pack_doubles,
    pack_whole,
    whole_width,
)
from wirelessfl.analysis.report.rounds import blocks
from wirelessfl.trace import EMPTY_CLIENT, Status
from wirelessfl.trace.schema import ROOT, axis_label, axis_scale

MOST_CELLS = 1_200_000
"""Clients times rounds that a page shows; of more clients it shows evenly spaced ones, in all their rounds."""

MANY_CELLS = 200_000
"""Cells from which on their numbers are rounded more coarsely."""
_GAIN_PARTS = ("channel_re", "channel_im", "csi_re", "csi_im")
# Derived of the complex gains, whose parts nobody reads
_GAINS = {"gain": ("channel gain |h|²", "channel_re", "channel_im"), "csi": ("estimated gain |ĥ|²", "csi_re", "csi_im")}
_CODED = ("client_id", "status")
COLUMNS = tuple(v.name for v in ROOT.of("round", "slot") if v.name not in (*_GAIN_PARTS, *_CODED))
"""Variables of the trace over rounds and slots that the page has as they are."""
_OF_CLIENTS = tuple(v.name for v in ROOT.of("client"))


@dataclass(frozen=True, eq=False)
class Kept:
    """What of a run the page shows.

    Attributes:
        rounds: (m,) positions of the rounds.
        clients: (n,) ids, ascending.
        seen: how many clients took part in the run.
    """

    rounds: NDArray[np.int64]
    clients: NDArray[np.int64]
    seen: int


@dataclass(frozen=True, eq=False)
class Block:
    """Cells of some rounds, in the order of rounds and clients.

    Attributes:
        rounds: (c,) place of the round of each cell among those kept.
        clients: (c,) place of its client among those kept.
        values: (c,) by name of the variable.
    """

    rounds: NDArray[np.int64]
    clients: NDArray[np.int64]
    values: dict[str, NDArray[np.float64]]


def choose(trace: xr.Dataset, most_cells: int) -> Kept:
    """What a page shows that may have so many cells."""
    rounds, ids, cells = thinned(trace.sizes["round"]), np.zeros(0, dtype=np.int64), 0
    for _, part in blocks(trace, ("client_id",)):
        taken = part["client_id"][part["client_id"] != EMPTY_CLIENT].astype(np.int64)
        ids, cells = np.union1d(ids, taken), cells + len(taken)
    share = len(rounds) / max(1, trace.sizes["round"])
    most = len(ids) if cells * share <= most_cells else max(1, int(len(ids) * most_cells / (cells * share)))
    places = np.linspace(0, len(ids) - 1, most).round().astype(np.int64) if len(ids) else ids
    return Kept(rounds, ids[places], len(ids))


def _cells(trace: xr.Dataset, kept: Kept) -> Iterator[Block]:
    names = [name for name in (*_CODED, *_GAIN_PARTS, *COLUMNS) if name in trace]
    place_of_round = np.full(trace.sizes["round"], -1, dtype=np.int64)
    place_of_round[kept.rounds] = np.arange(len(kept.rounds))
    for rounds, part in blocks(trace, names):
        ids = part["client_id"].astype(np.int64)
        places = np.searchsorted(kept.clients, ids)
        wanted = np.zeros(ids.shape, dtype=np.bool_)
        inside = places < len(kept.clients)
        wanted[inside] = kept.clients[places[inside]] == ids[inside]
        wanted &= (place_of_round[rounds] >= 0)[:, None] & (ids != EMPTY_CLIENT)
        row, slot = np.nonzero(wanted)
        order = np.lexsort((places[row, slot], row))
        row, slot = row[order], slot[order]
        values = {name: np.asarray(part[name][row, slot], dtype=np.float64) for name in names if name != "client_id"}
        for name, (_, real, imaginary) in _GAINS.items():
            if real in values:
                values[name] = values[real] ** 2 + values[imaginary] ** 2
        yield Block(place_of_round[rounds][row], places[row, slot], values)


def cells_data(trace: xr.Dataset, kept: Kept, blobs: Blobs) -> dict[str, Any]:
    """Cells of a run as plain JSON, their numbers in blobs."""
    wanted = (*_GAINS, *COLUMNS)
    extents = {name: Extent() for name in wanted}
    perfect, count = True, 0
    for block in _cells(trace, kept):
        count += len(block.clients)
        for name in wanted:
            if name in block.values:
                extents[name].see(block.values[name])
        perfect = perfect and np.array_equal(
            block.values.get("gain", _NOTHING), block.values.get("csi", _NOTHING), equal_nan=True
        )
    # Estimates that are the channels themselves say nothing.
    shown = [name for name in wanted if extents[name].known and not (name == "csi" and perfect)]
    precision = FINE if count <= MANY_CELLS else COARSE
    scales = {name: Scale.of(extents[name], precision) for name in shown}
    columns = {name: Planes(2) for name in shown}
    clients, status = Planes(whole_width(len(kept.clients))), Planes(1)
    counts = np.zeros(len(kept.rounds) + 1, dtype=np.int64)
    for block in _cells(trace, kept):
        counts[1:] += np.bincount(block.rounds, minlength=len(kept.rounds))
        clients.write(block.clients)
        status.write(block.values["status"].astype(np.int64))
        for name in shown:
            columns[name].write(scales[name].codes(block.values[name]))
    return {
        "count": count,
        "precision": precision,
        "offsets": pack_whole(np.cumsum(counts), blobs),
        "client": clients.close(blobs),
        "status": status.close(blobs),
        "statuses": [code.name.lower() for code in Status],
        "columns": [
            {**_named(name), "scale": scales[name].as_json(), "planes": columns[name].close(blobs)} for name in shown
        ],
    }


_NOTHING = np.zeros(0)


def _named(name: str) -> dict[str, Any]:
    if name in _GAINS:
        return {"name": name, "label": f"{_GAINS[name][0]} (dB)", "decibels": True, "factor": 1.0}
    decibels = name == "path_gain"
    label = f"{axis_label(name)} (dB)" if decibels else axis_label(name)
    return {"name": name, "label": label, "decibels": decibels, "factor": axis_scale(name)}


def clients_data(trace: xr.Dataset, kept: Kept, blobs: Blobs) -> dict[str, Any]:
    """Clients of a run as plain JSON: their ids, and what the trace holds of each."""
    # A run that was killed has not yet written down what it knows of its clients.
    labels = trace["client"].values
    _, rows, places = np.intersect1d(labels, kept.clients, return_indices=True)
    values = {name: np.full(len(kept.clients), np.nan) for name in _OF_CLIENTS if name in trace}
    for name, column in values.items():
        column[places] = trace[name].values[rows]
    return {
        "count": len(kept.clients),
        "seen": kept.seen,
        "ids": pack_doubles(kept.clients, blobs),
        "columns": [
            {"name": name, "label": axis_label(name), "values": pack_doubles(known, blobs)}
            for name, known in values.items()
            if not np.isnan(known).all()
        ],
    }
