"""Data of the page's map, timeline and single clients, within the largest size of a page."""

from dataclasses import dataclass
from typing import Any

import xarray as xr

from wirelessfl.analysis.replay.recording import Recording
from wirelessfl.analysis.report.cells import MOST_CELLS, cells_data, choose, clients_data
from wirelessfl.analysis.report.messages import MOST_EVENTS, messages_data
from wirelessfl.analysis.report.packing import Blobs
from wirelessfl.analysis.report.places import places_data
from wirelessfl.scenario.timing import Asynchronous
from wirelessfl.trace import open_group

MOST_BYTES = 18_800_000
"""Bytes of numbers that a page holds; more than fits shows fewer clients, evenly spaced."""
_HEADROOM = 0.9


@dataclass(frozen=True, eq=False)
class Explorer:
    """What a reader explores of one run.

    Attributes:
        data: plain JSON.
        blobs: numbers by the ids of their elements, in base 64.
    """

    data: dict[str, Any]
    blobs: dict[str, str]


def read_explorer(prefix: str, recording: Recording, trace: xr.Dataset, share: float = 1.0) -> Explorer:
    """What a reader explores of a run.

    Args:
        prefix: of all ids.
        recording: the run.
        trace: the same, opened, its values not read yet.
        share: of the size of a page that is for this run.
    """
    cells, most_bytes = int(MOST_CELLS * share), int(MOST_BYTES * share)
    while True:
        made = _made(prefix, recording, trace, cells, int(MOST_EVENTS * cells / MOST_CELLS))
        size = sum(map(len, made.blobs.values()))
        if size <= most_bytes or made.data["clients"]["count"] <= 1:
            return made
        cells = int(min(cells, made.data["cells"]["count"]) * _HEADROOM * most_bytes / size)


def _made(prefix: str, recording: Recording, trace: xr.Dataset, cells: int, most_events: int) -> Explorer:
    blobs, kept = Blobs(prefix), choose(trace, cells)
    with open_group(recording.path, "events") as events:
        messages = messages_data(trace, events, kept, most_events, blobs)
    data = {
        "clients": clients_data(trace, kept, blobs),
        "cells": cells_data(trace, kept, blobs),
        "messages": messages,
        "map": places_data(trace, recording.scenario, kept, blobs),
        "asynchronous": isinstance(recording.scenario.aggregation, Asynchronous),
    }
    return Explorer(data, blobs.texts)
