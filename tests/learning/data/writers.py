"""Writes small files in the formats in which the datasets are published."""

from __future__ import annotations

import gzip
import pickle
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def write_idx(path: Path, array: NDArray[np.uint8]) -> Path:
    """``array`` in the IDX format, gzipped where the name ends in .gz."""
    header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    content = header + array.tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_idx_pair(
    folder: Path, half: str, labels: Sequence[int], suffix: str = "", seed: int = 0
) -> NDArray[np.uint8]:
    """Image and label file of one half; returns its random images (N, 28, 28)."""
    images = np.random.default_rng(seed).integers(0, 256, (len(labels), 28, 28), dtype=np.uint8)
    write_idx(folder / f"{half}-images-idx3-ubyte{suffix}", images)
    write_idx(folder / f"{half}-labels-idx1-ubyte{suffix}", np.array(labels, dtype=np.uint8))
    return images


def write_batch(path: Path, labels: Sequence[int], seed: int = 0) -> NDArray[np.uint8]:
    """A CIFAR-10 batch; returns its random rows (N, 3072)."""
    data = np.random.default_rng(seed).integers(0, 256, (len(labels), 3072), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps({"data": data, "labels": list(labels)}, protocol=3))
    return data


def python2_batch(data: NDArray[np.uint8], labels: Sequence[int]) -> bytes:
    """The same as Python 2 pickled it, opcode by opcode: byte strings, and 0 and 1 for truth values."""

    def text(value: bytes) -> bytes:
        return b"T" + struct.pack("<I", len(value)) + value  # BINSTRING

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)  # BININT

    dtype = (
        b"cnumpy\ndtype\n(" + text(b"u1") + b"K\x00K\x01tR(" + number(3) + text(b"|") + b"NNN"
        + number(-1) + number(-1) + b"K\x00tb"
    )  # fmt: skip
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + text(b"b") + b"tR(K\x01("
        + number(data.shape[0]) + number(data.shape[1]) + b"t" + dtype + b"\x89" + text(data.tobytes()) + b"tb"
    )  # fmt: skip
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + numbers + b"u."
