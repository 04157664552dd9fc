"""Files of datasets: where they lie, plain or gzipped, their halves, pixels in bytes, and arrays in IDX."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.errors import DataError, MissingDataError, precondition
from wirelessfl.inputs import ROOT_VARIABLE, data_folders

Half = TypeVar("Half")


def data_roots(root: str | Path | None, dataset: str) -> tuple[Path, ...]:
    """The folders that may hold a dataset, the first first: ``root``, else those of WIRELESSFL_DATA.

    Raises:
        MissingDataError: neither is given, or none is a folder.
    """
    chosen = data_folders() if root is None else (Path(root).expanduser(),) if root else ()
    if not chosen:
        raise MissingDataError(
            f"{dataset} is read from files: set data.dataset.root to the folder that holds them "
            f"(or the environment variable {ROOT_VARIABLE})"
        )
    folders = tuple(path for path in chosen if path.is_dir())
    if not folders:
        key, found = "data.dataset.root" if root else ROOT_VARIABLE, " and ".join(map(str, chosen))
        raise MissingDataError(f"{key}: {found} is not a folder; {dataset} is read from there")
    return folders


def find_files(root: Path, folders: Sequence[str], names: Sequence[str]) -> list[Path] | None:
    """All of ``names`` in the first of ``folders`` below ``root`` that has them all, plain or as .gz; None if none has.

    The files may lie in a read-only folder; nothing is unpacked to disk.
    """
    candidates = ([_plain_or_packed(root / folder / name) for name in names] for folder in folders)
    return next(([path for path in found if path is not None] for found in candidates if all(found)), None)


def _plain_or_packed(path: Path) -> Path | None:
    packed = path.with_name(path.name + ".gz")
    return path if path.is_file() else packed if packed.is_file() else None


def not_found(dataset: str, roots: Sequence[Path], folders: Sequence[str], names: Sequence[str]) -> MissingDataError:
    """The error that says which files were looked for, and where."""
    places = ", ".join(str(root / folder) for root in roots for folder in folders)
    return MissingDataError(
        f"{dataset}: found none of {', '.join(names)} (plain or .gz) in {places}; set data.dataset.root"
    )


def halves_of_first(
    roots: Sequence[Path], read: Callable[[Path, str], Half | None], names: tuple[str, str]
) -> tuple[Half | None, Half | None] | None:
    """The training and the test half in the first of ``roots`` that holds one of them; None where none does.

    Args:
        roots: Folders.
        read: From a folder and the name of a half to the half; None where it is not there.
        names: Of the training and of the test half.
    """
    found = (tuple(read(root, name) for name in names) for root in roots)
    return next(((train, test) for train, test in found if train is not None or test is not None), None)


def normalised(images: NDArray[np.uint8], mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """(N, C, height, width) pixels less their mean, over their standard deviation.

    Args:
        images: (N, C, height, width) bytes.
        mean: (C,) of the bytes of each channel. In single precision, and rounded as it always was: fingerprints of
            datasets in recorded runs depend on every bit.
        std: (C,) likewise.
    """
    pixels = torch.from_numpy(np.ascontiguousarray(images).astype(np.float32))
    return pixels.sub_(mean[:, None, None]).div_(std[:, None, None])


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
    content = unpacked(path)
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


def unpacked(path: Path) -> bytes:
    """The content of a file, unpacked where its first bytes say that it is gzipped.

    Raises:
        DataError: unreadable or damaged.
    """
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content[:2] == _GZIP_MAGIC else content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file: {error}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
