"""What the writer puts in the file, read back with h5py, xarray and the reader."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import h5py
import numpy as np
import pytest
import xarray as xr

from tests.trace.traces import (
    DIMENSION,
    PRIVACY_ATTRIBUTES,
    ROOT_ATTRIBUTES,
    events,
    header,
    model,
    per_round,
    per_slot,
    per_stage,
    plain_record,
    record,
)
from wirelessfl.errors import TraceError
from wirelessfl.trace import (
    EventKind,
    RoundRecord,
    SecAggStage,
    Status,
    TraceHeader,
    TraceWriter,
    by_client,
    model_weights,
    open_trace,
    read_attributes,
    read_group,
)
from wirelessfl.trace.schema import GROUPS, PRIVACY, ROOT
from wirelessfl.trace.writer import ROUNDS_AHEAD

COHORTS = [np.array([0, 4, 9]), np.array([2]), np.array([1, 2, 3, 4, 5]), np.array([], dtype=np.int64)]
"""Poisson selection: another number of clients in every round, more than expected, and none at all."""

CLIENTS = {"client": np.array([0, 4, 9]), "samples": np.array([3, 5, 7]), "weight": np.array([0.2, 1 / 3, 7 / 15])}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A complete trace of one round per cohort, counted from 1."""
    path = tmp_path / "trace.h5"
    writer = TraceWriter.create(path, header(), slots=3)
    for k, cohort in enumerate(COHORTS, start=1):
        writer.append(record(k, cohort, weights=k == 2))
    writer.finish("complete", CLIENTS, model(4), {"why_different": '["2R"]'})
    return path


def test_every_value_comes_back_bit_for_bit(path: Path) -> None:
    with h5py.File(path) as file:
        assert file["round"][()].tolist() == [1, 2, 3, 4]
        assert file["slot"][()].tolist() == [0, 1, 2, 3, 4]
        for group in (ROOT, PRIVACY):
            for k, cohort in enumerate(COHORTS, start=1):
                for name, value in per_round(group, k).items():
                    assert file[f"{group.path}/{name}"][k - 1] == value
                for name, column in per_slot(group, k, cohort).items():
                    row = file[f"{group.path}/{name}"][k - 1]
                    assert row[: len(cohort)].tolist() == column.tolist()
                    assert np.isnan(row[len(cohort) :]).all()


def test_empty_slots_hold_no_client(path: Path) -> None:
    with h5py.File(path) as file:
        for k, cohort in enumerate(COHORTS):
            assert file["client_id"][k].tolist() == [*cohort, *[-1] * (5 - len(cohort))]
            assert file["status"][k].tolist() == [1] * len(cohort) + [0] * (5 - len(cohort))


def test_values_per_client(path: Path) -> None:
    with h5py.File(path) as file:
        for name, column in CLIENTS.items():
            assert file[name][()].tolist() == column.tolist()
        assert np.isnan(file["distance"][()]).all()
        assert file["distance"].shape == (3,)


def test_attributes_are_plain_text_and_numbers(path: Path) -> None:
    with h5py.File(path) as file:
        found = dict(file.attrs)
    expected = {**ROOT_ATTRIBUTES, "format": "wirelessfl-trace", "version": 1, "status": "complete"}
    assert {name: found[name] for name in expected} == expected
    assert isinstance(found["status"], str)
    assert read_attributes(path)["why_different"] == '["2R"]'
    assert {name: read_attributes(path, "privacy")[name] for name in PRIVACY_ATTRIBUTES} == PRIVACY_ATTRIBUTES
    assert read_attributes(path, "model")["dimension"] == DIMENSION


def test_a_scenario_longer_than_an_hdf5_header_fits(tmp_path: Path) -> None:
    text = "name: x\n" * 20_000
    head = replace(header(), attributes={**ROOT_ATTRIBUTES, "scenario": text})
    TraceWriter.create(tmp_path / "t.h5", head, slots=1).finish("complete")
    assert read_attributes(tmp_path / "t.h5")["scenario"] == text


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.path)
def test_xarray_opens_every_group_with_named_dimensions_and_described_variables(group: Any, path: Path) -> None:
    with xr.open_dataset(path, engine="h5netcdf", group=group.path) as dataset:
        assert {str(v) for v in dataset.variables} == {v.name for v in (*group.coordinates, *group.variables)}
        for variable in (*group.coordinates, *group.variables):
            found = dataset[variable.name]
            assert found.dims == variable.dims
            assert found.dtype == np.dtype(variable.dtype)
            assert found.attrs["long_name"] == variable.long_name
            assert found.attrs["units"] == variable.units
            assert found.attrs.get("source", "") == variable.source
        dataset.load()


