"""The state between two rounds as one file: exact, replaced atomically, and no pickle.

Layout: one line of magic, a check of all that follows, the length of a JSON tree, the tree, the arrays' bytes. The
tree holds the identity of the run, which its trace has as well, and every value of the state as text that reproduces
its bits; an array is its dtype, shape and place among the bytes, at a multiple of 8. The check is the CRC-32 of length
and tree, of the number of bytes, and of 1024 sums modulo 2⁶⁴, of every 1024th word each. It finds what a kill or a
disk has damaged; a CRC-32 of the bytes themselves takes as long as their writing, a cryptographic check twice as long,
and neither keeps anybody from changing both.

A checkpoint is written beside the old one and then takes its place. As soon as it is written, a kill of the process
cannot harm it: ``load_checkpoint`` finds it there. That it also outlives a failure of power takes the disk longer than
a small round takes, so that ``CheckpointWriter`` does not wait for it. Of a large state the file of the checkpoint
before is kept, and the next one is written over it: memory and disk for it are there already.
"""

import json
import math
import os
import stat
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import TraceError, instance_of, precondition
from wirelessfl.trace.failures import output_errors, removed_on_failure
from wirelessfl.trace.opening import refuse_irregular
from wirelessfl.trace.records import ANEW, RunIdentity

Leaf = NDArray[Any] | int | float | str | bool | None
State = Mapping[str, "Leaf | State"]
"""State that lives across rounds: nested mappings with text keys over arrays, numbers, text, truth values and None."""

# The number grows whenever parts of the simulation remember something else than before.
_MAGIC = b"wirelessfl-checkpoint 6\n"
_CHECK_BYTES = 4
_LENGTH_BYTES = 8
_START = len(_MAGIC) + _CHECK_BYTES
_WORD, _SUMS = np.dtype("<u8"), 1024
_ARRAY_KINDS = "biufcS"
_LARGE = 2**16  # bytes
_REUSED = 2**20  # bytes of a state, from which on its file is written over
_Bytes = bytes | memoryview
# What reading a tree that no run left may raise.
_NONSENSE = (AttributeError, IndexError, KeyError, MemoryError, OverflowError, RecursionError, TypeError, ValueError)


def save_checkpoint(path: str | Path, state: State, identity: RunIdentity) -> None:
    """Replacement of the checkpoint at ``path``; a kill or a full disk leaves the old one or the new one, whole.

    Args:
        path: The checkpoint file.
        identity: Of the run whose state it is.
        state: Nested mapping; arrays are boolean, integer, real, complex or bytes, of any shape.

    Raises:
        OutputError: The folder or the disk cannot take it.
        ValueError: A key that is no text, or a value of another type.
    """
    with CheckpointWriter(path, identity) as checkpoint:
        checkpoint.save(state)
        checkpoint.settle()


class CheckpointWriter(AbstractContextManager["CheckpointWriter"]):
    """Writer that replaces the checkpoint of a run after every round, with a thread that waits for the disk.

    As a context manager it waits on the way out; ``settle`` also raises what went wrong.

    Args:
        path: The checkpoint file.
        identity: Of the run whose state it keeps.

    Raises:
        OutputError: A checkpoint that a killed process left beside it cannot take its place.
    """

    def __init__(self, path: str | Path, identity: RunIdentity) -> None:
        self._path = Path(path)
        self._identity = identity
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._settling: Future[None] | None = None
        new, self._old = partial_checkpoints(self._path)
        with output_errors(self._path):
            if _is_whole(new):
                new.replace(self._path)
            self._old.unlink(missing_ok=True)

    @override
    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        with suppress(OSError):
            self._old.unlink(missing_ok=True)

    def save(self, state: State) -> None:
        """Replacement of the checkpoint; once this returns a kill leaves the new one, and until then the old one.

        Args:
            state: Nested mapping; arrays are boolean, integer, real, complex or bytes, of any shape.

        Raises:
            OutputError: The folder or the disk cannot take it, or could not take the one before.
            ValueError: A key that is no text, or a value of another type.
        """
        arrays: list[_Bytes] = []
        content = _encode_mapping({"run": asdict(self._identity), "state": state}, arrays, "")
        tree = json.dumps(content, allow_nan=False).encode()
        head = len(tree).to_bytes(_LENGTH_BYTES, "little") + tree
        start = _start_of(head, arrays)
        self.settle()
        new, keeps = new_checkpoint(self._path), sum(map(len, arrays)) >= _REUSED
        with output_errors(self._path), removed_on_failure(new):
            new.unlink(missing_ok=True)  # it may be a link that leads elsewhere
            with _begun(new, self._old) as file:
                file.writelines([start, head, *arrays])
                file.truncate()
        self._settling = self._thread.submit(_take_place, new, self._path, self._old, keeps=keeps)

    def settle(self) -> None:
        """End of the wait for the last checkpoint, which is then safe on disk.

        Raises:
            OutputError: The disk cannot take it; the one before is intact.
        """
        settling, self._settling = self._settling, None
        if settling is not None:
            with output_errors(self._path):
                settling.result()


