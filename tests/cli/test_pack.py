"""``wirelessfl pack``, and ``replay`` and ``report`` of what it made: on another machine, in another folder."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import h5py
import pytest
from click.testing import CliRunner, Result

import wirelessfl as wfl
from tests.learning.data.writers import write_idx_pair
from tests.simulation.scenarios import SMALL, small
from tests.study.studies import InlineWorkers
from wirelessfl import plugins
from wirelessfl.analysis.pack.writing import write_archive
from wirelessfl.cli import main
from wirelessfl.errors import RunInterrupted
from wirelessfl.study import load_study, run_study, runner

pytestmark = pytest.mark.usefixtures("undrawn")


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def unpacked_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, in which nothing may stay."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a co-author."""
    folder = tmp_path / "there"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "one"
    return wfl.simulate(small(), folder, device="cpu", threads=1, pictures=False).folder


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "base.yaml").write_text(SMALL)
    (folder / "pair.yaml").write_text("base: base.yaml\ngrid: {uplink.snr_db: [0, 5]}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wirelessfl.study.collect.write_results", lambda *_, **__: None)
        patch.setattr(runner, "LocalWorkers", lambda *_: InlineWorkers())
        run_study(load_study(folder / "pair.yaml"), folder / "out", device="cpu", threads=1)
    return folder / "out"


def test_pack_and_verify(run: Path, there: Path, unpacked_in: Path) -> None:
    done = call("pack", run)
    assert done.exit_code == 0 and "wirelessfl replay one.zip --verify" in done.stdout and not done.stderr
    assert call("pack", run, "--quiet").stdout == ""
    answer = json.loads(call("pack", run, "--json").stdout)
    assert answer["archive"] == "one.zip" and answer["runs"][0]["label"] == "small, seed 11"
    summary = call("replay", "one.zip")
    assert (
        summary.exit_code == 0 and "one.zip:one/trace.h5" in summary.stdout and str(unpacked_in) not in summary.stdout
    )
    verified = call("replay", "one.zip", "--verify", "--quiet", "--json")
    assert verified.exit_code == 0 and json.loads(verified.stdout)["verified_numbers"] > 0
    assert not [*unpacked_in.iterdir()] and [file.name for file in there.iterdir()] == ["one.zip"]


