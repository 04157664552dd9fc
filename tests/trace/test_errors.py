"""Every way in which a trace cannot be written or read is one clear line."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import pytest

from tests.trace.traces import header, per_round, record
from wirelessfl.errors import OutputError, TraceError
from wirelessfl.trace import (
    TraceWriter,
    journal,
    model_weights,
    open_trace,
    read_attributes,
    read_group,
)
from wirelessfl.trace.schema import ROOT

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace of three rounds."""
    path = tmp_path / "trace.h5"
    writer = TraceWriter.create(path, header(), slots=2)
    for k in range(3):
        writer.append(record(k, range(2)))
    writer.finish("interrupted")
    return path


def check_refused(path: Path, message: str) -> None:
    """Every way of opening says the same in one line that names the file."""
    for attempt in (open_trace, read_attributes, model_weights, lambda p: TraceWriter.resume(p, 1)):
        with pytest.raises(TraceError, match=message) as refusal:
            attempt(path)
        assert str(path) in str(refusal.value)
        assert "\n" not in str(refusal.value)
    with pytest.raises(TraceError, match=message):
        read_group(path, "events")


def test_missing(tmp_path: Path) -> None:
    check_refused(tmp_path / "trace.h5", "no such trace")


def test_a_folder(tmp_path: Path) -> None:
    check_refused(tmp_path, "a folder, not a trace")


def test_not_hdf5(tmp_path: Path) -> None:
    (tmp_path / "t.h5").write_text("name: quickstart\n" * 100)
    check_refused(tmp_path / "t.h5", "not an HDF5 file")


def test_empty_file(tmp_path: Path) -> None:
    (tmp_path / "t.h5").touch()
    check_refused(tmp_path / "t.h5", "not an HDF5 file|damaged|cut short")


def test_foreign_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["x"] = 1
    check_refused(tmp_path / "t.h5", "not a wirelessfl trace")


def test_another_version(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs["version"] = 2
    check_refused(path, "trace version 2, this wirelessfl reads version 1")


def test_truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)
    check_refused(path, "cut short")


def test_damaged(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 4000)
    check_refused(path, "damaged")


def test_a_dataset_is_missing(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file["round"]
    with pytest.raises(TraceError, match="damaged"):
        open_trace(path)
    with pytest.raises(TraceError, match="damaged"):
        TraceWriter.resume(path, 1)


def test_unknown_group(path: Path) -> None:
    with pytest.raises(TraceError, match="no group 'secrets'"):
        read_group(path, "secrets")


def test_no_such_model(path: Path) -> None:
    with pytest.raises(TraceError, match="none"):
        model_weights(path)


def test_checkpoint_ahead_of_the_trace(path: Path) -> None:
    with pytest.raises(TraceError, match="holds 3 rounds, the checkpoint beside it 4"):
        TraceWriter.resume(path, 4)
    TraceWriter.resume(path, 3).close()


def test_existing_file(path: Path) -> None:
    content = path.read_bytes()
    with pytest.raises(OutputError, match=r"exists already; continue it with resume=True"):
        TraceWriter.create(path, header(), slots=2)
    assert path.read_bytes() == content


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="does not exist"):
        TraceWriter.create(tmp_path / "no" / "t.h5", header(), slots=2)


@contextmanager
def without_privilege() -> Iterator[None]:
    """Root writes everywhere; the test must not."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with without_privilege(), pytest.raises(OutputError, match=r"cannot be written \(Permission denied\)"):
        TraceWriter.create(tmp_path / "t.h5", header(), slots=2)
    tmp_path.chmod(0o755)
    assert not list(tmp_path.iterdir())


HOLDER = """
import sys
from tests.trace.traces import header, record
from wirelessfl.trace import TraceWriter
writer = TraceWriter.create(sys.argv[1], header(), 2)
writer.append(record(0, range(2)))
print("holding", flush=True)
sys.stdin.read()
"""


def test_locked_while_a_run_goes_on_and_readable_after_its_kill(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holding\n"
        check_refused(path, "locked by a run")
        holder.kill()
    with open_trace(path) as dataset:
        assert dataset.sizes["round"] == 1


def test_two_runs_cannot_create_the_same_trace_at_once(tmp_path: Path) -> None:
    held = tmp_path / ".t.h5.partial"
    held.touch()
    backing = journal.HeldBackFile(held)
    with pytest.raises(OutputError, match="locked by a run"):
        TraceWriter.create(tmp_path / "t.h5", header(), slots=2)
    assert held.exists()
    backing.close()


def test_a_creation_writes_through_no_hard_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"mine")
    (tmp_path / ".t.h5.partial").hardlink_to(tmp_path / "precious")
    TraceWriter.create(tmp_path / "t.h5", header(), slots=2).finish("complete")
    assert (tmp_path / "precious").read_bytes() == b"mine"


def test_what_a_killed_creation_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".t.h5.partial").write_bytes(b"x" * 10**6)
    TraceWriter.create(tmp_path / "t.h5", header(), slots=2).finish("complete")
    with open_trace(tmp_path / "t.h5") as dataset:
        assert dataset.sizes["round"] == 0
    assert list(tmp_path.iterdir()) == [tmp_path / "t.h5"]


def test_full_disk_leaves_the_rounds_before_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = TraceWriter.resume(path, 3)
    content = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(OutputError, match="no space left on the disk"):
            writer.append(record(3, range(500)))
        assert path.read_bytes() == content
        with pytest.raises(OutputError, match="no space left on the disk"):
            writer.close()
    assert path.read_bytes() == content
    writer = TraceWriter.resume(path, 3)
    writer.append(record(3, range(2)))
    writer.finish("complete")
    with open_trace(path) as dataset:
        assert dataset.sizes["round"] == 4
        dataset.load()


def refused_a_round(path: Path, monkeypatch: pytest.MonkeyPatch) -> TraceWriter:
    """A writer whose fourth round a full disk did not take, and that has room again."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = TraceWriter.resume(path, 3)
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(OutputError):
            writer.append(record(3, range(500)))
    return writer


def test_a_round_can_be_repeated_once_there_is_room(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = refused_a_round(path, monkeypatch)
    writer.append(record(3, range(500)))
    writer.finish("complete")
    with open_trace(path) as dataset:
        assert dataset["client_id"][3].to_numpy().tolist() == list(range(500))


def test_closing_does_not_commit_a_round_that_failed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = refused_a_round(path, monkeypatch)
    writer.close()
    with open_trace(path) as dataset:
        assert dataset.sizes["round"] == 3
        assert dataset.load()["sim_time"].to_numpy().tolist() == [per_round(ROOT, k)["sim_time"] for k in range(3)]


def test_full_disk_before_the_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OutputError, match="no space left on the disk"):
        TraceWriter.create(tmp_path / "t.h5", header(), slots=2)
    assert not list(tmp_path.iterdir())


LIMITED = """
import resource, sys
from tests.trace.traces import header, record
from wirelessfl.errors import OutputError
from wirelessfl.trace import TraceWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, resource.RLIM_INFINITY))
writer = TraceWriter.create(sys.argv[1], header(), 1000)
try:
    for k in range(1000):
        writer.append(record(k, range(1000)))
except OutputError as error:
    print(k, error)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no file size limit on this system")
def test_a_real_limit_of_the_system_leaves_every_finished_round(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    done = subprocess.run([sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True)
    rounds, message = done.stdout.split(" ", 1)
    assert "no space left on the disk" in message
    assert not done.stderr
    with open_trace(path) as dataset:
        dataset.load()
        assert dataset.sizes["round"] == int(rounds) > 5
        assert (dataset["client_id"] >= 0).all()
