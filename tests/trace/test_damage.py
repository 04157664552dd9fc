"""A damaged trace is refused with its name and place, or read right; it never hangs, crashes or fills the memory."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.processes import is_running
from tests.trace import looks
from tests.trace.traces import header, record
from wirelessfl.errors import InputError, TraceError, WirelessFLError
from wirelessfl.trace import TraceWriter, model_weights, open_trace, opening, read_group, watched
from wirelessfl.trace.failures import trace_errors

MUTANTS = 18


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a finished trace of three rounds."""
    path = tmp_path_factory.mktemp("sound") / "trace.h5"
    writer = TraceWriter.create(path, header(), slots=2)
    for k in range(3):
        writer.append(record(k, range(2), weights=True))
    writer.finish("complete", {"samples": [5, 6]})
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, sound: bytes) -> Path:
    path = tmp_path / "trace.h5"
    path.write_bytes(sound)
    return path


def read_all(path: Path) -> None:
    """What the commands read of a trace."""
    with open_trace(path) as trace, trace_errors(path):
        trace.load()
    for group in ("events", "privacy", "model", "secagg"):
        read_group(path, group)
    model_weights(path)


def test_a_sound_trace_is_read(path: Path) -> None:
    read_all(path)


def _retype(file: h5py.File) -> None:
    del file["status"]
    file["status"] = np.zeros((3, 2), dtype="f8")


def _group_for_dataset(file: h5py.File) -> None:
    del file["events/kind"]
    file.create_group("events/kind")


def _set_attribute(name: str, value: object) -> Callable[[h5py.File], None]:
    return lambda file: file.attrs.__setitem__(name, value)


def _set_value(name: str, index: object, value: int) -> Callable[[h5py.File], None]:
    return lambda file: file[name].__setitem__(index, value)


def _delete(name: str) -> Callable[[h5py.File], None]:
    return lambda file: file.__delitem__(name)


def _untie(name: str) -> Callable[[h5py.File], None]:
    return lambda file: file[name].attrs.__delitem__("DIMENSION_LIST")


def _resize(name: str, *shape: int) -> Callable[[h5py.File], None]:
    return lambda file: file[name].resize(shape)


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (_resize("round", 10**11), "/round"),
        (_resize("sim_time", 10**11), "/sim_time"),
        (_resize("samples", 1), "/samples"),
        (_retype, "/status"),
        (_group_for_dataset, "/events/kind"),
        (_delete("events"), "/events"),
        (_delete("round"), "/round"),
        (_delete("model/weights"), "/model/weights"),
        (_untie("sim_time"), "/sim_time"),
        (_untie("privacy/air_backoff"), "/privacy/air_backoff"),
        (_set_attribute("seed", "seven"), "attribute seed"),
        (_set_attribute("seed", np.zeros(3)), "attribute seed"),
        (_set_attribute("status", "done"), "attribute status"),
        (lambda file: file.attrs.__delitem__("status"), "no attribute status"),
        (_set_attribute("why_different", "[" * 100_000), "attribute why_different"),
        (_set_attribute("plan", "3"), "attribute plan"),
        (_set_attribute("scenario", np.bytes_(b"\xff\xfe")), "attribute scenario"),
        (_set_value("round", 1, 7), "/round"),
        (_set_value("client_id", (0, 1), -7), "/client_id"),
        (_set_value("client_id", (0, 1), 0), "/client_id"),
        (_set_value("status", (0, 1), 200), "/status"),
        (_set_value("events/kind", 0, 99), "/events/kind"),
        (_set_value("event_count", 0, 10**9), "/event_count"),
    ],
)
def test_the_place_of_the_damage_is_named(path: Path, damage: Callable[[h5py.File], None], place: str) -> None:
    with h5py.File(path, "r+") as file:
        damage(file)
    with pytest.raises(TraceError, match="damaged") as refusal:
        read_all(path)
    assert str(path) in str(refusal.value)
    assert place in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_values_that_lie_elsewhere_are_not_read(path: Path, tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((3,), "f8")
    layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "secret", (3,))
    with h5py.File(path, "r+") as file:
        del file["sim_time"]
        file.create_virtual_dataset("sim_time", layout)
    with pytest.raises(TraceError, match="/sim_time"):
        open_trace(path)


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "folder"])
def test_only_regular_files_are_opened(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    special = Path("special")
    if kind == "fifo":
        os.mkfifo(special)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(special))
    elif kind == "folder":
        special.mkdir()
    else:
        special.symlink_to("/dev/zero")
    with pytest.raises(TraceError, match=r"a pipe, socket or device|a folder"):
        open_trace(special)


