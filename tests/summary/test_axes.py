"""The axes of curves: their values against sums over the trace, the step functions against brute force."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import wirelessfl as wfl
from tests.simulation.scenarios import small
from tests.speed import rest_slow
from wirelessfl.errors import InputError
from wirelessfl.summary.axes import (
    X_AXES,
    axis_values,
    columns_of,
    common_energy_unit,
    common_grid,
    energy_unit,
    is_wide,
    step_onto,
    x_axis,
    x_label,
)

WATTS = {"kind": "digital", "tx_power_dbm": 10}
AIR = {"kind": "over_the_air", "tx_power_dbm": 10}
ASYNCHRONOUS = {"mode": "asynchronous", "buffer": 2}


def run(folder: Path, **changes: Any) -> xr.Dataset:
    scenario = small(**{"channel__pathloss": {"model": "log_distance"}, **changes})
    return wfl.open_trace(wfl.simulate(scenario, folder, device="cpu", threads=1, pictures=False).trace).load()


@pytest.mark.parametrize(
    "changes",
    rest_slow(
        [
            {"uplink": WATTS},
            {"uplink": WATTS, "timing": {"switched_capacitance": 1e-28}},
            {"uplink": {**AIR, "jammer": {"epsilon": 1.0}}},
            {"uplink": {"kind": "secure_aggregation", "tx_power_dbm": 10}},
            {"uplink": WATTS, "aggregation": ASYNCHRONOUS, "evaluate__every": 2},
            {"uplink": AIR, "topology": {"kind": "multi_cell", "rings": 1}, "clients__count": 14},
            {"uplink": WATTS, "faults": {"availability": {"model": "bernoulli", "p": 0.5}}},
        ],
        fast=3,
    ),
    ids=["digital", "computing", "air", "secure", "asynchronous", "cells", "absences"],
)
def test_joules_are_the_sum_of_what_clients_and_jammer_spent(tmp_path: Path, changes: dict[str, Any]) -> None:
    trace = run(tmp_path / "x", **changes)
    columns = columns_of(trace)
    assert energy_unit(columns) == "J"
    axis = axis_values("energy", columns)
    by_round = [float(np.nansum(trace["tx_energy_j"][at])) for at in range(trace.sizes["round"])]
    if "timing" in changes:
        by_round = [sent + float(np.nansum(trace["compute_energy_j"][at])) for at, sent in enumerate(by_round)]
    total, expected = 0.0, []
    for joules in by_round:
        total += joules
        expected.append(total)
    if "jammer" not in changes["uplink"]:  # its joules are in ``energy`` alone
        np.testing.assert_allclose(axis.values, expected, rtol=1e-6)
    assert np.all(axis.values >= np.array(expected) * (1 - 1e-6))
    assert axis.values[-1] == pytest.approx(float(trace["energy"].sum())) and axis.missing == ""


def test_without_watts_energy_is_in_units_of_the_noise(tmp_path: Path) -> None:
    trace = run(tmp_path / "x", channel__pathloss={"model": "none"}, uplink__jammer={"epsilon": 1.0})
    columns = columns_of(trace)
    assert energy_unit(columns) == "noise"
    sent = [
        math.fsum(value for value in row if math.isfinite(value)) + float(jammed)
        for row, jammed in zip(trace["tx_energy"].values, trace["jammer_energy"].values, strict=True)
    ]
    np.testing.assert_allclose(axis_values("energy", columns).values, np.cumsum(sent))
    assert "noise = 1" in x_label("energy", "noise") and "(J)" in x_label("energy", "J")


def test_rounds_seconds_and_epsilon_are_those_of_the_trace(tmp_path: Path) -> None:
    trace = run(tmp_path / "x", channel__pathloss={"model": "none"})
    columns = columns_of(trace)
    for x, name in (("round", "round"), ("sim_time", "sim_time"), ("epsilon", "epsilon_accounted")):
        np.testing.assert_array_equal(axis_values(x_axis(x), columns).values, trace[name].values)
    assert len({x_label(x) for x in X_AXES}) == len(X_AXES)


def test_what_has_no_place_on_an_axis_says_why(tmp_path: Path) -> None:
    columns = columns_of(run(tmp_path / "x", uplink={"kind": "ideal"}, channel__pathloss={"model": "none"}))
    energy, epsilon = axis_values("energy", columns), axis_values("epsilon", columns)
    assert np.isnan(energy.values).all() and "no energy is counted" in energy.missing
    assert np.isnan(epsilon.values).all() and "∞" in epsilon.missing
    late = {**columns, "epsilon_accounted": np.array([0.0, 1.0, np.inf])}
    late_axis = axis_values("epsilon", late)
    np.testing.assert_array_equal(late_axis.values, [0.0, 1.0, np.nan])
    assert "up to round 2, the accounted ε is ∞" in late_axis.missing


def made_up(**columns: list[float]) -> dict[str, np.ndarray]:
    length = len(next(iter(columns.values())))
    known = {name: np.array(values) for name, values in columns.items()}
    return {name: np.full(length, np.nan) for name in ("energy", "tx_energy", "jammer_energy")} | known


def test_energies_of_two_units_are_refused_by_name() -> None:
    joules, noise, none = (
        made_up(energy=[1.0, 2.0], tx_energy=[9.0, 9.0]),
        made_up(tx_energy=[1.0, 1.0]),
        made_up(energy=[math.nan]),
    )
    assert common_energy_unit({"a": joules, "b": none}) == "J"
    assert common_energy_unit({"b": noise}) == "noise" and common_energy_unit({"b": none}) is None
    absent = made_up(energy=[0.0, 0.0])  # nobody sent, with watts or without
    assert common_energy_unit({"b": noise, "c": absent}) == "noise" and common_energy_unit({"c": absent}) == "J"
    for unit in ("J", "noise", None):
        np.testing.assert_array_equal(axis_values("energy", absent, unit).values, [0.0, 0.0])
    assert common_energy_unit({"a": joules, "c": absent}) == "J"
    with pytest.raises(InputError, match=r"in units of the noise \(quick\).*uplink\.tx_power_dbm"):
        common_energy_unit({"macro": joules, "quick": noise, "ideal": none})


def test_an_unknown_axis_is_refused() -> None:
    with pytest.raises(InputError, match="x: found 'time'; allowed: round, sim_time, energy, epsilon"):
        x_axis("time")


def brute_force(place: float, x: list[float], y: list[float]) -> float:
    known = [(a, b) for a, b in zip(x, y, strict=True) if not math.isnan(a) and not math.isnan(b)]
    if not known or place < known[0][0] or place > known[-1][0]:
        return math.nan
    return [b for a, b in known if a <= place][-1]


def test_steps_against_brute_force() -> None:
    random = np.random.default_rng(3)
    for _ in range(200):
        count = int(random.integers(1, 9))
        x = np.cumsum(random.integers(0, 3, count)).astype(float)  # places come twice
        y = np.where(random.random(count) < 0.3, np.nan, random.normal(size=count))
        x = np.where(np.arange(count) >= random.integers(1, count + 1), np.nan, x)
        grid = np.sort(random.uniform(-1, 12, 7).round())
        expected = [brute_force(place, x.tolist(), y.tolist()) for place in grid]
        np.testing.assert_array_equal(step_onto(grid, x, y), expected)


def test_the_common_grid_ends_with_the_shortest() -> None:
    grid = common_grid([np.array([1.0, 2.0, 9.0]), np.array([0.5, 2.5, 4.0]), np.array([0.0, 5.0, np.nan])])
    np.testing.assert_array_equal(grid, [1.0, 2.0, 2.5, 4.0])
    assert len(common_grid([np.array([1.0, 2.0]), np.array([3.0, 4.0])])) == 0
    assert len(common_grid([np.array([1.0]), np.array([np.nan])])) == 0
    assert len(common_grid([])) == 0
    long = common_grid([np.arange(5000.0)])
    assert len(long) == 500 and (long[0], long[-1]) == (0.0, 4999.0)


def test_an_axis_is_logarithmic_where_the_ends_differ_much() -> None:
    assert is_wide([np.array([1.0, 2.0]), np.array([5.0, 100.0])])
    assert not is_wide([np.array([0.001, 2.0]), np.array([5.0, 10.0])])
    assert not is_wide([np.array([np.nan])]) and not is_wide([np.array([0.0]), np.array([10.0])])
