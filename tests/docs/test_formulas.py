"""Formulas of the documentation: MathML that leaves code alone and finds room on a narrow page."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.docs.hooks import load_hook

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def formulas() -> ModuleType:
    return load_hook("formulas")


def test_formulas_become_mathml_and_code_stays(formulas: ModuleType) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="explanation/privacy.md"))
    text = "so $a_i$ and $$\nb^2\n$$\n`$c$`\n```console\n$ d --set e=$f\n```\n    ```\n    $g$\n    ```\n"
    markdown = formulas.on_page_markdown(text, page=page)
    assert [match["inline"] or match["block"].strip() for match in page.formulas] == ["a_i", "b^2"]
    assert markdown.endswith("`$c$`\n```console\n$ d --set e=$f\n```\n    ```\n    $g$\n    ```\n")
    html = formulas.on_page_content(
        f"<p>{formulas._PLACE.format(1)}</p><p>x {formulas._PLACE.format(0)}</p>", page=page
    )
    assert html.startswith('<div class="formula"><div class="part"><math')
    assert html.count("<math") == 2
    assert "place" not in html


def test_more_than_ten_formulas_keep_their_places(formulas: ModuleType) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="explanation/privacy.md"))
    markdown = formulas.on_page_markdown(" ".join(f"$x_{{{number}}}$" for number in range(12)), page=page)
    html = formulas.on_page_content(markdown, page=page)
    assert [html.index(f"<mn>{number}</mn>") for number in range(12)] == sorted(
        html.index(f"<mn>{number}</mn>") for number in range(12)
    )
    assert html.count("<math") == 12


def test_a_line_can_end_before_a_relation_of_a_long_formula(formulas: ModuleType) -> None:
    latex = r"P(A) = \sum_{m \le M} P(A_m) \le \left(e^{\varepsilon} + \delta = x\right)"
    assert formulas.cut_at_relations(latex) == [
        "P(A) ",
        r"= \sum_{m \le M} P(A_m) ",
        r"\le \left(e^{\varepsilon} + \delta = x\right)",
    ]
    assert formulas.cut_at_relations("K = 0") == ["K = 0"]
    assert formulas.inline(latex).count("<math") == 3


def test_what_stands_side_by_side_can_stand_one_below_the_other(formulas: ModuleType) -> None:
    assert formulas.displayed(r"a = b, \qquad c = d").count('<div class="part">') == 2


def test_underscores_of_keys_are_plain(formulas: ModuleType) -> None:
    shown = formulas.inline(r"1/\text{straggler\_scale}")
    assert "straggler_scale" in shown and "\\" not in shown


def test_a_formula_may_wrap_but_not_over_a_blank_line(formulas: ModuleType) -> None:
    page = SimpleNamespace()
    markdown = formulas.on_page_markdown("- with $\\mu =\n  X/\\sigma$ so\n\none $\n\nand another $", page=page)
    assert markdown == f"- with {formulas._PLACE.format(0)} so\n\none $\n\nand another $"
    html = formulas.on_page_content(markdown, page=page)
    assert "<mi>&#x003C3;</mi>" in html and "\\" not in html


def test_accents_are_signs_that_fonts_have_for_them(formulas: ModuleType) -> None:
    shown = formulas.inline(r"\hat h + \tilde h + \bar h")
    assert re.findall(r'<mover accent="true"><mi>h</mi><mo stretchy="(\w+)">(.+?)</mo></mover>', shown) == [
        ("false", "&#x002C6;"),
        ("false", "&#x002DC;"),
        ("true", "&#x000AF;"),
    ]


@pytest.mark.parametrize("latex", [r"\lvert h\rvert^2 \|w_j\|", "|h|^2 \\lVert w\\rVert"])
def test_bars_open_and_close(formulas: ModuleType, latex: str) -> None:
    found = re.findall(r'<mo form="(\w+)" stretchy="false">(.+?)</mo>', formulas.inline(latex))
    assert found == [(side, bar) for bar in ("&#x0007C;", "&#x02016;") for side in ("prefix", "postfix")]


@pytest.mark.parametrize("name", sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")))
def test_no_latex_is_left_on_a_page(formulas: ModuleType, name: str) -> None:
    page = SimpleNamespace()
    markdown = formulas.on_page_markdown((DOCS / name).read_text(encoding="utf-8"), page=page)
    prose = formulas._CODE.sub("", markdown)
    assert re.findall(r".*\$.*|.*\\[A-Za-z].*", prose) == []
    html = formulas.on_page_content(" ".join(map(formulas._PLACE.format, range(len(page.formulas)))), page=page)
    assert re.findall(r"[^>]*\\[^<]*", html) == []
    assert html.count('form="prefix"') == html.count('form="postfix"')  # of bars: each that opens is closed


SYMBOLS = r"(?<![A-Za-z])[A-Za-zα-ωΑ-Ω]_[A-Za-z0-9]"
"""A letter with an index that is no formula, as in σ_c."""


@pytest.mark.parametrize("folder", ["explanation", "how-to", "tutorials"])
def test_symbols_with_an_index_are_formulas(formulas: ModuleType, folder: str) -> None:
    for path in (DOCS / folder).glob("*.md"):
        prose = formulas._CODE.sub("", formulas.on_page_markdown(path.read_text(encoding="utf-8"), SimpleNamespace()))
        assert re.findall(SYMBOLS, re.sub(r"\]\([^)]*\)", "", prose)) == [], path.name
