"""Exports read back to the same numbers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.analysis.replay.export import export, timeline
from wirelessfl.analysis.replay.recording import Recording, open_recording
from wirelessfl.errors import InputError, OutputError
from wirelessfl.trace import Status, read_group

SCENARIO = small(
    uplink__jammer={"epsilon": 1.0},
    faults={"availability": {"model": "bernoulli", "p": 0.7}, "crash_rate_per_s": 20.0},
    timing__deadline_s=0.016,
    rounds=4,
)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    trace = wfl.simulate(SCENARIO, tmp_path_factory.mktemp("runs") / "x", device="cpu", threads=1, pictures=False).trace
    return open_recording(trace, 2, 4)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_tables_read_back_to_the_same_bits(recording: Recording, form: Any, tmp_path: Path) -> None:
    export(recording, form, tmp_path / "new" / "folder")
    # As text first: NumPy reads every digit, the CSV parsers of some pandas do not.
    read = pd.read_parquet if form == "parquet" else lambda path: pd.read_csv(path, dtype=str)
    rounds, slots, clients, events = (
        read(tmp_path / "new" / "folder" / f"{name}.{form}") for name in ("rounds", "slots", "clients", "events")
    )
    trace = recording.dataset
    assert rounds["round"].astype(int).tolist() == [2, 3, 4]
    np.testing.assert_array_equal(rounds["test_loss"].astype(float), trace["test_loss"])
    np.testing.assert_array_equal(slots["compute_time"].astype(float), trace["compute_time"].values.ravel())
    assert slots["client_id"].astype(int).tolist() == list(range(6)) * 3
    names = [Status(code).name.lower() for code in trace["status"].values.ravel()]
    assert slots["status"].tolist() == names
    np.testing.assert_array_equal(clients["samples"].astype(int), trace["samples"])
    recorded = read_group(recording.path, "events")
    inside = recorded["round"].values >= 2
    np.testing.assert_array_equal(events["time"].astype(float), recorded["time"].values[inside])
    assert set(events["kind"]) >= {"broadcast", "compute_start", "transmit", "jam", "superpose"}


def test_empty_slots_are_no_rows(tmp_path: Path) -> None:
    scenario = small(clients={"count": 6, "selection": {"scheme": "poisson", "rate": 0.5}})
    trace = wfl.simulate(scenario, tmp_path / "x", device="cpu", threads=1, pictures=False).trace
    recording = open_recording(trace)
    export(recording, "csv", tmp_path)
    slots = pd.read_csv(tmp_path / "slots.csv")
    assert len(slots) == (recording.dataset["client_id"].values >= 0).sum() < recording.dataset["client_id"].size


def test_netcdf_has_every_group(recording: Recording, tmp_path: Path) -> None:
    (path,) = export(recording, "netcdf", tmp_path)
    with xr.open_dataset(path, engine="h5netcdf") as copy:
        xr.testing.assert_identical(copy.load(), recording.dataset)
    with xr.open_dataset(path, engine="h5netcdf", group="privacy") as privacy:
        assert privacy.sizes["round"] == 3 and privacy.attrs["unit"] == "sample"
    with xr.open_dataset(path, engine="h5netcdf", group="events") as events:
        assert events["round"].values.min() == 2
    with xr.open_dataset(path, engine="h5netcdf", group="model") as model:
        assert model["weights"].shape == (1, 610)


def test_the_timeline_has_a_bar_for_everything_that_lasts(recording: Recording) -> None:
    whole = open_recording(recording.path)
    rows, trace = timeline(whole)["traceEvents"], whole.dataset
    bars = [row for row in rows if row["ph"] == "X"]
    computing = {(row["args"]["round"], row["tid"] - 2): row for row in bars if row["name"] == "compute"}
    active = np.argwhere(np.isfinite(trace["compute_time"].values))
    assert set(computing) == {(int(row) + 1, int(slot)) for row, slot in active}
    for row, slot in active:
        duration = computing[int(row) + 1, int(slot)]["dur"] / 1e6
        status, compute_time = trace["status"].values[row, slot], trace["compute_time"].values[row, slot]
        if status == Status.PARTICIPATED:
            assert duration == pytest.approx(compute_time, abs=1e-9)
        else:
            assert status in (Status.CRASHED, Status.LATE) and duration < compute_time + 1e-9
    sending = [row for row in bars if row["name"] == "transmit"]
    assert len(sending) == trace["participants"].values.sum()
    for row in sending:
        assert row["dur"] / 1e6 == pytest.approx(trace["airtime"].values[row["args"]["round"] - 1], abs=1e-9)
    instants = [row["name"] for row in rows if row["ph"] == "i"]
    for name, status in (("crash", Status.CRASHED), ("late", Status.LATE), ("unavailable", Status.UNAVAILABLE)):
        assert instants.count(name) == (trace["status"].values == status).sum() > 0
    names = {row["args"]["name"] for row in rows if row["name"] == "thread_name"}
    assert {"server", "jammer", "client 0"} <= names


def test_the_timeline_is_strict_json(recording: Recording, tmp_path: Path) -> None:
    (path,) = export(recording, "chrome", tmp_path)

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    assert json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)["displayTimeUnit"] == "ms"


def test_a_run_without_events_has_no_timeline(tmp_path: Path) -> None:
    trace = wfl.simulate(small(rounds=1, trace__events=False), tmp_path / "x", device="cpu", pictures=False).trace
    with pytest.raises(InputError, match=r"trace\.events"):
        export(open_recording(trace), "chrome", tmp_path)


def test_a_place_that_cannot_be_written(recording: Recording, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        export(recording, "csv", tmp_path / "file")


def test_a_table_for_spreadsheets_has_no_formula_in_its_head(recording: Recording, tmp_path: Path) -> None:
    """A variable of a foreign trace may have any name; everything else in the tables is a number or a known word."""
    forged = tmp_path / "trace.h5"
    shutil.copy(recording.path, forged)
    with h5py.File(forged, "r+") as file:
        variable = file.create_dataset("=HYPERLINK(1)", data=np.arange(4.0))
        variable.dims[0].attach_scale(file["round"])
    with pytest.raises(InputError, match=r"found a variable with the name '=HYPERLINK\(1\)'; allowed: letters"):
        export(open_recording(forged), "csv", tmp_path / "tables")
    assert not list((tmp_path / "tables").iterdir())
