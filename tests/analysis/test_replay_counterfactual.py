"""Counterfactuals run on what was recorded, and on nothing else."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import small
from tests.speed import rest_slow
from wirelessfl.analysis.replay.compare import compare_traces
from wirelessfl.analysis.replay.counterfactual import changed_scenario, run_counterfactual
from wirelessfl.analysis.replay.paired import draw_paired, paired_rows
from wirelessfl.analysis.replay.recording import open_recording
from wirelessfl.errors import InfeasibleError, OutputError, ScenarioError
from wirelessfl.scenario import Scenario

CASES: dict[str, dict[str, Any]] = {
    "jammed, imperfect csi": {"uplink__jammer": {"epsilon": 1.0}, "channel__csi": {"error_std": 0.2}},
    "rotating jammer": {"uplink__jammer": {"epsilon": 1.0, "role": "rotating"}},
    "some absent, late and crashed": {
        "faults": {"availability": {"model": "bernoulli", "p": 0.7}, "crash_rate_per_s": 20.0},
        "timing__deadline_s": 0.016,
    },
    "correlated": {"channel__correlation": {"model": "gauss_markov", "doppler_hz": 1.0}},
    "digital in time": {
        "uplink": {"kind": "digital", "snr_db": 20.0, "access": "tdma"},
        "timing__bandwidth_hz": 1e9,
        "channel__correlation": {"model": "clarke", "doppler_hz": 30.0},
        "channel__csi": {"error_std": 0.2},
    },
    "digital": {"uplink": {"kind": "digital", "snr_db": 20.0}},
    "secure aggregation": {"uplink": {"kind": "secure_aggregation", "snr_db": 20.0, "clip": 1.0}},
    "some selected": {"clients": {"count": 6, "selection": {"scheme": "uniform", "count": 3}}},
}


def recorded_run(scenario: Scenario, folder: Path) -> Path:
    return wfl.simulate(scenario, folder, device="cpu", threads=1, pictures=False).trace


@pytest.mark.parametrize("name", rest_slow(CASES, fast=4))
def test_the_same_policy_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    recording = open_recording(recorded_run(small(**CASES[name]), tmp_path / "x"))
    coverage = run_counterfactual(recording, recording.scenario, tmp_path / "again")
    assert coverage.asked > 0 and coverage.drawn == 0
    comparison = compare_traces(recording.path, tmp_path / "again" / "trace.h5", 1, 3)
    assert comparison.difference is None


def test_messages_whose_channels_the_trace_does_not_hold_are_refused(tmp_path: Path) -> None:
    fades, fast = {"model": "clarke", "doppler_hz": 30.0}, {"timing__bandwidth_hz": 1e9}
    in_time = {"channel__correlation": fades, **CASES["secure aggregation"], **fast}
    recording = open_recording(recorded_run(small(rounds=1, **in_time), tmp_path / "x"))
    with pytest.raises(InfeasibleError, match="holds the channel of each client's last message"):
        changed_scenario(recording, ["uplink.stage_timeout_s=3"])


def test_uploads_over_several_pieces_are_refused(tmp_path: Path) -> None:
    keys = {**CASES["digital in time"], "channel__csi": {"refresh": "piece"}, "timing__bandwidth_hz": 1e6}
    recording = open_recording(recorded_run(small(rounds=1, **keys), tmp_path / "x"))
    with pytest.raises(InfeasibleError, match="of an upload, for its beginning only"):
        run_counterfactual(recording, recording.scenario, tmp_path / "again")


@pytest.fixture
def doctored(tmp_path: Path) -> Path:
    """A trace whose nature no seed would deal."""
    source = recorded_run(small(uplink__jammer={"epsilon": 1.0}), tmp_path / "x")
    path = Path(shutil.copy(source, tmp_path / "doctored.h5"))
    with h5py.File(path, "r+") as file:
        shape = file["channel_re"].shape
        file["channel_re"][...] = np.arange(1, 19).reshape(shape)
        file["channel_im"][...] = 0.5
        file["csi_re"][...] = np.arange(1, 19).reshape(shape) + 0.25
        file["csi_im"][...] = -0.5
        file["path_gain"][...] = 2.0
        file["compute_time"][...] = np.arange(18).reshape(shape)[::-1] + 1.0
        status = file["status"][()]
        status[1, 2] = 2
        file["status"][...] = status
        file["jammer_channel_re"][...] = [3.0, 4.0, 5.0]
        file["jammer_channel_im"][...] = -1.0
        file["jammer_csi_re"][...] = [2.0, 4.5, 5.5]
        file["jammer_csi_im"][...] = -0.5
        file["jammer_path_gain"][...] = 2.5
    return path


def test_what_nature_dealt_comes_from_the_recording(doctored: Path, tmp_path: Path) -> None:
    recording = open_recording(doctored)
    resolved = changed_scenario(recording, ["uplink.power_control.policy=full_power"])
    coverage = run_counterfactual(recording, resolved.scenario, tmp_path / "changed")
    assert coverage.drawn == 0
    with wfl.open_trace(tmp_path / "changed" / "trace.h5") as changed:
        absent = changed["status"].values == 2
        assert np.argwhere(absent).tolist() == [[1, 2]]
        for name in ("channel_re", "channel_im", "csi_re", "csi_im", "path_gain", "compute_time"):
            expected = np.where(absent, np.nan, recording.dataset[name].values)
            np.testing.assert_array_equal(changed[name].values, expected, err_msg=name)
        for name in ("jammer_channel_re", "jammer_channel_im", "jammer_csi_re", "jammer_csi_im", "jammer_path_gain"):
            np.testing.assert_array_equal(changed[name].values, recording.dataset[name].values)
        # The slot opens when the slowest of those present has trained.
        slowest = np.nanmax(changed["compute_time"].values, axis=1)
        took = np.diff(changed["sim_time"].values, prepend=0.0) - changed["airtime"].values
        np.testing.assert_allclose(took - slowest, (took - slowest)[0], atol=1e-9)


@pytest.mark.slow
def test_what_was_not_recorded_is_drawn_by_the_same_laws(tmp_path: Path) -> None:
    hurried = small(timing__deadline_s=0.016)
    recording = open_recording(recorded_run(hurried, tmp_path / "x"))
    heard = int(recording.dataset["participants"].sum())
    assert heard < 18
    resolved = changed_scenario(recording, ["timing.deadline_s=null"])
    coverage = run_counterfactual(recording, resolved.scenario, tmp_path / "patient")
    assert (coverage.asked, coverage.drawn) == (18, 18 - heard)
    plain = recorded_run(resolved.scenario, tmp_path / "plain")
    assert compare_traces(plain, tmp_path / "patient" / "trace.h5", 1, 3).difference is None


@pytest.mark.slow
def test_more_work_takes_longer_with_the_recorded_luck(tmp_path: Path) -> None:
    recording = open_recording(recorded_run(small(), tmp_path / "x"))
    resolved = changed_scenario(recording, ["training.epochs=3"])
    run_counterfactual(recording, resolved.scenario, tmp_path / "longer")
    with wfl.open_trace(tmp_path / "longer" / "trace.h5") as longer:
        np.testing.assert_allclose(longer["compute_time"], 3 * recording.dataset["compute_time"], rtol=1e-12)


@pytest.fixture(scope="module")
def one_round(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of a run of one round; look, do not touch."""
    return recorded_run(small(rounds=1), tmp_path_factory.mktemp("one") / "x")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("seed=3", "seed: 11 -> 3"),
        ("channel.csi.error_std=0.1", "channel.csi.error_std"),
        ("channel.fading.model=static", "channel.fading.model"),
        ("clients.count=5", "clients.count"),
        ("data.limit=100", "data.limit"),
        ("faults.availability.p=0.5", "faults.availability.p"),
        ("timing.straggler_scale=1", "timing.straggler_scale"),
        ("uplink.snr_db=1", "nothing that differs"),
        ("uplink.snr_bd=1", "did you mean snr_db"),
        ("uplink.tx_power_dbm=10", "another reference"),
        ("compute.chunk=2", "compute.chunk"),
    ],
)
def test_nature_stays_as_it_was(change: str, words: str, one_round: Path) -> None:
    recording = open_recording(one_round)
    with pytest.raises(ScenarioError, match=words):
        changed_scenario(recording, [change])


