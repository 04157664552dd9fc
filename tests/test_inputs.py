"""Files that a scenario names are found on any machine: beside it, in the current folder, or below WIRELESSFL_DATA."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import wirelessfl as wfl
from tests.learning.data.writers import write_idx_pair
from tests.simulation.scenarios import small
from wirelessfl.cli import main
from wirelessfl.errors import DataError, MissingDataError, RunInterrupted
from wirelessfl.inputs import ROOT_VARIABLE, Places
from wirelessfl.learning.data import load_dataset
from wirelessfl.scenario import Scenario, dump_scenario, load_scenario, parse_scenario
from wirelessfl.simulation import FinishedRound
from wirelessfl.study import load_study
from wirelessfl.study.content import content_id
from wirelessfl.study.folder import StudyFolder
from wirelessfl.study.local import decode, encode
from wirelessfl.study.runner import make_task
from wirelessfl.study.task import claim_folder, run_task
from wirelessfl.trace import read_attributes

pytestmark = pytest.mark.usefixtures("undrawn")

ROUNDS, CLIENTS = 2, 3
TEXT = f"""
name: placed
seed: 3
rounds: {ROUNDS}
data: {{dataset: {{name: mnist, root: sets}}, partition: {{scheme: iid}}}}
model: {{name: logistic}}
clients: {{count: {CLIENTS}}}
training: {{algorithm: {{name: fedavg}}, epochs: 1}}
channel:
  fading: {{model: recorded, file: measured/gains.csv}}
  placement: {{scheme: positions, file: measured/places.csv}}