@pytest.mark.slow
def test_bytes_overwritten_anywhere(path: Path, sound: bytes) -> None:
    """Random bytes, runs of zeros and cuts, from a fixed seed: every trace is refused in words, or read."""
    generator = np.random.default_rng(15)
    refused = 0
    for mutant in range(MUTANTS):
        content = bytearray(sound)
        start = int(generator.integers(len(content)))
        if mutant % 3 == 0:
            for place in generator.integers(0, len(content), 20):
                content[place] = int(generator.integers(256))
        elif mutant % 3 == 1:
            content[start : start + 512] = bytes(len(content[start : start + 512]))
        else:
            del content[start:]
        path.write_bytes(content)
        try:
            read_all(path)
        except WirelessFLError as error:
            assert isinstance(error, InputError)
            assert str(path) in str(error)
            refused += 1
    assert refused >= MUTANTS // 3  # every cut is one


def test_a_crash_inside_hdf5_is_words() -> None:
    words = watched.watched(lambda: os.kill(os.getpid(), signal.SIGSEGV), 0)
    assert words is not None
    assert "SIGSEGV" in words


def test_a_signal_to_end_is_for_the_process_that_waits() -> None:
    """A terminal sends it to both; from the first moment the one that looks goes on, and its parent answers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    def look() -> str:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        return f"goes on: {sorted(blocked - before)}"

    assert watched.watched(look, 0) == f"goes on: {sorted((signal.SIGINT, signal.SIGTERM))}"
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_signal_while_the_process_is_forked_ends_what_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    fork, children = os.fork, list[int]()

    def interrupted() -> int:
        if child := fork():
            children.append(child)
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # blocked for now
        return child

    monkeypatch.setattr(os, "fork", interrupted)
    before = len(list(Path("/dev/fd").iterdir()))
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            watched.watched(lambda: time.sleep(60), 0)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert len(list(Path("/dev/fd").iterdir())) == before
    assert not any(map(is_running, children))


def test_what_looks_ends_with_the_process_that_waits(tmp_path: Path) -> None:
    """It has what was open there, and locked."""
    text = (
        "import sys; from functools import partial; from pathlib import Path; from tests.trace import looks;"
        "from wirelessfl.trace.watched import watched;"
        "watched(partial(looks.wait, Path(sys.argv[1]), 60.0), 0)"
    )
    with subprocess.Popen([sys.executable, "-c", text, str(tmp_path / "note")]) as waiting:
        look, parent = looks.noted(tmp_path / "note")
        assert parent == waiting.pid
        waiting.kill()
    looks.require_end(look)


@pytest.mark.slow
def test_a_loop_inside_hdf5_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "_CPU_S", 1.0)

    def forever() -> None:
        while True:
            pass

    began = time.monotonic()
    words = watched.watched(forever, 0)
    assert words is not None
    assert "no end" in words
    assert time.monotonic() - began < 15


def test_a_wait_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "_WALL_S", 0.5)
    words = watched.watched(lambda: time.sleep(60), 0)
    assert words is not None
    assert "no end" in words


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.ENOMEM])
def test_no_room_for_another_process_is_no_damage(path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refused() -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fork", refused)
    monkeypatch.setattr(opening, "watched_from_any_thread", watched.watched)
    before = len(list(Path("/dev/fd").iterdir()))
    with pytest.raises(TraceError, match=rf"no other process can check it \({os.strerror(code)}\)") as refusal:
        open_trace(path)
    assert "damaged" not in str(refusal.value)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_a_sound_trace_is_read_where_proc_is_not_mounted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "_SIZE", path.with_name("statm"))
    monkeypatch.setattr(opening, "watched_from_any_thread", watched.watched)
    read_all(path)


@pytest.mark.slow
def test_a_trace_is_read_while_another_thread_reads(path: Path) -> None:
    """No process inherits a lock of HDF5 for ever."""
    others = [path.with_name(f"other{number}.h5") for number in range(3)]
    for other in others:
        other.write_bytes(path.read_bytes())
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(read_all, others))


def test_memory_is_limited(path: Path) -> None:
    def much() -> str | None:
        try:
            np.ones(1 << 28)
        except MemoryError:
            return "refused"
        return None

    assert watched.watched(much, 0) == "refused"


def test_a_file_is_inspected_again_when_it_changes(path: Path) -> None:
    open_trace(path).close()
    with h5py.File(path, "r+") as file:
        file.attrs["seed"] = "seven"
    with pytest.raises(TraceError, match="attribute seed"):
        open_trace(path)


def test_a_fault_of_the_package_can_be_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words name the exception and the line; WIRELESSFL_DEBUG lets it through."""

    def wrong(_: h5py.File) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(opening, "inspect_trace", wrong)
    monkeypatch.setattr(opening, "watched_from_any_thread", watched.watched)
    with pytest.raises(TraceError, match=r"ZeroDivisionError in trace/opening\.py, line \d+: a fault of ours"):
        opening.inspect_file(path)
    monkeypatch.setenv("WIRELESSFL_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        opening.inspect_file(path)
