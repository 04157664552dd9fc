"""A trace opened by h5py alone is what h5netcdf reads in it, and any part of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.trace import open_group, read_attributes

KINDS: dict[str, dict[str, Any]] = {
    "over the air": {},
    "antennas and subcarriers": {
        "uplink__receiver": {"antennas": 3, "combiner": "sum"},
        "channel__fading": {"model": "tdl", "profile": "C", "delay_spread_s": 1e-8, "groups": 2},
    },
    "secure aggregation": {"uplink": {"kind": "secure_aggregation"}},
}


@pytest.fixture(scope="module", params=KINDS)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of a run that grew its slots."""
    scenario = small(trace__models="every 1", **KINDS[request.param])
    return wfl.simulate(scenario, tmp_path_factory.mktemp("lazy") / "run", pictures=False).trace


@pytest.mark.parametrize("group", ["/", "privacy", "events", "model", "secagg"])
def test_it_is_what_h5netcdf_reads(path: Path, group: str) -> None:
    if group == "secagg" and "secure_aggregation" not in read_attributes(path)["scenario"]:
        return
    with xr.open_dataset(path, engine="h5netcdf", group=group) as expected, open_group(path, group) as found:
        if group != "/" and "round" not in expected.variables and "round" in found.coords:
            found = found.drop_vars("round")  # labels of the root, which h5netcdf leaves there
        assert list(found.variables) == list(expected.variables)
        assert [one.dtype for one in found.variables.values()] == [one.dtype for one in expected.variables.values()]
        assert found.identical(expected)


def test_any_part_is_that_part_of_the_whole(path: Path) -> None:
    generator = np.random.default_rng(5)
    with wfl.open_trace(path) as trace:
        whole = trace.copy(deep=True).load()
    for _ in range(8):
        keys = {str(name): _key(generator, size) for name, size in trace.sizes.items()}
        with wfl.open_trace(path) as trace:
            assert trace.isel(keys).identical(whole.isel(keys))


def _key(generator: np.random.Generator, size: int) -> Any:
    first, last = sorted(generator.integers(0, size + 1, 2).tolist())
    choices: list[Any] = [
        slice(first, last),
        slice(None, None, -1),
        generator.integers(0, size, 3),
        int(generator.integers(size)),
    ]
    return choices[int(generator.integers(len(choices)))]


def test_it_is_read_after_it_was_closed(path: Path) -> None:
    """As with xarray's own engines: the file is opened again."""
    with wfl.open_trace(path) as trace:
        losses = trace["test_loss"]
    assert np.isfinite(losses.to_numpy()).all()
