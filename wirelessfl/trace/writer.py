"""Writer of a trace, round by round, so that a killed process leaves every finished round readable.

A round is first written behind the end of ``round``; then ``round`` grows by one, which commits it. Rows past the end
of ``round`` are no part of the trace: readers ignore them, and ``close`` and ``resume`` drop them. ``HeldBackFile``
keeps that order on disk.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from wirelessfl.errors import OutputError, TraceError, precondition
from wirelessfl.trace.blocks import Behind, Block, RoundLayout, client_blocks
from wirelessfl.trace.failures import output_errors, removed_on_failure, trace_errors
from wirelessfl.trace.journal import HeldBackFile
from wirelessfl.trace.layout import CLOSING, FINISHED, FORMAT, STATUSES, VERSION, RunStatus
from wirelessfl.trace.opening import inspect_file
from wirelessfl.trace.records import RoundRecord, RunIdentity, TraceHeader
from wirelessfl.trace.storage import (
    axes_of,
    committed_rounds,
    committed_snapshots,
    create_layout,
    open_datasets,
    set_attributes,
    write_block,
)

ROUNDS_AHEAD = 64
"""Datasets over rounds grow by so many rows at once: a new extent has to be written out, as their values have."""
_CACHE_BYTES = 1 << 18
"""Cache of a dataset's chunks: those that get further rows fit many times, and wide rounds fill theirs at once."""
# With room for each text of the end. One that is longer lies elsewhere, and then a kill between two writes can lose it.
_BLANK_CLOSING = dict.fromkeys(CLOSING, "[]".ljust(8192))


