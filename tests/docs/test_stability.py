"""The page on what stays stable: its lists are those of the package."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import wirelessfl as wfl
from tests.docs.hooks import load_hook
from wirelessfl.cli import COMMANDS
from wirelessfl.scenario import Scenario
from wirelessfl.version import package_version

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def stability() -> ModuleType:
    return load_hook("stability")


@pytest.fixture(scope="module")
def page(stability: ModuleType) -> str:
    text: str = stability.on_page_markdown((DOCS / "reference" / "stability.md").read_text(encoding="utf-8"))
    return text


def test_every_list_of_the_page_is_made_and_every_list_is_on_it(stability: ModuleType, page: str) -> None:
    asked = re.findall(
        r"^<!-- stable: (.+) -->$", (DOCS / "reference" / "stability.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(asked) == sorted(stability.LISTS)
    assert "<!-- stable" not in page


def test_the_page_names_what_there_is(page: str) -> None:
    for name in (*COMMANDS, *Scenario.model_fields, *(f"wirelessfl.{name}" for name in wfl.__all__), "summary.json"):
        assert f"`{name}`" in page, name
    for code in (0, 2, 3, 4, 130):
        assert re.search(rf"^\| {code} \| \w", page, re.MULTILINE)
    for words in ("`epsilon_accounted`", "`/privacy`", "`fading`", package_version(), "Deprecated:"):
        assert words in page


def test_another_page_is_left_as_it_is(stability: ModuleType) -> None:
    assert stability.on_page_markdown("# A page") == "# A page"
