"""Places of clients, base stations and jammer by round, for the map of the page.

A trace holds no positions. They follow from its scenario and seed, as long as the random streams are those of the
version that recorded it.
"""

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from wirelessfl.analysis.report.cells import Kept
from wirelessfl.analysis.report.packing import Blobs, pack_doubles, pack_whole
from wirelessfl.errors import WirelessFLError
from wirelessfl.radio import Draws, Moment, Placement, hexagonal_sites
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.channel import ImportedFading
from wirelessfl.scenario.geography import ExternalPlacement, NoPathLoss, SingleCell
from wirelessfl.scenario.uplink import jammer_of
from wirelessfl.streams import STREAM_VERSION, Streams

MOST_PLACES = 300_000
"""Clients times rounds for which a page has places; of longer runs of clients on the move, those of some rounds."""
_STEPS = 4_095
_SAME = 1e-6


def places_data(trace: xr.Dataset, scenario: Scenario, kept: Kept, blobs: Blobs) -> dict[str, Any]:
    """Map of a run as plain JSON: ``note`` says why there is none, "" where there is one."""
    if isinstance(scenario.channel.fading, ImportedFading):
        return {"note": "Its channels are imported: `wirelessfl channels inspect` draws the places of their file."}
    if isinstance(scenario.channel.pathloss, NoPathLoss):
        return {"note": "This scenario has no path loss, and so no places: its clients stand in a circle."}
    if isinstance(scenario.channel.placement, ExternalPlacement):
        return {"note": "Its places come from code outside the package, which a report does not run."}
    if trace.attrs.get("stream_version", STREAM_VERSION) != STREAM_VERSION:
        return {"note": "It was recorded with other random streams, from which this version has no places."}
    try:
        return _map(trace, scenario, kept, blobs)
    except (WirelessFLError, OSError, ValueError) as error:  # a file of positions that is not there
        return {"note": f"Its places cannot be found again: {error}"}


def _map(trace: xr.Dataset, scenario: Scenario, kept: Kept, blobs: Blobs) -> dict[str, Any]:
    from wirelessfl.assembly.network import build_placement  # with torch, which no other part of a page needs

    streams, topology = Streams(scenario.seed), scenario.topology
    placement = build_placement(scenario, Draws(streams))
    if isinstance(topology, SingleCell):
        sites, spacing = np.zeros((1, 2)), None
    else:
        spacing = float(topology.inter_site_distance_m)
        sites = hexagonal_sites(topology.rings, spacing)
    found: dict[str, Any] = {
        "note": "",
        "sites": sites.tolist(),
        "spacing": spacing,
        "jammer": _jammer(scenario, streams),
    }
    times = trace["sim_time"].values[kept.rounds]
    if not placement.moves:
        points = placement.motion(kept.clients, Moment(1, 0.0)).position
        _check_distances(points, trace, kept)
        return {**found, "x": pack_doubles(points[:, 0], blobs), "y": pack_doubles(points[:, 1], blobs)}
    return {**found, "frames": _frames(placement, kept, times, blobs)}


def _frames(placement: Placement, kept: Kept, times: NDArray[np.float64], blobs: Blobs) -> dict[str, Any]:
    # Where clients on the move are at the end of a round, in whole steps of a square that holds them all
    every = max(1, -(-len(kept.clients) * len(times) // MOST_PLACES))
    shown = np.arange(0, len(times), every)
    points = np.stack([placement.motion(kept.clients, Moment(1, float(times[at]))).position for at in shown.tolist()])
    low, high = float(points.min()), float(points.max())
    step = (high - low) / _STEPS or 1.0
    places = np.rint((points - low) / step).astype(np.int64)
    return {
        "every": every,
        "begin": low,
        "end": high,
        "step": step,
        "x": pack_whole(places[:, :, 0].ravel(), blobs),
        "y": pack_whole(places[:, :, 1].ravel(), blobs),
    }


def _jammer(scenario: Scenario, streams: Streams) -> list[float] | None:
    jammer = jammer_of(scenario.uplink)
    if jammer is None or jammer.role != "external":
        return None
    from wirelessfl.assembly.network import build_jammer_placement

    placement = build_jammer_placement(scenario, Draws(streams, "jammer_"))
    ((x, y),) = placement.motion(np.zeros(1, dtype=np.int64), Moment(1, 0.0)).position.tolist()
    return [x, y]


def _check_distances(points: NDArray[np.float64], trace: xr.Dataset, kept: Kept) -> None:
    # Clients at rest are as far from the server as the trace says, or these are not their places.
    if "distance" not in trace:
        return
    _, rows, at = np.intersect1d(trace["client"].values, kept.clients, return_indices=True)
    recorded, found = trace["distance"].values[rows], np.hypot(points[at, 0], points[at, 1])
    if not np.allclose(recorded[~np.isnan(recorded)], found[~np.isnan(recorded)], rtol=_SAME):
        raise ValueError("the distances in the trace are not those of its scenario")
