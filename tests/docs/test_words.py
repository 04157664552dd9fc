"""Phrases that readers stumbled over stay out of the documentation, of keys and variables, and of messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wirelessfl.scenario import Scenario, all_keys
from wirelessfl.study.file import StudyFile
from wirelessfl.trace import reference_markdown

ROOT = Path(__file__).resolve().parents[2]
STUMBLED_OVER = (
    r"known where watts are",
    r"for whom the run touched",
    r"in 99 of 100 runs",
    r"for everybody, always",
    r"\bplay no part\b",
)


@pytest.mark.parametrize("phrase", STUMBLED_OVER)
def test_phrases_are_gone(phrase: str) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "wirelessfl").rglob("*.py")]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in pages}
    keys = (f"{key.path}: {key.description}" for section in (Scenario, StudyFile) for key in all_keys(section))
    texts |= {"keys": "\n".join(keys), "trace": reference_markdown()}
    assert [name for name, text in texts.items() if re.search(phrase, re.sub(r"\s+", " ", text))] == []
