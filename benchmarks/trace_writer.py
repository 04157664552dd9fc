"""The trace and the checkpoint alone: how long a round takes to be safe on disk and to be read, and how large it is."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measurement import Case, Sample
from benchmarks.recorded import prepare, with_idle_learner
from benchmarks.shell import on_demand
from wirelessfl.assembly import trace_header
from wirelessfl.simulation import FinishedRound, SimulationState, round_record
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace import (
    EventBatch,
    RoundRecord,
    RunIdentity,
    TraceHeader,
    TraceWriter,
    open_trace,
    save_checkpoint,
    scenario_digest,
)
from wirelessfl.version import package_version

GROUP = "trace"


def real_record(clients: int) -> tuple[TraceHeader, RoundRecord]:
    """A header, and the record of a round over the air with all its columns and events."""
    scenario = on_demand(clients, 1)
    simulation = with_idle_learner(prepare(scenario, 1))
    records = []

    def keep(this: FinishedRound, events: EventBatch) -> None:
        records.append(round_record(this, events, None, {}))

    simulation.run(keep)
    return trace_header(scenario, simulation, Path()), records[0]


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="wirelessfl-bench-") as place:
        yield Path(place)


def append_seconds(clients: int, rounds: int) -> Sample:
    """Milliseconds of one append, on disk when it returns."""
    with _folder() as folder:
        seconds, _ = _write(folder / "trace.h5", clients, rounds)
    return Sample(1e3 * statistics.median(seconds))


def read_seconds(clients: int, rounds: int, dimension: str) -> Sample:
    """Milliseconds in which xarray opens a trace and reads a variable at one place of a dimension."""
    with _folder() as folder:
        path = folder / "trace.h5"
        _write(path, clients, rounds)

        def read() -> None:
            with open_trace(path) as dataset:
                dataset["update_norm"].isel({dimension: 1}).load()

        read()  # imports
        return Sample(1e3 * _median_seconds(read, 5))


def bytes_on_disk(clients: int, rounds: int) -> Sample:
    """Bytes a client and round in the file."""
    with _folder() as folder:
        _, size = _write(folder / "trace.h5", clients, rounds)
    return Sample(size / clients / rounds)


def _write(path: Path, clients: int, rounds: int) -> tuple[list[float], int]:
    """Write a trace; seconds of each append, and the size of the file."""
    header, record = real_record(clients)
    seconds = []
    with TraceWriter.create(path, header, clients) as writer:
        for index in range(1, rounds + 1):
            started = time.perf_counter()
            writer.append(replace(record, round_index=index))
            seconds.append(time.perf_counter() - started)
    return seconds, path.stat().st_size


def checkpoint_seconds(dimension: int, times: int) -> Sample:
    """Milliseconds of one checkpoint of a model, on disk when it returns."""
    identity = RunIdentity("benchmark", scenario_digest(""), STREAM_VERSION, package_version())
    state = SimulationState(np.zeros(dimension, dtype=np.float32)).as_mapping()
    with _folder() as folder:
        file = folder / "checkpoint.bin"
        return Sample(1e3 * _median_seconds(lambda: save_checkpoint(file, state, identity), times))


def _median_seconds(work: Callable[[], object], times: int) -> float:
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def trace_cases(*, quick: bool) -> list[Case]:
    """Append, size and checkpoint."""
    clients, dimension, rounds = (20, 1_000, 2) if quick else (1_000, 155_820, 20)
    crowd = 50 if quick else 100_000
    return [
        Case(GROUP, f"append, {clients:,} active", "ms/round", partial(append_seconds, clients, rounds)),
        Case(GROUP, f"size, {clients:,} active", "bytes/client/round", partial(bytes_on_disk, clients, rounds), most=1),
        Case(GROUP, f"append, {crowd:,} active", "ms/round", partial(append_seconds, crowd, rounds), most=1),
        Case(GROUP, f"read a client, {crowd:,} active", "ms", partial(read_seconds, crowd, rounds, "slot"), most=1),
        Case(GROUP, f"read a round, {crowd:,} active", "ms", partial(read_seconds, crowd, rounds, "round"), most=1),
        Case(GROUP, f"checkpoint, d = {dimension:,}", "ms/round", partial(checkpoint_seconds, dimension, rounds)),
    ]
