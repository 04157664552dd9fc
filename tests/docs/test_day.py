"""The researcher's day: its parts, how they are played, and the table that tells how long they took."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from benchmarks.day import GOALS, PAGE, ROOT, Part, main, parts_of, play, read_parts, write_parts
from tests.docs.hooks import load_hook
from tests.docs.pages import Block

TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
HERE = Path(sys.executable).parent


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    return load_hook("day")


def test_the_page_has_every_part_with_files_or_commands() -> None:
    found = dict(parts_of(TEXT))
    assert list(found) == list(GOALS)
    assert all(found.values())
    assert sum(GOALS.values()) == 32


def test_a_part_is_played_with_its_files_and_a_failure_is_told(tmp_path: Path) -> None:
    blocks = [
        Block("text", "word.txt", "hello\n", 1),
        Block("console", None, "$ cat word.txt > copy.txt\nhello\n", 2),
        Block("python", None, "open('more.txt', 'w').close()\n", 3),
    ]
    assert 0 < play(blocks, tmp_path, HERE) < 30
    assert (tmp_path / "copy.txt").read_text() == "hello\n" and (tmp_path / "more.txt").exists()
    with pytest.raises(click.ClickException, match="exit code 1 of: cat missing"):
        play([Block("console", None, "$ cat missing\n", 1)], tmp_path, HERE)


def test_what_was_measured_is_kept_when_minutes_are_entered(tmp_path: Path) -> None:
    out = tmp_path / "day.csv"
    write_parts([Part("A study", 12.5, math.nan, "2026-01-01", "abc")], out)
    entered = CliRunner().invoke(main, ["--out", str(out), "--walked", "A study=4.5"])
    assert entered.exit_code == 0, entered.output
    assert read_parts(out) == [Part("A study", 12.5, 4.5, "2026-01-01", "abc")]
    refused = CliRunner().invoke(main, ["--out", str(out), "--walked", "Lunch=60"])
    assert refused.exit_code == 2 and "allowed: Your own scenario" in refused.output


def test_the_table_has_the_numbers_of_the_file_and_a_dash_for_the_rest(hook: ModuleType) -> None:
    assert "python -m benchmarks.day" in "\n".join(hook.table([]))
    parts = [Part("Install", 68.0, math.nan, "2026-01-01", "abc")]
    parts += [Part(title, 10.0, 1.5 if title == "A study" else math.nan, "2026-01-01", "abc") for title in GOALS]
    lines = list(hook.table(parts))
    assert "| A study | 5 | 1.5 | 10 |" in lines and "| Your own policy | 10 | – | 10 |" in lines
    assert "| **Together, without the installation** | 32 | – | 70 |" in lines
    assert not any("two seeds" in line for line in lines)
    assert any("*By hand*" in line for line in lines)
    older = hook.table([Part(title, 1.0, math.nan, "2026-01-01", "bf8c942") for title in GOALS])
    assert "The studies had two seeds then." in list(older)[-1]
    assert hook.on_page_markdown(TEXT, None) != TEXT


def test_a_column_without_minutes_is_left_out(hook: ModuleType) -> None:
    lines = list(hook.table([Part(title, 10.0, math.nan, "2026-01-01", "abc") for title in GOALS]))
    assert lines[0] == "| part | goal (min) | machine (s) |" and "| A study | 5 | 10 |" in lines
    assert "| **Together, without the installation** | 32 | 70 |" in lines
    assert not any("hand" in line or "–" in line for line in lines)