faults: {{availability: {{model: recorded, file: measured/present.csv}}}}
uplink: {{jammer: null, power_control: {{policy: gbma, expected_norms: measured/norms.csv}}}}
"""
NAMED = {
    "data.dataset.root": "sets",
    "channel.fading.file": "measured/gains.csv",
    "channel.placement.file": "measured/places.csv",
    "uplink.power_control.expected_norms": "measured/norms.csv",
    "faults.availability.file": "measured/present.csv",
}


def project(folder: Path, gain: float = 0.5) -> Path:
    """A scenario with all that it names beside it."""
    (folder / "measured").mkdir(parents=True)
    every = [(index, client) for index in range(1, ROUNDS + 1) for client in range(CLIENTS)]
    tables = {
        "gains": ["round,client,re,im", *(f"{index},{client},{gain},1" for index, client in every)],
        "places": ["x,y", *(f"{client},1" for client in range(CLIENTS))],
        "present": ["round,client,available", *(f"{index},0,1" for index in range(1, ROUNDS + 1))],
        "norms": ["round,norm", *(f"{index},1" for index in range(1, ROUNDS + 1))],
    }
    for name, lines in tables.items():
        (folder / "measured" / f"{name}.csv").write_text("\n".join(lines))
    write_idx_pair(folder / "sets", "train", [0, 1, 2] * 4)
    write_idx_pair(folder / "sets", "t10k", [0, 1, 2])
    (folder / "placed.yaml").write_text(TEXT)
    return folder


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder that holds nothing, and no folder of data."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    return tmp_path / "elsewhere"


def test_the_order_of_the_places(elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = [tmp_path / "own", elsewhere, tmp_path / "first", tmp_path / "second"]
    monkeypatch.setenv(ROOT_VARIABLE, os.pathsep.join(["", str(order[2]), str(order[3])]))
    places = Places.beside(order[0])
    assert places.folders() == tuple(order)
    for folder in reversed(order):
        folder.mkdir(exist_ok=True)
        (folder / "x.csv").touch()
        assert places.find("a.file", "x.csv") == folder / "x.csv"
    absolute = tmp_path / "absolute.csv"
    absolute.touch()
    assert places.find("a.file", str(absolute)) == absolute


def test_what_is_missing_is_told_with_the_places(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path / "data"))
    with pytest.raises(DataError) as missing:
        Places.beside(tmp_path / "own").find("a.file", "x.csv")
    candidates = [folder / "x.csv" for folder in (tmp_path / "own", elsewhere, tmp_path / "data")]
    assert str(missing.value) == f"a.file: found no file x.csv; looked for {', '.join(map(str, candidates))}"
    with pytest.raises(DataError, match=r"^a.file: found no file /nowhere/x.csv$"):
        Places().find("a.file", "/nowhere/x.csv")
    with pytest.raises(DataError, match="cannot be read"):
        Places().find("a.file", "x" * 5000)
    with pytest.raises(MissingDataError, match="found no folder sets; looked for"):
        Places().find("data.dataset.root", "sets", "folder")


def test_every_key_that_names_a_file_is_known(elsewhere: Path, tmp_path: Path) -> None:
    scenario = load_scenario(project(tmp_path / "p") / "placed.yaml")
    assert scenario.named_files() == NAMED
    assert small(uplink__power_control={"policy": "gbma", "expected_norms": "measured"}).named_files() == {}
    kept = {"name": "adult", "source": "synthetic", "root": "nowhere"}
    assert small(data__dataset=kept).named_files() == {}


@pytest.mark.parametrize("key", NAMED)
def test_each_is_looked_up_beside_the_scenario(key: str, elsewhere: Path, tmp_path: Path) -> None:
    path = project(tmp_path / "p") / "placed.yaml"
    missing = tmp_path / "p" / NAMED[key]
    missing.rename(tmp_path / "away")
    result = call("simulate", path, "--out", tmp_path / "run", "--quiet")
    assert result.exit_code == 2 and str(missing) in result.stderr and f"{key}: found no" in result.stderr


def test_the_places_are_no_part_of_a_scenario(tmp_path: Path) -> None:
    one, other = (load_scenario(project(tmp_path / name) / "placed.yaml") for name in ("a", "b"))
    assert one == other == parse_scenario(TEXT) and hash(one) == hash(other)
    assert content_id(one) == content_id(other) and dump_scenario(one) == dump_scenario(other)
    assert content_id(one) != content_id(parse_scenario(TEXT))  # whose files are nowhere: their bytes count
    assert one.places.folders() != other.places.folders()
    copied = one.model_copy(update={"seed": 4})
    assert copied.places.folders() == one.places.folders()


@pytest.mark.slow
def test_a_run_is_portable_and_verified_from_anywhere(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wirelessfl.analysis.replay.paired.draw_paired", lambda *given: given[2].write_bytes(b"drawn"))
    path = project(tmp_path / "p") / "placed.yaml"
    run = tmp_path / "p" / "results" / "x"
    done = call("simulate", path, "--out", run, "--quiet", "--device", "cpu", "--figures", "none")
    assert done.exit_code == 0, done.stderr
    attributes = read_attributes(run / "trace.h5")
    assert str(tmp_path) not in repr(attributes) and str(tmp_path) not in (run / "scenario.yaml").read_text()
    assert json.loads(attributes["data_folders"]) == ["../.."]
    assert set(json.loads(attributes["data_fingerprint"])) == {"data.dataset", *NAMED} - {"data.dataset.root"}
    moved = tmp_path / "moved"
    (tmp_path / "p").rename(moved)
    trace = moved / "results" / "x" / "trace.h5"
    verified = call("replay", trace, "--verify", "--quiet", "--json")
    assert verified.exit_code == 0, verified.stderr
    changed = call("replay", trace, "--set", "uplink.power_control.expected_norms=measured", "--quiet")
    assert changed.exit_code == 0, changed.stderr
    # Away from its project, what it names is looked up beside the trace too.
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(trace, alone)
    lost = call("replay", alone / "trace.h5", "--verify", "--quiet")
    assert lost.exit_code == 2 and str(alone / "sets") in lost.stderr
    for name in ("sets", "measured"):
        shutil.copytree(moved / name, alone / name)
    assert call("replay", alone / "trace.h5", "--verify", "--quiet").exit_code == 0


@pytest.mark.slow
def test_other_data_are_no_difference_of_the_run(elsewhere: Path, tmp_path: Path) -> None:
    folder = project(tmp_path / "p")
    scenario = load_scenario(folder / "placed.yaml")

    def stop(this: FinishedRound) -> None:
        raise RunInterrupted

    with suppress(RunInterrupted):
        wfl.simulate(scenario, folder / "run", device="cpu", threads=1, pictures=False, on_round=stop)
    trace = folder / "run" / "trace.h5"
    for name, key in (("gains", "channel.fading.file"), ("labels", "data.dataset")):
        kept = folder / "kept"
        file = folder / "measured" / "gains.csv" if name == "gains" else folder / "sets" / "train-labels-idx1-ubyte"
        shutil.copy(file, kept)
        if name == "gains":
            file.write_text(file.read_text().replace("0.5", "0.25"))
        else:
            write_idx_pair(folder / "sets", "train", [1, 0, 2] * 4)
        verified = call("replay", trace, "--verify", "--quiet")
        assert verified.exit_code == 4 and f"{key}: the data here are not those" in verified.stderr
        resumed = call(
            "simulate", folder / "placed.yaml", "--out", folder / "run", "--resume", "--quiet", "--figures", "none"
        )
        assert resumed.exit_code == 2 and f"{key}: the data here are not those" in resumed.stderr
        changed = call("replay", trace, "--set", "uplink.snr_db=3", "--quiet")
        assert changed.exit_code == 2 and "the data here are not those" in changed.stderr
        shutil.copy(kept, file)
    resumed = call(
        "simulate", folder / "placed.yaml", "--out", folder / "run", "--resume", "--quiet", "--figures", "none"
    )
    assert resumed.exit_code == 0, resumed.stderr
    assert call("replay", trace, "--verify", "--quiet").exit_code == 0


@pytest.mark.slow
def test_two_projects_in_one_process_keep_their_own_files(elsewhere: Path, tmp_path: Path) -> None:
    found: list[Scenario] = [
        load_scenario(project(tmp_path / name, gain) / "placed.yaml") for name, gain in (("a", 0.5), ("b", 2.0))
    ]
    for scenario, gain in zip(found, (0.5, 2.0), strict=True):
        result = wfl.simulate(scenario, tmp_path / f"run-{gain}", device="cpu", threads=1, pictures=False)
        assert float(result.dataset["channel_re"][0, 0]) == gain


@pytest.mark.slow
def test_the_runs_of_a_study_find_what_their_base_names(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(tmp_path / "p")
    (tmp_path / "studies").mkdir()
    path = tmp_path / "studies" / "norms.yaml"
    path.write_text("base: ../p/placed.yaml\ngrid: {uplink.snr_db: [0, 5]}\n")
    run = load_study(path).runs[0]
    monkeypatch.chdir(tmp_path)
    with claim_folder(tmp_path / "out") as claim:
        task = decode(encode(make_task(StudyFolder(tmp_path / "out"), claim, "cpu", 1, run)))
        monkeypatch.chdir(elsewhere)
        assert run_task(task, lambda progress: None).status == "complete"
    trace = tmp_path / "out" / "runs" / run.id / "trace.h5"
    assert call("replay", trace, "--verify", "--quiet").exit_code == 0
    assert str(folder) not in repr(read_attributes(trace))


def test_datasets_lie_in_any_of_several_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_idx_pair(first / "FashionMNIST", "train", [0, 1] * 3)
    write_idx_pair(second / "MNIST", "train", [0, 1, 2] * 3)
    (first / "EMNIST").mkdir()
    monkeypatch.setenv(ROOT_VARIABLE, os.pathsep.join(map(str, (first, tmp_path / "none", second))))
    assert len(load_dataset("mnist").train) + len(load_dataset("mnist").test) == 9
    assert len(load_dataset("fashion_mnist").train) + len(load_dataset("fashion_mnist").test) == 6
    for name in ("emnist_letters", "emnist_byclass", "cifar10", "adult"):
        with pytest.raises(MissingDataError, match=f"{name}: found none .*{first}.*{second}"):
            load_dataset(name)


def test_a_fingerprint_is_that_of_samples_labels_and_order(tmp_path: Path) -> None:
    dataset = load_dataset("digits")
    same, other = load_dataset("digits"), load_dataset("digits", split_seed=1)
    prints = {one.fingerprint() for one in (dataset, same)}
    assert len(prints) == 1 and other.fingerprint() not in prints and dataset.head(100).fingerprint() not in prints
