"""Whatever is altered in a trace is found when it is verified: every dataset, every attribute, in turn."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import wirelessfl as wfl
from tests.simulation.scenarios import small
from tests.speed import rest_slow
from wirelessfl import cli
from wirelessfl.analysis.replay.compare import compare_traces
from wirelessfl.analysis.replay.comparison import FREE_ATTRIBUTES, FREE_DATASETS, Comparison
from wirelessfl.analysis.replay.recording import check_consistent, open_recording, verify
from wirelessfl.errors import CheckFailed, RunInterrupted, TraceError
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound, Round
from wirelessfl.simulation.uplinks import Collected
from wirelessfl.trace import TraceWriter, read_attributes

CELLS = {"rings": 1, "inter_site_distance_m": 150.0}
MOVING = {
    "channel__placement": {"scheme": "random_waypoint", "radius_m": 200.0, "min_speed": 4e3, "max_speed": 9e3},
    "channel__pathloss": {"model": "log_distance", "shadowing_db": 6.0, "carrier_hz": 1e6},
}
JAMMED: dict[str, Any] = {
    "uplink__jammer": {"epsilon": 1.0},
    "trace__models": "every 2",
    "faults__availability": {"p": 0.7},
    "clients": {"count": 6, "selection": {"scheme": "poisson", "rate": 0.6}},
    "evaluate__every": 2,
}

KINDS: dict[str, dict[str, Any]] = {
    "over the air": JAMMED,
    "secure aggregation": {"uplink": {"kind": "secure_aggregation", "snr_db": 20.0, "clip": 1.0}},
    "digital": {"uplink": {"kind": "digital", "snr_db": 20.0}},
    "hierarchical": {"topology": {"kind": "hierarchical", "edge_rounds": 3, **CELLS}, **MOVING},
    "several cells": {"topology": {"kind": "multi_cell", **CELLS}, **MOVING},
    "asynchronous": {"aggregation": {"mode": "asynchronous", "buffer": 2}, "uplink": {"kind": "digital"}},
    "private": {
        "uplink": {"kind": "ideal"},
        "training__privacy": {"mechanism": "gaussian", "noise_multiplier": 1.0, "clip": 1.0},
    },
    "pieces of a slot": {
        "channel__correlation": {"model": "clarke", "doppler_hz": 30.0},
        "channel__csi": {"error_std": 0.2, "refresh": "piece"},
        "timing__bandwidth_hz": 1e5,
    },
    "without models and events": {"trace": {"models": "none", "events": False}},
}
ROUNDS = 3


@dataclass
class Pair:
    """A recorded trace and its repetition."""

    recorded: Path
    repeated: Path
    last: int

    def compare(self, path: Path) -> Comparison:
        """An altered copy of the recorded trace beside the repetition."""
        return compare_traces(path, self.repeated, 1, self.last)

    def finds(self, path: Path) -> bool:
        """Whether verification says of an altered copy that it differs; a TraceError is exit code 2."""
        try:
            check_consistent(path)
        except CheckFailed:
            return True
        return self.compare(path).difference is not None


def record(scenario: Scenario, folder: Path, stop_after: int | None = None) -> Path:
    def stop(this: FinishedRound) -> None:
        if this.index == stop_after:
            raise RunInterrupted

    with suppress(RunInterrupted):
        wfl.simulate(scenario, folder, device="cpu", threads=1, pictures=False, on_round=stop)
    return folder / "trace.h5"


@pytest.fixture(scope="module")
def pair_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Pair]:
    """Makes the pair of a kind of run once."""
    pairs: dict[tuple[str, str], Pair] = {}

    def make(kind: str, status: str = "complete") -> Pair:
        if (kind, status) not in pairs:
            folder = tmp_path_factory.mktemp("pair")
            stop_after = None if status == "complete" else ROUNDS - 1
            recorded = record(small(rounds=ROUNDS, **KINDS[kind]), folder / "run", stop_after)
            if status == "running":
                TraceWriter.resume(recorded, ROUNDS - 1).close()
            assert read_attributes(recorded)["status"] == status
            recording = open_recording(recorded)
            assert verify(recording, folder / "again").difference is None
            pairs[kind, status] = Pair(recorded, folder / "again" / "trace.h5", recording.last)
        return pairs[kind, status]

    return make


def datasets(path: Path, *, empty: bool = True) -> list[str]:
    """The names of all datasets, or of those that hold anything."""
    names: list[str] = []

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset) and (empty or item.size):
            names.append(name)

    with h5py.File(path) as file:
        file.visititems(visit)
    return names


def attributes(path: Path, *, of_datasets: bool) -> list[tuple[str, str]]:
    names: list[tuple[str, str]] = []

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if of_datasets or isinstance(item, h5py.Group):
            names.extend((name, attribute) for attribute in item.attrs)

    with h5py.File(path) as file:
        visit("/", file)
        file.visititems(visit)
    return names


WORDS = {
    "status": ("interrupted", "running", "complete"),
    "unit": ("client", "sample"),
    "adjacency": ("replace", "add_remove"),
    "adversary": ("observer", "server"),
}
"""Attributes that are one of several words; another text is refused as damage."""


def alter_dataset(file: h5py.File, name: str) -> None:
    """Another value in the last place."""
    dataset = file[name]
    values = dataset[()]
    place = (-1,) * values.ndim
    before = values[place]
    if values.dtype.kind == "S":
        values[place] = before + b"x"
    elif values.dtype.kind == "f" and np.isfinite(before):
        values[place] = np.nextafter(before, values.dtype.type(np.inf))
    else:
        down = name == "event_count" or before > 200
        values[place] = 0 if values.dtype.kind == "f" else before - 1 if down else before + 1
    dataset[...] = values
    assert values[place].tobytes() != before.tobytes()


def alter_attribute(file: h5py.File, name: str, attribute: str) -> None:
    attributes = file[name].attrs
    value = attributes[attribute]
    if isinstance(value, str):
        others = (one for one in WORDS.get(attribute, ()) if one != value)
        attributes.modify(attribute, np.array(next(others, value + " "), dtype=h5py.string_dtype()))
    elif isinstance(value, bytes):
        attributes.create(attribute, value[:-1] + b"x", dtype=attributes.get_id(attribute).dtype)
    elif np.asarray(value).dtype.kind in "iuf":
        attributes.modify(attribute, value + np.ones_like(value))
    else:
        del attributes[attribute]


def altered(pair: Pair, folder: Path, alter: Callable[..., object], *names: str) -> Path:
    copy = Path(shutil.copy(pair.recorded, folder / "altered.h5"))
    with h5py.File(copy, "r+") as file:
        alter(file, *names)
    return copy


def unnoticed(pair: Pair, folder: Path, *, attributes_of_datasets: bool, stride: int = 1) -> Iterator[tuple[str, ...]]:
    """Whatever of a trace can be altered without being found, or only as damage."""
    alterations: list[tuple[Callable[..., None], tuple[str, ...]]] = [
        *((alter_dataset, (name,)) for name in datasets(pair.recorded, empty=False)),
        *((alter_attribute, place) for place in attributes(pair.recorded, of_datasets=attributes_of_datasets)),
    ]
    assert len(alterations) > 100
    for alter, place in alterations[::stride]:
        path = altered(pair, folder, alter, *place)
        try:
            found = pair.finds(path)
        except TraceError:
            yield ("damaged", *place)
        else:
            if not found:
                yield place


FREE = {*FREE_ATTRIBUTES} - {"data_folders"}
"""Attributes that may differ, of runs whose scenario names no files."""
LISTED = {(name.removeprefix("/"),) for name in FREE_DATASETS} | {("/", name) for name in FREE}
REFUSED = {("damaged", "/", "format"), ("damaged", "/", "version"), ("damaged", "round")}
"""What no trace has is refused as damage, which is exit code 2."""
OUT_OF_ORDER = {("damaged", "client_id")}
"""Likewise where the last slot is empty: clients of a round rise."""


@pytest.mark.slow
def test_every_eighth_dataset_and_attribute_counts(pair_of: Callable[..., Pair], tmp_path: Path) -> None:
    pair = pair_of("over the air")
    assert set(unnoticed(pair, tmp_path, attributes_of_datasets=False, stride=8)) <= LISTED | REFUSED


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_dataset_and_attribute_of_every_kind_of_run_counts(
    kind: str, pair_of: Callable[..., Pair], tmp_path: Path
) -> None:
    pair, of_datasets = pair_of(kind), kind == "private"
    # A variable tied to no dimensions is refused as damage too.
    places = attributes(pair.recorded, of_datasets=of_datasets)
    ties = {("damaged", *place) for place in places if place[1] == "DIMENSION_LIST"}
    # Without events no other count of them fits.
    counts = {("damaged", "event_count")} if kind == "without models and events" else set()
    found = set(unnoticed(pair, tmp_path, attributes_of_datasets=of_datasets))
    assert found - OUT_OF_ORDER == LISTED | REFUSED | ties | counts


@pytest.mark.slow
@pytest.mark.parametrize("status", ["interrupted", "running"])
@pytest.mark.parametrize("kind", ["over the air", "secure aggregation", "several cells", "asynchronous"])
def test_every_dataset_and_attribute_of_a_run_that_did_not_end_counts(
    kind: str, status: str, pair_of: Callable[..., Pair], tmp_path: Path
) -> None:
    assert (
        set(unnoticed(pair_of(kind, status), tmp_path, attributes_of_datasets=False)) - OUT_OF_ORDER == LISTED | REFUSED
    )


@pytest.mark.parametrize("kind", rest_slow(KINDS, fast=3))
def test_a_clean_trace_is_the_same_and_everything_is_counted(kind: str, pair_of: Callable[..., Pair]) -> None:
    pair = pair_of(kind)
    comparison = pair.compare(pair.recorded)
    assert comparison.difference is None and not comparison.notes
    with h5py.File(pair.recorded) as file:
        unlabelled = b"This is a netCDF dimension but not a netCDF variable"
        numbers = sum(
            file[name].size
            for name in datasets(pair.recorded)
            if not bytes(file[name].attrs.get("NAME", b"")).startswith(unlabelled)
        )
    assert comparison.of_numbers == numbers
    assert comparison.numbers == numbers - ROUNDS  # wall_time
    assert comparison.of_attributes == len(attributes(pair.recorded, of_datasets=True))
    assert comparison.attributes == comparison.of_attributes - len(FREE)
    assert {one.name for one in comparison.left_out} == {
        "wall_time",
        *(f"attribute {name}" for name in FREE),
    }
    assert all(one.reason for one in comparison.left_out)


def set_attribute(file: h5py.File, name: str, value: Any) -> None:
    file.attrs[name] = value


def delete(file: h5py.File, name: str) -> None:
    del file[name]


def retype(file: h5py.File, name: str, dtype: str) -> None:
    """The same values under the same name, in another type; scales are left out."""
    old = file[name]
    values, kept, maxshape = old[()], dict(old.attrs), old.maxshape
    del file[name]
    new = file.create_dataset(name, data=values.astype(dtype), maxshape=maxshape, chunks=True)
    for attribute, value in kept.items():
        if attribute != "DIMENSION_LIST":
            new.attrs[attribute] = value


ALTERATIONS: dict[str, Callable[[h5py.File], object]] = {
    # The ways round the former comparison.
    "events of another round": lambda file: file["events/round"].__setitem__(0, 99),
    "all events of another round": lambda file: file["events/round"].__setitem__(..., 99),
    "a model of no round": lambda file: file["model/round"].__setitem__(..., -1),
    "a status": lambda file: file.attrs.modify("status", "interrupted"),
    "a status and a client's ε": lambda file: (
        file.attrs.modify("status", "running"),
        file["client_epsilon_accounted"].__setitem__(0, 0.1),
    ),
    "the seed": lambda file: file.attrs.modify("seed", 12),
    "the name": lambda file: set_attribute(file, "name", "other"),
    "the adversary": lambda file: file["privacy"].attrs.__setitem__("adversary", "observer"),
    "the scenario's text": lambda file: set_attribute(file, "scenario", file.attrs["scenario"] + "# a comment\n"),
    "the stream version": lambda file: file.attrs.modify("stream_version", 99),
    "a NaN of other bits": lambda file: file["energy"].__setitem__(0, np.uint64(0x7FF8000000000001).view(np.float64)),
    "a negative zero": lambda file: file["updates_not_finite"].__setitem__(0, -0.0),
}

LAYOUT: dict[str, Callable[[h5py.File], object]] = {
    # Objects that are missing, added, resized or of another type; some of it is damage before it is compared.
    "a variable less": lambda file: delete(file, "test_loss"),
    "a status of no kind": lambda file: set_attribute(file, "status", "done"),
    "a group more": lambda file: file.create_group("more"),
    "a variable more": lambda file: file["privacy"].create_dataset("more", data=1.0),
    "an attribute more": lambda file: set_attribute(file, "more", 1),
    "an attribute less": lambda file: file["test_loss"].attrs.__delitem__("units"),
    "another type": lambda file: retype(file, "test_loss", "f4"),
    "the other byte order": lambda file: retype(file, "test_loss", ">f8"),
    "an attribute of another type": lambda file: set_attribute(file, "seed", 11.0),
    "an attribute of another shape": lambda file: set_attribute(file, "seed", [11]),
    "a round less in one variable": lambda file: file["airtime"].resize((ROUNDS - 1,)),
    "a round more in one variable": lambda file: file["airtime"].resize((ROUNDS + 1,)),
    "an event more": lambda file: [
        file[f"events/{name}"].resize((len(file["events/time"]) + 1,)) for name in ("bits", "kind", "node", "time")
    ],
    "a slot more": lambda file: file["status"].resize((ROUNDS, file["status"].shape[1] + 1)),
    "a client less": lambda file: file["weight"].resize((len(file["weight"]) - 1,)),
    "a model more": lambda file: file["model/round"].resize((len(file["model/round"]) + 1,)),
    "rounds out of order": lambda file: file["round"].__setitem__(..., [1, 3, 2]),
    "rounds from 0": lambda file: file["round"].__setitem__(..., [0, 1, 2]),
    "a round that is none": lambda file: file["round"].__setitem__(-1, -1),
}


@pytest.mark.parametrize("name", rest_slow(ALTERATIONS, fast=5))
def test_an_alteration_is_found(name: str, pair_of: Callable[..., Pair], tmp_path: Path) -> None:
    pair = pair_of("over the air")
    assert pair.finds(altered(pair, tmp_path, ALTERATIONS[name]))


@pytest.mark.parametrize("name", rest_slow(LAYOUT, fast=8))
def test_another_layout_is_found_or_refused(name: str, pair_of: Callable[..., Pair], tmp_path: Path) -> None:
    pair = pair_of("over the air")
    path = altered(pair, tmp_path, LAYOUT[name])
    try:
        assert pair.finds(path)
    except TraceError as error:
        assert str(path) in str(error)


def replay(*arguments: str) -> Any:
    return CliRunner().invoke(cli.main, ["replay", *arguments])


@pytest.mark.parametrize(
    "name", ["all events of another round", "a model of no round", "a status", "the seed", "the stream version"]
)
def test_an_alteration_is_exit_code_4(name: str, pair_of: Callable[..., Pair], tmp_path: Path) -> None:
    path = altered(pair_of("over the air"), tmp_path, ALTERATIONS[name])
    answer = replay(str(path), "--verify", "--quiet")
    assert answer.exit_code == 4, answer.output
    assert "found" in answer.stderr and "expected" in answer.stderr


def test_text_and_json_say_how_many_of_how_many(pair_of: Callable[..., Pair]) -> None:
    pair = pair_of("over the air")
    comparison = pair.compare(pair.recorded)
    told = replay(str(pair.recorded), "--verify").stdout
    counts = f"{comparison.numbers:,} of {comparison.of_numbers:,} numbers"
    assert f"verified: {counts} and {comparison.attributes:,} of {comparison.of_attributes:,} attributes" in told
    assert f"not compared: wall_time ({ROUNDS} numbers): how long the computation took" in told
    answer = json.loads(replay(str(pair.recorded), "--verify", "--json").stdout)
    assert answer["verified_numbers"] == comparison.numbers
    assert answer["verified"] == comparison.as_mapping()


def test_some_rounds_leave_the_others_and_the_totals_out(pair_of: Callable[..., Pair]) -> None:
    pair = pair_of("over the air")
    whole = pair.compare(pair.recorded)
    part = verify(open_recording(pair.recorded, 2, 2))
    assert part.difference is None
    assert (part.of_numbers, part.of_attributes) == (whole.of_numbers, whole.of_attributes)
    assert part.numbers < whole.numbers
    assert part.numbers + sum(one.numbers for one in part.left_out) == part.of_numbers
    reasons = {one.name: one.reason for one in part.left_out}
    assert "whole run" in reasons["client_epsilon_accounted"] and "whole run" in reasons["attribute status"]
    assert "rounds that were not asked for" in reasons["test_loss"]


@pytest.mark.slow
def test_a_failed_run_is_verified_but_for_its_cause(pair_of: Callable[..., Pair], tmp_path: Path) -> None:
    pair = pair_of("over the air", "interrupted")
    comparison = pair.compare(altered(pair, tmp_path, set_attribute, "status", "failed"))
    assert comparison.difference is None
    assert ("attribute status", "what stopped the run is not repeated") in {
        (one.name, one.reason) for one in comparison.left_out
    }


KILLED = """
import os, sys
import wirelessfl as wfl
from tests.analysis.test_verify import KINDS
from tests.simulation.scenarios import small

