"""``wirelessfl report``: what it prints and its exit codes."""

from __future__ import annotations

from pathlib import Path

import click
import h5py
import pytest
from click.testing import CliRunner

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.cli import main
from wirelessfl.cli.report import report
from wirelessfl.summary.axes import X_AXES


def test_a_page_over_a_run(tmp_path: Path) -> None:
    trace = wfl.simulate(small(rounds=1), tmp_path / "x", device="cpu", threads=1, pictures=False).trace
    page = tmp_path / "page.html"
    result = CliRunner().invoke(main, ["report", str(trace), "--out", str(page)])
    assert result.exit_code == 0, result.stderr
    assert str(page) in result.stdout
    assert "small, seed 11" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_is_opened_and_begins_with_the_axis_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def keep(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", keep)
    trace = wfl.simulate(small(rounds=1), tmp_path / "x", device="cpu", threads=1, pictures=False).trace
    page = tmp_path / "a page.html"
    result = CliRunner().invoke(main, ["report", str(trace), "--out", str(page), "--open", "--x", "sim_time"])
    assert result.exit_code == 0, result.stderr
    assert opened == [page.as_uri()]
    text = page.read_text(encoding="utf-8")
    assert '<option value="sim_time" selected>' in text and '"axis":"sim_time"' in text
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    result = CliRunner().invoke(main, ["report", str(trace), "--out", str(page), "--open"])
    assert result.exit_code == 0 and "no browser" in result.stderr


def test_the_axes_of_the_command_are_those_of_the_charts() -> None:
    (option,) = (each for each in report.params if each.name == "x")
    assert isinstance(option.type, click.Choice) and tuple(option.type.choices) == X_AXES


def test_refusals_are_one_message(tmp_path: Path) -> None:
    trace = wfl.simulate(small(rounds=1), tmp_path / "x", device="cpu", threads=1, pictures=False).trace
    for arguments, words in (
        ([str(trace), "--out", str(tmp_path / "nowhere" / "page.html")], "does not exist"),
        ([str(tmp_path / "nothing")], "not found"),
        ([], "PATH"),
    ):
        result = CliRunner().invoke(main, ["report", *arguments])
        assert result.exit_code == 2 and result.stdout == ""
        assert words in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize("value", [0.0, 1e-320])
def test_values_that_no_run_writes_are_damage(tmp_path: Path, value: float) -> None:
    # Zeroed blocks of the file: the channel powers h²/β of the page divide by zero, or overflow.
    trace = wfl.simulate(small(rounds=1), tmp_path / "x", device="cpu", threads=1, pictures=False).trace
    with h5py.File(trace, "r+") as file:
        file["path_gain"][...] = value
    result = CliRunner().invoke(main, ["report", str(trace), "--out", str(tmp_path / "page.html")])
    assert result.exit_code == 2 and result.stdout == ""
    assert f"{trace}: damaged (FloatingPointError in analysis/report/channel.py" in " ".join(result.stderr.split())
