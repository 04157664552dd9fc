"""Checkpoints restore every bit, survive failed writes, and refuse damage."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wirelessfl.trace.checkpoint
from tests.trace.traces import IDENTITY
from wirelessfl.errors import OutputError, TraceError
from wirelessfl.trace import (
    CheckpointWriter,
    has_checkpoint,
    load_checkpoint,
    new_checkpoint,
    partial_checkpoints,
    save_checkpoint,
)
from wirelessfl.trace.checkpoint import _start_of

ARRAYS = hnp.arrays(
    st.one_of(
        hnp.boolean_dtypes(),
        hnp.integer_dtypes(endianness="?"),
        hnp.unsigned_integer_dtypes(),
        hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
        hnp.complex_number_dtypes(sizes=(64, 128)),
    ),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
LEAVES = st.one_of(
    ARRAYS,
    st.integers(),
    st.floats(),
    st.text(),
    st.booleans(),
    st.none(),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
    st.floats(width=32).map(np.float32),
)
STATES = st.recursive(
    st.dictionaries(st.text(), LEAVES, max_size=4),
    lambda children: st.dictionaries(st.text(), st.one_of(LEAVES, children), max_size=4),
    max_leaves=12,
)


def assert_same(found: Any, expected: Any) -> None:
    """Equality to the last bit, with types: NaN payloads, −0.0 and byte order included."""
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, np.ndarray | np.generic):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.tobytes() == expected.tobytes()
    elif isinstance(expected, float):
        assert np.float64(found).tobytes() == np.float64(expected).tobytes()
    else:
        assert found == expected


@given(state=STATES)
@settings(max_examples=200, deadline=None)
def test_round_trip_is_exact(state: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("checkpoint") / "checkpoint.bin"
    save_checkpoint(path, state, IDENTITY)
    assert_same(load_checkpoint(path, IDENTITY), state)
    assert list(path.parent.iterdir()) == [path]


def test_round_trip_keeps_what_text_formats_lose(tmp_path: Path) -> None:
    state: dict[str, Any] = {
        "big": 2**200 + 1,
        "negative": -(2**64),
        "int64": np.array([2**53 + 1, -(2**63)], dtype=np.int64),
        "payload": np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64),
        "zero": -0.0,
        "infinite": float("-inf"),
        "map": {"map": {"array": 1}},
        "empty": {},
        "strided": np.arange(12).reshape(3, 4).T,
    }
    save_checkpoint(tmp_path / "c", state, IDENTITY)
    assert_same(load_checkpoint(tmp_path / "c", IDENTITY), state)


def test_large_arrays_of_every_layout_come_back(tmp_path: Path) -> None:
    """Larger than what is copied before it is written; transposed, strided, backwards, big-endian, read-only, text."""
    whole = np.random.default_rng(1).standard_normal((300, 200))
    frozen = whole.copy()
    frozen.flags.writeable = False
    state: dict[str, Any] = {
        "whole": whole,
        "transposed": whole.T,
        "strided": whole[::2, 1:],
        "backwards": whole[::-1],
        "big-endian": whole.astype(">f4"),
        "frozen": frozen,
        "complex": whole + 1j,
        "bool": whole > 0,
        "text": np.full(9000, b"wirelessfl"),
        "empty": np.zeros((0, 70000)),
        "scalar": np.bytes_(b"x" * 70_000),
    }
    save_checkpoint(tmp_path / "c", state, IDENTITY)
    assert_same(load_checkpoint(tmp_path / "c", IDENTITY), state)


def test_loaded_arrays_can_be_written(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", {"w": np.zeros(3)}, IDENTITY)
    loaded = load_checkpoint(tmp_path / "c", IDENTITY)
    loaded["w"] += 1
    assert loaded["w"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": {"b": [1, 2]}}, "a.b is a list"),
        ({"a": object()}, "a is an object"),
        ({"a": np.array(["x"])}, "a has dtype <U1"),
        ({"a": np.array([object()])}, "a has dtype object"),
        ({"a": {1: 2}}, "key 1"),
        ({"a": 1j}, "a is a complex"),
    ],
)
def test_refuses_what_it_cannot_restore(state: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        save_checkpoint(tmp_path / "c", state, IDENTITY)
    assert not list(tmp_path.iterdir())


def test_every_single_damaged_byte_and_every_cut_is_found(tmp_path: Path) -> None:
    path = tmp_path / "c"
    save_checkpoint(path, {"w": np.arange(3.0), "n": 3}, IDENTITY)
    content = path.read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x40
        path.write_bytes(damaged)
        with pytest.raises(TraceError, match="checkpoint"):
            load_checkpoint(path, IDENTITY)
        path.write_bytes(content[:position])
        with pytest.raises(TraceError, match="checkpoint"):
            load_checkpoint(path, IDENTITY)


def large(n: int) -> dict[str, Any]:
    """A state above the size from which files are written over, in which nothing but zeros is as in another."""
    rows = np.random.default_rng(n).standard_normal((3, 60_001)).astype(np.float32)
    return {"n": n, "odd": rows[0], "rows": np.vstack([rows] * 3), "small": np.arange(n), "zeros": np.zeros(20_000)}


def test_damage_in_a_large_state_is_found(tmp_path: Path) -> None:
    """Bits, pages of zeros or of the state before, and cuts, anywhere; a false alarm is impossible."""
    path, page, rng = tmp_path / "c", 4096, np.random.default_rng(5)
    save_checkpoint(path, large(1), IDENTITY)
    before = path.read_bytes()
    save_checkpoint(path, large(2), IDENTITY)
    content = path.read_bytes()
    for place in rng.integers(0, len(before), 60).tolist():
        flipped, first = content[place] ^ (1 << place % 8), place - place % page
        whole = (content[:place] + bytes([flipped]) + content[place + 1 :], content[:place])
        pages = [content[:first] + other + content[first + page :] for other in (bytes(page), before[first:][:page])]
        for damaged in (*whole, *pages):
            path.write_bytes(damaged)
            if damaged == content:  # a page of zeros that were there
                assert_same(load_checkpoint(path, IDENTITY), large(2))
                continue
            with pytest.raises(TraceError, match="checkpoint"):
                load_checkpoint(path, IDENTITY)


@pytest.mark.parametrize("sizes", [(), (0,), (1,), (1023, 1, 1024), (7, 5000, 3), (1024, 0, 2048), (2500, 2500)])
def test_the_check_is_that_of_its_words(sizes: tuple[int, ...]) -> None:
    """Against sums word by word, in whatever parts the words come; every sum of the first draw runs over 2⁶⁴."""
    words = np.random.default_rng(2).integers(2**62, 2**64, sum(sizes), dtype=np.uint64, endpoint=False)
    parts = [part.tobytes() for part in np.split(words, np.cumsum(sizes)[:-1])] if sizes else []
    sums = [sum(map(int, words[first::1024])) % 2**64 for first in range(1024)]
    count = (8 * len(words)).to_bytes(8, "little")
    expected = zlib.crc32(b"head" + count + b"".join(one.to_bytes(8, "little") for one in sums))
    assert _start_of(b"head", parts)[-4:] == expected.to_bytes(4, "little")


def test_the_file_of_the_last_checkpoint_but_one_is_written_over(tmp_path: Path) -> None:
    path, numbers = tmp_path / "c", []
    with CheckpointWriter(path, IDENTITY) as checkpoint:
        for n in range(6):
            state = large(n)
            state["rows"] = state["rows"][: 9 - n % 2]  # longer and shorter in turns
            checkpoint.save(state)
            checkpoint.settle()
            assert_same(load_checkpoint(path, IDENTITY), state)
            numbers.append(path.stat().st_ino)
    assert numbers[2:] == numbers[:-2]
    assert numbers[0] != numbers[1]
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_to_be_written_over_is_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill before the first byte of a new checkpoint must not leave the last but one in its place."""
    path, seen = tmp_path / "c", []
    begun = wirelessfl.trace.checkpoint._begun

    def killed(new: Path, old: Path) -> Any:
        file = begun(new, old)
        seen.append(new.stat().st_size)
        if len(seen) > 1:
            assert load_checkpoint(path, IDENTITY)["n"] == len(seen) - 2
        return file

    monkeypatch.setattr(wirelessfl.trace.checkpoint, "_begun", killed)
    with CheckpointWriter(path, IDENTITY) as checkpoint:
        for n in range(5):
            checkpoint.save(large(n))
    assert [size > 2**20 for size in seen] == [False, False, True, True, True]


