"""All papers by the name they have on the command line."""

from __future__ import annotations

import difflib
from pathlib import Path

from publications.moo import MULTI_OBJECTIVE
from publications.ota import OTA
from publications.paper import Paper
from publications.studies import STUDIES, PaperStudy, Size
from publications.wavelet import WAVELET
from publications.zcdp import ZCDP
from wirelessfl.errors import ScenarioError

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
    """The study file of a paper in a size."""
    return STUDIES / paper.name / size / f"{study.name}.yaml"
