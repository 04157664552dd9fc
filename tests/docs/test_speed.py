"""The page on speed tells what the last benchmarks measured."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.catalogue import GROUPS
from benchmarks.machine import COPY, GEMM
from benchmarks.measurement import Case, Row, Sample
from benchmarks.report import to_records, write_csv
from tests.docs.hooks import load_hook
from wirelessfl.processor import processor_name

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def speed() -> ModuleType:
    return load_hook("speed")


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
    assert (
        table[0] == "|  | case | on | median, rounds/s | × limit | × Opacus | MiB |"
    )  # and no column without a number
    assert table[2] == "| W2 | simulator, over the air | A | 6 | 1.5 | 4 | 601 |"
    assert len({row.count("|") for row in table}) == 1 and len(table) == 5
    assert speed.fill("processors", lines) == f"- **A**: {processor_name()}"
    lines[1] |= {"processor": "", "unit": "s"}
    table = speed.fill("W2", lines).splitlines()
    assert [row.split(" | ")[2:4] for row in table[2:4]] == [["A", "6 rounds/s"], ["B", "4 s"]]
    assert speed.fill("processors", lines).splitlines()[1] == "- **B**: kind not kept"


def test_targets_are_reached_or_missed(speed: ModuleType, lines: list[dict[str, str]]) -> None:
    lines[0]["processor"] = "one"
    other = lines[0] | {"processor": "two", "to_opacus": "", "memory_mib": "600"}
    named = [lines[0], other]
    assert speed.fill("targets", named).splitlines() == [
        "| workload |  | aimed at | A | B |",
        "| --- | --- | ---: | ---: | ---: |",
        "| W2 | × Opacus' best | ≥ 5 | 4 |  |",
        "| W2 | × near-limit | ≥ 1 | **1.5** | **1.5** |",
        "| W2 | largest memory, MiB | ≤ 600 | 601 | **600** |",
    ]
    lines[0]["load"] = "17"
    told = [row.split(" | ")[-2] for row in speed.fill("targets", named).splitlines()[2:]]
    assert told == ["(4)", "(1.5)", "601"]  # memory does not depend on what else runs


def test_the_circumstances_are_told(speed: ModuleType, lines: list[dict[str, str]]) -> None:
    lines[0] |= {"date": "2026-11-21T02:00+00:00", "load": "3.25", "runs": "5"}
    told = speed.fill("when", lines)
    assert told.startswith("Measured on 2026-11-21, up to 5 times each, at a load average of up to 3.25:")
    later = [*lines, lines[0] | {"date": "2026-11-23T02:00+00:00"}, lines[0] | {"date": "2026-11-22T02:00+00:00"}]
    assert speed.fill("when", later).startswith("Measured from 2026-11-21 to 2026-11-23, ")


def test_words_beside_the_tables_follow_from_them(speed: ModuleType) -> None:
    stored = speed.read_lines(speed.RESULTS / "benchmarks.csv")
    found = {(line["group"], line["case"], line["processor"]): line for line in stored}

    def over(group: str, one: str, other: str) -> list[float]:
        pairs = [(found.get((group, one, name)), found.get((group, other, name))) for name in speed.letters(stored)]
        return [float(a["median"]) / float(b["median"]) for a, b in pairs if a and b]

    page = " ".join((DOCS / "explanation" / "speed.md").read_text(encoding="utf-8").split())
    longer = over("W2", speed.IDEAL, "simulator, wavelet noise")
    assert len(longer) == 4 and min(longer) > 0.97 and 1.3 < max(longer) < 1.36
    assert "(W2) take from as long to a third longer than those with plain noise" in page
    vmap = "peer: torch.func vmap"
    assert all(ratio > 1 for ratio in over("W3", vmap, "peer: near-limit, chunks of 100"))
    measured = [letter for name, letter in speed.letters(stored).items() if ("W3", vmap, name) in found]
    beside = over("W3", vmap, speed.SIMULATOR)
    faster = [letter for letter, ratio in zip(measured, beside, strict=True) if ratio > 1]
    told = f"on W3 it is faster than they are, and on {' and '.join(faster)} than the simulator over the air"
    assert told in page
    plain = [
        float(line["share_of_peak"])
        for line in stored
        if line["group"] in ("C1", "C2", "C4") and line["case"] == "plain loop"
    ]
    assert 0.2 < min(plain) < 0.25 and 0.64 < max(plain) < 0.7
    assert "In the plain loop C1, C2 and C4 already run at a fifth to two thirds of the peak" in page


def test_without_results_the_page_says_so(speed: ModuleType, tmp_path: Path) -> None:
    assert speed.read_lines(tmp_path / "none.csv") == []
    assert all("make bench" in speed.fill(what, []) for what in ("targets", "W1", "picture", "when", "processors"))


def test_every_place_of_the_page_is_known(speed: ModuleType, lines: list[dict[str, str]]) -> None:
    page = (DOCS / "explanation" / "speed.md").read_text(encoding="utf-8")
    places = {group for what in speed._PLACE.findall(page) for group in what.split(", ")}
    assert places <= {"targets", "processors", "picture", "when", "when convolutions", "machine", *GROUPS}
    assert "<!-- benchmarks" not in speed.on_page_markdown(page)
    # No number of a measurement is typed by hand: outside the table of the workloads there are none.
    prose = re.sub(r"(?m)^\|.*$|^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"\d+(\.\d+)? (rounds|MiB|GFLOP|times|×)", prose)
