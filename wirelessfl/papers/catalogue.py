"""All papers by the name they have on the command line."""

from __future__ import annotations

import difflib
from pathlib import Path

from wirelessfl.errors import ScenarioError
from wirelessfl.papers.moo import MULTI_OBJECTIVE
from wirelessfl.papers.ota import OTA
from wirelessfl.papers.paper import Paper, PaperStudy, Size
from wirelessfl.papers.wavelet import WAVELET
from wirelessfl.papers.zcdp import ZCDP
from wirelessfl.scenario.library import shelf_folder

PAPERS: dict[str, Paper] = {paper.name: paper for paper in (OTA, WAVELET, MULTI_OBJECTIVE, ZCDP)}
"""In the order of the documentation."""


def find_paper(name: str) -> Paper:
    """A paper by name.

    Raises:
        ScenarioError: there is none of that name.
    """
    if name in PAPERS:
        return PAPERS[name]
    near = difflib.get_close_matches(name, PAPERS, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ScenarioError(f"{name}: found no such paper; allowed: {', '.join(PAPERS)}{hint}")


def study_file(paper: Paper, size: Size, study: PaperStudy) -> Path:
    """The study file; it ships with the package."""
    return shelf_folder("scenarios") / "papers" / paper.name / size / f"{study.name}.yaml"
