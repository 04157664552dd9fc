"""Checks of files from a process of several threads: by another process, which has one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import h5py
import pytest

from tests.trace import looks
from tests.trace.looks import PATIENCE_S, noted, require_end
from tests.trace.traces import header
from wirelessfl.errors import TraceError
from wirelessfl.trace import TraceWriter, open_trace, opening, watcher
from wirelessfl.trace.watcher import watched_from_any_thread as ask

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no process is forked here")


@pytest.fixture(autouse=True)
def another_thread() -> Iterator[None]:
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    yield
    ends.set()
    thread.join()


@pytest.fixture(autouse=True)
def none_idle(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(watcher, "_idle", [])
    yield
    watcher._end_idle()


def pids() -> list[int]:
    return [idle.pid for idle in watcher._idle]


def test_words_come_from_one_process_that_is_kept() -> None:
    assert ask(partial(looks.find, None), 0) is None
    (pid,) = pids()
    assert ask(partial(looks.find, "größer"), 0) == "größer"
    assert pids() == [pid] != [os.getpid()]
    watcher._end_idle()
    require_end(pid)


def test_looks_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(ask, partial(looks.wait, tmp_path / "note", PATIENCE_S), 0)
        look, _ = noted(tmp_path / "note")
        assert ask(partial(looks.find, "there"), 0) == "there"
        assert not long.done()
        os.kill(look, signal.SIGSEGV)
        assert "SIGSEGV" in str(long.result(PATIENCE_S))
    assert len(pids()) == 2


def test_a_process_that_was_ended_is_replaced() -> None:
    ask(partial(looks.find, None), 0)
    (pid,) = pids()
    os.kill(pid, signal.SIGKILL)
    assert ask(partial(looks.find, "there"), 0) == "there"
    assert len(pids()) == 1 and pids() != [pid]


def test_one_that_is_ended_while_it_looks_is_no_damage() -> None:
    with pytest.raises(OSError, match="it has ended before it answered"):
        ask(looks.end_the_parent, 0)
    assert pids() == []


def test_few_processes_are_kept() -> None:
    with ThreadPoolExecutor(2 * watcher._MOST_IDLE) as pool:
        found = list(pool.map(lambda number: ask(partial(looks.find, str(number)), 0), range(30)))
    assert found == list(map(str, range(30)))
    assert 1 <= len(set(pids())) == len(pids()) <= watcher._MOST_IDLE


def test_a_handler_of_signals_may_ask_at_any_moment() -> None:
    asked = list[str | None]()

    def handle(*_: object) -> None:
        asked.append(ask(partial(looks.find, "asked"), 0))
        signal.setitimer(signal.ITIMER_REAL, 0.02)

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        while len(asked) < 20:
            assert ask(partial(looks.find, "there"), 0) == "there"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert set(asked) == {"asked"}


def test_a_process_whose_pipe_somebody_else_holds_is_seen_to_end(tmp_path: Path) -> None:
    """As one that was forked from this one before the pipe was kept from it."""
    ask(partial(looks.find, None), 0)
    (idle,) = watcher._idle
    pipe = Path(f"/proc/self/fd/{idle._replies.fileno()}").readlink()
    end = next(each for each in Path(f"/proc/{idle.pid}/fd").iterdir() if each.readlink() == pipe)
    with end.open("wb"), ThreadPoolExecutor(1) as pool:
        long = pool.submit(ask, partial(looks.wait, tmp_path / "note", 2.0), 0)
        noted(tmp_path / "note")
        os.kill(idle.pid, signal.SIGKILL)
        assert long.result(PATIENCE_S) is None
    assert len(pids()) == 1 and pids() != [idle.pid]  # another one has looked again


def test_all_end_with_the_process_that_asks(tmp_path: Path) -> None:
    text = (
        "import sys, threading; from functools import partial; from pathlib import Path; from tests.trace import looks;"
        "from wirelessfl.trace.watcher import watched_from_any_thread as ask;"
        "threading.Thread(target=ask, args=(partial(looks.wait, Path(sys.argv[1]), 60.0), 0)).start()"
    )
    with subprocess.Popen([sys.executable, "-c", text, str(tmp_path / "note")]) as asking:
        look, parent = noted(tmp_path / "note")
        asking.kill()
    for pid in (look, parent):
        require_end(pid)


def test_an_interrupt_ends_the_look(tmp_path: Path) -> None:
    note = tmp_path / "note"

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def soon() -> None:
        noted(note)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    thread = threading.Thread(target=soon)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            ask(partial(looks.wait, note, 2 * PATIENCE_S), 0)
    finally:
        signal.signal(signal.SIGUSR1, before)
        thread.join()
    for pid in noted(note):
        require_end(pid)


def test_the_current_folder_is_that_of_the_process_that_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(looks.find_folder, 0) == str(Path.cwd())
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    assert ask(looks.find_folder, 0) == str(Path.cwd())
    (tmp_path / "gone").rmdir()
    assert ask(partial(looks.find, "there"), 0) == "there"


def test_no_room_for_a_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(watcher, "start_child", refuse)
    with pytest.raises(BlockingIOError):
        ask(partial(looks.find, None), 0)


@pytest.mark.parametrize("error", [ValueError, OSError])
def test_what_another_process_cannot_read_is_told(error: type[Exception]) -> None:
    with pytest.raises(OSError, match=f"{error.__name__}: only here"):
        ask(looks.OnlyHere(error), 0)
    with pytest.raises(OSError, match="pickle"):
        ask(lambda: None, 0)


def test_a_file_is_sound_when_it_is_found_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path goes by the current folder, which may change, and what is no answer is no good one."""
    for name in ("sound", "damaged"):
        (tmp_path / name).mkdir()
        TraceWriter.create(tmp_path / name / "trace.h5", header(), slots=2).finish("complete")
    with h5py.File(tmp_path / "damaged" / "trace.h5", "r+") as file:
        file.attrs["seed"] = "seven"
    monkeypatch.chdir(tmp_path / "sound")
    open_trace("trace.h5").close()
    monkeypatch.chdir(tmp_path / "damaged")
    with pytest.raises(TraceError, match="attribute seed"):
        open_trace("trace.h5")
    monkeypatch.setattr(opening, "_words", looks.OnlyHere(ValueError))
    monkeypatch.setattr(opening, "_sound", {})
    with pytest.raises(TraceError, match=r"not read: no other process can check it \(ValueError: only here\)"):
        open_trace("trace.h5")


