"""Checkpoints restore every bit, survive failed writes, and refuse damage."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.trace.traces import IDENTITY
from wirelessfl.errors import OutputError, TraceError
from wirelessfl.trace import CheckpointWriter, has_checkpoint, load_checkpoint, new_checkpoint, save_checkpoint

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
    path.write_bytes(content.replace(b"wirelessfl-checkpoint 4", b"wirelessfl-checkpoint 3", 1))
    with pytest.raises(TraceError, match="not a checkpoint of this version; run again with overwrite=True"):
        load_checkpoint(path, IDENTITY)
