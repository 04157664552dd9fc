"""The page on speed tells what the last benchmarks measured."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.catalogue import GROUPS
from benchmarks.machine import COPY, GEMM
from benchmarks.measurement import Case, Row, Sample
from benchmarks.report import to_records, write_csv
from wirelessfl.processor import processor_name

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def speed() -> ModuleType:
    spec = importlib.util.spec_from_file_location("speed", DOCS / "speed.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def lines(speed: ModuleType, tmp_path: Path) -> list[dict[str, str]]:
    def row(name: str, value: float, reference: str | None = None) -> Row:
        case = Case("W2", name, "rounds/s", lambda: Sample(0.0), reference=reference)  # type: ignore[arg-type]
        return Row(case, [Sample(value, memory_mib=601.0)])

    peaks = [Row(Case("machine", name, "", lambda: Sample(0.0)), [Sample(1.0)]) for name in (GEMM, COPY)]
    rows = [row(speed.SIMULATOR, 6.0), row("peer: near-limit", 4.0, "near-limit"), row("Opacus", 1.5, "Opacus")]
    write_csv(to_records(rows, peaks), tmp_path / "benchmarks.csv")
    found: list[dict[str, str]] = speed.read_lines(tmp_path / "benchmarks.csv")
    return [line | {"load": "1"} for line in found]


def test_tables_hold_the_numbers_of_the_file(speed: ModuleType, lines: list[dict[str, str]]) -> None:
    table = speed.fill("W2, W3", lines).splitlines()
    assert table[0] == "|  | case | processor | median | × limit | × Opacus | MiB |"  # and no column without a number
    assert table[2] == f"| W2 | simulator, over the air | {processor_name()} | 6 rounds/s | 1.5 | 4 | 601 |"
    assert len({row.count("|") for row in table}) == 1 and len(table) == 5


def test_targets_are_reached_or_missed(speed: ModuleType, lines: list[dict[str, str]]) -> None:
    lines[0]["processor"] = "one"
    assert speed.fill("targets", lines).splitlines()[2:] == [
        "| W2 | one | 4 | × Opacus' best | ≥ 5 | missed |",
        "| W2 | one | 1.5 | × near-limit | ≥ 1 | reached |",
        "| W2 | one | 601 | largest memory, MiB | ≤ 600 | missed |",
    ]
    other = lines[0] | {"processor": "", "memory_mib": "600"}
    rows = [row for row in speed.fill("targets", [*lines, other]).splitlines() if "memory" in row]
    assert [row.split(" | ")[1::4] for row in rows] == [["one", "missed |"], ["not kept", "reached |"]]
    lines[0]["load"] = "17"
    verdicts = [row.split(" | ")[-1] for row in speed.fill("targets", lines).splitlines()[2:]]
    assert verdicts == [*["not decided: a busy machine |"] * 2, "missed |"]


def test_the_circumstances_are_told(speed: ModuleType, lines: list[dict[str, str]]) -> None:
    lines[0] |= {"date": "2026-11-21T02:00+00:00", "load": "3.25", "runs": "5"}
    assert speed.fill("when", lines).startswith("Measured on 2026-11-21, 5 times each, at a load average of 3.25:")


def test_without_results_the_page_says_so(speed: ModuleType, tmp_path: Path) -> None:
    assert speed.read_lines(tmp_path / "none.csv") == []
    assert all("make bench" in speed.fill(what, []) for what in ("targets", "W1", "picture", "when"))


def test_every_place_of_the_page_is_known(speed: ModuleType, lines: list[dict[str, str]]) -> None:
    page = (DOCS / "explanation" / "speed.md").read_text(encoding="utf-8")
    places = {group for what in speed._PLACE.findall(page) for group in what.split(", ")}
    assert places <= {"targets", "picture", "when", "when convolutions", "machine", *GROUPS}
    assert "<!-- benchmarks" not in speed.on_page_markdown(page)
    # No number of a measurement is typed by hand: outside the table of the workloads there are none.
    prose = re.sub(r"(?m)^\|.*$|^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"\d+(\.\d+)? (rounds|MiB|GFLOP|times|×)", prose)