@pytest.mark.slow
def test_what_is_made_of_it_lies_beside_it(
    run: Path, there: Path, unpacked_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wirelessfl.analysis.replay.paired.draw_paired", lambda *given: given[2].write_bytes(b"drawn"))
    assert call("pack", run, "--out", "paper.zip").exit_code == 0
    exported = call("replay", "paper.zip", "--export", "csv")
    assert exported.exit_code == 0 and (there / "paper-replay" / "rounds.csv").exists(), exported.stderr
    changed = call("replay", "paper.zip", "--set", "uplink.snr_db=5", "--out", "changed", "--quiet")
    assert changed.exit_code == 0 and (there / "changed" / "trace.h5").exists(), changed.stderr
    page = call("report", "paper.zip")
    assert page.exit_code == 0 and (there / "paper-report.html").exists(), page.stderr
    assert not [*unpacked_in.iterdir()]
    assert {file.name for file in there.iterdir()} == {"paper.zip", "paper-replay", "changed", "paper-report.html"}


@pytest.mark.slow
def test_a_run_that_differs_is_told_by_the_name_in_the_archive(run: Path, there: Path, unpacked_in: Path) -> None:
    altered = there / "altered"
    shutil.copytree(run, altered)
    with h5py.File(altered / "trace.h5", "r+") as file:
        file["test_accuracy"][1] += 0.01
    assert call("pack", altered).exit_code == 0
    verified = call("replay", "altered.zip", "--verify")
    assert verified.exit_code == 4 and "altered.zip:altered/trace.h5: test_accuracy in round 2" in verified.stderr
    assert str(unpacked_in) not in verified.stderr and not [*unpacked_in.iterdir()]


@pytest.mark.slow
def test_an_archive_of_a_study(study: Path, there: Path, unpacked_in: Path) -> None:
    copy = there / "pair"
    shutil.copytree(study, copy)
    first, second = sorted(path.parent.name for path in copy.glob("runs/*/trace.h5"))
    with h5py.File(copy / "runs" / second / "trace.h5", "r+") as file:
        file["test_accuracy"][1] += 0.01
    assert call("pack", copy).exit_code == 0
    listed = call("replay", "pair.zip")
    assert listed.exit_code == 0 and "uplink.snr_db=0, seed 11" in listed.stdout and second in listed.stdout
    assert [one["id"] for one in json.loads(call("replay", "pair.zip", "--json").stdout)["runs"]].count(first) == 1
    every = call("replay", "pair.zip", "--verify")
    assert every.exit_code == 4 and f"1 of 2 runs differ: {second} (uplink.snr_db=" in every.stderr
    assert "the same" in every.stdout and "pair.zip:pair/runs" in every.stdout and str(unpacked_in) not in every.stdout
    assert call("replay", "pair.zip", "--verify", "--run", first[:6], "--quiet").exit_code == 0
    assert call("replay", "pair.zip", "--verify", "--run", second, "--quiet").exit_code == 4
    for words in (("--run", "nobody"), ("--delta", "1e-6"), ("--from", "2")):
        refused = call("replay", "pair.zip", *words)
        assert refused.exit_code == 2 and "--run" in refused.stderr and "Traceback" not in refused.stderr
    assert not [*unpacked_in.iterdir()]


@pytest.mark.slow
def test_of_a_study_that_has_not_ended_the_complete_runs_are_packed(study: Path, there: Path) -> None:
    copy = there / "pair"
    shutil.copytree(study, copy)
    first, second = sorted(path.parent.name for path in copy.glob("runs/*/trace.h5"))
    with h5py.File(copy / "runs" / first / "trace.h5", "r+") as file:
        file.attrs["status"] = "interrupted"
    done = call("pack", copy)
    assert done.exit_code == 0 and f"not packed: pair: run {first} (uplink.snr_db=" in done.stderr
    assert "has not ended (status interrupted)" in done.stderr
    with zipfile.ZipFile("pair.zip") as archive:
        assert {"pair/study.yaml", "pair/study.json", "pair/runs/index.csv"} <= {*archive.namelist()}
        (there / "alone.yaml").write_bytes(archive.read("pair/study.yaml"))
        assert {run.id for run in load_study(there / "alone.yaml").runs} == {first, second}
        assert {name for name in archive.namelist() if name.endswith("trace.h5")} == {f"pair/runs/{second}/trace.h5"}
    shutil.rmtree(copy / "runs" / second)
    none = call("pack", copy)
    assert none.exit_code == 2 and "no run of the study that has ended" in none.stderr
    (copy / "study.json").write_text('{"runs": [{"run": "../../x"}], "factors": []}')
    assert call("pack", copy).exit_code == 2


@pytest.mark.slow
def test_data_go_along_where_they_are_asked_for(there: Path, tmp_path: Path, unpacked_in: Path) -> None:
    here = tmp_path / "here"
    write_idx_pair(here / "sets" / "MNIST", "train", [0, 1, 2] * 4)
    write_idx_pair(here / "sets" / "MNIST", "t10k", [0, 1, 2])
    rows = [f"{index},{client},0.5,1" for index in range(1, 4) for client in range(6)]
    (here / "gains.csv").write_text("\n".join(["round,client,re,im", *rows]))
    (here / "s.yaml").write_text(SMALL + "channel: {fading: {model: recorded, file: gains.csv}}\n")
    sets = {"data": {"dataset": {"name": "mnist", "root": "sets"}, "partition": {"scheme": "iid"}}}
    scenario = wfl.load_scenario(here / "s.yaml", sets)
    wfl.simulate(scenario, here / "one", device="cpu", threads=1, pictures=False)
    alone = call("pack", here / "one")
    assert (
        alone.exit_code == 0 and "not packed: one: the data that channel.fading.file names: gains.csv" in alone.stderr
    )
    both = call("pack", here / "one", "--with-data", "--out", "both.zip")
    assert both.exit_code == 0 and "not packed" not in both.stderr
    here.rename(tmp_path / "gone")
    lost = call("replay", "one.zip", "--verify", "--quiet")
    assert lost.exit_code == 2 and f"{there}/sets" in lost.stderr
    assert call("replay", "both.zip", "--verify", "--quiet").exit_code == 0
    # Data beside the archive are found too; others are told to be others.
    shutil.copytree(tmp_path / "gone" / "sets", there / "sets")
    shutil.copy(tmp_path / "gone" / "gains.csv", there)
    assert call("replay", "one.zip", "--verify", "--quiet").exit_code == 0
    (there / "gains.csv").write_text((there / "gains.csv").read_text().replace("0.5", "0.25"))
    other = call("replay", "one.zip", "--verify", "--quiet")
    assert other.exit_code == 4 and "channel.fading.file: the data here are not those" in other.stderr
    (tmp_path / "gone" / "gains.csv").write_text("other")
    refused = call("pack", tmp_path / "gone" / "one", "--with-data", "--out", "x.zip")
    assert refused.exit_code == 2 and "found data that differ" in refused.stderr and not (there / "x.zip").exists()


GAINS = "\n".join(["round,client,re,im", *(f"{index},{client},0.5,1" for index in range(1, 4) for client in range(6))])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["./plugins/gains.csv", "summary.json"])
def test_data_may_have_any_relative_name(name: str, there: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / name).parent.mkdir(parents=True)
    (here / name).write_text(GAINS)
    (here / "s.yaml").write_text(SMALL + f"channel: {{fading: {{model: recorded, file: {name}}}}}\n")
    wfl.simulate(here / "s.yaml", here / "one", device="cpu", threads=1, pictures=False)
    packed = call("pack", here / "one", "--with-data")
    assert packed.exit_code == 0 and "not packed" not in packed.stderr, packed.stderr
    shutil.rmtree(here)
    assert call("replay", "one.zip", "--verify", "--quiet").exit_code == 0


