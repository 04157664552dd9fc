"""Archives: the same bytes for the same runs, nothing lost on the way, and nothing believed that was not checked."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.analysis.pack import layout, reading
from wirelessfl.analysis.pack.contents import Contents
from wirelessfl.analysis.pack.layout import MANIFEST, PACKAGES, README, Manifest, is_safe
from wirelessfl.analysis.pack.machine import installed_packages, other_versions
from wirelessfl.analysis.pack.reading import looks_like_archive, open_archive, unpacking
from wirelessfl.analysis.pack.writing import write_archive
from wirelessfl.errors import ArchiveError, CheckFailed, InputError, OutputError, RunInterrupted
from wirelessfl.simulation import FinishedRound
from wirelessfl.version import package_version

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "one"
    wfl.simulate(small(), folder, device="cpu", threads=1, pictures=False)
    (folder / "summary.pdf").write_bytes(b"drawn")
    return folder


@pytest.fixture
def packed(run: Path, tmp_path: Path) -> Path:
    return write_archive([run], tmp_path / "one.zip").path


def rewritten(packed: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None]) -> Path:
    """The archive with other files and another manifest, which agree in everything that the change leaves alone."""
    with zipfile.ZipFile(packed) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files.pop(MANIFEST))
    change(files, manifest)
    target = packed.with_name("changed.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(MANIFEST, json.dumps(manifest))
    return target


def facts(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def refusal(path: Path) -> str:
    """What is said of a damaged archive, in one line; nothing is left of it anywhere."""
    with pytest.raises(ArchiveError) as refused, open_archive(path) as archive:
        archive.check()
    words = str(refused.value)
    assert words.startswith(f"{path}: ") and "\n" not in words
    return words


def test_what_is_in_it(run: Path, packed: Path) -> None:
    with open_archive(packed) as archive:
        archive.check()
        manifest = archive.manifest
    assert set(manifest.files) == {
        PACKAGES, README, *(f"one/{name}" for name in ("scenario.yaml", "summary.json", "summary.pdf", "trace.h5"))
    }  # fmt: skip
    (one,) = manifest.runs
    assert (one.name, one.label, one.status, one.rounds) == ("one", "small, seed 11", "complete", 3)
    assert set(one.data) == {"data.dataset"} and manifest.packed == ("one",) and not manifest.left_out
    assert manifest.packages["wirelessfl"] == package_version() == manifest.machine["wirelessfl"]
    with zipfile.ZipFile(packed) as archive_file:
        names = archive_file.namelist()
        text = archive_file.read(README).decode()
        listed = archive_file.read(PACKAGES).decode().splitlines()
    assert names == [*sorted(manifest.files), MANIFEST]
    assert "wirelessfl replay one.zip --verify" in text and "--allow-plugins" not in text
    assert f"wirelessfl=={package_version()}" in listed and len(listed) == len(manifest.packages)
    assert str(run.parent) not in text and str(run.parent) not in manifest.text()


def test_the_same_run_gives_the_same_bytes_and_comes_back_bit_for_bit(run: Path, tmp_path: Path) -> None:
    first = write_archive([run], tmp_path / "one.zip")
    (tmp_path / "elsewhere").mkdir()
    second = write_archive([run / "trace.h5"], tmp_path / "elsewhere" / "other.zip")
    assert first.path.read_bytes() == second.path.read_bytes()
    assert first.sha256 == hashlib.sha256(first.path.read_bytes()).hexdigest()
    again = write_archive([run], tmp_path / "one.zip")  # in the place of the earlier one
    assert again.sha256 == first.sha256
    with open_archive(first.path) as archive, unpacking(archive) as folder:
        archive.extract(folder)
        assert (folder / "one" / "trace.h5").read_bytes() == (run / "trace.h5").read_bytes()
        place = folder
    assert not place.exists()


def test_several_runs_have_names_of_their_own(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "sub" / "one"
    shutil.copytree(run, other)
    odd = tmp_path / "a run: ü"
    shutil.copytree(run, odd)
    upper = tmp_path / "ONE"
    shutil.copytree(run, upper)
    manifest = write_archive([run, other, odd, upper], tmp_path / "all.zip").manifest
    assert [one.name for one in manifest.runs] == ["one", "one-2", "a-run", "ONE-3"]
    with open_archive(tmp_path / "all.zip") as archive:
        assert archive.run("one-2").trace == "one-2/trace.h5" and archive.run("a").name == "a-run"
        with pytest.raises(InputError, match="found 4 runs for small, seed 11"):
            archive.run("small, seed 11")
        with pytest.raises(InputError, match="found 0 runs for x"):
            archive.run("x")


def test_runs_that_have_not_ended_and_places_without_any_are_refused(run: Path, tmp_path: Path) -> None:
    def stop(this: FinishedRound) -> None:
        raise RunInterrupted

    with pytest.raises(RunInterrupted):
        wfl.simulate(small(), tmp_path / "stopped", device="cpu", threads=1, pictures=False, on_round=stop)
    for path, words in (
        (tmp_path / "stopped", "has not ended .status interrupted."),
        (tmp_path, "found no trace"),
        (tmp_path / "none", "found no trace"),
        (run / "summary.json", "trace|HDF5"),
    ):
        with pytest.raises(InputError, match=words):
            write_archive([path], tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


def test_names_that_differ_by_case_alone_are_not_packed(tmp_path: Path) -> None:
    # No reader on any system takes them apart
    contents = Contents()
    contents.add("one/plugins/mine.py", b"")
    with pytest.raises(InputError, match=r"one/plugins/Mine\.py: found twice .* differ only in case"):
        contents.add("one/plugins/Mine.py", b"")


def test_no_other_file_is_written_over(run: Path, tmp_path: Path) -> None:
    note = tmp_path / "note.zip"
    note.write_text("mine")
    with pytest.raises(OutputError, match="not an archive of runs"):
        write_archive([run], note)
    own = tmp_path / "own"
    shutil.copytree(run, own)
    for name in ("trace.h5", "summary.pdf"):
        before = (own / name).read_bytes()
        with pytest.raises(OutputError, match="found an input of this command"):
            write_archive([own], own / name)
        assert (own / name).read_bytes() == before
    assert note.read_text() == "mine"


@pytest.mark.parametrize("place", [".", ".."])
def test_a_folder_is_no_archive(place: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError) as refused:
        write_archive([run], Path(place))
    assert str(refused.value) == f"{place} cannot be written: found a folder there; allowed: the name of a file"


def test_an_interrupted_one_leaves_nothing_and_keeps_the_earlier(run: Path, packed: Path) -> None:
    before = packed.read_bytes()

    def stop(total: int) -> Callable[[int], None]:
        def on_bytes(count: int) -> None:
            raise KeyboardInterrupt

        return on_bytes

    with pytest.raises(KeyboardInterrupt):
        write_archive([run], packed, begin=stop)
    assert packed.read_bytes() == before and [file.name for file in packed.parent.iterdir()] == ["one.zip"]


def test_progress_counts_every_byte(run: Path, tmp_path: Path) -> None:
    totals, counts = [], list[int]()
    write_archive([run], tmp_path / "one.zip", begin=lambda total: totals.append(total) or counts.append)  # type: ignore[func-returns-value]
    with open_archive(tmp_path / "one.zip") as archive:
        assert totals == [archive.size]
        read: list[int] = []
        archive.check(read.append)
        manifest = archive.manifest.text().encode()
    assert sum(read) == totals[0] and sum(counts) == totals[0] + len(manifest)


SAFE = ("a", "a/b.c", "ü/x y", "a..b/...c")
UNSAFE = ("", "/a", "a/", "a//b", "../a", "a/../b", ".", "a/.", "a\\b", "c:/a", "a\nb", "a\0b", "x" * 401)


@pytest.mark.parametrize("name", SAFE)
def test_names_of_files_below_the_folder(name: str) -> None:
    assert is_safe(name)


@pytest.mark.parametrize("name", UNSAFE)
def test_names_that_lead_elsewhere(name: str, packed: Path) -> None:
    assert not is_safe(name)

    def add(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
        files[name] = b"x"
        manifest["files"][name] = facts(b"x")

    if name:
        assert "the name" in refusal(rewritten(packed, add)) or "\0" in name


def test_links_folders_and_what_is_not_plain(packed: Path) -> None:
    for mode, words in ((stat.S_IFLNK, "not a regular file"), (stat.S_IFIFO, "not a regular file")):
        target = packed.with_name("mode.zip")
        shutil.copy(packed, target)
        with zipfile.ZipFile(target, "a") as archive:
            entry = zipfile.ZipInfo("one/link")
            entry.external_attr = (mode | 0o777) << 16
            archive.writestr(entry, "/etc/passwd")
        assert words in refusal(target)
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr(zipfile.ZipInfo("one/folder/"), "")
    assert "the name 'one/folder/'" in refusal(packed)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("one/TRACE.h5", "there twice"),
        ("one/trace.h5/x", "the name of a folder"),
        ("one/more", "listed in its manifest: one/more"),
    ],
)
def test_names_that_clash_or_are_not_stated(name: str, words: str, packed: Path) -> None:
    def add(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
        files[name] = b"x"

    assert words in refusal(rewritten(packed, add))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice(packed: Path) -> None:
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("one/trace.h5", "other")
    assert "there twice" in refusal(packed)


def test_files_that_are_not_those_of_the_manifest(packed: Path) -> None:
    def other(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
        files["one/summary.pdf"] = b"drawN"

    def shorter(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
        files["one/summary.pdf"] = b"draw"

    def missing(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
        del files["one/summary.pdf"]

    assert "one/summary.pdf has another SHA-256" in refusal(rewritten(packed, other))
    for change in (shorter, missing):
        assert "listed in its manifest: one/summary.pdf" in refusal(rewritten(packed, change))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", "other"), ("version", 2), ("runs", []), ("runs", [{}]), ("runs", None), ("packages", [1]),
        ("packed", "one"), ("machine", {"python": 3}), ("files", []), ("files", {"one/trace.h5": {"bytes": -1}}),
        ("more", 1),
    ],
)  # fmt: skip
def test_manifests_of_another_form(key: str, value: Any, packed: Path) -> None:
    def change(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
        manifest[key] = value

    assert "not a readable archive of runs" in refusal(rewritten(packed, change))


def test_a_manifest_survives_its_text(packed: Path) -> None:
    with open_archive(packed) as archive:
        assert Manifest.of_text(archive.manifest.text()) == archive.manifest
    for text in ("", "[]", "{", "[" * 100_000, "{}"):
        with pytest.raises((ValueError, RecursionError)):
            Manifest.of_text(text)


def test_truncated_and_altered_files(packed: Path) -> None:
    whole = packed.read_bytes()
    for length in (0, 3, 100, len(whole) // 2, len(whole) - 1):
        packed.write_bytes(whole[:length])
        refusal(packed)
    for place in range(0, len(whole), len(whole) // 40):
        altered = bytearray(whole)
        altered[place] ^= 0x10
        packed.write_bytes(altered)
        try:
            with open_archive(packed) as archive:
                archive.check()  # dates and the like may say what they want
        except ArchiveError:
            pass


def test_bombs_are_refused_before_anything_is_unpacked(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = bytes(3 << 20)

    def bomb(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
        files["one/zeros"] = zeros
        manifest["files"]["one/zeros"] = facts(zeros)

    large = rewritten(packed, bomb)
    monkeypatch.setattr(layout, "SMALL", 1 << 20)
    monkeypatch.setattr(layout, "MOST_RATIO", 10)
    assert "times as much" in refusal(large)
    monkeypatch.setattr(reading, "MOST_FILES", 3)
    assert "files; allowed: 3" in refusal(packed)


def test_what_is_packed_can_be_unpacked(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace of little but empty rows would be taken for a bomb: then nothing is compressed."""
    small_archive = write_archive([run], tmp_path / "one.zip").path.stat().st_size
    monkeypatch.setattr(layout, "SMALL", 0)
    monkeypatch.setattr(layout, "MOST_RATIO", 2)
    path = write_archive([run], tmp_path / "one.zip").path
    assert path.stat().st_size > 2 * small_archive
    with open_archive(path) as archive:
        archive.check()


