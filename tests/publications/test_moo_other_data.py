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
    tables, page = read_results(PAPER, ROOT / "results")["medium"], ROOT / "docs" / "papers" / f"{PAPER.name}.md"
    text = " ".join(page.read_text(encoding="utf-8").split())
    rows = {(row["data"], row["method"]): row for row in other_data_rows(tables)}
    assert len(rows) == 18 and {len(tables.study(one).runs) for one in OTHER_DATA.values()} == {18}
    here = {at: float(row["here"].split()[0]) for at, row in rows.items()}
    paper = {at: float(row["paper"].split()[0]) for at, row in rows.items() if row["paper"] != "–"}
    order = {
        data: sorted((at[1] for at in here if at[0] == data), key=lambda name: -here[data, name])
        for data in ("MNIST", "Fashion-MNIST")
    }
    assert set(order["MNIST"][-2:]) == set(order["Fashion-MNIST"][-2:]) == {"DP-SGD", "MOO"}
    assert order["MNIST"][:4] == order["Fashion-MNIST"][:4]
    words = {
        "DP-SGD-WAV": "wavelets {} points,",
        "tempered sigmoid": "tempered sigmoids {},",
        "MOO, private": "MOO with private feedback {},",
        "dynamic DP": "dynamic DP {},",
        "MOO": "MOO as published {}. On",
    }
    for name, told in words.items():
        ours, base = (
            {**tuned_point(PAPER.name, "clipping", "medium", one), DATASET: "fashion_mnist"} for one in (name, "DP-SGD")
        )
        lead = tables.difference((OTHER_DATA["fashion_mnist"], ours), (OTHER_DATA["fashion_mnist"], base))
        digits = 1 if lead.half_width > 0.01 else 2
        assert told.format(f"{100 * lead.mean:+.2f} ± {100 * lead.half_width:.{digits}f}") in text
        assert (abs(lead.mean) < lead.half_width) is (name == "MOO")
    cifar = {name: here["CIFAR-10", name] for data, name in here if data == "CIFAR-10"}
    low, high = min(cifar, key=lambda one: cifar[one]), max(cifar, key=lambda one: cifar[one])
    assert (low, high) == ("DP-SGD", "DP-SGD-WAV")
    assert f"from {cifar[low]} % (DP-SGD) to {cifar[high]} % (wavelets)" in text
    leads = {name: rows["CIFAR-10", name]["less DP-SGD"] for name in cifar if name != "DP-SGD"}
    ahead = {name: lead.removesuffix(" points") for name, lead in leads.items()}
    assert (
        f"lead DP-SGD by {ahead['DP-SGD-WAV'][1:]} points and tempered sigmoids by {ahead['tempered sigmoid'][1:]};"
        in text
    )
    assert f"dynamic DP ({ahead['dynamic DP']}), nor of MOO as published ({ahead['MOO']})" in text
    assert f"or with private feedback ({ahead['MOO, private']})" in text
    signs = {name: float(lead.split(" ± ")[0]) - float(lead.split(" ± ")[1]) > 0 for name, lead in ahead.items()}
    assert {name for name, sure in signs.items() if sure} == {"DP-SGD-WAV", "tempered sigmoid"}
    stated = [value for (data, _), value in paper.items() if data == "CIFAR-10"]
    assert f"the paper has from {min(stated):.2f} to {max(stated):.2f} %" in text
    both = [("MNIST", "DP-SGD"), ("Fashion-MNIST", "DP-SGD")]
    assert all(abs(here[at] - paper[at]) <= 0.1 for at in both)
    told = " and ".join(f"{here[at]} % ({paper[at]:.2f} %)" for at in both)
    assert f"at {told}, is a coincidence" in text
    below = {at: paper[at] - here[at] for at in paper if at[0] != "CIFAR-10" and at not in both}
    assert below.pop(("MNIST", "DP-SGD-WAV")) < 0
    assert f"end from {min(below.values()):.1f} to {max(below.values()):.1f} points below it there" in text
