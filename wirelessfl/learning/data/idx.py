"""The IDX format of MNIST and its relatives, plain or gzipped."""

import gzip
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition

_UNSIGNED_BYTE = 0x08
_GZIP_MAGIC = b"\x1f\x8b"


def read_idx(path: Path, ndim: int) -> NDArray[np.uint8]:
    """Array of one IDX file of unsigned bytes.

    The format (LeCun, "The MNIST database"): two zero bytes, the element type (8: unsigned byte), the number of
    dimensions, each dimension as a big-endian 32-bit number, then the elements, the last dimension running fastest.

    Args:
        path: The file; whether it is gzipped is told from its first bytes.
        ndim: How many dimensions it must have.

    Raises:
        DataError: unreadable, damaged, of another type or shape, too short or too long.
    """
    content = _read(path)
    header = 4 + 4 * ndim
    precondition(
        len(content) >= header,
        f"{path}: truncated; an IDX file of {ndim} dimensions has {header} bytes before its elements",
        DataError,
    )
    precondition(
        content[:4] == bytes([0, 0, _UNSIGNED_BYTE, ndim]),
        f"{path}: not an IDX file of unsigned bytes in {ndim} dimensions, which begins with 00 00 08 {ndim:02x}",
        DataError,
    )
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", count=ndim, offset=4))
    expected = int(np.prod(shape, dtype=object))
    precondition(
        len(content) - header == expected,
        f"{path}: damaged; its header announces {expected} elements, it holds {len(content) - header}",
        DataError,
    )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content[:2] == _GZIP_MAGIC else content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file: {error}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