def test_status_and_kind_carry_their_meanings(path: Path) -> None:
    with open_trace(path) as dataset:
        attributes = dataset["status"].attrs
        assert attributes["flag_values"].tolist() == [int(status) for status in Status]
        assert attributes["flag_meanings"].split() == [status.name.lower() for status in Status]


def test_events_are_those_of_the_rounds(path: Path) -> None:
    log = read_group(path, "events")
    batches = [events(k) for k in range(1, 5)]
    assert log["time"].to_numpy().tolist() == np.concatenate([b.time for b in batches]).tolist()
    assert log["node"].to_numpy().tolist() == np.concatenate([b.node for b in batches]).tolist()
    assert log["round"].to_numpy().tolist() == [1, 1, 1, 2, 2, 3, 3, 3, 4, 4]
    assert (log["kind"] == EventKind.BROADCAST).all()
    assert np.array_equal(log["bits"], np.concatenate([b.bits for b in batches]), equal_nan=True)


def test_privacy_group_brings_the_round_labels(path: Path) -> None:
    assert read_group(path, "privacy")["round"].to_numpy().tolist() == [1, 2, 3, 4]


def test_models_are_kept_with_their_round(path: Path) -> None:
    assert model_weights(path).tolist() == model(4).tolist()
    assert model_weights(path, 2).tolist() == model(2).tolist()


def test_the_model_before_round_1_is_kept_beside_them(tmp_path: Path) -> None:
    path, initial = tmp_path / "t.h5", model(0) + 0.5
    writer = TraceWriter.create(path, replace(header(), initial=initial), slots=1)
    writer.close()
    assert model_weights(path, 0).tolist() == initial.tolist()
    writer = TraceWriter.resume(path, 0)
    writer.append(record(1, range(1), weights=True))
    writer.finish("complete", model=model(1))
    assert model_weights(path, 0).tolist() == read_group(path, "model")["initial"].to_numpy().tolist()
    assert (model_weights(path, 0) == initial).all() and (model_weights(path) == model(1)).all()


def test_a_trace_without_it_says_so(path: Path, tmp_path: Path) -> None:
    """Of a run that keeps no models all values are absent; an earlier version wrote no such variable."""
    earlier = tmp_path / "earlier.h5"
    shutil.copy(path, earlier)
    with h5py.File(earlier, "r+") as file:
        del file["model/initial"]
    for one in (path, earlier):
        with pytest.raises(TraceError, match="no such model; those kept: of rounds 2, 4"):
            model_weights(one, 0)
    assert (model_weights(earlier) == model(4)).all() and "initial" not in read_group(earlier, "model")


def test_an_initial_model_of_another_dimension_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="initial model"):
        TraceWriter.create(tmp_path / "t.h5", replace(header(), initial=model(0)[1:]), slots=1)