class TraceWriter(AbstractContextManager["TraceWriter"]):
    """Writer that appends rounds to a trace file; made by ``create`` or ``resume``.

    The file stays locked until ``finish`` or ``close``. As a context manager it closes the file on the way out, which
    leaves the status as it was: a trace that is ``running`` and not locked was left by a killed process.

    Attributes:
        path: The trace.
        rounds: Number of rounds on disk.
        written: What the system knew of the file when it was closed whole; None until then.
    """

    def __init__(self, path: Path, backing: HeldBackFile, file: h5py.File) -> None:
        self.path = path
        self.written: os.stat_result | None = None
        self._backing = backing
        self._file = file
        self._datasets = open_datasets(file)
        self._extents: dict[str, tuple[int, ...]] = {path: dataset.shape for path, dataset in self._datasets.items()}
        self._axes = axes_of(file)
        self._layout = RoundLayout.of(file)
        self._count()

    def _count(self) -> None:
        # Lengths of what is committed.
        self.rounds = committed_rounds(self._file)
        self._last: int | None = int(self._datasets["/round"][self.rounds - 1]) if self.rounds else None
        self._events = int(self._datasets["/event_count"][self.rounds - 1]) if self.rounds else 0
        self._slots, self._snapshots = len(self._datasets["/slot"]), committed_snapshots(self._file)

    @classmethod
    def create(cls, path: str | Path, header: TraceHeader, slots: int) -> "TraceWriter":
        """Writer of a new trace, which appears under its name once its header is on disk.

        Args:
            path: Where; the folder must exist and the file must not.
            header: Attributes of root, ``/privacy`` and ``/model``, and the model to begin with.
            slots: Selected clients expected per round; a round may bring more.

        Raises:
            OutputError: The file exists, or the folder or the disk cannot take it.
            ValueError: The header is incomplete.
        """
        path = Path(path)
        header.check()
        partial = path.with_name(f".{path.name}.partial")
        with output_errors(path):
            precondition(
                not path.exists(),
                f"{path}: exists already; continue it with --resume or replace it with --overwrite",
                OutputError,
            )
            _unlink_link(partial)
            partial.touch()
            with _opened(partial, "w") as (backing, file), removed_on_failure(partial):
                _write_header(file, header, slots)
                writer = cls(path, backing, file)
                if header.initial is not None:
                    writer._write([Block("/model/initial", header.initial.shape, (0,), header.initial)])
                writer._commit()
                partial.rename(path)
        return writer

    @classmethod
    def resume(cls, path: str | Path, rounds_done: int) -> "TraceWriter":
        """Writer of a trace that goes on after its first ``rounds_done`` rounds; everything later is dropped.

        The status is ``running`` again, and what an earlier end said of the whole run is gone until the next: it is the
        trace of a run that was killed after so many rounds.

        Raises:
            TraceError: No trace of this version, locked, or shorter than ``rounds_done``.
            OutputError: It cannot be written.
        """
        path = Path(path)
        inspect_file(path)
        with trace_errors(path), _opened(path, "r+") as (backing, file):
            writer = cls(path, backing, file)
            precondition(
                writer.rounds >= rounds_done,
                f"{path}: holds {writer.rounds} rounds, the checkpoint beside it {rounds_done}; "
                "the two do not belong together, run again with --overwrite",
                TraceError,
            )
            with output_errors(path):
                writer._rewind(rounds_done)
        return writer

    @override
    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def identity(self) -> RunIdentity:
        """Which run it is of."""
        return RunIdentity.of(self._file.attrs)

    def append(self, record: RoundRecord) -> None:
        """Flush of one round to disk; once this returns, a kill no longer loses it.

        Raises:
            ValueError: The record does not fit the schema, or its round does not follow the last one.
            OutputError: The disk cannot take it; the rounds before it are intact.
        """
        place = f"round {record.round_index}"
        precondition(record.round_index >= 0, f"{place}: rounds count from 0")
        follows = self._last is None or record.round_index == self._last + 1
        precondition(follows, f"{place}: the trace ends with round {self._last}")
        room = (self.rounds // ROUNDS_AHEAD + 1) * ROUNDS_AHEAD
        behind = Behind(self.rounds, self._slots, self._events)
        blocks, slots, events = self._layout.blocks(record, room, behind, place)
        if record.weights is not None:
            blocks += self._model_blocks(record.weights, record.round_index)
        with output_errors(self.path):
            if self._extents["/client_id"] != (room, slots):
                self._set_lengths(round=room, slot=slots)
            self._write(blocks)
            h5py.h5f.flush(self._file.id)  # what is written so far reaches the disk before the mark
            self._write([Block("/round", (self.rounds + 1,), (self.rounds,), np.array([record.round_index]))])
            self._commit()
        self.rounds += 1
        self._slots, self._events, self._last = slots, events, record.round_index
        self._snapshots += record.weights is not None

    def finish(
        self,
        status: RunStatus,
        client_values: Mapping[str, ArrayLike] | None = None,
        model: ArrayLike | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """End of the trace: what is known then, its status, and the lock.

        Args:
            status: complete, diverged, interrupted or failed.
            client_values: Root variables per client, each (n,); ``client`` holds their ids, by default 0 … n−1.
            model: (d,) final global model to keep. Only for a complete run: a run that goes on has another.
            attributes: Texts for the closing attributes of the schema.

        Raises:
            ValueError: Unknown status, names or shapes.
            OutputError: The disk cannot take it; the rounds are intact.
        """
        precondition(status in STATUSES, f"trace status {status!r}: expected one of {', '.join(STATUSES)}")
        precondition(model is None or status in FINISHED, "the final model belongs to a finished run")
        unknown = set(attributes or {}) - set(CLOSING)
        precondition(
            not unknown, f"trace attributes {', '.join(sorted(unknown))}: at the end only {', '.join(CLOSING)}"
        )
        blocks = client_blocks(client_values) if client_values is not None else []
        if model is not None:
            blocks += self._model_blocks(model, self._last)
        with output_errors(self.path):
            self._write(blocks)
            self._replace_texts({**(attributes or {}), "status": status})
        self.close()

    def close(self) -> None:
        """End of the file and its lock, whatever state the run is in."""
        if self._backing.closed:
            return
        with output_errors(self.path), closing(self._backing):
            self._resize("/round", (self.rounds,))  # longer where the last commit failed
            self._set_lengths(round=self.rounds)
            self._file.close()
            self._backing.commit()
            self.written = self._backing.about()

    def _model_blocks(self, weights: ArrayLike, round_index: int | None) -> list[Block]:
        dimension = self._datasets["/model/weights"].shape[1]
        flat = np.ascontiguousarray(weights, dtype=np.float32)
        precondition(flat.shape == (dimension,), f"model weights: expected shape ({dimension},), found {flat.shape}")
        precondition(round_index is not None, "model weights: there is no round to keep them for")
        row = self._snapshots
        if row and int(self._datasets["/model/round"][row - 1]) == round_index:
            row -= 1  # the last round's snapshot is the final model
        return [
            Block("/model/weights", (row + 1, dimension), (row, 0), flat),
            Block("/model/round", (row + 1,), (row,), np.array([round_index])),
            Block("/model/snapshot", (row + 1,), (0,), None),
        ]

    def _write(self, blocks: list[Block]) -> None:
        for block in blocks:
            self._resize(block.path, block.extent)
            if block.values is not None:
                write_block(self._datasets[block.path], block.extent, block.offset, block.values)

    def _resize(self, path: str, extent: tuple[int, ...]) -> None:
        if extent != self._extents[path]:
            self._datasets[path].id.set_extent(extent)
            self._extents[path] = extent

    def _commit(self) -> None:
        h5py.h5f.flush(self._file.id)
        self._backing.commit()

    def _replace_texts(self, texts: Mapping[str, str]) -> None:
        # Replace texts of the root in place (setting one anew would take it away first), each on disk before the next.
        for name, text in texts.items():
            if self._file.attrs[name] != text:
                self._commit()
                self._file.attrs.modify(name, np.array(text, dtype=h5py.string_dtype()))

    def _rewind(self, rounds: int) -> None:
        # Take back what ``finish`` wrote, the status first.
        self._replace_texts({"status": "running", **_BLANK_CLOSING})
        self._set_lengths(client=0)
        self._resize("/client", (0,))
        # Drop everything after the first ``rounds`` rounds, the commit mark first.
        self._resize("/round", (rounds,))
        self._commit()
        self._count()
        self._set_lengths(round=rounds, slot=self._slots, event=self._events, snapshot=self._snapshots)
        self._commit()

    def _set_lengths(self, **lengths: int) -> None:
        # Give these dimensions their lengths, in all datasets but the labels.
        for path, axes in self._axes.items():
            sizes = zip(axes, self._extents[path], strict=True)
            self._resize(path, tuple(lengths.get(axis, size) for axis, size in sizes))


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[tuple[HeldBackFile, h5py.File]]:
    # Open for writing, and let go of the file and its lock where the body fails.
    backing = HeldBackFile(path)
    file = None
    try:
        if mode == "w":
            backing.clear()
        file = h5py.File(backing, mode, rdcc_nbytes=_CACHE_BYTES)
        yield backing, file
    except BaseException:
        with suppress(Exception):
            if file is not None:
                file.close()
        with suppress(Exception):
            backing.close()
        raise


def _unlink_link(path: Path) -> None:
    # Takes away what is no file of this folder alone, such as a link that leads elsewhere. A file stays: another
    # process may hold its lock.
    with suppress(FileNotFoundError):
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
            path.unlink()


def _write_header(file: h5py.File, header: TraceHeader, slots: int) -> None:
    # Before all else and with room to grow: `journal` needs the texts that are replaced at the end near their header.
    set_attributes(file, {"format": FORMAT, "version": VERSION, "status": "running", **_BLANK_CLOSING})
    create_layout(
        *(file, slots, int(header.model["dimension"])), secagg=header.secagg is not None, gain_axes=header.gain_axes
    )
    for path, attributes in header.given.items():
        set_attributes(file[path], attributes)