def new_checkpoint(path: Path) -> Path:
    """Path at which a checkpoint is written before it takes its place at ``path``."""
    return path.with_name(f".{path.name}.partial")


def partial_checkpoints(path: Path) -> tuple[Path, Path]:
    """Paths of what a killed run may leave beside ``path``: a new checkpoint, and an old one to be written over."""
    return new_checkpoint(path), path.with_name(f".{path.name}.old")


def has_checkpoint(path: Path) -> bool:
    """Whether there is anything to load at ``path``; a first checkpoint that a kill cut short is nothing."""
    return path.exists() or _is_whole(new_checkpoint(path))


def _begun(new: Path, old: Path) -> BinaryIO:
    # A file at ``new`` to be written from its start, that of ``old`` where there is one
    with suppress(OSError):
        old.replace(new)
        return new.open("r+b")
    return new.open("wb")


def _take_place(new: Path, path: Path, old: Path, *, keeps: bool) -> None:
    # Put what is written of ``new`` on disk before its name changes: never is there a file without content. What lay at
    # ``path`` is then at ``old``, to be written over, and must not be there too while it still counts.
    with removed_on_failure(new), removed_on_failure(old):
        with new.open("rb") as file:
            os.fsync(file.fileno())
        if keeps:
            with suppress(OSError):  # nothing at ``path``, or a file system without second names
                os.link(path, old)
        new.replace(path)
    with suppress(OSError):
        if not (keeps and _spoiled(old)):
            old.unlink()


def _spoiled(old: Path) -> bool:
    # Whether ``old`` does not count as a checkpoint any more, on disk too, before it gets a name under which it would
    # be loaded. One that somebody else has a name for is left alone.
    try:
        there = old.lstat()
        if not stat.S_ISREG(there.st_mode) or there.st_nlink > 1:
            return False
        with old.open("r+b") as file:
            file.write(bytes(_START))
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        return False
    return True


def _is_whole(path: Path) -> bool:
    try:
        content = _read(path)
    except OSError:
        return False
    return content[:_START] == _start_of_body(memoryview(content)[_START:])


def _start_of_body(body: _Bytes) -> bytes:
    end = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
    return _start_of(body[:end], [body[end:]])