def test_the_final_model_replaces_the_snapshot_of_the_same_round(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    writer = TraceWriter.create(path, header(), slots=1)
    writer.append(record(1, range(1), weights=True))
    writer.finish("complete", model=model(7))
    with h5py.File(path) as file:
        assert file["model/round"][()].tolist() == [1]
    assert model_weights(path).tolist() == model(7).tolist()


def test_absent_values_are_nan(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    writer = TraceWriter.create(path, header(secagg=False), slots=2)
    writer.append(RoundRecord(0, {"participants": 1}, {"client_id": [5], "status": [Status.LATE]}))
    writer.finish("complete")
    with open_trace(path) as dataset:
        for variable in ROOT.variables:
            if np.dtype(variable.dtype).kind == "f":
                assert np.isnan(dataset[variable.name]).all()
        assert dataset["event_count"].to_numpy().tolist() == [0]


def test_by_client_pivots_slots_to_clients(path: Path) -> None:
    with open_trace(path) as dataset:
        pivoted = by_client(dataset)
    union = sorted({int(client) for cohort in COHORTS for client in cohort})
    assert pivoted["client"].to_numpy().tolist() == union
    expected = np.full((4, len(union)), np.nan)
    for k, cohort in enumerate(COHORTS):
        column = per_slot(ROOT, k + 1, cohort)["backoff"]
        for client, value in zip(cohort, column, strict=True):
            expected[k, union.index(client)] = value
    assert np.array_equal(pivoted["backoff"], expected, equal_nan=True)
    assert np.array_equal(pivoted["status"], ~np.isnan(expected))
    assert "client_id" not in pivoted


def test_by_client_says_what_it_cannot_pivot(path: Path) -> None:
    with open_trace(path) as dataset:
        one, pivoted = dataset.isel(round=0), by_client(dataset)
        by_client(dataset.isel(round=[0]))
        for wrong, words in (
            (one, r"one over \('slot',\)"),
            (pivoted, "none in a Dataset"),
            (str(path), "none in a str"),
        ):
            with pytest.raises(ValueError, match=f"client_id: found {words}; allowed: one over round and slot"):
                by_client(wrong)  # type: ignore[arg-type]


def test_resume_drops_later_rounds_and_ends_at_the_same_bits(path: Path, tmp_path: Path) -> None:
    resumed = tmp_path / "resumed.h5"
    with TraceWriter.create(resumed, header(), slots=3) as writer:
        for k, cohort in enumerate(COHORTS, start=1):
            # What is dropped differs from what replaces it, in every number and in its events and models.
            writer.append(record(k, cohort if k < 3 else np.arange(5), weights=True) if k != 2 else record(2, cohort))
    writer = TraceWriter.resume(resumed, 1)
    assert writer.rounds == 1
    for k, cohort in enumerate(COHORTS[1:], start=2):
        writer.append(record(k, cohort, weights=k == 2))
    writer.finish("complete", CLIENTS, model(4), {"why_different": '["2R"]'})
    with h5py.File(path) as straight, h5py.File(resumed) as other:
        names: list[str] = []
        straight.visit(names.append)
        for name in names:
            if isinstance(straight[name], h5py.Dataset) and not name.startswith("model"):
                assert straight[name][()].tobytes() == other[name][()].tobytes(), name
    assert model_weights(resumed, 2).tolist() == model(2).tolist()


def test_room_ahead_of_the_rounds_is_no_part_of_a_closed_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    with TraceWriter.create(path, header(), slots=1) as writer:
        for k in range(ROUNDS_AHEAD + 2):
            writer.append(record(k, range(1)))
    assert lengths_of_rounds(path) == {ROUNDS_AHEAD + 2}
    with TraceWriter.resume(path, ROUNDS_AHEAD - 1) as writer:
        writer.append(record(ROUNDS_AHEAD - 1, range(1)))
    assert lengths_of_rounds(path) == {ROUNDS_AHEAD}
    with h5py.File(path) as file:
        values = per_round(ROOT, 0)
        assert all(file[name][()].tolist() == [values[name] + k for k in range(ROUNDS_AHEAD)] for name in values)


def lengths_of_rounds(path: Path) -> set[int]:
    """Rows that the datasets over rounds have in the file itself."""
    with h5py.File(path) as file:
        over_rounds = [f"{group.path}/{v.name}" for group in GROUPS for v in group.variables if v.dims[0] == "round"]
        return {len(file[name]) for name in ["round", *over_rounds]}


def test_interrupted_and_resumed_status(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    writer = TraceWriter.create(path, header(), slots=1)
    assert read_status(path, writer) == "running"
    writer.append(record(0, range(1)))
    writer.finish("interrupted")
    assert read_attributes(path)["status"] == "interrupted"
    writer = TraceWriter.resume(path, 1)
    assert read_status(path, writer) == "running"
    writer.append(record(1, range(1)))
    writer.finish("complete")
    assert read_attributes(path)["status"] == "complete"


def test_a_resumed_run_takes_back_what_its_earlier_end_said(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    with TraceWriter.create(path, header(), slots=1) as writer:
        writer.append(record(0, range(1)))
    never_ended = read_attributes(path)
    writer = TraceWriter.resume(path, 1)
    writer.finish("interrupted", {"samples": np.arange(40)}, attributes={"why_different": json.dumps(["x" * 96])})
    with open_trace(path) as trace:
        assert trace.sizes["client"] == 40
    TraceWriter.resume(path, 1).close()
    assert read_attributes(path) == never_ended
    with open_trace(path) as trace:
        assert trace.sizes["client"] == 0


def read_status(path: Path, writer: TraceWriter) -> str:
    """The status on disk while the writer holds the file: of a copy, which carries no lock."""
    copy = path.with_name("copy.h5")
    copy.write_bytes(path.read_bytes())
    return str(read_attributes(copy)["status"])


def change(**fields: Any) -> RoundRecord:
    return replace(record(1, range(2)), **fields)


PRIVACY_NAME = PRIVACY.of("round")[-1].name
PRIVACY_SLOT_NAME = PRIVACY.of("round", "slot")[-1].name
GOOD_SLOTS = {"client_id": [0, 1], "status": [1, 1]}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (change(round_index=3), "trace ends with round 0"),
        (change(values={"participants": 1, "acuracy": 1.0}), "not in the trace schema: acuracy"),
        (change(values={}), "missing participants"),
        (change(values={"participants": 1.5}), "whole numbers"),
        (change(values={"participants": 1, "energy": "3"}), "real numbers"),
        (change(values={"participants": 1, "energy": 1j}), "real numbers"),
        (change(values={"participants": [1, 2]}), "unequal shapes"),
        (change(slots={"status": [1]}), "missing client_id"),
        (change(slots={**GOOD_SLOTS, "backoff": [1.0]}), "unequal shapes"),
        (change(slots={**GOOD_SLOTS, "snr": [1.0, 1.0]}), "not in the trace schema: snr"),
        (change(slots={"client_id": [1, 0], "status": [1, 1]}), "ascending"),
        (change(slots={"client_id": [1, 1], "status": [1, 1]}), "ascending"),
        (change(slots={"client_id": [-1, 1], "status": [1, 1]}), "ascending"),
        (change(slots={"client_id": [0, 1], "status": [1, 0]}), "empty slot"),
        (change(slots={"client_id": [0, 1], "status": [1, max(Status) + 1]}), "does not know"),
        (change(slots={"client_id": [[0, 1]], "status": [[1, 1]]}), "one-dimensional"),
        (change(privacy={"air_effective_noise_std": [1.0]}), "single numbers"),
        (change(privacy={"sigma": 1.0}), "not in the trace schema: sigma"),
        (change(privacy_slots={"air_received_bound": [1.0]}), "another number of slots"),
        (change(events=replace(events(1), time=[1.0])), "unequal shapes"),
        (change(events=replace(events(1), kind=[0, 0, 0])), "does not know"),
        (change(secagg={"outcome": 7}), "does not know"),
        (change(secagg={"outcome": 1, "reason": 1.0}), "must be bytes"),
        (change(secagg={}), "missing outcome"),
        (change(secagg_stages={"energy": [1.0]}), "values per stage"),
        (change(weights=np.zeros(DIMENSION + 1)), "expected shape"),
    ],
)
def test_a_bad_record_is_refused_and_leaves_no_mark(bad: RoundRecord, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    with TraceWriter.create(path, header(), slots=2) as writer:
        writer.append(record(0, range(2)))
        with pytest.raises(ValueError, match=message):
            writer.append(bad)
        writer.append(record(1, range(2)))
    with h5py.File(path) as file:  # in a twentieth of the time of `open_trace`
        assert file["client_id"][()].tolist() == [[0, 1], [0, 1]]


def test_secure_aggregation_stage_by_stage(path: Path) -> None:
    group = read_group(path, "secagg")
    assert group["stage"].to_numpy().tolist() == [int(stage) for stage in SecAggStage]
    for row, round_index in enumerate(group["round"].to_numpy().tolist()):
        assert group["reason"].to_numpy()[row] == f"round {round_index}".encode()
        for name, values in per_stage(round_index).items():
            np.testing.assert_array_equal(group[name].to_numpy()[row], values)
    assert read_attributes(path, "secagg")["ring_bits"] == 32


def test_a_run_without_secure_aggregation_has_no_such_group(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    with TraceWriter.create(path, header(secagg=False), slots=2) as writer:
        writer.append(plain_record(0, range(2)))
        with pytest.raises(ValueError, match="created without /secagg"):
            writer.append(record(1, range(2)))
        writer.append(plain_record(1, range(2)))
    with open_trace(path) as dataset:
        assert dataset.sizes["round"] == 2
    for read in (read_group, read_attributes):
        with pytest.raises(TraceError, match="only runs with secure aggregation"):
            read(path, "secagg")


def test_rounds_count_from_zero(tmp_path: Path) -> None:
    with (
        TraceWriter.create(tmp_path / "t.h5", header(), slots=2) as writer,
        pytest.raises(ValueError, match="count from 0"),
    ):
        writer.append(record(-1, range(2)))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (replace(header(), attributes={}), "missing in /: scenario, scenario_digest, seed"),
        (
            replace(header(), privacy={**PRIVACY_ATTRIBUTES, "delta": cast(float, None)}),
            "delta: expected text or a number",
        ),
        (replace(header(), model={}), "missing in /model: dimension"),
    ],
)
def test_an_incomplete_header_is_refused(bad: TraceHeader, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        TraceWriter.create(tmp_path / "t.h5", bad, slots=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"status": "done"}, "expected one of running, complete"),
        ({"status": "interrupted", "model": model(0)}, "belongs to a finished run"),
        ({"status": "complete", "model": np.zeros(2)}, "expected shape"),
        ({"status": "complete", "attributes": {"note": "x"}}, "only why_different"),
        ({"status": "complete", "client_values": {"samples": [1], "height": [2]}}, "height"),
        ({"status": "complete", "client_values": {"samples": [1, 2], "weight": [1.0]}}, "unequal shapes"),
    ],
)
def test_a_bad_end_is_refused(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    with TraceWriter.create(tmp_path / "t.h5", header(), slots=2) as writer:
        writer.append(record(0, range(2)))
        with pytest.raises(ValueError, match=message):
            writer.finish(**arguments)
    assert read_attributes(tmp_path / "t.h5")["status"] == "running"
