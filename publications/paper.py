"""A paper: the studies that re-run its experiments, its claims, and the tables and pictures of its page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from publications.claims import Claim
from publications.studies import PaperStudy, Size
from publications.tables import Tables

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True)
class PaperFigure:
    """A picture of the page, written as ``<name>.svg`` and ``<name>.png``.

    Attributes:
        name: The file's name.
        caption: What it shows, in a sentence or two.
        draw: Makes it from the tables (`publications.figures` has what most pictures need).
    """

    name: str
    caption: str
    draw: Callable[[Tables], matplotlib.figure.Figure]


@dataclass(frozen=True)
class PaperTable:
    """A table of the page that no study gives as it is, written as ``<name>.csv``.

    Attributes:
        name: The file's name.
        title: What it shows.
        make: Its rows; all rows have the same keys, in the order of the columns.
    """

    name: str
    title: str
    make: Callable[[Tables], list[dict[str, Any]]]


@dataclass(frozen=True)
class Paper:
    """A paper that is put to the test.

    Attributes:
        name: As in ``wirelessfl papers run NAME``, in folders and in files.
        title: Its title.
        reference: Authors, venue and year.
        studies: What re-runs its experiments, in the order of the page.
        claims: What it says, each with the check that gives the verdict.
        figures: The pictures of its page.
        tables: Further tables of its page.
    """

    name: str
    title: str
    reference: str
    studies: tuple[PaperStudy, ...]
    claims: tuple[Claim, ...]
    figures: tuple[PaperFigure, ...] = ()
    tables: tuple[PaperTable, ...] = ()

    def studies_in(self, size: Size) -> tuple[PaperStudy, ...]:
        """The studies that exist in a size."""
        return tuple(study for study in self.studies if size in study.sizes)

    def study(self, name: str) -> PaperStudy:
        """A study by name."""
        return next(study for study in self.studies if study.name == name)
