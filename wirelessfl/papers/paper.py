"""What a paper is here: the studies that re-run its experiments, its claims, and the pictures of its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pathlib import Path

    import matplotlib.figure
    import numpy as np
    from numpy.typing import NDArray

    from wirelessfl.papers.claims import Claim
    from wirelessfl.papers.tables import Tables

Size = Literal["small", "full"]
SIZES: tuple[Size, ...] = ("small", "full")

Point = Mapping[str, Any]
"""Where a number stands in a study: key of the scenario to its value, for the keys that the study varies."""


@dataclass(frozen=True)
class PaperNumber:
    """A number that the paper itself gives.

    Attributes:
        point: At which point of the study; a part of its keys is enough, and then all points that agree have it.
        value: The number, an accuracy between 0 and 1.
        source: Where it stands, e.g. ``Table III``; ``read off Fig. 4`` where there is a curve only.
    """

    point: Point
    value: float
    source: str


@dataclass(frozen=True)
class AtEqualEpsilon:
    """The third column: the same mechanism, with its noise set so that the *accounted* ε is the one stated.

    Attributes:
        study: The study of the same paper in which the noise is set so.
        place: From a point of this study to the point there; None where there is no such run.
    """

    study: str
    place: Callable[[Point], Point | None]


@dataclass(frozen=True)
class AuditOf:
    """A point whose mechanism is audited: a lower bound on ε from distinguishing games.

    Attributes:
        point: A point of the study (a part of its keys is enough: the first point that agrees is taken).
        trials: Games in either world.
        changes: What the audited scenario changes, e.g. fewer rounds; state it on the page.
    """

    point: Point
    trials: int
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PaperStudy:
    """One study of a paper: ``scenarios/papers/<paper>/<size>/<name>.yaml``.

    Attributes:
        name: The file's name, without its suffix.
        title: What it re-runs, with the paper's figure or table.
        numbers: What the paper says, where it gives numbers.
        equal: Where the accuracy at equal accounted ε comes from.
        audits: Which points are audited.
        sizes: In which sizes there is such a file.
        words: Short words for the page instead of a key or of a value's text, e.g. ``training.algorithm.name`` to
            ``algorithm`` and ``fedavg`` to ``FedAvg``.
        curve: What is followed over the rounds instead of test accuracy: from the trace of a run to one value a round.
    """

    name: str
    title: str
    numbers: tuple[PaperNumber, ...] = ()
    equal: AtEqualEpsilon | None = None
    audits: tuple[AuditOf, ...] = ()
    sizes: tuple[Size, ...] = SIZES
    words: Mapping[str, str] = field(default_factory=dict)
    curve: Callable[[Path], NDArray[np.float64]] | None = None


@dataclass(frozen=True)
class PaperFigure:
    """A picture of the page, written as ``<name>.svg`` and ``<name>.png``.

    Attributes:
        name: The file's name.
        caption: What it shows, in a sentence or two.
        draw: Makes it from the tables (`wirelessfl.papers.figures` has what most pictures need).
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
