"""``wirelessfl papers`` as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from publications import catalogue
from publications.page import write_page
from tests.publications.example import EXAMPLE, TABLES
from wirelessfl import plugins
from wirelessfl.cli import main


def papers(*words: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as caught:
        main.main(["papers", *words])
    code = caught.value.code
    assert isinstance(code, int)
    return code


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers() == 0
    assert papers("list") == 0
    assert capsys.readouterr().out.count("ota-cross-layer-dp") == 2


def test_an_unknown_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(plugins.blame, "_loaded", {})  # other tests lend code of this checkout from outside
    for command in ("run", "table"):
        assert papers(command, "ota-cross-layer") == 2
        error = capsys.readouterr().err
        assert error.startswith("Error: ota-cross-layer: found no such paper; allowed: ota-cross-layer-dp")
        assert error.rstrip().endswith("did you mean ota-cross-layer-dp?")
    assert papers("run", "ota-cross-layer-dp", "--size", "huge") == 2


def test_missing_data_is_said_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WIRELESSFL_DATA", str(tmp_path))
    assert papers("run", "ota-cross-layer-dp", "--out", str(tmp_path)) == 2
    assert "emnist_byclass" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_table_is_printed_from_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(catalogue.PAPERS, "example", EXAMPLE)
    assert papers("table", "example", "--out", str(tmp_path)) == 2
    assert "found no results of example" in capsys.readouterr().err
    folder = write_page(EXAMPLE, TABLES, tmp_path)
    (folder / "claims.md").unlink()
    assert papers("table", "example", "--out", str(tmp_path)) == 0
    out = capsys.readouterr().out
    assert "70.0 ± 24.8 %" in " ".join(out.split())
    assert out.count("contradicted") == 2 and out.count("undecided") == 1
    assert (folder / "claims.md").exists()