def test_a_checkpoint_with_a_second_name_stays_as_it_is(tmp_path: Path) -> None:
    path, kept = tmp_path / "c", tmp_path / "kept"
    with CheckpointWriter(path, IDENTITY) as checkpoint:
        for n in range(4):
            checkpoint.save(large(n))
            checkpoint.settle()
            if n == 0:
                kept.hardlink_to(path)
    assert_same(load_checkpoint(kept, IDENTITY), large(0))
    assert_same(load_checkpoint(path, IDENTITY), large(3))
    assert sorted(tmp_path.iterdir()) == [path, kept]


@pytest.mark.parametrize(("step", "fails"), [("fsync", 1), ("fsync", 2), ("replace", 1), ("replace", 2), ("open", 1)])
def test_a_failure_leaves_the_last_checkpoint_of_a_large_state(
    step: str, fails: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whatever step, and while the next one is written too; the second wait for the disk is that for the old one."""
    path, place = tmp_path / "c", os if step == "fsync" else Path
    whole, calls = getattr(place, step), []

    def failing(self: Any, *args: Any, **keys: Any) -> Any:
        calls.append(self)
        return full() if len(calls) == fails else whole(self, *args, **keys)

    with CheckpointWriter(path, IDENTITY) as checkpoint:
        for n in range(3):
            checkpoint.save(large(n))
        checkpoint.settle()
        with monkeypatch.context() as patch:
            patch.setattr(place, step, failing)
            try:
                checkpoint.save(large(3))
                checkpoint.settle()
                last = 3
            except OutputError:
                last = 2
        assert len(calls) >= fails
        assert_same(load_checkpoint(path, IDENTITY), large(last))
        begun = wirelessfl.trace.checkpoint._begun

        def writes_over(new: Path, old: Path) -> Any:
            file = begun(new, old)
            file.write(b"x" * 1000)
            file.flush()
            assert_same(load_checkpoint(path, IDENTITY), large(last))
            file.seek(0)
            return file

        monkeypatch.setattr(wirelessfl.trace.checkpoint, "_begun", writes_over)
        checkpoint.save(large(4))
    assert_same(load_checkpoint(path, IDENTITY), large(4))
    assert list(tmp_path.iterdir()) == [path]


def test_no_second_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without hard links every checkpoint is a new file."""
    monkeypatch.setattr(os, "link", full)
    path = tmp_path / "c"
    with CheckpointWriter(path, IDENTITY) as checkpoint:
        for n in range(3):
            checkpoint.save(large(n))
    assert_same(load_checkpoint(path, IDENTITY), large(2))
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_in_place_of_an_old_checkpoint_is_not_followed(tmp_path: Path) -> None:
    path, precious = tmp_path / "c", tmp_path / "precious"
    precious.write_bytes(b"x" * 2**21)
    for left in partial_checkpoints(path):
        left.symlink_to(precious)
    with CheckpointWriter(path, IDENTITY) as checkpoint:
        for n in range(3):
            checkpoint.save(large(n))
    assert precious.read_bytes() == b"x" * 2**21
    assert sorted(tmp_path.iterdir()) == [path, precious]


def test_a_pickle_is_refused_and_never_run(tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_bytes(pickle.dumps({"w": 1}))
    with pytest.raises(TraceError, match="not a checkpoint"):
        load_checkpoint(path, IDENTITY)


def test_missing_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no checkpoint"):
        load_checkpoint(tmp_path / "c", IDENTITY)


@pytest.mark.parametrize("place", ["checkpoint.bin", ".checkpoint.bin.partial"])
def test_a_pipe_or_a_device_is_never_read(place: str, tmp_path: Path) -> None:
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        make(tmp_path / place)
        with pytest.raises(TraceError, match="pipe, socket or device"):
            load_checkpoint(tmp_path / "checkpoint.bin", IDENTITY)
        (tmp_path / place).unlink()


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="does not exist"):
        save_checkpoint(tmp_path / "no" / "c", {}, IDENTITY)


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_checkpoint(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c"
    save_checkpoint(path, {"n": 1}, IDENTITY)
    with monkeypatch.context() as patch:
        patch.setattr(os if step == "fsync" else Path, step, full)
        with pytest.raises(OutputError, match="no space left"):
            save_checkpoint(path, {"n": 2}, IDENTITY)
    assert load_checkpoint(path, IDENTITY) == {"n": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_of_the_disk_is_told_with_the_next_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c"
    with CheckpointWriter(path, IDENTITY) as checkpoint:
        checkpoint.save({"n": 1})
        checkpoint.settle()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            checkpoint.save({"n": 2})
            with pytest.raises(OutputError, match="no space left"):
                checkpoint.save({"n": 3})
        assert load_checkpoint(path, IDENTITY) == {"n": 1}
        checkpoint.save({"n": 4})
    assert load_checkpoint(path, IDENTITY) == {"n": 4}


def test_a_kill_leaves_what_was_saved_before_the_disk_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, at_the_kill = tmp_path / "c", tmp_path / "killed"
    waits = threading.Event()
    with monkeypatch.context() as patch, CheckpointWriter(path, IDENTITY) as checkpoint:
        for n in range(3):
            checkpoint.save({"n": n})
        checkpoint.settle()
        patch.setattr(os, "fsync", lambda _: waits.wait(60.0))
        checkpoint.save({"n": 3})
        shutil.copytree(tmp_path, at_the_kill, ignore=shutil.ignore_patterns("killed"))
        waits.set()
    left = at_the_kill / "c"
    assert new_checkpoint(left).exists()
    assert load_checkpoint(left, IDENTITY) == {"n": 3}
    # A run that goes on from it never has less than it.
    with CheckpointWriter(left, IDENTITY):
        assert not new_checkpoint(left).exists()
        assert load_checkpoint(left, IDENTITY) == {"n": 3}


def test_a_checkpoint_that_is_cut_short_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "c"
    new = new_checkpoint(path)
    save_checkpoint(path, {"n": 2}, IDENTITY)
    content = path.read_bytes()
    path.unlink()
    for length in range(len(content)):
        new.write_bytes(content[:length])
        assert not has_checkpoint(path)
    save_checkpoint(path, {"n": 1}, IDENTITY)
    for length in range(len(content)):
        new.write_bytes(content[:length])
        assert load_checkpoint(path, IDENTITY) == {"n": 1}
    new.write_bytes(content)
    assert load_checkpoint(path, IDENTITY) == {"n": 2}


def test_a_checkpoint_of_another_version_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.bin"
    save_checkpoint(path, {"a": 1}, IDENTITY)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"wirelessfl-checkpoint 6", b"wirelessfl-checkpoint 5", 1))
    with pytest.raises(TraceError, match="not a checkpoint of this version; run again with overwrite=True"):
        load_checkpoint(path, IDENTITY)
