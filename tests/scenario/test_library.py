"""The shelves of shipped files, in a checkout and inside an installed wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirelessfl.errors import OutputError, ScenarioError
from wirelessfl.scenario import copy_shipped, library, list_shipped, load_scenario, locate

REQUIRED = {"quickstart", "fedavg-ideal", "ota-fedprox", "ota-upcycled-jammer"}


def test_the_shelves() -> None:
    assert {shipped.name for shipped in list_shipped()} >= REQUIRED
    assert {shipped.name for shipped in list_shipped("channels")} >= {"ideal", "rayleigh-normalised"}


@pytest.mark.parametrize("shipped", [*list_shipped(), *list_shipped("channels")], ids=lambda shipped: shipped.name)
def test_every_file_says_what_it_is_and_what_to_look_at(shipped: library.Shipped) -> None:
    assert 20 <= len(shipped.description) <= 120
    comments = [line for line in shipped.path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    assert len(comments) >= 2
    if "scenarios" in shipped.path.parts:
        assert any("What to look at" in line for line in comments)


def test_inside_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "wirelessfl"
    shelf = package / "shipped" / "scenarios" / "more"
    shelf.mkdir(parents=True)
    (shelf / "one.yaml").write_text("name: one\n")
    monkeypatch.setattr(library, "__file__", str(package / "scenario" / "library.py"))
    assert list_shipped() == [library.Shipped("more/one", shelf / "one.yaml", "")]
    assert load_scenario("more/one").name == "one"


def test_copy(tmp_path: Path) -> None:
    target = copy_shipped("quickstart", tmp_path)
    assert target == tmp_path / "quickstart.yaml"
    assert target.read_bytes() == locate("quickstart").read_bytes()
    assert load_scenario(target) == load_scenario("quickstart")
    target.write_text("mine")
    with pytest.raises(OutputError, match=r"quickstart\.yaml: exists already"):
        copy_shipped("quickstart", tmp_path)
    assert target.read_text() == "mine"


def test_copy_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written: No such file or directory"):
        copy_shipped("quickstart", tmp_path / "none")
    with pytest.raises(ScenarioError, match="did you mean quickstart"):
        copy_shipped("quickstat", tmp_path)
    with pytest.raises(ScenarioError, match="found no shipped scenario"):
        copy_shipped("mine.yaml", tmp_path)
    with pytest.raises(ScenarioError, match="found no shipped scenario"):
        copy_shipped("../channels/ideal.yaml", tmp_path)
