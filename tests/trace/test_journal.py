"""The file layer below HDF5: writes of many pieces, short writes, and memory."""

from __future__ import annotations

import gc
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from wirelessfl.trace import journal
from wirelessfl.trace.journal import HeldBackFile


def filled(path: Path, pieces: list[bytes], gap: int) -> bytes:
    """What the file holds after these pieces, with gaps between them, were written and committed."""
    path.touch()
    backing = HeldBackFile(path)
    for piece in pieces:
        backing.write(memoryview(piece))
        backing.seek(backing.tell() + gap)
    backing.commit()
    backing.close()
    return path.read_bytes()


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("gap", [0, 5])
def test_writes_of_many_pieces_hold_all_of_them(count: int, gap: int, tmp_path: Path) -> None:
    pieces = [bytes([k % 251]) * (1 + k % 7) for k in range(count)]
    assert filled(tmp_path / "file", pieces, gap) == bytes(gap).join(pieces)


@pytest.mark.parametrize("at_once", [1, 100, 4096])
def test_what_the_system_does_not_take_at_once_follows(
    at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write may end short of what it was given, as when a signal comes."""
    whole, rest = os.pwritev, os.pwrite
    monkeypatch.setattr(os, "pwritev", lambda to, pieces, at: whole(to, [b"".join(pieces)[:at_once]], at))
    monkeypatch.setattr(os, "pwrite", lambda to, data, at: rest(to, data[: 10 * at_once], at))
    pieces = [bytes([k]) * 90 for k in range(30)]
    assert filled(tmp_path / "file", pieces, 3) == bytes(3).join(pieces)


def test_a_commit_takes_no_second_copy_of_what_is_held(tmp_path: Path) -> None:
    piece = np.arange(1 << 15, dtype=np.uint8).tobytes()
    (tmp_path / "file").touch()
    backing = HeldBackFile(tmp_path / "file")
    for _ in range(200):
        backing.write(memoryview(piece))
    tracemalloc.start()
    try:
        backing.commit()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    backing.close()
    assert (tmp_path / "file").read_bytes() == 200 * piece
    assert peak < 20 * len(piece)


def test_pieces_at_once_are_what_the_system_allows() -> None:
    assert os.sysconf("SC_IOV_MAX") >= journal._PIECES_AT_ONCE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_closed_file_is_not_locked_by_a_process_that_was_forked_meanwhile(tmp_path: Path) -> None:
    """As another thread does that inspects a trace of its own."""
    (tmp_path / "file").touch()
    backing = HeldBackFile(tmp_path / "file")
    waits, ends = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ends)
        os.read(waits, 1)
        os._exit(0)
    os.close(waits)
    try:
        with pytest.raises(BlockingIOError):
            HeldBackFile(tmp_path / "file")
        backing.close()
        HeldBackFile(tmp_path / "file").close()
    finally:
        os.close(ends)
        os.waitpid(child, 0)


def test_a_file_that_was_locked_closes_no_other_when_it_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    holder = HeldBackFile(tmp_path / "file")
    with pytest.raises(BlockingIOError) as refused:
        HeldBackFile(tmp_path / "file")
    other = os.open(tmp_path / "other", os.O_CREAT | os.O_RDWR)  # under the number that has become free
    del refused
    gc.collect()
    os.fstat(other)
    os.close(other)
    holder.close()
