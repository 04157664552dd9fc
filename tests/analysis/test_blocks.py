"""Traces of slots with several pieces: resumed, verified, replayed under another policy, exported and pivoted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import wirelessfl as wfl
from tests.analysis.audit_examples import audited, built
from tests.simulation.scenarios import small
from tests.simulation.test_pilots import N0
from tests.speed import rest_slow
from tests.test_api import StopAfter, assert_same_trace
from wirelessfl.analysis.replay.compare import compare_traces
from wirelessfl.analysis.replay.counterfactual import changed_scenario, run_counterfactual
from wirelessfl.analysis.replay.export import export
from wirelessfl.analysis.replay.recorded_conditions import Coverage, RecordedSource, SlotTable
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.analysis.report.page import write_report
from wirelessfl.assembly import build_simulation, plan_to_look
from wirelessfl.errors import DataError, InfeasibleError, RunInterrupted
from wirelessfl.radio.propagation import Moment
from wirelessfl.scenario import Scenario

CASES: dict[str, dict[str, Any]] = {
    "jammed": {"uplink__jammer": {"epsilon": 1.0}, "channel__csi": {"error_std": 0.2}},
    "refreshed": {"channel__csi": {"error_std": 0.2, "refresh": "piece"}, "uplink__jammer": {"epsilon": 1.0}},
    "rotating": {"uplink__jammer": {"epsilon": 1.0, "role": "rotating"}, "faults__fade_threshold": 0.2},
    "gauss_markov": {"channel__correlation": {"model": "gauss_markov", "doppler_hz": 200.0}},
}


def moving(name: str) -> Scenario:
    return small(**{"channel__correlation": {"model": "clarke", "doppler_hz": 200.0}, **CASES[name]})


@pytest.mark.parametrize("name", rest_slow(CASES))
def test_a_trace_with_blocks_is_resumed_verified_and_replayed(name: str, tmp_path: Path) -> None:
    whole = wfl.simulate(moving(name), tmp_path / "whole", device="cpu", threads=1, pictures=False)
    with pytest.raises(RunInterrupted):
        wfl.simulate(moving(name), tmp_path / "cut", device="cpu", threads=1, on_round=StopAfter(2), pictures=False)
    assert_same_trace(whole.trace, wfl.simulate(moving(name), tmp_path / "cut", resume=True, pictures=False).trace)
    recording = open_recording(whole.trace)
    assert verify(recording, tmp_path / "verified").difference is None
    coverage = run_counterfactual(recording, recording.scenario, tmp_path / "again")
    assert coverage.asked > 0 and coverage.drawn == 0
    assert compare_traces(whole.trace, tmp_path / "again" / "trace.h5", 1, 3).difference is None


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> wfl.Result:
    return wfl.simulate(
        moving("jammed"), tmp_path_factory.mktemp("runs") / "x", device="cpu", threads=1, pictures=False
    )


def test_channels_have_a_value_for_each_piece(finished: wfl.Result) -> None:
    with wfl.open_trace(finished.trace) as trace:
        assert trace["channel_re"].dims == trace["csi_im"].dims == ("round", "slot", "block")
        assert trace["jammer_channel_re"].dims == ("round", "block") and trace.sizes["block"] == 6
        assert trace["backoff"].dims == ("round", "slot")
        pivoted = wfl.by_client(trace)
        np.testing.assert_array_equal(pivoted["channel_re"].values, trace["channel_re"].values)


@pytest.mark.slow
def test_exports_hold_all_pieces(finished: wfl.Result, tmp_path: Path) -> None:
    recording = open_recording(finished.trace, 2, 3)
    for form in ("parquet", "netcdf"):
        export(recording, form, tmp_path)
    table = pd.read_parquet(tmp_path / "blocks.parquet")
    with wfl.open_trace(finished.trace) as trace, xr.open_dataset(tmp_path / "trace.nc", engine="h5netcdf") as copy:
        later = trace.sel(round=[2, 3])
        np.testing.assert_array_equal(table["channel_re"], later["channel_re"].values.ravel())
        jammer = np.broadcast_to(later["jammer_csi_im"].values[:, None, :], (2, 6, 6))
        np.testing.assert_array_equal(table["jammer_csi_im"], jammer.ravel())
        np.testing.assert_array_equal(copy["channel_im"], later["channel_im"])
    assert table.columns[:3].tolist() == ["round", "client_id", "block"]
    assert "channel_re" not in pd.read_parquet(tmp_path / "slots.parquet")


def test_the_report_reads_them(finished: wfl.Result, tmp_path: Path) -> None:
    write_report([finished.trace], tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_a_policy_with_other_pieces_has_no_recorded_channels(finished: wfl.Result, tmp_path: Path) -> None:
    recording = open_recording(finished.trace)
    changed = changed_scenario(recording, ["uplink.iq_packing=true"]).scenario
    with pytest.raises(InfeasibleError, match=r"3 pieces \(recorded: 6\) under the changed policy"):
        run_counterfactual(recording, changed, tmp_path / "y")


@pytest.fixture(scope="module")
def piloted(tmp_path_factory: pytest.TempPathFactory) -> wfl.Result:
    scenario = small(
        rounds=2,
        uplink={"kind": "over_the_air", "tx_power_dbm": -60.0},
        channel__pathloss={"model": "log_distance"},
        channel__csi={"pilot_symbols": 10},
    )
    return wfl.simulate(scenario, tmp_path_factory.mktemp("runs") / "piloted", device="cpu", threads=1, pictures=False)


@pytest.mark.parametrize(
    ("override", "change"), [("uplink.tx_power_dbm=-57", r"\+3\.00 dB"), ("timing.bandwidth_hz=2e6", r"-3\.01 dB")]
)
def test_estimates_of_other_pilots_were_not_recorded(
    piloted: wfl.Result, override: str, change: str, tmp_path: Path
) -> None:
    recording = open_recording(piloted.trace)
    changed = changed_scenario(recording, [override]).scenario
    with pytest.raises(InfeasibleError, match=f"has {change} of the recorded energy"):
        run_counterfactual(recording, changed, tmp_path / "y")
    louder = changed_scenario(recording, ["uplink.power_control.policy=mmse"]).scenario
    assert run_counterfactual(recording, louder, tmp_path / "z").drawn == 0


def test_recorded_path_gains_come_with_the_error_of_pilots_on_them(piloted: wfl.Result) -> None:
    """E|ĥ|² = β + N0/E on a link that was recorded 6 dB above the one that is drawn."""
    recording = open_recording(piloted.trace)
    source = build_simulation(recording.scenario, plan_to_look(recording.scenario.compute)).deployment.network.clients
    stronger = recording.dataset.assign(path_gain=4.0 * recording.dataset["path_gain"])
    table = SlotTable(stronger, ("channel_re", "channel_im", "csi_re", "csi_im", "path_gain"))
    drawn, recorded = (
        one.channels(np.arange(6), Moment(1, 0.0))
        for one in (source, RecordedSource(**vars(source), table=table, coverage=Coverage()))
    )
    error = N0 * 1e6 / (10 * 1e-9)
    np.testing.assert_allclose(drawn.mean_estimate_power, drawn.path_gain + error, rtol=1e-12)
    np.testing.assert_allclose(recorded.mean_estimate_power, 4.0 * drawn.path_gain + error, rtol=1e-12)


def test_gains_over_pieces_are_no_recording_of_blocks(finished: wfl.Result) -> None:
    recorded = small(channel__fading={"model": "recorded", "file": str(finished.trace)})
    with pytest.raises(DataError, match="slots of 6 pieces"):
        build_simulation(recorded, plan_to_look(recorded.compute))


def test_an_audit_hears_the_noise_of_pieces_in_which_nobody_sends() -> None:
    """Two clients silent at |ĥ|² < 1.5: nobody sends in half of the pieces, and the mean update is 0 in them."""
    keys: dict[str, Any] = {"clients__count": 2, "rounds": 2, "faults__fade_threshold": 1.5, "data__limit": 40}
    fast = {"model": "clarke", "doppler_hz": 1000.0}
    simulation = built(channel__correlation=fast, channel__csi={"refresh": "piece"}, **keys)
    audit = audited(simulation)
    assert math.isfinite(audit.epsilon_accounted)
    assert not audit.contradicts_ledger
