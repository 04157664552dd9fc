"""A kill at any moment: every prefix of the writes of a run must be a readable trace that resumes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

from tests.trace.traces import header, model, per_round, per_slot, record
from wirelessfl.trace import TraceWriter, journal, open_trace, read_attributes, read_group
from wirelessfl.trace.schema import PRIVACY, ROOT


@dataclass
class Tape:
    """What reached the disk, in order: data at an offset, or a new length."""

    writes: list[tuple[int, bytes | None]] = field(default_factory=list)

    def attach(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write, allocate = journal._write_all, journal._allocate

        def taped_write(descriptor: int, pieces: list[bytes], offset: int) -> None:
            self.writes.append((offset, b"".join(pieces)))
            write(descriptor, pieces, offset)

        def taped_allocate(descriptor: int, start: int, stop: int) -> None:
            self.writes.append((stop, None))
            allocate(descriptor, start, stop)

        monkeypatch.setattr(journal, "_write_all", taped_write)
        monkeypatch.setattr(journal, "_allocate", taped_allocate)

    def replay(self, path: Path, start: int, stop: int) -> Iterator[int]:
        """Bring ``path`` to the state after each write from ``start`` on."""
        path.write_bytes(b"")
        with path.open("r+b", buffering=0) as file:
            for position, (offset, data) in enumerate(self.writes[:stop], start=1):
                if data is None:
                    file.truncate(offset)
                else:
                    file.seek(offset)
                    file.write(data)
                if position >= start:
                    yield position


def clients(round_index: int) -> range:
    """Three clients at first, more later, so that the slots grow."""
    return range(round_index % 2, 3 + round_index // 2)


def check_committed(path: Path) -> int:
    """Every committed round reads back as it was written; returns their number."""
    with h5py.File(path, "r") as file:
        rounds = file["round"][()]
        rounds = rounds[rounds >= 0]
        assert rounds.tolist() == list(range(len(rounds)))
        for group in (ROOT, PRIVACY):
            for name in per_round(group, 0):
                expected = [per_round(group, k)[name] for k in rounds]
                assert file[f"{group.path}/{name}"][: len(rounds)].tolist() == expected
            for name in per_slot(group, 0, np.arange(1)):
                rows = file[f"{group.path}/{name}"][: len(rounds)]
                for k in rounds:
                    expected_row = per_slot(group, k, np.array(clients(k)))[name]
                    assert np.array_equal(rows[k, : len(expected_row)], expected_row)
        events = int(file["event_count"][len(rounds) - 1]) if len(rounds) else 0
        assert file["events/time"][:events].astype(int).tolist() == file["events/round"][:events].tolist()
        snapshots = [k for k in file["model/round"][()] if 0 <= k < len(rounds)]
        for row, k in enumerate(snapshots):
            assert np.array_equal(file["model/weights"][row], model(k))
        assert file.attrs["scenario"] == header().attributes["scenario"]
    return len(rounds)


def check_opens(path: Path, rounds: int) -> None:
    """Xarray alone and the reader see the committed rounds and no other."""
    with xr.open_dataset(path, engine="h5netcdf") as dataset:
        assert dataset["round"].to_numpy()[:rounds].tolist() == list(range(rounds))
        assert np.all(dataset["round"].to_numpy()[rounds:] == -1)
        committed = dataset.isel(round=slice(rounds)).load()
        assert committed["sim_time"].to_numpy().tolist() == [float(k) for k in range(rounds)]
    with open_trace(path) as dataset:
        assert dataset.sizes["round"] == rounds
        assert dataset["client"].to_numpy().tolist() in ([], list(range(40)))
        dataset.load()
    assert read_group(path, "events").sizes["event"] == sum(2 + k % 2 for k in range(rounds))


def unlabelled(path: Path) -> bool:
    """Whether the kill fell between the length of ``client`` and its labels."""
    with h5py.File(path, "r") as file:
        return bool(np.any(file["client"][()] < 0))


def tape_of_appends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Tape, list[int]]:
    """Five rounds, and the number of writes after the header and after each of them."""
    tape = Tape()
    tape.attach(monkeypatch)
    marks = []
    with TraceWriter.create(folder / "trace.h5", header(), slots=3) as writer:
        marks.append(len(tape.writes))
        for k in range(5):
            writer.append(record(k, clients(k), weights=k % 2 == 0))
            marks.append(len(tape.writes))
    return tape, marks


def tape_of_resumes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Tape, int]:
    """A run resumed and interrupted, resumed and completed, and the number of writes before it."""
    tape = Tape()
    tape.attach(monkeypatch)
    path = folder / "trace.h5"
    with TraceWriter.create(path, header(), slots=3) as writer:
        for k in range(6):
            writer.append(record(k, clients(k), weights=True))
    start = len(tape.writes)
    clients_end = {"samples": np.arange(40), "weight": np.ones(40)}
    writer = TraceWriter.resume(path, 3)
    writer.append(record(3, clients(3), weights=True))
    writer.finish("interrupted", clients_end, attributes={"why_different": '["' + "x" * 96 + '"]'})
    writer = TraceWriter.resume(path, 4)
    writer.append(record(4, clients(4), weights=True))
    writer.finish("complete", clients_end, model(4), {"why_different": '["' + "y" * 116 + '"]'})
    return tape, start


@pytest.mark.parametrize("stride", [300, pytest.param(1, marks=pytest.mark.slow)])
def test_every_prefix_of_the_appends_is_a_readable_trace(
    stride: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape, marks = tape_of_appends(tmp_path, monkeypatch)
    killed = tmp_path / "killed.h5"
    for position in tape.replay(killed, marks[0], marks[-1]):
        done = sum(mark <= position for mark in marks) - 1
        rounds = check_committed(killed)
        assert rounds in (done, done + 1)
        if position % stride == 0:
            check_opens(killed, rounds)


@pytest.mark.slow
@pytest.mark.parametrize("stride", [1000, 1])
def test_every_prefix_of_resuming_and_finishing_is_a_readable_trace(
    stride: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape, start = tape_of_resumes(tmp_path, monkeypatch)
    killed = tmp_path / "killed.h5"
    seen: list[tuple[int, str]] = []
    for position in tape.replay(killed, start, len(tape.writes)):
        rounds = check_committed(killed)
        state = (rounds, read_attributes(killed)["status"])
        if not seen or state != seen[-1]:
            seen.append(state)
        if position % stride == 0 or unlabelled(killed):
            check_opens(killed, rounds)
    # From 6 rounds back to 3, on to 4, interrupted; running again, on to 5, complete.
    first, second = [(n, "running") for n in (6, 3, 4)], [(n, "running") for n in (4, 5)]
    assert seen == [*first, (4, "interrupted"), *second, (5, "complete")]


VICTIM = """
import sys
from pathlib import Path
from tests.trace.test_crash import clients
from tests.trace.traces import header, record
from wirelessfl.trace import TraceWriter
path, done = sys.argv[1], int(sys.argv[2])
writer = TraceWriter.resume(path, done) if Path(path).exists() else TraceWriter.create(path, header(), 3)
print("ready", flush=True)
for k in range(done, 200):
    writer.append(record(k, clients(k), weights=k % 2 == 0))
writer.finish("complete")
print("done", flush=True)
"""


def kill_at_random(path: Path, done: int, generator: np.random.Generator) -> None:
    """Run (or resume) the writer in another process, and kill it after a random part of a second."""
    command = [sys.executable, "-c", VICTIM, str(path), str(done)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "ready\n"
        time.sleep(generator.uniform(0.0, 0.3))
        victim.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("kills", [2, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_killed_process_leaves_a_trace_that_resumes(kills: int, tmp_path: Path) -> None:
    generator = np.random.default_rng(20)
    path = tmp_path / "trace.h5"
    done = 0
    for _ in range(kills):
        kill_at_random(path, done, generator)
        rounds = check_committed(path)
        assert rounds >= done
        check_opens(path, rounds)
        # As a checkpoint that is one round behind, and now and then from the start.
        done = max(rounds - 1, 0) if rounds < 150 else 1
    with TraceWriter.resume(path, done) as writer:
        writer.append(record(done, clients(done)))
    assert check_committed(path) == done + 1
