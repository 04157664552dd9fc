"""What has run of a paper in all its sizes, and its claims judged at the largest size that can."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from publications.claims import Claim, Outcome, Verdict, judge
from publications.files import read_study
from publications.paper import Paper
from publications.studies import SIZES, Size
from publications.tables import StudyTable, Tables
from wirelessfl.errors import OutputError

Results = Mapping[Size, Tables]
"""The tables of every size that has results, from the smallest to the largest."""


@dataclass(frozen=True)
class Judgement:
    """A claim with its verdict.

    Attributes:
        claim: What is claimed.
        verdict: What became of it.
        size: From which size; None where it is not tested, or decided without any run.
        others: Verdicts of the other sizes, where those can tell too: smaller ones, and a larger one of a single seed.
    """

    claim: Claim
    verdict: Verdict
    size: Size | None
    others: Mapping[Size, Verdict]

    @property
    def at_paper_size(self) -> str:
        """Whether the verdict is from the paper's own size."""
        if self.verdict.outcome is Outcome.NOT_TESTED:
            return ""
        if self.size is None:
            return "any size"
        if self.size == "full":
            return "yes"
        return "any size" if self.claim.everywhere else f"no: {self.size}"


def size_folder(root: Path, paper: Paper, size: Size) -> Path:
    """Where the tables of a paper lie: ``small``, which everyone can re-create, directly in its folder."""
    folder = root / "papers" / paper.name
    return folder if size == "small" else folder / size


def read_tables(paper: Paper, folder: Path, *, unfinished: bool = False) -> Tables:
    """What was written for a paper in one size.

    Args:
        paper: The paper.
        folder: Where it lies.
        unfinished: Whether points of which seeds are missing are in it.

    Raises:
        OutputError: nothing was.
    """
    try:
        about: dict[str, Any] = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise OutputError(
            f"{folder}: found no results of {paper.name}; `wirelessfl papers run {paper.name} --size small` makes them"
        ) from None
    found = {}
    for study in paper.studies:
        table = read_study(folder, study)
        if table is not None:
            seeds = about["seeds"].get(study.name, ())
            found[study.name] = table if unfinished else table.finished_points(seeds)
    return Tables(about, found)


def stored_tables(paper: Paper, folder: Path, overrides: Sequence[str] = ()) -> Mapping[str, StudyTable]:
    """The studies that are stored in a folder and were run with the same overrides, unfinished points with them."""
    try:
        tables = read_tables(paper, folder, unfinished=True)
    except OutputError:
        return {}
    return tables.studies if tables.about["overrides"] == list(overrides) else {}


def read_results(paper: Paper, root: Path) -> Results:
    """What was written for a paper in all sizes.

    Raises:
        OutputError: nothing was.
    """
    folders = {size: size_folder(root, paper, size) for size in SIZES}
    there = {size: folder for size, folder in folders.items() if (folder / "about.json").exists()}
    if not there:
        there = {"small": folders["small"]}
    return {size: read_tables(paper, folder) for size, folder in there.items()}


def judge_all(paper: Paper, results: Results) -> list[Judgement]:
    """Every claim, judged at the largest size at which it can be.

    A size of one seed gives an effect and no interval. It is judged only where no other size has more seeds; else its
    effect stands beside the verdict.
    """
    return [_judged(claim, results) for claim in paper.claims]


def _judged(claim: Claim, results: Results) -> Judgement:
    if claim.everywhere:
        alone = judge(claim, Tables(next(iter(results.values())).about, {}))
        if alone.outcome is not Outcome.NOT_TESTED:
            return Judgement(claim, alone, None, {})
    found = {size: judge(claim, tables) for size, tables in results.items()}
    tested = {size: one for size, one in found.items() if one.outcome is not Outcome.NOT_TESTED}
    if not tested:
        return Judgement(claim, next(reversed(found.values())), None, {})
    several = [size for size, one in tested.items() if not one.one_seed]
    size = (several or list(tested))[-1]
    return Judgement(claim, tested[size], size, {other: one for other, one in tested.items() if other != size})


def largest(results: Results, study: str) -> Size | None:
    """The largest size in which a study has a finished point."""
    sizes = [size for size, tables in results.items() if study in tables.studies and tables.studies[study].runs]
    return sizes[-1] if sizes else None
