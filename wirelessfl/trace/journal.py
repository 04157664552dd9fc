"""A file layer below HDF5: the file can be opened after a kill or a full disk at any moment.

HDF5 alone does not promise that: within one flush it writes object headers before the new blocks they point to, and the
superblock, which tells readers how long the file is, last; after a write that failed it goes on writing. Here HDF5's
writes are held back until ``commit``, and then reach the disk in an order in which every prefix is consistent:

1. the space that the file grows into is allocated (a full disk shows here, before anything has changed);
2. what lies beyond the old end: nothing points there yet;
3. the superblock, so that the new end counts (last, where the file became shorter);
4. what lies before the old end, in HDF5's order; each such write only adds references to step 2.

Two moments of a few microseconds remain, both between neighbouring writes of step 4: a B-tree that splits (every 64
chunks of a variable), and a text attribute that is replaced at the end of a run by one too long for the room it has
near the header of the file.
"""

import errno
import fcntl
import io
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from typing_extensions import override

from wirelessfl.outputs import FULL

_SUPERBLOCK = 0
_JOINED_GAP = 1 << 18
_PIECES_AT_ONCE = 1024  # of one write on Linux and macOS


class HeldBackFile(io.RawIOBase):
    """Python file object for ``h5py.File``; locked as HDF5 locks, from opening to ``close``.

    Args:
        path: An existing file.

    Raises:
        BlockingIOError: Another process holds the file.
        OSError: It cannot be opened for reading and writing.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._descriptor = os.open(path, os.O_RDWR)
        try:
            _lock(self._descriptor)
        except OSError:
            super().close()  # so that it is not closed once more when it is forgotten: the number may be another file's
            os.close(self._descriptor)
            raise
        self._position = 0
        self._end = self._end_on_disk = os.fstat(self._descriptor).st_size
        self._held: dict[int, bytes] = {}

    def clear(self) -> None:
        """Empty the file, of what a killed process left under this name."""
        os.ftruncate(self._descriptor, 0)
        self._end = self._end_on_disk = 0

    @override
    def seekable(self) -> bool:
        return True

    @override
    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        # HDF5 seeks from the start or from the end.
        self._position = offset + (self._end if whence == os.SEEK_END else 0)
        return self._position

    @override
    def tell(self) -> int:
        return self._position

    @override
    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        # What was written last, held back or not; zeros where nothing was.
        start, stop = self._position, self._position + len(buffer)
        found = os.pread(self._descriptor, len(buffer), start)
        buffer[: len(found)] = found
        buffer[len(found) :] = bytes(len(buffer) - len(found))
        for offset, data in self._held.items():
            low, high = max(start, offset), min(stop, offset + len(data))
            if low < high:
                buffer[low - start : high - start] = data[low - offset : high - offset]
        self._position = stop
        return len(buffer)

    @override
    def write(self, data: memoryview) -> int:  # type: ignore[override]
        kept = bytes(data)
        replaced = self._held.pop(self._position, None)
        if replaced is not None and len(replaced) > len(kept):
            kept += replaced[len(kept) :]
        self._held[self._position] = kept  # last in order: it wins where writes overlap
        self._position += len(data)
        self._end = max(self._end, self._position)
        return len(data)

    @override
    def truncate(self, size: int | None = None) -> int:
        # The file on disk never shrinks; bytes behind the end are no part of the HDF5 file.
        self._end = self._position if size is None else size
        return self._end

    def flush(self) -> None:
        """Nothing: HDF5's flushes only order its writes; ``commit`` puts them on disk."""

    def commit(self) -> None:
        """Flush of everything held back to disk, in the order that is safe at every step.

        Raises:
            OSError: No room on the disk; it holds what it held before, and so does this object.
        """
        old_end, grows = self._end_on_disk, self._end > self._end_on_disk
        if grows:
            _allocate(self._descriptor, old_end, self._end)
        self._end_on_disk = self._end

        steps: tuple[dict[int, bytes], ...] = ({}, {}, {}, {})
        for offset, data in _cut(self._held, old_end):
            superblock = offset == _SUPERBLOCK
            steps[(1 if grows else 3) if superblock else (0 if offset >= old_end else 2)][offset] = data
        for step in steps:
            for offset, pieces in self._joined(step):
                _write_all(self._descriptor, pieces, offset)
        self._held.clear()

    def _joined(self, writes: Mapping[int, bytes]) -> Iterator[tuple[int, list[bytes]]]:
        # Neighbours that follow each other become one write, with what the disk holds between them. A long write is
        # of as many pieces as the system takes at once: put together they would be in memory twice.
        #
        # A kill falls between two writes much rather than into one: this narrows the moment in which some variables
        # have the new row and others do not, and in which an attribute points to a text that is not there yet.
        start, end, pieces = 0, 0, list[bytes]()
        for offset, piece in writes.items():
            gap = offset - end
            if pieces and 0 <= gap <= _JOINED_GAP:
                if gap:
                    pieces.append(os.pread(self._descriptor, gap, end).ljust(gap, b"\0"))
            else:
                if pieces:
                    yield start, pieces
                start, pieces = offset, []
            pieces.append(piece)
            end = offset + len(piece)
        if pieces:
            yield start, pieces

    def about(self) -> os.stat_result:
        """What the system knows of the file on disk."""
        return os.fstat(self._descriptor)

    @override
    def close(self) -> None:
        # What was not committed is lost. A process that another thread forked in the meantime has the descriptor too:
        # closing it here alone would leave the file locked until that process ends.
        if not self.closed:
            super().close()
            with suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)


def _cut(writes: Mapping[int, bytes], end: int) -> Iterator[tuple[int, bytes]]:
    # The writes in order, those across ``end`` as two.
    for offset, data in writes.items():
        inside = max(0, min(len(data), end - offset))
        yield from ((at, part) for at, part in ((offset, data[:inside]), (offset + inside, data[inside:])) if part)


def _lock(descriptor: int) -> None:
    # Take HDF5's own kind of lock; file systems without locks do without, as HDF5 does.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
            raise


def _allocate(descriptor: int, start: int, stop: int) -> None:
    # Reserve disk space; where the file system cannot, the file at least gets its length.
    try:
        os.posix_fallocate(descriptor, start, stop - start)
    except (AttributeError, OSError) as error:
        if getattr(error, "errno", None) in FULL:
            with suppress(OSError):
                os.ftruncate(descriptor, start)
            raise
        os.ftruncate(descriptor, stop)


def _write_all(descriptor: int, pieces: list[bytes], offset: int) -> None:
    for first in range(0, len(pieces), _PIECES_AT_ONCE):
        some = pieces[first : first + _PIECES_AT_ONCE]
        size = sum(map(len, some))
        written = os.pwritev(descriptor, some, offset)
        if written < size:
            _write_rest(descriptor, b"".join(some), written, offset)
        offset += size


def _write_rest(descriptor: int, data: bytes, written: int, offset: int) -> None:
    # What the system did not take at once
    while written < len(data):
        written += os.pwrite(descriptor, memoryview(data)[written:], offset + written)
