"""Values read with h5py alone against those that xarray gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.trace.traces import header, record
from wirelessfl.errors import TraceError
from wirelessfl.summary import summarise
from wirelessfl.trace import TraceWriter, at_slot_start, open_trace, read_group, read_values
from wirelessfl.trace.records import Scalar

NUMBERS: dict[str, Scalar] = {"name": "x", "delta": 1e-5, "dimension": 5, "total_samples": 6}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("values") / "trace.h5"
    plain = header()
    with TraceWriter.create(path, replace(plain, attributes={**plain.attributes, **NUMBERS}), 4) as writer:
        for index in (1, 2, 3):
            writer.append(record(index, range(3)))
        writer.finish("complete", {"samples": np.full(3, 2)}, None, {"why_different": "[]"})
    return path


def test_names_dimensions_values_and_attributes_are_those_of_xarray(path: Path) -> None:
    with open_trace(path) as dataset, read_values(path) as root:
        assert set(root.data_vars) == set(dataset.data_vars)
        for name in [*dataset.data_vars, "round"]:
            one, other = dataset[name], root[str(name)]
            assert other.dims == one.dims
            np.testing.assert_array_equal(other.values, one.values)
        assert root.sizes["round"] == dataset.sizes["round"] == 3
        assert "test_accuracy" in root and "nothing" not in root
        assert {name: root.attrs[name] for name in dataset.attrs} == dataset.attrs


def test_events_are_those_of_xarray(path: Path) -> None:
    events = read_group(path, "events")
    with read_values(path) as root:
        mine = root.events()
        assert set(mine) == set(events.data_vars)
        for name, variable in mine.items():
            np.testing.assert_array_equal(variable.values, events[name].values)


def test_parts_of_gains_are_read_alone(path: Path) -> None:
    with open_trace(path) as dataset, read_values(path) as root:
        for name in ("channel_re", "jammer_channel_re"):
            np.testing.assert_array_equal(at_slot_start(root[name]), at_slot_start(dataset[name]))


def test_a_summary_is_the_same_of_both(path: Path) -> None:
    with open_trace(path) as dataset, read_values(path) as root:
        np.testing.assert_equal(summarise(root, []), summarise(dataset, []))


def test_rounds_that_were_not_committed_are_not_shown(path: Path, tmp_path: Path) -> None:
    killed = tmp_path / "trace.h5"
    killed.write_bytes(path.read_bytes())
    with h5py.File(killed, "r+") as file:
        file["round"].resize((2,))
    with read_values(killed) as root:
        assert root.sizes["round"] == len(root["round"].values) == len(root["airtime"].values) == 2


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trace.h5").write_text("no trace")
    with pytest.raises(TraceError, match="not an HDF5 file"), read_values(tmp_path / "trace.h5"):
        pass
