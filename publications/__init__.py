"""Four papers, reproduced and put to the test.

A paper is a module here (`publications.ota` is one to copy): it declares a `Paper` with its studies, claims and
figures, and stands in `publications.catalogue.PAPERS`. Its study files lie in
``scenarios/papers/<paper>/{small,medium,full}/<study>.yaml``, ordinary studies whose ``base`` is a scenario beside them
and whose ``set`` says what a size changes. ``wirelessfl papers run`` runs them and writes ``results/papers/<paper>/``;
``docs/papers/<paper>.md`` takes tables, figures and verdicts from there by markers (`publications.markers`).
"""

from __future__ import annotations

from publications.catalogue import PAPERS, find_paper, study_file
from publications.claims import Claim, Comparison, Outcome, Verdict, greater, judge, not_tested, same, verdict, weigh
from publications.effects import Difference, Effect, Level, MissingRuns, average, ratio
from publications.paper import Coverage, Paper, PaperFigure, PaperTable, Setting
from publications.studies import SIZES, AtEqualEpsilon, AuditOf, PaperNumber, PaperStudy, Point, Size
from publications.tables import StudyTable, Tables

__all__ = [
    "PAPERS",
    "SIZES",
    "AtEqualEpsilon",
    "AuditOf",
    "Claim",
    "Comparison",
    "Coverage",
    "Difference",
    "Effect",
    "Level",
    "MissingRuns",
    "Outcome",
    "Paper",
    "PaperFigure",
    "PaperNumber",
    "PaperStudy",
    "PaperTable",
    "Point",
    "Setting",
    "Size",
    "StudyTable",
    "Tables",
    "Verdict",
    "average",
    "find_paper",
    "greater",
    "judge",
    "not_tested",
    "ratio",
    "same",
    "study_file",
    "verdict",
    "weigh",
]
