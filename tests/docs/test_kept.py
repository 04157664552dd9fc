"""What is kept from one build of the site for the next, and what the site leaves out."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.hooks import load_hook

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load_hook("kept")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "FOLDER", tmp_path / "kept")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "hook.py").write_text("A = 1\n", encoding="utf-8")
    return module


def test_it_is_made_once_and_again_when_a_source_has_changed(kept: ModuleType, tmp_path: Path) -> None:
    made = []

    def make() -> bytes:
        made.append(1)
        return b"picture"

    assert [kept.kept("a.png", make) for _ in range(3)] == [b"picture"] * 3 and len(made) == 1
    (tmp_path / "docs" / "hook.py").write_text("A = 2\n", encoding="utf-8")
    kept.digest.cache_clear()
    assert kept.kept("a.png", make) == b"picture" and len(made) == 2
    assert len(list((tmp_path / "kept").iterdir())) == 1  # the earlier one is gone


def test_what_cannot_be_kept_is_made_all_the_same(kept: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file in the place of the folder", encoding="utf-8")
    assert kept.kept("a.png", lambda: b"picture") == b"picture"


def test_everything_follows_from_the_sources_that_are_looked_at(kept: ModuleType) -> None:
    assert all((DOCS.parent / folder).is_dir() for folder in kept.SOURCES)


def test_the_site_has_no_sources(built_site: Path) -> None:
    assert [path for path in built_site.rglob("*") if path.suffix in (".py", ".pyc", ".md")] == []
    page = (built_site / "explanation" / "epsilon.html").read_text(encoding="utf-8")
    assert not re.search("<!-- (epsilon|picture|day|speed)", page)