@pytest.mark.slow
def test_runs_of_a_study_share_their_data_also_below_links(there: Path, tmp_path: Path, unpacked_in: Path) -> None:
    here, far = tmp_path / "here", tmp_path / "far"
    write_idx_pair(far / "MNIST", "train", [0, 1, 2] * 4)
    write_idx_pair(far / "MNIST", "t10k", [0, 1, 2])
    (here / "sets").mkdir(parents=True)
    (here / "sets" / "MNIST").symlink_to(far / "MNIST")
    (far / "MNIST" / "up").symlink_to(here / "sets")
    digits = "data: {dataset: {name: mnist, root: ./sets/}, partition: {scheme: iid}}"
    (here / "base.yaml").write_text(SMALL.replace("data: {limit: 120, partition: {scheme: iid}}", digits))
    (here / "pair.yaml").write_text("base: base.yaml\ngrid: {uplink.snr_db: [0, 5]}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wirelessfl.study.collect.write_results", lambda *_, **__: None)
        patch.setattr(runner, "LocalWorkers", lambda *_: InlineWorkers())
        run_study(load_study(here / "pair.yaml"), here / "pair", device="cpu", threads=1)
    assert call("pack", here / "pair", "--with-data").exit_code == 0
    with zipfile.ZipFile("pair.zip") as archive:
        data = [name for name in archive.namelist() if "ubyte" in name]
    assert len(data) == 4 and all(name.startswith("pair/data/sets/MNIST/") for name in data)
    shutil.rmtree(here)
    every = call("replay", "pair.zip", "--verify")
    assert every.exit_code == 0 and every.stdout.count("the same") == 2, every.stderr
    assert not [*unpacked_in.iterdir()]


