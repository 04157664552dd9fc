"""Every event of a run, for the page: in blocks that the browser unpacks when they are shown."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from wirelessfl.analysis.report.cells import Kept
from wirelessfl.analysis.report.packing import Blobs, Extent, Planes, Scale, pack_whole
from wirelessfl.trace import JAMMER_NODE, EventKind

MOST_EVENTS = 6_000_000
"""Events that a page holds; of a longer run it has those of the first rounds."""
_BLOCK = 100_000
"""Events of a block, unless a single round has more."""
_TICKS = 2**23
"""Steps of the clock of a block in the mean of its rounds."""
_COLUMNS = ("time", "node", "kind", "round", "bits")


def messages_data(trace: xr.Dataset, events: xr.Dataset, kept: Kept, most_events: int, blobs: Blobs) -> dict[str, Any]:
    """Events of a run as plain JSON, their numbers in blobs.

    Args:
        trace: the opened trace.
        events: its ``/events``, not read yet.
        kept: clients of the page; of others no event is held.
        most_events: events that the page may hold.
        blobs: where the numbers go.
    """
    blocks: list[dict[str, Any]] = []
    held = 0
    for part in _parts(trace, events):
        node = part["node"].astype(np.int64)
        wanted = (node < 0) | np.isin(node, kept.clients)
        count = int(wanted.sum())
        if blocks and held + count > most_events:
            break
        if count:
            blocks.append(_packed({name: values[wanted] for name, values in part.items()}, kept, blobs))
            held += count
    return {
        "count": held,
        "all": int(events.sizes.get("event", 0)),
        "kinds": {int(kind): kind.name.lower() for kind in EventKind},
        "blocks": blocks,
    }


def _parts(trace: xr.Dataset, events: xr.Dataset) -> Iterator[dict[str, NDArray[Any]]]:
    # Events of whole rounds, about as many as a block should have
    ends = trace["event_count"].values.astype(np.int64) if "event_count" in trace else np.zeros(0, dtype=np.int64)
    begin = 0
    for at, end in enumerate(ends.tolist()):
        last = at == len(ends) - 1
        if end > begin and (last or int(ends[at + 1]) - begin > _BLOCK):
            part = events[list(_COLUMNS)].isel(event=slice(begin, end))
            yield {name: np.asarray(part[name].values) for name in _COLUMNS}
            begin = end


def _packed(part: dict[str, NDArray[Any]], kept: Kept, blobs: Blobs) -> dict[str, Any]:
    # Nodes as 0 the jammer, 1 the server, then the clients by their place among those kept; times as steps since the
    # event before.
    time, node = part["time"].astype(np.float64), part["node"].astype(np.int64)
    begin, end, first = float(time.min()), float(time.max()), int(part["round"].min())
    rounds = int(part["round"].max()) - first + 1
    tick = (end - begin) / (_TICKS * rounds) or 1.0
    ticks = np.rint((time - begin) / tick).astype(np.int64)
    # By client a node is its place; others keep their negative number, from the jammer's on.
    places = np.where(node < 0, node, np.searchsorted(kept.clients, node)) - JAMMER_NODE
    bits, extent = part["bits"].astype(np.float64), Extent()
    extent.see(bits)
    found = {
        "count": len(time),
        "begin": begin,
        "end": end,
        "tick": tick,
        "first": first,
        "last": first + rounds - 1,
        "time": pack_whole(np.diff(ticks, prepend=0), blobs),
        "node": pack_whole(places, blobs),
        "kind": pack_whole(part["kind"], blobs),
        "round": pack_whole(part["round"] - first, blobs),
    }
    if extent.known:
        scale, planes = Scale.of(extent), Planes(2)
        planes.write(scale.codes(bits))
        found["bits"] = {"scale": scale.as_json(), "planes": planes.close(blobs)}
    return found
