"""Fashion-MNIST and CIFAR-10 at the settings that won on MNIST."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from publications.catalogue import find_paper, study_file
from publications.effects import MissingRuns
from publications.levels import DATASET
from publications.moo_other_data import OTHER_DATA, other_data_rows
from publications.results import read_results
from publications.tables import RunRow, StudyTable, Tables, value_of
from publications.tuning_runs import tuned_point
from wirelessfl.scenario import Scenario
from wirelessfl.study import load_study

PAPER = find_paper("moo-adaptive-clipping")
ROOT = Path(__file__).resolve().parents[2]
ACCURACY = {"DP-SGD": 0.5, "DP-SGD-WAV": 0.8, "MOO": 0.6, "MOO, private": 0.7}


def table(study: str, *datas: str, without: str = "", lost: str = "") -> StudyTable:
    """Three seeds of four methods on some data sets; MOO's lead differs from one to the next."""
    runs = []
    for data in datas:
        for name, accuracy in ACCURACY.items():
            tuned = tuned_point(PAPER.name, "clipping", "medium", name)
            point = {key: value_of(value) for key, value in tuned.items()}
            point |= {} if data == "mnist" else {DATASET: data}
            for seed in (1, 2, 3):
                numbers = {
                    "test_accuracy": accuracy + 0.01 * seed,
                    "epsilon_accounted": math.inf if name in ("DP-SGD-WAV", "MOO") else 3.61,
                    "test_loss": math.nan if name == lost else 1.0,
                }
                runs += [] if name == without else [RunRow(point, seed, 25, numbers)]
    return StudyTable(study, tuple(runs[0].point), tuple(runs))


def rows_of(*tables: StudyTable) -> dict[tuple[str, str], dict[str, str]]:
    found = other_data_rows(Tables({"size": "medium"}, {one.name: one for one in tables}))
    return {(row["data"], row["method"]): row for row in found}


def test_every_method_stands_beside_its_number_of_table_iii() -> None:
    found = rows_of(table("tuned-clipping", "mnist"), *(table(study, data) for data, study in OTHER_DATA.items()))
    assert len(found) == 12
    assert [data for data, method in found if method == "MOO"] == ["MNIST", "Fashion-MNIST", "CIFAR-10"]
    # ε = 3.61 of Table III
    stated = [row["paper"] for (_, method), row in found.items() if method == "MOO"]
    assert stated == ["90.21 %", "83.27 %", "62.92 %"]
    assert found["Fashion-MNIST", "DP-SGD-WAV"]["paper"] == "82.16 %"
    assert found["CIFAR-10", "MOO, private"]["paper"] == "–"
    assert found["CIFAR-10", "MOO, private"]["less DP-SGD"].startswith("+20")
    assert found["CIFAR-10", "MOO, private"]["ε accounted"] == "3.61"
    assert found["Fashion-MNIST", "MOO"]["ε accounted"] == "∞"
    assert found["Fashion-MNIST", "DP-SGD"]["less DP-SGD"] == ""


def test_what_has_not_run_or_diverged() -> None:
    found = rows_of(table(OTHER_DATA["cifar10"], "cifar10", without="DP-SGD", lost="MOO"))
    assert {data for data, _ in found} == {"CIFAR-10"}
    assert found["CIFAR-10", "DP-SGD-WAV"]["less DP-SGD"] == ""
    assert found["CIFAR-10", "MOO"]["here"].endswith("(3 runs diverged)")
    with pytest.raises(MissingRuns):
        other_data_rows(Tables({"size": "medium"}, {}))


def test_its_settings_are_those_that_won_on_mnist() -> None:
    """Only the data differ, and with CIFAR-10 the network."""

    def settings(study: str) -> list[Scenario]:
        return [run.scenario for run in load_study(study_file(PAPER, "medium", PAPER.study(study))).runs]

    won = settings("tuned-clipping")
    for dataset, study in OTHER_DATA.items():
        others = settings(study)
        seeds = len(others) // 6
        assert {one.data.dataset.name for one in others} == {dataset}
        network = "cnn_cifar10" if dataset == "cifar10" else "cnn_mnist"
        for at, other in enumerate(others):
            first = won[at // seeds * 3 + at % seeds]
            ours, theirs = (one.model_dump(exclude={"name", "data", "model"}) for one in (other, first))
            assert ours == theirs
            assert other.data.model_dump(exclude={"dataset"}) == first.data.model_dump(exclude={"dataset"})
            assert other.model.model_dump() == {**first.model.model_dump(), "name": network}


def test_what_the_text_says_of_it() -> None:
    tables, text = read_results(PAPER, ROOT / "results")["medium"], (ROOT / "docs" / "papers" / f"{PAPER.name}.md")
    rows = [row for row in other_data_rows(tables) if row["method"] == "DP-SGD"]
    assert [row["data"] for row in rows] == ["MNIST", "Fashion-MNIST"]
    assert {row["method"] for row in other_data_rows(tables) if row["data"] != "MNIST"} == {"DP-SGD"}
    found = [(row["here"].split()[0], row["paper"]) for row in rows]
    assert all(abs(float(ours) - float(paper.split()[0])) <= 0.1 for ours, paper in found)
    told = " and ".join(f"{ours} % ({paper})" for ours, paper in found)
    assert f"on both data sets, at {told}." in " ".join(text.read_text(encoding="utf-8").split())
    seconds = [run.provenance.seconds for run in tables.study(OTHER_DATA).runs]
    assert min(seconds) > 180 and max(seconds) < 430