def test_a_run_with_several_cells_is_not_recorded_well_enough(tmp_path: Path) -> None:
    cells = small(rounds=1, topology={"kind": "multi_cell"}, channel__pathloss={"model": "log_distance"})
    recording = open_recording(recorded_run(cells, tmp_path / "x"))
    with pytest.raises(InfeasibleError, match=r"topology\.kind: multi_cell"):
        changed_scenario(recording, ["uplink.power_control.policy=mmse"])


def test_the_axis_on_which_channels_are_missing_is_named(one_round: Path, tmp_path: Path) -> None:
    recording = open_recording(one_round)
    resolved = changed_scenario(recording, ["uplink.receiver={antennas: 2}"])
    with pytest.raises(InfeasibleError, match=r"have 2 antennas \(recorded: 1\) under"):
        run_counterfactual(recording, resolved.scenario, tmp_path / "changed")


def test_more_rounds_than_are_recorded_are_refused(tmp_path: Path) -> None:
    """They were cut without a word."""
    recording = open_recording(recorded_run(small(rounds=2), tmp_path / "x"))
    with pytest.raises(ScenarioError, match=r"--set: rounds: found 9; allowed: 1 to 2"):
        changed_scenario(recording, ["rounds=9"])
    with pytest.raises(ScenarioError, match=r"--set: rounds: found 1; allowed: 2 to 2"):
        changed_scenario(replace(recording, first=2), ["rounds=1"])
    assert changed_scenario(recording, ["rounds=1"]).scenario.rounds == 1


