"""Channel files: what is written is read, and what is no channel is refused in words."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.channels.made import made
from wirelessfl.channels import ChannelRecord, read_channels, write_channels
from wirelessfl.errors import DataError

FULL: dict[str, Any] = {
    "position_m": np.arange(40 * 6 * 3, dtype=float).reshape(40, 6, 3),
    "receiver_m": np.array([0.0, 0.0, 10.0]),
    "carrier_hz": 3.5e9,
    "jammer": np.full((40, 2, 4), 1e-5 + 1e-6j),
    "source": "made",
}


@pytest.mark.parametrize("suffix", [".h5", ".hdf5", ".npz"])
def test_what_is_written_is_read(tmp_path: Path, suffix: str) -> None:
    record = made(antennas=2, subcarriers=4, **FULL)
    path = write_channels(record, tmp_path / f"h{suffix}")
    found = read_channels(path)
    np.testing.assert_allclose(found.gains, record.gains, rtol=2e-7)
    for name in ("time_s", "frequency_hz", "position_m", "receiver_m"):
        np.testing.assert_array_equal(getattr(found, name), getattr(record, name))
    assert found.jammer is not None and found.jammer.shape == (40, 2, 4)
    assert (found.carrier_hz, found.source) == (3.5e9, "made")
    before = path.read_bytes()
    write_channels(record, path)
    assert path.read_bytes() == before, "the same channels are the same bytes, by which runs know them"


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"found '\.mat'; allowed: \.h5, \.hdf5 or \.npz"):
        write_channels(made(), tmp_path / "h.mat")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gains": np.zeros((2, 3, 1))}, r"gains: found real numbers; allowed: complex amplitudes: linear"),
        (
            {"gains": np.full((2, 3, 1), 1j)},
            r"gains: found the shape \(2, 3, 1\); allowed: \(snapshot, client, antenna",
        ),
        ({"gains": np.full((2, 3, 1, 1), np.nan + 0j)}, r"gains: found .*nan.* at \[0, 0, 0, 0\]; allowed: finite"),
        ({"gains": np.full((2, 3, 1, 1), np.inf + 0j)}, r"gains: found .*inf"),
        ({"time_s": np.array([1.0, 1.0])}, r"time_s: found 1 at 1 after 1; allowed: ascending numbers"),
        ({"time_s": np.array([2.0, 1.0])}, r"time_s: found 1 at 1 after 2"),
        ({"time_s": np.zeros(3)}, r"time_s: found the shape \(3,\); allowed: \(2,\)"),
        ({"time_s": np.array(["a", "b"])}, r"time_s: found values of type <U1; allowed: seconds"),
        ({"position_m": np.zeros((3, 3))}, r"position_m: found the shape \(3, 3\); allowed: \(2, 3, 3\)"),
        ({"position_m": np.full((2, 3, 3), "x")}, r"position_m: found values of type <U1; allowed: metres"),
        ({"frequency_hz": np.zeros(2)}, r"frequency_hz: found the shape \(2,\); allowed: \(1,\)"),
        ({"carrier_hz": -1.0}, r"carrier_hz: found -1; allowed: above 0"),
        ({"jammer": np.zeros((2, 1, 1))}, r"jammer: found real numbers; allowed: complex"),
        (
            {"gains": np.array([1, 2, 3, 4, 1e39j, -1e300]).reshape(2, 3, 1, 1)},
            r"gains: found .*1e\+39j at \[1, 1, 0, 0\]; allowed: at most 3\.4e\+38 in either part",
        ),
        (
            {"jammer": np.full((2, 1, 1), 1e200j)},
            r"jammer: found .*1e\+200j at \[0, 0, 0\]; allowed: at most 3\.4e\+38",
        ),
    ],
)
def test_what_is_no_channel_is_refused(changed: dict[str, Any], message: str) -> None:
    sound: dict[str, Any] = {"gains": np.full((2, 3, 1, 1), 1e-5j), "time_s": np.arange(2.0)}
    with pytest.raises(DataError, match=message):
        ChannelRecord(**{**sound, **changed})


def refused(path: Path, message: str) -> None:
    """Asserts that a file is refused, by its name and with these words."""
    with pytest.raises(DataError, match=message) as error:
        read_channels(path)
    assert str(path) in str(error.value)


def test_missing_datasets_are_named(tmp_path: Path) -> None:
    np.savez(path := tmp_path / "h.npz", gains=np.full((1, 1, 1, 1), 1j))
    refused(path, r"found no time_s \(found: gains\); allowed: gains, time_s")
    with h5py.File(path := tmp_path / "h.h5", "w") as file:
        file["something"] = np.zeros(3)
    refused(path, r"found no gains and no time_s \(found: nothing\)")


def test_pickled_objects_are_not_read(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    np.savez(path := tmp_path / "h.npz", gains=np.array([Evil()], dtype=object), time_s=np.zeros(1))
    refused(path, r"gains: found pickled Python objects, which are not read; allowed: numbers")
    (path := tmp_path / "p.npz").write_bytes(pickle.dumps(Evil()))
    refused(path, r"found another format; allowed: HDF5 or NPZ")
    assert not (tmp_path / "ran").exists()


def test_a_file_that_is_not_there_or_no_file(tmp_path: Path) -> None:
    refused(tmp_path / "none.h5", "found no file")
    refused(tmp_path, "found a folder; allowed: a file")


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_truncated_file_is_refused(tmp_path: Path, suffix: str, share: float) -> None:
    path = write_channels(made(snapshots=200), tmp_path / f"h{suffix}")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    refused(path, "h")
    with pytest.raises(DataError) as error:
        read_channels(path)
    assert "--overwrite" not in str(error.value)  # no run wrote it


def test_the_format_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = write_channels(made(), tmp_path / "h.npz")
    with pytest.raises(DataError, match=r"found npz; allowed: hdf5"):
        read_channels(path, "hdf5")
    (renamed := tmp_path / "h.bin").write_bytes(path.read_bytes())
    assert read_channels(renamed).gains.shape == (40, 6, 1, 1)


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("gains.npy", "w") as entry:
        for _ in range(64):
            entry.write(bytes(1 << 20))
    data = bytearray(path.read_bytes())
    at = data.rfind(b"PK\x01\x02")
    data[at + 24 : at + 28] = (0xFFFFFFF0).to_bytes(4, "little")  # the size it says it has
    path.write_bytes(bytes(data))
    refused(path, r"found 4,294,967,280 bytes unpacked")


def test_gains_above_0_db_are_doubted() -> None:
    assert made(gain_db=-80).doubt is None
    doubt = made(gain_db=3).doubt
    assert doubt is not None and "above 0 dB" in doubt


def test_clients_are_chosen_in_order() -> None:
    record = made(position_m=np.random.default_rng(1).normal(size=(40, 6, 3)))
    some = record.chosen(np.array([4, 1]))
    np.testing.assert_array_equal(some.gains, record.gains[:, [4, 1]])
    assert some.position_m is not None and some.position_m.shape == (40, 2, 3)
    with pytest.raises(DataError, match="clients: found 6; allowed: 0 to 5"):
        record.chosen(np.array([6]))


@pytest.mark.parametrize("part", ["f2", "f4", "f8", "i4"])
@pytest.mark.parametrize("names", [("real", "imag"), ("r", "i"), ("imag", "real")])
def test_pairs_are_complex_numbers(tmp_path: Path, names: tuple[str, str], part: str) -> None:
    pairs = np.zeros((2, 3, 1, 1), dtype=[(name, part) for name in names])
    pairs[names[0]] = np.arange(6).reshape(2, 3, 1, 1)
    pairs[names[1]] = -7
    expected = np.array(
        [complex(row[0], row[1]) if names[0][0] == "r" else complex(row[1], row[0]) for row in pairs.flat]
    )
    with h5py.File(tmp_path / "h.h5", "w") as file:
        file["gains"], file["time_s"], file["jammer"] = pairs, np.arange(2.0), pairs[:, 0]
    found = read_channels(tmp_path / "h.h5")
    np.testing.assert_array_equal(found.gains.ravel(), expected)
    assert found.jammer is not None
    np.testing.assert_array_equal(found.jammer.ravel(), expected[::3])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gains": h5py.Empty("c16")}, r"gains: found an empty dataset; allowed: complex amplitudes"),
        ({"time_s": h5py.Empty("f8")}, r"time_s: found an empty dataset; allowed: real numbers"),
        ({"carrier_hz": h5py.Empty("f8")}, r"carrier_hz: found an empty dataset"),
        ({"gains": np.array([b"a", b"b"])}, r"gains: found values of type \|S1; allowed: complex amplitudes"),
        (
            {"gains": np.zeros((2, 3, 1, 1), dtype=[("a", "f8"), ("b", "f8")])},
            r"gains: found values of type .*; allowed: complex amplitudes, or pairs of real and imag",
        ),
        ({"time_s": np.zeros(2, dtype=[("real", "f8"), ("imag", "f8")])}, r"time_s: found values of type"),
        ({"gains": np.zeros((2, 3, 1, 1))}, r"gains: found real numbers; allowed: complex amplitudes"),
    ],
)
def test_datasets_that_hold_no_channels_are_refused_in_words(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    """They were told to be damaged, and to be made again by a run."""
    with h5py.File(tmp_path / "h.h5", "w") as file:
        for name, values in {"gains": np.full((2, 3, 1, 1), 1j), "time_s": np.arange(2.0), **changed}.items():
            file[name] = values
    refused(tmp_path / "h.h5", rf"h\.h5: {message}")
    with pytest.raises(DataError) as error:
        read_channels(tmp_path / "h.h5")
    assert "damaged" not in str(error.value) and "--overwrite" not in str(error.value)


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
def test_the_largest_amplitudes_are_written(tmp_path: Path, suffix: str) -> None:
    largest = ChannelRecord(np.full((1, 1, 1, 1), 3e38 + 3e38j), np.zeros(1))
    assert np.isfinite(read_channels(write_channels(largest, tmp_path / f"g{suffix}")).gains).all()
