"""CITATION.cff is valid and in step with the package, and BibTeX follows from it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from publications.catalogue import PAPERS
from tests.docs.hooks import load_hook
from wirelessfl.version import package_version

ROOT = Path(__file__).resolve().parents[2]
# Of the Citation File Format, version 1.2.0: the keys of a file and those of a reference that are used here.
KEYS = {
    *("abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi", "identifiers", "keywords"),
    *("license", "license-url", "message", "preferred-citation", "references", "repository", "repository-artifact"),
    *("repository-code", "title", "type", "url", "version"),
}
REFERENCE_KEYS = {"type", "title", "authors", "year", "journal", "url"}


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    return load_hook("citation")


def test_the_file_is_valid(citation: dict[str, Any]) -> None:
    assert citation.keys() <= KEYS
    assert citation.keys() >= {"cff-version", "message", "title", "authors"}
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert all(isinstance(citation[key], str) for key in ("message", "title", "version", "license", "abstract"))
    assert all(set(author) == {"name"} for author in citation["authors"])
    for reference in citation["references"]:
        assert set(reference) == REFERENCE_KEYS and isinstance(reference["year"], int)
        assert all(set(author) == {"family-names", "given-names"} for author in reference["authors"])


def test_the_version_is_that_of_the_package(citation: dict[str, Any]) -> None:
    assert citation["version"] == package_version()


def test_the_papers_are_those_that_are_re_run(citation: dict[str, Any]) -> None:
    assert {reference["title"] for reference in citation["references"]} == {paper.title for paper in PAPERS.values()}
    for paper in PAPERS.values():
        reference = next(one for one in citation["references"] if one["title"] == paper.title)
        names = ", ".join(author["family-names"] for author in reference["authors"])
        assert paper.reference == f"{names}, {reference['year']}"


def test_bibtex_has_every_author_and_braces_that_match(hook: ModuleType, citation: dict[str, Any]) -> None:
    entries = [hook.package_entry(citation), *map(hook.paper_entry, citation["references"])]
    assert all(entry.count("{") == entry.count("}") for entry in entries)
    assert len({entry.partition(",")[0] for entry in entries}) == len(entries)
    assert "author  = {Hu, Rui and Guo, Yuanxiong and Gong, Yanmin}," in entries[-1]
    assert f"version = {{{package_version()}}}," in entries[0]
    assert max(len(line) for entry in entries for line in entry.splitlines()) <= 78
    for entry, reference in zip(entries[1:], citation["references"], strict=True):
        words = " ".join(entry.split())
        assert f"title = {{{{{reference['title']}}}}}," in words
        assert words.count(" and ") >= len(reference["authors"]) - 1


def test_pages_take_the_entries_in(hook: ModuleType) -> None:
    cite = SimpleNamespace(file=SimpleNamespace(src_uri="cite.md"))
    text = hook.on_page_markdown((ROOT / "docs" / "cite.md").read_text(encoding="utf-8"), cite)
    assert text.count("@article{") == len(PAPERS) and text.count("@software{") == 1 and "<!--" not in text
    for name in PAPERS:
        page = SimpleNamespace(file=SimpleNamespace(src_uri=f"papers/{name}.md"))
        assert hook.on_page_markdown("# x", page).count("@article{") == 1


def test_the_readme_says_the_same_without_a_version(hook: ModuleType, citation: dict[str, Any]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    entry = "\n".join(
        line for line in hook.package_entry(citation).splitlines() if not line.startswith(("  version", "  year"))
    )
    assert entry in readme
