"""What a paper leaves behind, and how its page takes that in."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from publications import markers
from publications.catalogue import PAPERS
from publications.check import check_page
from publications.claims import Outcome
from publications.figures import cut_errors
from publications.files import read_rows
from publications.markers import fill
from publications.moo_rates import RATES
from publications.page import claim_rows, remake_page, write_page
from publications.results import read_results, read_tables, size_folder
from publications.texts import epsilon, escape, number_text, percent
from tests.publications.example import EXAMPLE, SNR, TABLES
from wirelessfl.errors import OutputError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return write_page(EXAMPLE, TABLES, tmp_path)


@pytest.mark.slow
def test_what_lies_there(written: Path) -> None:
    names = {path.name for path in written.iterdir()}
    assert names == {
        *(f"first{end}" for end in (".csv", ".runs.csv", ".rounds.csv", ".audits.csv")),
        *(f"second{end}" for end in (".csv", ".runs.csv", ".rounds.csv", ".audits.csv")),
        *("about.json", "claims.csv", "claims.levels.csv", "claims.md", "more.csv"),
        *(f"{name}{end}" for name in ("curves", "claims") for end in (".svg", "-dark.svg", ".png")),
    }
    assert json.loads((written / "about.json").read_text(encoding="utf-8"))["seeds"]["first"] == [1, 2, 3]


def test_all_can_be_made_again_from_it_to_the_byte(written: Path) -> None:
    before = {path.name: path.read_bytes() for path in written.iterdir()}
    for name in ("first.csv", "claims.csv", "claims.md", "curves.svg", "curves-dark.svg", "claims.png"):
        (written / name).unlink()
    remake_page(EXAMPLE, written.parents[1])
    assert {path.name: path.read_bytes() for path in written.iterdir()} == before


def test_a_study_of_which_no_point_has_all_its_seeds_is_stored_and_shown_nowhere(written: Path) -> None:
    table = TABLES.studies["second"]
    started = replace(table, runs=table.runs[:2], curves=(), audits=(), stored=2)
    assert {run.point[SNR] for run in started.runs} == {"5"}
    tables = replace(TABLES, studies={**TABLES.studies, "second": started})
    write_page(EXAMPLE, tables, written.parents[1])
    assert len(read_rows(written / "second.runs.csv")) == 2
    assert not (written / "second.csv").exists()
    found = read_tables(EXAMPLE, written)
    assert found.studies["second"].runs == () and found.studies["second"].stored == 2
    assert check_page(EXAMPLE, found, written) == []
    assert "*Not run yet.*" in fill("{{ table second }}\n", written.parents[1], EXAMPLE)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="found no results of example; `wirelessfl papers run example"):
        read_tables(EXAMPLE, tmp_path)
    assert fill("a\n\n{{ claims }}\n", tmp_path, EXAMPLE) == "a\n\n*Not run yet.*\n"


def test_a_page_is_filled(written: Path) -> None:
    markers = (
        "claims",
        "table first",
        "table more",
        "table absent",
        "figure curves",
        "figure nothing",
        "audits",
        "about",
    )
    text = fill("".join(f"{{{{ {marker} }}}}\n\n" for marker in markers), written.parents[1], EXAMPLE)
    assert "| 1 | Good is better than bad. | Fig. 1 | **confirmed** | +20 points (+17.5 to +22.5) | no: small |" in text
    assert "| rule | accuracy | paper |" in text
    plain = text.replace("\N{NO-BREAK SPACE}", " ")
    assert "| GOOD | 70.0 ± 24.8 % | 75.00 % (Table I) | 1 | 10 | 40.0 ± 24.8 % | 10 | 4 |" in plain
    assert "*Good and bad | and so on. Size `small`, 9 runs.*" in text
    assert "| 0.5 | x\\|y |\n\n*More.*" in text
    assert "![Curves.](example/curves.svg#only-light)\n![Curves.](example/curves-dark.svg#only-dark)" in text
    assert text.count("*Not run yet.*") == 2
    assert "| first | small | rule GOOD | sample | 1 | 4 | 10 |" in text
    assert "$ wirelessfl papers run example --size small" in text


def test_a_further_table_names_its_size_where_sizes_differ() -> None:
    markers = ("algorithm-2 small", "algorithm-2", "stated-epsilons", "gains full")
    text = fill("\n\n".join(f"{{{{ table {one} }}}}" for one in markers), ROOT / "results", PAPERS["wavelet-dp-fl"])
    bounds = "*What the clipping of Algorithm 2 bounds."
    assert f"{bounds} Size `small`.*" in text and f"{bounds} Size `medium`.*" in text
    assert "*What the stated ε imply.*" in text and text.endswith("*Not run yet.*")


def test_a_picture_that_needs_no_run_names_no_size(written: Path) -> None:
    exact = replace(EXAMPLE, figures=(replace(EXAMPLE.figures[0], runs=False),))
    shown = [fill("{{ figure curves }}", written.parents[1], paper) for paper in (EXAMPLE, exact)]
    assert ["*Curves. Size `small`.*" in text for text in shown] == [True, False]
    assert shown[1].endswith("*Curves.*")


@pytest.mark.parametrize("marker", ["{{ nonsense }}", "{{ table nonsense }}", "{{ figure nonsense }}"])
def test_a_wrong_marker_is_an_error(written: Path, marker: str) -> None:
    with pytest.raises(ValueError, match="nonsense"):
        fill(marker, written.parents[1], EXAMPLE)


def test_text_that_only_looks_like_a_marker_stays(written: Path) -> None:
    assert fill("see {{ claims }} there", written.parents[1], EXAMPLE) == "see {{ claims }} there"


def test_the_index_counts_verdicts(tmp_path: Path) -> None:
    lines = fill("{{ overview }}", tmp_path, None).splitlines()
    assert len(lines) == 2 + len(PAPERS)
    assert all("not run yet" in line for line in lines[2:])


def test_the_index_counts_claims_of_ours_apart(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad, itself, *_, elsewhere = EXAMPLE.claims
    ours = [replace(one, source="ours; Fig. 2") for one in (good, itself)]
    monkeypatch.setattr(markers, "PAPERS", {"example": replace(EXAMPLE, claims=(good, bad, elsewhere, *ours))})
    head, _, line = fill("{{ overview }}", written.parents[1], None).splitlines()
    found = dict(zip(*([cell.strip() for cell in one.split("|")] for one in (head, line)), strict=True))
    assert [found[outcome.value] for outcome in Outcome] == ["1", "1", "0", "1"]
    assert found["at the paper's size, or any"] == "0 of 3" and found["ours"] == "1 confirmed, 1 undecided"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("70.0 ± 24.8 %", "70.0_±_24.8_%"),
        ("at τ = 0.5, a = b", "at τ_=_0.5, a = b"),
        ("4.5 h, 3 s a run, 2 same", "4.5_h, 3_s a run, 2 same"),
        ("1e-05 and 3.2e-05, 1e+03", "10⁻⁵ and 3.2·10⁻⁵, 10³"),
        ("-0.411 (-1.01 to +0.19), Fig. 7-9, 2-norm, ‖x‖ - 1", "−0.411 (−1.01 to +0.19), Fig. 7-9, 2-norm, ‖x‖ - 1"),
        ("`-1 ± 1e-05 %` is -1", "`-1 ± 1e-05 %` is −1"),
        ("a|b\nv1e-5", "a\\|b v1e-5"),
    ],
)
def test_numbers_in_cells_are_typeset_and_not_broken(text: str, shown: str) -> None:
    assert escape(text).replace("\N{NO-BREAK SPACE}", "_") == shown


def test_intervals_of_accuracies_end_at_0_and_100_percent() -> None:
    cut = cut_errors([98.0, 50.0, 3.0, 40.0], [5.0, 5.0, 4.0, math.nan])
    assert cut.tolist() == [[5.0, 5.0, 3.0, 0.0], [2.0, 5.0, 4.0, 0.0]]


def test_large_numbers_have_no_power_of_ten() -> None:
    told = [number_text(value, digits) for value, digits in ((8192, 4), (12513.2, 4), (1365.1, 3), (2.828427, 4))]
    assert told == ["8192", "12,513", "1,365", "2.828"]


def test_numbers_for_people() -> None:
    assert [epsilon(value) for value in (0.5, 123.4, 98765.4, float("inf"), float("nan"))] == [
        "0.5",
        "123",
        "98,765",
        "∞",
        "–",
    ]
    assert [percent(0.123), percent(0.123, 0.01), percent(float("nan"))] == ["12.3 %", "12.3 ± 1.0 %", "–"]


@pytest.mark.parametrize("name", PAPERS)
def test_the_committed_verdicts_are_those_of_the_committed_numbers(name: str) -> None:
    folder = size_folder(ROOT / "results", PAPERS[name], "small")
    if not (folder / "about.json").exists():
        pytest.skip("no results in this checkout")
    assert read_rows(folder / "claims.csv") == claim_rows(PAPERS[name], read_results(PAPERS[name], ROOT / "results"))
    assert len(read_rows(folder / "claims.csv")) == len(PAPERS[name].claims)
    tables = read_tables(PAPERS[name], folder)
    judged = {study: seeds for study, seeds in tables.about["seeds"].items() if study not in RATES}  # those only choose
    assert all(len(seeds) >= 5 for seeds in judged.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_every_page_takes_its_numbers_from_results(name: str) -> None:
    page = ROOT / "docs" / "papers" / f"{name}.md"
    text = fill(page.read_text(encoding="utf-8"), ROOT / "results", PAPERS[name])
    assert "{{" not in text
