"""Complex gains over blocks, subcarriers and antennas in a trace: dimensions where they are longer than 1."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import wirelessfl as wfl
from tests.speed import rest_slow
from tests.trace.traces import header, plain_record
from wirelessfl.trace import GAIN_AXES, RoundRecord, TraceWriter, at_slot_start, gain_shape
from wirelessfl.trace.schema import ROOT


def with_gains(record: RoundRecord, shape: tuple[int, ...]) -> RoundRecord:
    """The same record with numbers over axes of gains that follow from their place."""
    places = np.arange(np.prod(shape, dtype=int)).reshape(shape) / 1024
    names, behind = {variable.name for variable in ROOT.variables if variable.gain}, (...,) + (None,) * len(shape)
    slots = {name: np.asarray(v)[behind] + places if name in names else v for name, v in record.slots.items()}
    values = {name: np.asarray(v) + places if name in names else v for name, v in record.values.items()}
    return replace(record, slots=slots, values=values)


@pytest.mark.parametrize("longer", rest_slow(map(list, product([True, False], repeat=3)), fast=2))
def test_axes_longer_than_one_are_dimensions(longer: list[bool], tmp_path: Path) -> None:
    sizes = {axis: size for axis, size, there in zip(GAIN_AXES, (4, 3, 2), longer, strict=True) if there}
    records = [with_gains(plain_record(number, range(5)), tuple(sizes.values())) for number in (1, 2)]
    with TraceWriter.create(tmp_path / "trace.h5", replace(header(secagg=False), gain_axes=sizes), slots=5) as writer:
        for record in records:
            writer.append(record)
    with wfl.open_trace(tmp_path / "trace.h5") as found:
        assert found["channel_re"].dims == ("round", "slot", *sizes)
        assert found["jammer_csi_im"].dims == ("round", *sizes)
        assert found["path_gain"].dims == ("round", "slot")
        assert gain_shape(found) == tuple(sizes.get(axis, 1) for axis in GAIN_AXES)
        for row, record in enumerate(records):
            np.testing.assert_array_equal(found["channel_re"].values[row], record.slots["channel_re"])
            np.testing.assert_array_equal(found["jammer_csi_im"].values[row], record.values["jammer_csi_im"])
        assert at_slot_start(found["csi_re"]).shape == (2, 5)


def test_gains_of_another_shape_are_refused(tmp_path: Path) -> None:
    axes = {"block": 4, "antenna": 2}
    with TraceWriter.create(tmp_path / "trace.h5", replace(header(secagg=False), gain_axes=axes), slots=5) as writer:
        for shape in ((4,), (2, 4), ()):
            with pytest.raises(ValueError, match="must have the shape"):
                writer.append(with_gains(plain_record(1, range(5)), shape))
