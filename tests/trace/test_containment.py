"""A trace or a file of gains from somebody else reads no other file and loads no library."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import wirelessfl
from tests.trace.traces import header, record
from wirelessfl.assembly.recordings import load_gains, load_presence
from wirelessfl.errors import DataError, TraceError
from wirelessfl.trace import TraceWriter, has_group, model_weights, open_trace, read_attributes, read_group

SECRET = b"0123456789abcdef" * 16
UNKNOWN_FILTER = 32099


def external_storage(file: h5py.File, secret: Path) -> None:
    del file["test_loss"]
    file.create_dataset("test_loss", (3,), dtype="f8", external=[(str(secret), 0, 24)])


def external_link(file: h5py.File, secret: Path) -> None:
    del file["test_loss"]
    file["test_loss"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "/value")


def external_link_in_a_group(file: h5py.File, secret: Path) -> None:
    file["model/more"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "/value")


def soft_link(file: h5py.File, secret: Path) -> None:
    del file["test_loss"]
    file["test_loss"] = h5py.SoftLink("/train_loss")


def virtual_dataset(file: h5py.File, secret: Path) -> None:
    layout = h5py.VirtualLayout((3,), "f8")
    layout[:] = h5py.VirtualSource(str(secret.with_suffix(".h5")), "value", (3,))
    del file["test_loss"]
    file.create_virtual_dataset("test_loss", layout)


def unknown_filter(file: h5py.File, secret: Path) -> None:
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk((3,))
    properties.set_filter(UNKNOWN_FILTER, h5py.h5z.FLAG_OPTIONAL)
    del file["test_loss"]
    space = h5py.h5s.create_simple((3,))
    h5py.h5d.create(file.id, b"test_loss", h5py.h5t.IEEE_F64LE, space, dcpl=properties)


def references(file: h5py.File, secret: Path) -> None:
    del file["test_loss"]
    file.create_dataset("test_loss", data=[file["round"].ref] * 3, dtype=h5py.ref_dtype)


ATTACKS: dict[Callable[[h5py.File, Path], None], str] = {
    external_storage: "external storage",
    external_link: "a link to another file",
    external_link_in_a_group: "a link to another file",
    soft_link: "a soft link",
    virtual_dataset: "virtual",
    unknown_filter: f"the filter {UNKNOWN_FILTER}",
    references: "a dataset of references",
}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the reader's, as bytes and as HDF5."""
    path = tmp_path / "secret"
    path.write_bytes(SECRET)
    with h5py.File(path.with_suffix(".h5"), "w") as file:
        file["value"] = np.arange(3.0)
    return path


def make_trace(path: Path) -> Path:
    writer = TraceWriter.create(path, header(), slots=2)
    for k in range(3):
        writer.append(record(k, range(2), weights=True))
    writer.finish("interrupted")
    return path