def die(this):
    if this.index == 2:
        os._exit(9)

wfl.simulate(small(rounds=3, **KINDS[sys.argv[1]]), sys.argv[2], device="cpu", threads=1, pictures=False, on_round=die)
"""


@pytest.mark.slow
def test_a_killed_run_is_verified_and_what_is_not_committed_is_no_part_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    command = [sys.executable, "-c", KILLED, "over the air", str(folder)]
    assert subprocess.run(command, env=dict(os.environ), check=False).returncode == 9
    trace = folder / "trace.h5"
    assert read_attributes(trace)["status"] == "running"
    comparison = verify(open_recording(trace))
    assert comparison.difference is None
    with h5py.File(trace) as file:
        assert len(file["airtime"]) > 2
    with h5py.File(trace, "r+") as file:
        file["airtime"][5] = 1.0
    assert verify(open_recording(trace)).difference is None
    with h5py.File(trace, "r+") as file:
        file["airtime"][1] = 1.0
    with pytest.raises(CheckFailed, match="airtime in round 2"):
        verify(open_recording(trace))


def test_a_run_that_was_stopped_in_a_round_says_what_its_last_round_left(tmp_path: Path) -> None:
    """Clients that move have other places in a round in flight than at the end of the one before."""
    from wirelessfl.simulation import Simulation
    from wirelessfl.simulation.cell import Cell

    class Stopped(Exception):
        """The end of a run in the middle of a round."""

    def stop(self: Simulation, cell: Cell, this: Round, collected: Collected) -> None:
        if this.index == 2:
            raise Stopped
        finish(self, cell, this, collected)

    finish = Simulation._finish_round
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Simulation, "_finish_round", stop)
        wfl.simulate(
            small(rounds=ROUNDS, uplink__jammer={"epsilon": 1.0}, **MOVING),
            folder,
            device="cpu",
            threads=1,
            pictures=False,
        )
    assert read_attributes(folder / "trace.h5")["status"] == "failed"
    assert verify(open_recording(folder / "trace.h5")).difference is None


def test_another_package_version_is_noted_and_its_layout_excused(pair_of: Callable[..., Pair], tmp_path: Path) -> None:
    pair = pair_of("over the air")

    def older(file: h5py.File) -> None:
        file.attrs["package_version"] = "0.0.1"
        del file["test_loss"], file.attrs["run_id"], file.attrs["scenario_digest"], file.attrs["stream_version"]
        file["airtime"].attrs["long_name"] = "other words"
        file["privacy/local_steps_before"] = np.zeros((ROUNDS, 6))
        file.attrs["release_settings"] = file.attrs["release_settings"].replace("[", '["{}", ', 1)

    path = altered(pair, tmp_path, older)
    assert not pair.finds(path)
    comparison = pair.compare(path)
    assert any("recorded with wirelessfl 0.0.1" in note for note in comparison.notes)
    assert "another version of the package" in next(
        one.reason for one in comparison.left_out if one.name == "attribute long_name of /airtime"
    )

    def altered_too(file: h5py.File) -> None:
        older(file)
        file["airtime"][0] = 1.0

    assert pair.finds(altered(pair, tmp_path, altered_too))
