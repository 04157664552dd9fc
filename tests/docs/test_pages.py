"""Every command and snippet of the documentation, carried out."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import nbformat
import pytest

from publications.catalogue import PAPERS
from tests.docs.pages import Block, PageRun, blocks, commands, differs
from tests.docs.stand_ins import missing, put_in_place

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
SLOW = {
    "explanation/compression.md",
    "explanation/over-the-air.md",
    "tutorials/own-policy.md",
    "tutorials/first-study.md",
    "tutorials/over-the-air-against-digital.md",
    "tutorials/researchers-day.md",
    "how-to/cluster.md",
    "how-to/import-channels.md",
    "explanation/privacy.md",
    "how-to/own-member.md",
    "how-to/replay.md",
    "how-to/share.md",
    "how-to/watch.md",
    "how-to/gpu.md",
    "how-to/figures.md",
    "how-to/explore.md",
    "how-to/track.md",
    "explanation/network.md",
    "explanation/secure-aggregation.md",
}  # which start processes, as other tests do, or take long
NEEDS = {"how-to/tune.md": ("optuna",)}  # packages that no extra brings
WITHOUT_SNIPPETS = {"cite.md", "reference/stability.md", *(f"papers/{paper}.md" for paper in PAPERS)}


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow) if page in SLOW else page for page in PAGES]
)
@pytest.mark.usefixtures("undrawn")
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # one torch thread, for the tests share the cores
    text = (DOCS / page).read_text(encoding="utf-8").replace("18786", str(_free_port()))
    for module in NEEDS.get(page, ()):
        pytest.importorskip(module)
    put_in_place(
        monkeypatch, missing()
    )  # what a page shows of a tracker; tests/docs/test_track.py looks at what it gets
    run, before = PageRun(), None
    try:
        for block in blocks(text):
            run.carry_out(block, before)
            before = block
    finally:
        run.close()
    assert (before is None) == (page in WITHOUT_SNIPPETS)


WIDTH = 88
"""Characters of code that a page shows without scrolling, in the size of docs/style.css."""
WIDER = {"tutorials/first-study.md": "airtime (s)\n-10 "}
"""What a page prints that is wider: a table of columns that stays as it is, by what tells it from other blocks."""


@pytest.mark.parametrize("page", PAGES)
def test_code_is_as_wide_as_the_page(page: str) -> None:
    found = [block for block in blocks((DOCS / page).read_text(encoding="utf-8")) if block.text]
    wide = {block.line for block in found if max(map(len, block.text.splitlines())) > WIDTH}
    allowed = {block.line for block in found if page in WIDER and WIDER[page] in block.text}
    assert wide == allowed


def test_code_of_the_notebook_is_as_wide_as_the_page() -> None:
    notebook = nbformat.read(DOCS / "notebooks" / "first_look.ipynb", as_version=4)
    lines = [line for cell in notebook.cells if cell.cell_type == "code" for line in cell.source.splitlines()]
    assert [line for line in lines if len(line) > WIDTH] == []


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def test_blocks_are_found_with_language_title_and_place() -> None:
    text = 'a\n\n```yaml title="b.yaml"\nc: 1\n```\n\n- d\n\n    ```python\n    if e:\n        f()\n    ```\n'
    assert list(blocks(text)) == [
        Block("yaml", "b.yaml", "c: 1\n", 3),
        Block("python", None, "if e:\n    f()\n", 9),
    ]


def test_commands_come_with_what_they_print() -> None:
    text = "$ one --set \\\n    a=1\nx\ny\n$ two\n"
    assert list(commands(text)) == [("one --set a=1", "x\ny\n"), ("two", "")]


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ("accuracy 84.7%, loss 1.05", "accuracy  85.0%,\n  loss 1.06\n"),
        ("... ε 2 ...", "one two\nε 2 three"),
        ("a ... d", "a b c d"),
        ("1,438 samples", "1,438 samples"),
    ],
)
def test_what_is_said_and_what_is_printed_agree(said: str, printed: str) -> None:
    assert differs(said, printed) is None


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ("accuracy 84.7%", "accuracy 80.0%"),
        ("ε 2", "ε ∞"),
        ("a ... d", "a b c"),
        ("a", "a b"),
        ("a b", "a"),
        ("b ...", "a b"),
        ("[3 3 3]", "[3 4 3]"),
    ],
)
def test_what_is_said_and_what_is_printed_differ(said: str, printed: str) -> None:
    assert differs(said, printed) is not None