READERS: tuple[Callable[[Path], object], ...] = (
    open_trace,
    read_attributes,
    model_weights,
    lambda path: read_group(path, "events"),
    lambda path: has_group(path, "secagg"),
    lambda path: TraceWriter.resume(path, 1),
)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_a_trace_that_leads_out_of_its_file_is_refused_by_every_reader(
    tmp_path: Path, secret: Path, attack: Callable[[h5py.File, Path], None]
) -> None:
    path = make_trace(tmp_path / "trace.h5")
    with h5py.File(path, "r+") as file:
        attack(file, secret)
    before = path.read_bytes()
    for read in READERS:
        with pytest.raises(TraceError, match=ATTACKS[attack]) as refusal:
            read(path)
        assert str(path) in str(refusal.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_recorded_gains_and_presence_that_lead_out_of_their_file_are_refused(
    tmp_path: Path, secret: Path, attack: Callable[[h5py.File, Path], None]
) -> None:
    path = make_trace(tmp_path / "trace.h5")
    with h5py.File(path, "r+") as file:
        attack(file, secret)
    with pytest.raises(DataError, match=rf"channel\.fading\.file: .*{ATTACKS[attack]}"):
        load_gains(str(path), 2, 2)
    with pytest.raises(DataError, match=rf"faults\.availability\.file: .*{ATTACKS[attack]}"):
        load_presence(str(path), 2, 2)


def test_gains_in_external_storage_would_have_been_the_bytes_of_another_file(tmp_path: Path, secret: Path) -> None:
    path = tmp_path / "gains.h5"
    with h5py.File(path, "w") as file:
        for name in ("gain_re", "gain_im"):
            file.create_dataset(name, (2, 2), dtype="f8", external=[(str(secret), 0, 32)])
    with h5py.File(path) as file:  # what HDF5 itself makes of it
        assert file["gain_re"][()].tobytes() == SECRET[:32]
    with pytest.raises(DataError, match="external storage"):
        load_gains(str(path), 2, 2)


def test_a_dimension_without_a_name_is_refused(tmp_path: Path) -> None:
    path = make_trace(tmp_path / "trace.h5")
    with h5py.File(path, "r+") as file:
        island = file.create_group("island")
        island["island"] = island  # a cycle keeps it in the file when its only link from outside is gone
        hidden = island.create_dataset("round", (3,), dtype="i8")
        hidden.make_scale("round")
        lists = file["test_loss"].attrs["DIMENSION_LIST"]
        lists[0][0] = hidden.ref
        file["test_loss"].attrs.modify("DIMENSION_LIST", lists)
        del file["island"]
    with pytest.raises(TraceError, match="a dimension that has no name"):
        open_trace(path)


def of_many_axes(file: h5py.File, name: str) -> None:
    ties = np.empty(2, dtype=object)
    ties[:] = [np.array([file[one].ref], dtype=h5py.ref_dtype) for one in ("round", "slot")]
    file[name].attrs.create("DIMENSION_LIST", ties, dtype=h5py.vlen_dtype(h5py.ref_dtype))


def of_plain_references(file: h5py.File, name: str) -> None:
    file[name].attrs.create("DIMENSION_LIST", np.array([[file["round"].ref]], dtype=h5py.ref_dtype))


def of_regions(file: h5py.File, name: str) -> None:
    regions = np.array([file["round"].regionref[:1]], dtype=h5py.regionref_dtype)
    file[name].attrs.create("DIMENSION_LIST", regions, dtype=h5py.regionref_dtype)


def of_numbers(file: h5py.File, name: str) -> None:
    file[name].attrs["DIMENSION_LIST"] = [1.0]


@pytest.mark.parametrize("name", ["round", "further"])
@pytest.mark.parametrize("tie", [of_many_axes, of_plain_references, of_regions, of_numbers])
def test_dimensions_on_which_the_library_crashes_are_refused(
    tmp_path: Path, tie: Callable[[h5py.File, str], None], name: str
) -> None:
    """HDF5 takes what ties a dataset to its dimensions for a list of references for each axis, whatever it is."""
    path = make_trace(tmp_path / "trace.h5")
    with h5py.File(path, "r+") as file:
        file["further"] = np.arange(3.0)
        tie(file, name)
    for read in READERS:
        with pytest.raises(TraceError):
            read(path)


@pytest.mark.parametrize("options", [{}, {"compression": "gzip", "shuffle": True}, {"compression": "lzf"}])
def test_plain_and_compressed_files_of_gains_are_read(tmp_path: Path, options: dict[str, object]) -> None:
    path = tmp_path / "gains.h5"
    with h5py.File(path, "w") as file:
        for name in ("gain_re", "gain_im"):
            file.create_dataset(name, data=np.arange(6.0).reshape(3, 2), **options)
        file["again"] = file["gain_re"]  # a second hard link, and a loop
        file.create_group("loop")["root"] = file["/"]
    recorded, jammer = load_gains(str(path), 3, 2)
    assert recorded.gains[1:].tolist() == (np.arange(6.0).reshape(3, 2) * (1 + 1j)).tolist()
    assert jammer is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_and_a_socket_are_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    os.mkfifo("pipe.h5")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.h5")
        for name in ("pipe.h5", "socket.h5"):
            with pytest.raises(TraceError, match="a pipe, socket or device"):
                open_trace(Path(name))


@pytest.mark.slow
def test_a_process_refuses_and_shows_nothing_of_the_other_file(tmp_path: Path, secret: Path) -> None:
    path = make_trace(tmp_path / "trace.h5")
    with h5py.File(path, "r+") as file:
        external_storage(file, secret)
    for command in (["replay", str(path), "--json"], ["report", str(path)]):
        done = subprocess.run(
            [sys.executable, "-m", "wirelessfl", *command],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(wirelessfl.__file__).parents[1])},
        )
        assert done.returncode == 2, done.stderr
        assert "external storage" in done.stderr
        assert "Traceback" not in done.stderr


def test_only_the_gate_opens_files_to_read_them() -> None:
    package = Path(wirelessfl.__file__).parent
    opening = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "h5py.File(" in path.read_text(encoding="utf-8")
    }
    assert opening == {"trace/opening.py", "trace/writer.py", "channels/file.py"}  # the last two write
