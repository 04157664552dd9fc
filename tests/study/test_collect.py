"""The table of a study."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import wirelessfl as wfl
from tests.study.studies import InlineWorkers, design
from wirelessfl.study import Study, collect, run_study
from wirelessfl.study.collect import write_table
from wirelessfl.study.file import METRICS


def test_one_row_a_run_and_round(finished: Study) -> None:
    table = finished.to_dataframe()
    assert list(table) == ["run", "uplink.snr_db", "clients.count", "seed", "round", *METRICS, "tx_energy"]
    assert len(table) == 8 * 3
    assert not table.duplicated(["run", "round"]).any()
    assert not table.duplicated(["uplink.snr_db", "clients.count", "seed", "round"]).any()
    assert table["round"].tolist() == [1, 2, 3] * 8
    assert table["run"].unique().tolist() == [record.run for record in finished.records]


def test_the_values_are_those_of_the_traces(finished: Study) -> None:
    table = finished.to_dataframe()
    for record in finished.records:
        rows = table[table["run"] == record.run]
        assert rows[["uplink.snr_db", "clients.count"]].drop_duplicates().to_numpy().tolist() == [
            list(finished.values(record.levels).values())
        ]
        assert rows["seed"].unique().tolist() == [record.seed]
        with wfl.open_trace(finished.folder.trace(record.run)) as trace:
            for name in METRICS:
                assert np.array_equal(rows[name], trace[name].values, equal_nan=True), name
            np.testing.assert_allclose(rows["tx_energy"], trace["tx_energy"].sum("slot"))


@pytest.mark.slow
def test_slots_of_several_pieces_have_one_row_a_round(tmp_path: Path, inline: InlineWorkers) -> None:
    """What has a value for each piece is that of the slot's beginning, beside runs whose slots are one piece."""
    moving = {
        "base.channel.correlation": {"model": "clarke", "doppler_hz": 200.0},
        "base.uplink.jammer": {"epsilon": 1.0},
    }
    two = design(tmp_path, moving, grid={"channel.correlation.doppler_hz": [10.0, 200.0]}, seeds=1)
    study = run_study(two, tmp_path / "out")
    table = study.to_dataframe()
    assert table["round"].tolist() == [1, 2, 3] * 2
    for record, pieces in zip(study.records, (1, 6), strict=True):
        rows = table[table["run"] == record.run]
        with wfl.open_trace(study.folder.trace(record.run)) as trace:
            assert trace.sizes.get("block", 1) == pieces
            jammed = trace["jammer_channel_re"].values.reshape(3, pieces)[:, 0]
        np.testing.assert_array_equal(rows["jammer_channel_re"], jammed)


@pytest.mark.slow
def test_many_rows_are_written_in_parts(finished: Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = finished.to_dataframe()
    monkeypatch.setattr(collect, "_ROWS_AT_ONCE", 5)
    elsewhere = tmp_path / "out"
    elsewhere.mkdir()
    (elsewhere / "runs").symlink_to(finished.folder.path.resolve() / "runs")
    parts = replace(finished, path=elsewhere)
    write_table(parts)
    assert pq.ParquetFile(parts.folder.table).num_row_groups == 4
    assert parts.to_dataframe().equals(whole)


@pytest.mark.slow
def test_what_an_earlier_version_did_not_record_is_nan(finished: Study, tmp_path: Path) -> None:
    shutil.copytree(finished.folder.path / "runs", tmp_path / "runs")
    first = finished.records[0].run
    with h5py.File(tmp_path / "runs" / first / "trace.h5", "r+") as trace:
        del trace["interference_std"]
    older = replace(finished, path=tmp_path)
    write_table(older)
    rows = older.to_dataframe().query("run == @first")
    assert rows["interference_std"].isna().all() and rows["test_accuracy"].notna().all()


def test_columns_have_the_types_of_their_values(tmp_path: Path, inline: InlineWorkers) -> None:
    keys = {
        "timing.deadline_s": [None, 0.5],
        "uplink": [{"kind": "ideal"}, {"kind": "over_the_air", "snr_db": 3}],
        "trace.events": [True, False],
        "privacy.adversary": ["server", "observer"],
        "training.epochs": [1, 2],
        "privacy.delta": [1e-5, 1],
    }
    plan = design(tmp_path, {"base.rounds": 1}, zip={**keys, "privacy.delta": [1e-5, 1e-4]})
    table = run_study(plan, tmp_path / "out").to_dataframe()
    assert table["timing.deadline_s"].dtype == np.float64 and np.isnan(table["timing.deadline_s"][0])
    assert table["uplink"].tolist() == ["ideal", "over_the_air"]
    assert table["trace.events"].dtype == bool
    assert table["privacy.adversary"].tolist() == ["server", "observer"]
    assert table["training.epochs"].dtype == np.int64
    assert table["privacy.delta"].tolist() == [1e-5, 1e-4]
    assert isinstance(table, pd.DataFrame)


def test_a_notebook_sees_means_with_intervals(finished: Study) -> None:
    page = finished._repr_html_()
    assert "<caption>small-study: 8 of 8 runs</caption>" in page
    assert "<td>uplink.snr_db=0, clients.count=3</td><td>2</td>" in page
    mean = finished.to_dataframe().query("`uplink.snr_db` == 0 and `clients.count` == 3 and round == 3")
    assert f"<td>{100 * mean['test_accuracy'].mean():.1f} ± " in page
    assert "<th>ε accounted</th>" in page
    assert f"<td>{mean['epsilon_accounted'].mean():.3g}</td>" in page
    runs = finished.to_dataframe().query("`uplink.snr_db` == 0 and `clients.count` == 3").groupby("seed")
    heard, airtime = runs["participants"].mean().mean(), runs["airtime"].sum().mean()
    assert "<th>heard</th><th>airtime (s)</th>" in page
    assert f"<td>{heard:.3g}</td><td>{airtime:.3g}</td></tr>" in page


def test_final_numbers(finished: Study) -> None:
    last = finished.to_dataframe().query("round == 3").groupby(["uplink.snr_db", "clients.count"])
    for name in ("test_accuracy", "epsilon_accounted", "sim_time"):
        expected = last[name].mean().to_numpy()
        found = [float(band.mean[0]) for band in finished.final(name).values()]
        assert found == pytest.approx(expected.tolist())