@pytest.mark.parametrize("name", ["~/gains.csv", "a/../gains.csv"])
def test_data_by_a_name_that_leads_elsewhere_are_told(
    name: str, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a").mkdir()
    (tmp_path / "gains.csv").write_text(GAINS)
    (tmp_path / "s.yaml").write_text(SMALL + f"channel: {{fading: {{model: recorded, file: {name}}}}}\n")
    wfl.simulate(tmp_path / "s.yaml", tmp_path / "one", device="cpu", threads=1, pictures=False)
    packed = call("pack", tmp_path / "one", "--with-data")
    assert packed.exit_code == 0 and f"cannot hold (absolute, or with ..): {name}" in packed.stderr


def test_other_versions_are_named(run: Path, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirelessfl.analysis.pack.writing.installed_packages", lambda: {"numpy": "0.1", "odd": "1"})
    assert call("pack", run).exit_code == 0
    told = call("replay", "one.zip", "--json").stderr
    assert "packed with numpy 0.1 there" in told and "odd" not in told


def test_an_interrupt_leaves_nothing_unpacked(
    run: Path, there: Path, unpacked_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("pack", run).exit_code == 0

    def stop(*_: Any, **__: Any) -> None:
        assert [*unpacked_in.iterdir()]
        raise RunInterrupted("the replay was stopped")

    monkeypatch.setattr("wirelessfl.analysis.replay.recording.verify", stop)
    assert call("replay", "one.zip", "--verify").exit_code == 130
    assert not [*unpacked_in.iterdir()]


def test_damaged_archives_are_one_line(run: Path, there: Path) -> None:
    assert call("pack", run).exit_code == 0
    whole = (there / "one.zip").read_bytes()
    for content in (b"", b"PK\x03\x04", whole[:-30], b"text", whole.replace(b"one/scenario.yaml", b"../scenario.yaml")):
        (there / "one.zip").write_bytes(content)
        for command in (("replay", "one.zip", "--verify"), ("report", "one.zip")):
            refused = call(*command)
            assert refused.exit_code == 2, refused.stderr
            assert refused.stderr.startswith("Error: one.zip: ") and refused.stderr.count("\n") == 1
    assert call("replay", run, "--run", "one").exit_code == 2


def test_a_full_disk(run: Path, there: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        refused = call("pack", run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert refused.exit_code == 2 and "one.zip cannot be written: File too large" in refused.stderr
    assert not [*there.iterdir()]
    assert call("pack", run).exit_code == 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        refused = call("replay", "one.zip")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert refused.exit_code == 2 and "cannot be written: File too large" in refused.stderr


LAW = """
import numpy as np


class Law:
    def draw(self, stream):
        return np.exp(1j * stream.uniform(1)[:, 0])
"""


@pytest.fixture(scope="module")
def authored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a run whose fading is code of its author, which is nowhere else any more."""
    here = tmp_path_factory.mktemp("author") / "here"
    here.mkdir()
    (here / "law_of_author.py").write_text(LAW)
    (here / "s.yaml").write_text(SMALL + 'channel: {fading: {model: "law_of_author:Law"}}\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins.places, "_searched", [])
        patch.setattr(plugins.blame, "_loaded", {})
        wfl.simulate(wfl.load_scenario(here / "s.yaml"), here / "one", device="cpu", threads=1, pictures=False)
    del sys.modules["law_of_author"]
    write_archive([here / "one"], here.parent / "one.zip")
    here.rename(here.parent / "gone")
    return here.parent / "one.zip"


@pytest.fixture
def outside(authored: Path, there: Path) -> Path:
    """The same with the co-author."""
    return Path(shutil.copy(authored, there))


@pytest.mark.slow
def test_a_co_author_without_the_sources_verifies_in_a_process_of_his_own(outside: Path) -> None:
    with zipfile.ZipFile(outside) as archive:
        assert archive.read("one/plugins/law_of_author.py").decode() == LAW
        assert "law_of_author:Law" in archive.read("README.txt").decode()
    refused = call("replay", outside, "--verify")
    assert refused.exit_code == 2 and "--allow-plugins" in refused.stderr and "one.zip:one/trace.h5" in refused.stderr
    package = str(Path(wfl.__file__).parents[1])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("WIRELESSFL", "PYTHON"))}
    words = [sys.executable, "-P", "-m", "wirelessfl", "replay", outside.name, "--verify", "--quiet", "--allow-plugins"]
    environment |= {"PYTHONPATH": package}
    done = subprocess.run(words, cwd=outside.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_sources_to_read_are_those_that_run(outside: Path) -> None:
    with zipfile.ZipFile(outside) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files.pop("manifest.json"))
    name = "one/plugins/law_of_author.py"
    for content in (b"harmless = 1\n", None):
        told = dict(files)
        if content is None:
            del told[name], manifest["files"][name]
        else:
            told[name] = content
            manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        with zipfile.ZipFile(outside, "w") as archive:
            for one, bytes_of_it in told.items():
                archive.writestr(one, bytes_of_it)
            archive.writestr("manifest.json", json.dumps(manifest))
        refused = call("replay", outside, "--verify", "--allow-plugins")
        assert (
            refused.exit_code == 2 and "plugins/law_of_author.py differs from the source in the trace" in refused.stderr
        )
    assert "law_of_author" not in sys.modules


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_warnings_name_no_temporary_folder(outside: Path, unpacked_in: Path) -> None:
    done = call("replay", outside, "--set", "training.optimizer.lr=0.01", "--allow-plugins")
    assert done.exit_code == 0, done.stderr
    assert "Warning: code from outside is not here as it was recorded" in done.stderr
    assert str(unpacked_in) not in done.stderr


@pytest.mark.slow
def test_one_number_is_called_a_number(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SMALL)
    scenario = wfl.load_scenario(tmp_path / "s.yaml", rounds=1)
    run = wfl.simulate(scenario, tmp_path / "one", device="cpu", threads=1, pictures=False).folder
    done = call("replay", run, "--verify")
    assert done.exit_code == 0, done.stderr
    assert "not compared: wall_time (1 number):" in done.stdout