LOCKS = """
import os, sys, threading
from functools import partial
from h5py._objects import phil
from tests.trace import looks
from wirelessfl.trace.watcher import watched_from_any_thread as ask

forks = []
lock = threading.Lock()  # as concurrent.futures and logging have one
os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
os.register_at_fork(before=lambda: forks.append(1))
assert ask(partial(looks.find, "alone"), 0) == "alone" and len(forks) == 1
held, enough = threading.Event(), threading.Event()

def hold():
    with lock:
        held.set()
        enough.wait(1.0)
        with phil:
            pass

holder = threading.Thread(target=hold)
holder.start()
held.wait()
with phil:
    threading.Timer(0.2, enough.set).start()
    assert ask(partial(looks.find, "not alone"), 0) == "not alone" and len(forks) == 1
holder.join()
child = os.fork()
if child == 0:  # the parent's process is not this one's
    waits = threading.Event()
    threading.Thread(target=waits.wait).start()
    found = ask(partial(looks.find, "in a fork"), 0)
    waits.set()
    sys.exit(0 if found == "in a fork" else 1)
assert os.waitpid(child, 0)[1] == 0
waits = threading.Event()
threading.Thread(target=waits.wait).start()
assert ask(partial(looks.find, "still there"), 0) == "still there"
waits.set()
"""


def test_locks_of_other_threads_are_not_waited_for() -> None:
    """One thread holds a lock that hooks for forks take, and waits for that of HDF5, which the other one holds."""
    told = subprocess.run(
        [sys.executable, "-X", "dev", "-c", LOCKS], capture_output=True, text=True, timeout=2 * PATIENCE_S
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