def test_a_file_that_is_longer_than_it_says(packed: Path) -> None:
    """The size in the directory of the archive is a lie: reading ends where it says, and the hash is another."""
    content = bytes(100_000)

    def add(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
        files["one/zeros"] = content
        manifest["files"]["one/zeros"] = {**facts(content), "bytes": 10}

    lying = rewritten(packed, add)
    data = bytearray(lying.read_bytes())
    place = data.rindex(b"one/zeros") - 46
    assert struct.unpack_from("<I", data, place + 24) == (len(content),)
    struct.pack_into("<I", data, place + 24, 10)
    lying.write_bytes(data)
    refusal(lying)


def test_a_disk_without_room(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
    with open_archive(packed) as archive, pytest.raises(OutputError, match="set TMPDIR"):
        archive.extract(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_an_archive_is_told_by_its_first_bytes(run: Path, packed: Path, tmp_path: Path) -> None:
    renamed = packed.rename(tmp_path / "archive")
    assert looks_like_archive(renamed) and not looks_like_archive(run) and not looks_like_archive(run / "trace.h5")
    (tmp_path / "text.zip").write_text("text")
    assert looks_like_archive(tmp_path / "text.zip") and not looks_like_archive(tmp_path / "none.zip")


def test_versions_that_matter_are_compared() -> None:
    here = installed_packages()
    assert other_versions(here) == []
    told = other_versions({**here, "numpy": "0.1", "click": "0.1"})
    assert told == [f"numpy 0.1 there, {here['numpy']} here"]


def test_code_of_a_script_is_told_apart(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "wirelessfl.analysis.pack.contents.outside_code", lambda scenario: {"channel.fading.model": "__main__:Law"}
    )
    (words,) = write_archive([run], tmp_path / "script.zip").manifest.left_out[:1]
    assert "a module with __main__:Law, of a script or notebook" in words and "move the code into a module" in words


def test_a_damaged_trace_is_not_packed(run: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(run, damaged)
    with h5py.File(damaged / "trace.h5", "r+") as file:
        file.attrs["scenario"] = file.attrs["scenario"].replace("rounds: 3", "rounds: 4")
    with pytest.raises(CheckFailed, match="digest differs"):
        write_archive([damaged], tmp_path / "x.zip")


def test_a_named_pipe_is_no_archive(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.zip")
    assert not looks_like_archive(tmp_path / "run.zip")
