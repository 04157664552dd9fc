"""Files or stand-in: settled when the scenario is read, and by the rule by which the files are then found."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from wirelessfl.errors import DataError, ScenarioError
from wirelessfl.inputs import ROOT_VARIABLE
from wirelessfl.learning.data import adult, load_adult
from wirelessfl.scenario import Scenario, dump_scenario, parse_scenario, resolve_scenario
from wirelessfl.scenario.data import ADULT_FILES, ADULT_FOLDERS
from wirelessfl.scenario.published_data import Adult

AUTO = "name: census\ndata: {dataset: {name: adult, source: auto}, partition: {scheme: iid}}\n"
ROW = "20, Private, 7, Masters, 14, Divorced, Sales, Wife, White, Female, 0, 0, 30, Cuba, <=50K\n"


def source_of(scenario: Scenario) -> str:
    assert isinstance(scenario.data.dataset, Adult)
    return scenario.data.dataset.source


def test_it_looks_where_the_files_are_read() -> None:
    assert (ADULT_FOLDERS, ADULT_FILES) == (adult.FOLDERS, adult.FILES)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("folder", adult.FOLDERS)
def test_files_where_they_are_found(folder: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    (tmp_path / folder).mkdir(exist_ok=True)
    for name in adult.FILES:
        place = tmp_path / folder / name
        if packed:
            place.with_name(f"{name}.gz").write_bytes(gzip.compress(ROW.encode()))
        else:
            place.write_text(ROW)
    assert source_of(parse_scenario(AUTO)) == "files"


def test_rows_where_one_file_is_missing_or_no_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    assert source_of(parse_scenario(AUTO)) == "synthetic"
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    (tmp_path / "adult.data").write_text(ROW)
    assert source_of(parse_scenario(AUTO)) == "synthetic"
    with pytest.raises(DataError):
        load_adult()
    path = tmp_path / "census.yaml"
    path.write_text(AUTO)
    (note,) = resolve_scenario(path).notes
    assert note.startswith("data.dataset.source: synthetic rows") and ROOT_VARIABLE in note


def test_a_root_that_the_scenario_names_is_a_wish_for_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    assert source_of(parse_scenario(AUTO, overrides={"data.dataset.root": str(tmp_path)})) == "files"


def test_what_was_settled_stays_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run on rows is repeated on rows, wherever the files have turned up since; and one on files on files."""
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    text = dump_scenario(parse_scenario(AUTO))
    for name in adult.FILES:
        (tmp_path / name).write_text(ROW)
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    assert source_of(parse_scenario(text)) == "synthetic"
    again = dump_scenario(parse_scenario(AUTO))
    monkeypatch.delenv(ROOT_VARIABLE)
    assert source_of(parse_scenario(again)) == "files"


def test_unsettled_it_is_refused() -> None:
    with pytest.raises(ValueError, match="load_scenario replaces auto"):
        Scenario.model_validate({"name": "x", "data": {"dataset": {"name": "adult", "source": "auto"}}})


@pytest.mark.parametrize("data", ["3", "[]", "{dataset: 3}", "{dataset: [adult]}", "{dataset: {name: 3, source: 4}}"])
def test_nonsense_is_left_to_the_checks(data: str) -> None:
    with pytest.raises(ScenarioError):
        parse_scenario(f"name: x\ndata: {data}\n")


def test_other_sets_have_no_source() -> None:
    with pytest.raises(ScenarioError, match="unknown key"):
        parse_scenario("name: x\ndata: {dataset: {name: digits, source: auto}}\n")
