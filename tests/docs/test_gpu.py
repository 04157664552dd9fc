"""The section on GPUs tells what ``gpu.csv`` holds, and says so where there is nothing."""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from markdown import Markdown  # type: ignore[import-untyped]

from benchmarks.gpu.parts import KEYS
from benchmarks.gpu.table import Row, write_rows
from benchmarks.gpu.tasks import RESNET_TF32, TRAINED
from benchmarks.gpu.training import SHELL_AND_TRACE, TWO_CORES
from tests.docs.hooks import load_hook

DOCS = Path(__file__).resolve().parents[2] / "docs"
MACHINE = Row("", "", "NVIDIA H200", "570.1", "2.11.0+cu130", "abc123")


@pytest.fixture(scope="module")
def gpu() -> ModuleType:
    return load_hook("gpu")


def row(part: str, workload: str, status: str = "ok", **numbers: float) -> Row:
    return replace(MACHINE, part=part, workload=workload, status=status, **numbers)  # type: ignore[arg-type]


ROWS = [
    row("tests", "pytest -m cuda", "ok: 30 passed, 0 failed, 0 skipped", seconds=12.0),
    row("workloads", "W1", seconds=0.01, rounds_per_s=20.0, share_of_peak=0.25),
    row("workloads", "W2", seconds=0.004, rounds_per_s=50.0, share_of_peak=0.496),
    row("workloads", TWO_CORES, seconds=0.42),
    row("workloads", SHELL_AND_TRACE, seconds=0.006),
    row("convolutions", RESNET_TF32.name, seconds=4.5, rounds_per_s=0.2),
    row("agreement", "W2, noise", "failed: p at least 0.0001", ks_p=1e-9),
]


@pytest.fixture
def lines(gpu: ModuleType, tmp_path: Path) -> list[dict[str, str]]:
    write_rows(ROWS, tmp_path / "gpu.csv")
    found: list[dict[str, str]] = gpu.read_lines(tmp_path / "gpu.csv")
    return found


def test_without_a_file_the_section_says_that_nothing_was_measured(
    gpu: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "RESULTS", tmp_path / "none.csv")
    page = gpu.on_page_markdown((DOCS / "explanation" / "speed.md").read_text(encoding="utf-8"))
    section = page.partition("## On a GPU")[2]
    assert "Nothing has been measured on a GPU yet." in section
    assert "<!--" not in section and "| ---" not in section


def test_every_row_of_the_file_is_on_the_page_and_nothing_else(gpu: ModuleType, lines: list[dict[str, str]]) -> None:
    tests, training, agreement = (part.splitlines() for part in gpu.fill("table", lines).split("\n\n"))
    assert tests == ["| tests | seconds | result |", "| --- | ---: | --- |", tests[2]]
    assert tests[2] == "| pytest -m cuda | 12 | 30 passed, 0 failed, 0 skipped |"
    assert training[0] == "| local training | seconds | rounds/s | of peak |"  # and no column without a number
    assert training[2] == "| W1 | 0.01 | 20 | 25\N{NO-BREAK SPACE}% |"
    assert agreement[2] == "| W2, noise | 1e-09 | failed: p at least 0.0001 |"
    assert sum(len(part) - 2 for part in (tests, training, agreement)) == len(ROWS)
    assert all(len({line.count("|") for line in part}) == 1 for part in (tests, training, agreement))


def test_targets_are_reached_or_missed(gpu: ModuleType, lines: list[dict[str, str]]) -> None:
    assert gpu.fill("targets", lines).splitlines()[2:] == [
        "| W1, of its roofline | 25\N{NO-BREAK SPACE}% | ≥ 50 % | missed |",
        "| W2, of its roofline | 49.6\N{NO-BREAK SPACE}% | ≥ 50 % | missed |",
        "| W2, times two CPU cores | 105 | ≥ 100 | reached |",
        "| resnet18_gn, TF32, 100 × 100 images | 4.5 s | < 4 s | missed |",
        "| shell and trace, of a whole round of W1 | 12\N{NO-BREAK SPACE}% | < 10 % | missed |",
    ]


def test_the_words_name_the_machine_and_what_failed(gpu: ModuleType, lines: list[dict[str, str]]) -> None:
    told = gpu.fill("words", lines)
    assert told.startswith("Measured on NVIDIA H200 (driver 570.1, torch 2.11.0+cu130), at commit abc123.")
    assert "Without a measurement: agreement, W2, noise (failed: p at least 0.0001)." in told


def test_parts_that_were_not_run_are_not_passed_over(gpu: ModuleType, tmp_path: Path) -> None:
    whole = [row(part, workload) for part, workload in KEYS]
    write_rows(whole, tmp_path / "gpu.csv")
    lines = gpu.read_lines(tmp_path / "gpu.csv")
    assert gpu.fill("words", lines).endswith("Every part ran to its end.")
    fewer = [line for line in lines if line["part"] != "papers"][:-1]
    assert gpu.fill("words", fewer).endswith("abc123. Not run yet: papers, 1 of the 2 rows of resume.")
    assert Counter(part for part, _ in KEYS) == gpu.ROWS


def test_words_of_an_error_are_shown_as_they_are(gpu: ModuleType, tmp_path: Path) -> None:
    status = r"failed: [a](b) <class 'x'> *all* a|b __name__ C:\n"
    broken = replace(row("tests", "pytest -m cuda", status), commit="sources 0123456789")
    write_rows([broken], tmp_path / "gpu.csv")
    lines = gpu.read_lines(tmp_path / "gpu.csv")
    page = Markdown(extensions=["tables"]).convert(gpu.fill("words", lines) + "\n\n" + gpu.fill("table", lines))
    assert html.unescape(re.sub("<[^>]*>", "", page)).count(status) == 2
    assert "at sources with digest 0123456789." in page


def test_the_names_on_the_page_are_those_of_the_benchmark(gpu: ModuleType) -> None:
    assert {row.key for row in ROWS} <= set(KEYS)
    assert set(gpu.TRAINING) == {part for part, workload in KEYS if workload in {task.name for task in TRAINED}} - {
        "profile",
        "agreement",
    }
    page = (DOCS / "explanation" / "speed.md").read_text(encoding="utf-8")
    assert set(gpu._PLACE.findall(page)) == {"words", "targets", "table"}
    # No figure of a measurement is typed by hand.
    assert not re.search(r"\d", page.partition("## On a GPU")[2])