def _start_of(head: _Bytes, data: Sequence[_Bytes]) -> bytes:
    # Magic and check of what comes after them: length and tree, and the bytes of arrays, in parts of whole words
    sums, place = np.zeros(_SUMS, _WORD), 0
    for part in data:
        words, column = np.frombuffer(part, _WORD, len(part) // _WORD.itemsize), place % _SUMS
        first, rest = words[: _SUMS - column], words[_SUMS - column :]
        sums[column : column + len(first)] += first
        rows = len(rest) // _SUMS
        sums += rest[: rows * _SUMS].reshape(rows, _SUMS).sum(axis=0)
        last = rest[rows * _SUMS :]
        sums[: len(last)] += last
        place += len(words)
    count = sum(map(len, data)).to_bytes(_LENGTH_BYTES, "little")
    return _MAGIC + zlib.crc32(sums.data, zlib.crc32(count, zlib.crc32(head))).to_bytes(_CHECK_BYTES, "little")


def _read(path: Path) -> bytes:
    refuse_irregular(path)
    return path.read_bytes()


def load_checkpoint(path: str | Path, identity: RunIdentity) -> dict[str, Any]:
    """Checkpoint of a run as it was saved, bit for bit.

    Args:
        path: The checkpoint file.
        identity: Of the run, as its trace holds it.

    Returns:
        The saved state as nested dictionaries; arrays are new and writable.

    Raises:
        TraceError: No checkpoint, a damaged one, or that of another run.
    """
    path = Path(path)
    new = new_checkpoint(path)
    try:
        content = _read(new if _is_whole(new) else path)
    except FileNotFoundError as error:
        raise TraceError(f"{path}: no checkpoint; the run cannot be resumed, run again with --overwrite") from error
    except OSError as error:
        raise TraceError(f"{path}: cannot be read ({error.strerror})") from error
    body = memoryview(content)[_START:]
    known, whole = content.startswith(_MAGIC), content[:_START] == _start_of_body(body)
    precondition(known, f"{path}: not a checkpoint of this version; run again with --overwrite", TraceError)
    precondition(whole, f"{path}: damaged checkpoint (its checksum differs); run again with --overwrite", TraceError)
    try:
        end = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
        saved = _decode(json.loads(bytes(body[_LENGTH_BYTES:end])), body[end:])
        precondition(isinstance(saved, dict), "no mapping", TypeError)
        of_run, state = RunIdentity.of(saved["run"]), saved["state"]
        if not isinstance(state, dict):
            raise TypeError("the state is no mapping")
    except _NONSENSE as error:
        raise TraceError(
            f"{path}: its checksum is right, but its content is not a state of a run ({error}); {ANEW}"
        ) from error
    # A checkpoint continues the run that wrote it and no other.
    other = [
        f"{words} {there} there, {here} in the trace"
        for words, there, here in (
            ("run id", of_run.run_id, identity.run_id),
            ("digest of the scenario", of_run.scenario_digest, identity.scenario_digest),
            ("stream version", of_run.stream_version, identity.stream_version),
            ("package version", of_run.package_version, identity.package_version),
        )
        if there != here
    ]
    precondition(
        not other,
        f"{path}: the checkpoint of another run than the trace beside it ({'; '.join(other)}); put back the one "
        f"that belongs there, or {ANEW}",
        TraceError,
    )
    return state


def _encode_mapping(state: State, arrays: list[_Bytes], place: str) -> dict[str, Any]:
    for key in state:
        precondition(isinstance(key, str), f"checkpoint: key {key!r} in {place or 'the state'} is no text")
    return {"map": {key: _encode(value, arrays, f"{place}{key}") for key, value in state.items()}}


def _encode(value: object, arrays: list[_Bytes], place: str) -> Any:
    # One value as JSON; everything but text, truth and None is a one-key object that names its type.
    match value:
        case None | bool() | str():
            return value
        case np.generic() | np.ndarray():
            if value.dtype.kind not in _ARRAY_KINDS:  # a dtype in words takes longer than all else here
                words = "allowed are boolean, integer, real, complex and bytes"
                raise ValueError(f"checkpoint: {place} has dtype {value.dtype}; {words}")
            offset = sum(map(len, arrays))
            arrays.extend(_words_of(value))
            kind = "scalar" if isinstance(value, np.generic) else "array"
            return {kind: [value.dtype.str, list(value.shape), offset]}
        case int():
            return {"int": hex(value)}
        case float():
            return {"float": np.float64(value).tobytes().hex()}
        case Mapping():
            return _encode_mapping(value, arrays, f"{place}.")
    raise ValueError(
        f"checkpoint: {place} is {instance_of(type(value))}; allowed are arrays, numbers, text and mappings"
    )


def _words_of(value: np.generic | NDArray[Any]) -> list[_Bytes]:
    # The bytes in C order, the last ones filled up to a word; of large arrays they are not copied
    if value.nbytes < _LARGE or not value.flags.c_contiguous:
        return [value.tobytes() + bytes(-value.nbytes % _WORD.itemsize)]
    content = value.reshape(-1).view(np.uint8).data
    whole = value.nbytes - value.nbytes % _WORD.itemsize
    return [content[:whole], bytes(content[whole:]) + bytes(-value.nbytes % _WORD.itemsize)]


def _decode(node: Any, data: memoryview) -> Any:
    if not isinstance(node, dict):
        return node
    ((kind, value),) = node.items()
    match kind:
        case "map":
            return {key: _decode(child, data) for key, child in value.items()}
        case "int":
            return int(value, 16)
        case "float":
            return float(np.frombuffer(bytes.fromhex(value), np.float64)[0])
    dtype, shape, offset = value
    known = kind in ("array", "scalar") and np.dtype(dtype).kind in _ARRAY_KINDS and all(n >= 0 for n in shape)
    precondition(known, f"an unknown value {kind}")
    array = np.frombuffer(data, dtype, count=math.prod(shape), offset=offset).reshape(shape).copy()
    return array if kind == "array" else array[()]
