"""IDX files, whole and damaged."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.learning.data.writers import write_idx
from wirelessfl.errors import DataError
from wirelessfl.learning.data.files import read_idx

ARRAY = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


@given(array=hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=3, max_side=6)), packed=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reads_what_was_written(tmp_path: Path, array: np.ndarray, packed: bool) -> None:
    path = write_idx(tmp_path / ("a.gz" if packed else "a"), array)
    np.testing.assert_array_equal(read_idx(path, array.ndim), array)


def test_header_is_told_from_the_published_definition(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.write_bytes(bytes.fromhex("0000080100000003070009"))
    assert read_idx(path, 1).tolist() == [7, 0, 9]


GOOD = struct.pack(">4B3I", 0, 0, 8, 3, 2, 3, 4) + ARRAY.tobytes()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "truncated"),
        (GOOD[:3], "truncated"),
        (GOOD[:10], "truncated"),
        (b"\x00\x00\x09" + GOOD[3:], "not an IDX file of unsigned bytes"),
        (b"PNG" + GOOD[3:], "not an IDX file of unsigned bytes"),
        (GOOD[:3] + b"\x02" + GOOD[4:], "in 3 dimensions"),
        (GOOD[:-1], "announces 24 elements, it holds 23"),
        (GOOD + b"\x00", "announces 24 elements, it holds 25"),
        (struct.pack(">4B3I", 0, 0, 8, 3, *[2**32 - 1] * 3), "damaged"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_damage_is_named(tmp_path: Path, content: bytes, says: str, packed: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError, match=says) as caught:
        read_idx(path, 3)
    assert str(path) in str(caught.value)


def test_every_truncated_or_altered_gzip_file_is_refused(tmp_path: Path) -> None:
    path, packed = tmp_path / "file.gz", gzip.compress(GOOD, mtime=0)
    for length in range(2, len(packed)):  # shorter than its magic number, it is no gzip file
        path.write_bytes(packed[:length])
        with pytest.raises(DataError, match="damaged gzip"):
            read_idx(path, 3)
    for position in range(10, len(packed)):  # the body and its checksum; the header holds name and time
        path.write_bytes(packed[:position] + bytes([packed[position] ^ 0x55]) + packed[position + 1 :])
        with pytest.raises(DataError):
            read_idx(path, 3)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_idx(tmp_path, 1)
