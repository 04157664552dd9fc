"""A paper: the studies that re-run its experiments, its claims, and the tables and pictures of its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
        runs: Whether it shows runs; the caption of one that does not has no size.
    """

    name: str
    caption: str
    draw: Callable[[Tables], matplotlib.figure.Figure]
    runs: bool = True


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
class Setting:
    """A line of the table *paper's setting, ours*.

    Attributes:
        name: What is set.
        paper: As the paper has it; ``not stated`` where it does not say.
        key: Key of the scenarios that holds ours, e.g. ``clients.count``: its values are read from the study files.
        study: Of which study; empty for the first one of a size.
        ours: In words, by size, where no key holds it.
    """

    name: str
    paper: str
    key: str = ""
    study: str = ""
    ours: Mapping[Size, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Coverage:
    """A figure, table or theorem of the paper, and where it stands on its page.

    Attributes:
        item: As ``Fig. 3``.
        shows: What it shows.
        where: Heading of the page as a link, e.g. ``#noise-and-local-steps``; empty where it is not there.
        reason: Why it is not there, or what differs.
    """

    item: str
    shows: str
    where: str = ""
    reason: str = ""


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
        setting: The paper's setting beside ours.
        coverage: Every figure, table and theorem of the paper.
    """

    name: str
    title: str
    reference: str
    studies: tuple[PaperStudy, ...]
    claims: tuple[Claim, ...]
    figures: tuple[PaperFigure, ...] = ()
    tables: tuple[PaperTable, ...] = ()
    setting: tuple[Setting, ...] = ()
    coverage: tuple[Coverage, ...] = ()

    def studies_in(self, size: Size) -> tuple[PaperStudy, ...]:
        """The studies that exist in a size."""
        return tuple(study for study in self.studies if size in study.sizes)

    def study(self, name: str) -> PaperStudy:
        """A study by name."""
        return next(study for study in self.studies if study.name == name)