def test_the_recorded_run_is_not_overwritten(tmp_path: Path) -> None:
    recording = open_recording(recorded_run(small(rounds=1), tmp_path / "x"))
    resolved = changed_scenario(recording, ["uplink.snr_db=20"])
    with pytest.raises(OutputError, match="found a run there that is not a replay"):
        run_counterfactual(recording, resolved.scenario, tmp_path / "x")
    assert open_recording(recording.path).summary() is not None


@pytest.mark.slow
def test_paired_rows_are_differences_round_by_round(tmp_path: Path) -> None:
    recording = open_recording(recorded_run(small(uplink__jammer={"epsilon": 1.0}), tmp_path / "x"))
    resolved = changed_scenario(recording, ["uplink.jammer=null"])
    run_counterfactual(recording, resolved.scenario, tmp_path / "quiet")
    changed = open_recording(tmp_path / "quiet" / "trace.h5")
    rows = {row.name: row for row in paired_rows(recording.dataset, changed.dataset)}
    before, after = recording.dataset["test_loss"].values, changed.dataset["test_loss"].values
    assert rows["test_loss"].difference == after[-1] - before[-1]
    assert rows["test_loss"].mean_round_difference == pytest.approx((after - before).mean())
    assert rows["jammer_energy"].changed == 0 and rows["jammer_energy"].recorded > 0
    energy = np.nansum(recording.dataset["tx_energy"].values)
    assert rows["tx_energy"].recorded == pytest.approx(energy)
    assert "energy" not in rows  # watts are unknown here
    draw_paired(recording.dataset, changed.dataset, tmp_path / "paired.png", "no jammer, $\\ugly")
    assert (tmp_path / "paired.png").read_bytes().startswith(b"\x89PNG")


def test_accuracies_are_compared_in_the_last_round_that_both_evaluated(tmp_path: Path) -> None:
    """The second run ends there, so that its last model is evaluated too."""
    before = open_recording(recorded_run(small(uplink={"kind": "ideal"}), tmp_path / "x")).dataset.load()
    after = before.copy(deep=True)
    before["test_accuracy"][:] = [np.nan, 0.25, np.nan]
    after["test_accuracy"][:] = [np.nan, 0.5, 0.75]
    rows = {row.name: row for row in paired_rows(before, after)}
    found = rows["test_accuracy"]
    assert (found.recorded, found.changed, found.difference) == (0.25, 0.5, 0.25)
    after["test_accuracy"][:] = [0.5, np.nan, 0.75]  # no round in common: each by itself
    found = {row.name: row for row in paired_rows(before, after)}["test_accuracy"]
    assert (found.recorded, found.changed) == (0.25, 0.75)


def test_two_infinite_epsilons_have_no_difference(tmp_path: Path) -> None:
    recording = open_recording(recorded_run(small(uplink={"kind": "ideal"}), tmp_path / "x"))
    rows = {row.name: row for row in paired_rows(recording.dataset, recording.dataset)}
    assert np.isinf(rows["epsilon_accounted"].recorded)
    assert np.isnan(rows["epsilon_accounted"].difference)
    assert rows["test_accuracy"].difference == 0
