"""Headers and records for tests: every variable of the schema gets a value that tells where it belongs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace import (
    EventBatch,
    EventKind,
    RoundRecord,
    RunIdentity,
    SecAggOutcome,
    SecAggStage,
    Status,
    TraceHeader,
    scenario_digest,
)
from wirelessfl.trace.layout import Group
from wirelessfl.trace.records import Scalar
from wirelessfl.trace.schema import PRIVACY, ROOT, SECAGG

DIMENSION = 5

SCENARIO_TEXT = "name: Öl\nrounds: 3\n"

ROOT_ATTRIBUTES: dict[str, Scalar] = {
    "scenario": SCENARIO_TEXT,
    "scenario_digest": scenario_digest(SCENARIO_TEXT),
    "seed": 7,
    "stream_version": STREAM_VERSION,
    "run_id": "0123456789abcdef",
    "created": "2026-01-01T00:00:00Z",
    "package_version": "0.1.0",
    "torch_version": "2.13.0",
    "processor": "a processor",
    "device": "cpu",
}
IDENTITY = RunIdentity.of(ROOT_ATTRIBUTES)
PRIVACY_ATTRIBUTES: dict[str, Scalar] = {
    "delta": 1e-5,
    "unit": "sample",
    "adjacency": "add_remove",
    "adversary": "server",
    "colluding": 0,
    "release_kind": "over_the_air",
    "backoff_is_public": True,
    "total_samples": 1437,
    "largest_weight": 0.05,
}


SECAGG_ATTRIBUTES: dict[str, Scalar] = {"protocol": "secagg", "ring_bits": 32, "weights_hidden": False}


def header(*, secagg: bool = True) -> TraceHeader:
    return TraceHeader(
        ROOT_ATTRIBUTES, PRIVACY_ATTRIBUTES, {"dimension": DIMENSION}, SECAGG_ATTRIBUTES if secagg else None
    )


def per_round(group: Group, round_index: int) -> dict[str, float]:
    """Column j of the group holds 100 j + round; whole numbers, so that integer columns take them too."""
    names = [v.name for v in group.of("round") if v.name != "event_count" and v.dtype[0] in "fi"]
    return {name: 100.0 * j + round_index for j, name in enumerate(names)}


def per_slot(group: Group, round_index: int, clients: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Column j of the group holds 1000 j + round + client / 64, exact in binary."""
    floats = [v.name for v in group.of("round", "slot") if v.dtype == "f8"]
    return {name: 1000.0 * j + round_index + clients / 64 for j, name in enumerate(floats)}


def record(round_index: int, clients: NDArray[np.int64] | range, *, weights: bool = False) -> RoundRecord:
    """A record whose every number follows from the round and the client."""
    ids = np.asarray(clients, dtype=np.int64)
    return RoundRecord(
        round_index=round_index,
        values=per_round(ROOT, round_index),
        slots={
            **per_slot(ROOT, round_index, ids),
            "client_id": ids,
            "status": np.full(len(ids), Status.PARTICIPATED),
        },
        privacy=per_round(PRIVACY, round_index),
        privacy_slots=per_slot(PRIVACY, round_index, ids),
        secagg={
            **{
                name: value
                for name, value in per_round(SECAGG, round_index).items()
                if name not in ("outcome", "reason")
            },
            "outcome": SecAggOutcome.ABORTED,
            "reason": f"round {round_index}".encode(),
        },
        secagg_stages=per_stage(round_index),
        events=events(round_index),
        weights=model(round_index) if weights else None,
    )


def plain_record(round_index: int, clients: NDArray[np.int64] | range, *, weights: bool = False) -> RoundRecord:
    """The same of a run without secure aggregation."""
    return replace(record(round_index, clients, weights=weights), secagg={}, secagg_stages={})


def per_stage(round_index: int) -> dict[str, NDArray[np.float64]]:
    """Column j of /secagg holds 1000 j + round + stage / 8, exact in binary."""
    names = [v.name for v in SECAGG.of("round", "stage")]
    return {name: 1000.0 * j + round_index + np.arange(len(SecAggStage)) / 8 for j, name in enumerate(names)}


def events(round_index: int) -> EventBatch:
    """Two events in even rounds, three in odd ones."""
    count = 2 + round_index % 2
    return EventBatch(
        time=round_index + np.arange(count) / 4,
        node=np.arange(count) - 2,
        kind=np.full(count, EventKind.BROADCAST),
        bits=np.where(np.arange(count) == 0, 32.0 * DIMENSION, np.nan),
    )


def model(round_index: int) -> NDArray[np.float32]:
    return np.arange(DIMENSION, dtype=np.float32) + round_index / 8
