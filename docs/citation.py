"""BibTeX of the package and of the papers, made from CITATION.cff when the site is built.

MkDocs calls the functions named ``on_…``. A line ``<!-- bibtex: package -->`` becomes the entry of the package and
``<!-- bibtex: papers -->`` those of all papers; each paper's own page ends with its entry.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from pathlib import Path
from typing import Any

import yaml

from publications.catalogue import PAPERS

FILE = Path(__file__).resolve().parents[1] / "CITATION.cff"
_PLACE = re.compile(r"^<!-- bibtex: (?P<what>package|papers) -->$", re.MULTILINE)
_WIDTH = 78
_SMALL = {"a", "an", "and", "for", "in", "of", "on", "over", "the", "to", "with"}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Puts the entries in."""
    citation = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    entries = {"package": package_entry(citation), "papers": "\n\n".join(map(paper_entry, citation["references"]))}
    markdown = _PLACE.sub(lambda place: _block(entries[place["what"]]), markdown)
    folder, _, name = page.file.src_uri.removesuffix(".md").rpartition("/")
    if folder == "papers" and name in PAPERS:
        reference = next(one for one in citation["references"] if one["title"] == PAPERS[name].title)
        markdown += f"\n\n## Cite the paper\n\n{_block(paper_entry(reference))}\n"
    return markdown


def _block(entries: str) -> str:
    return f"```bibtex\n{entries}\n```"


def package_entry(citation: dict[str, Any]) -> str:
    """The package, with its version."""
    fields = {
        "title": f"{{{citation['title']}}}",
        "author": " and ".join(f"{{{author['name']}}}" for author in citation["authors"]),
        "version": str(citation["version"]),
        "note": f"Licence: {citation['license']}",
    }
    if "date-released" in citation:
        fields["year"] = str(citation["date-released"])[:4]
    return _entry("software", "wirelessfl", fields)


def paper_entry(reference: dict[str, Any]) -> str:
    """One paper; its key is the first author's surname, the year and the first long word of the title."""
    words = re.findall(r"[a-z]+", reference["title"].lower())
    first = reference["authors"][0]["family-names"]
    fields = {
        "title": f"{{{reference['title']}}}",
        "author": " and ".join(f"{one['family-names']}, {one['given-names']}" for one in reference["authors"]),
        "journal": reference["journal"],
        "year": str(reference["year"]),
        "url": reference["url"],
    }
    key = f"{_ascii(first).lower()}{reference['year']}{next(word for word in words if word not in _SMALL)}"
    return _entry("article", key, fields)


def _entry(kind: str, key: str, fields: dict[str, str]) -> str:
    width = max(map(len, fields))
    lines = (_field(f"  {name:<{width}} = {{", text) for name, text in fields.items())
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])


def _field(begin: str, text: str) -> str:
    # Over several lines where one would be cut at the edge of a page; a space for BibTeX
    return textwrap.fill(
        f"{text}}},",
        _WIDTH,
        initial_indent=begin,
        subsequent_indent=" " * len(begin),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
