"""Studies of a paper: what re-runs its experiments, and the numbers that the paper gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.scenario import Scenario

Size = Literal["small", "medium", "full"]
SIZES: tuple[Size, ...] = ("small", "medium", "full")
"""From what two cores do in minutes to the paper's own size."""

STUDIES = Path(__file__).resolve().parents[1] / "scenarios" / "papers"
"""Folder of the study files, beside this package."""

Point = Mapping[str, Any]
"""Where a number stands in a study: key of the scenario to its value, for the keys that the study varies."""


FollowedNumber = Callable[[Scenario, Path], NDArray[np.float64]]
"""From the scenario of a run and its trace to one value a round."""

MeasuredNumber = Callable[[Scenario, Path], float]
"""From the scenario of a run and its trace to a number of the run; NaN where it has none."""


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
        sizes: In which sizes there is such a file; ``medium`` is for some studies only.
        words: Short words for the page instead of a key or of a value's text, e.g. ``training.algorithm.name`` to
            ``algorithm`` and ``fedavg`` to ``FedAvg``.
        curves: What is followed over the rounds beside `publications.tables.FOLLOWED`, by name: from the scenario of a
            run and its trace to one value a round.
        measured: Numbers of a run beside `publications.tables.METRICS`, by name: from its scenario and its trace.
    """

    name: str
    title: str
    numbers: tuple[PaperNumber, ...] = ()
    equal: AtEqualEpsilon | None = None
    audits: tuple[AuditOf, ...] = ()
    sizes: tuple[Size, ...] = ("small", "full")
    words: Mapping[str, str] = field(default_factory=dict)
    curves: Mapping[str, FollowedNumber] = field(default_factory=dict)
    measured: Mapping[str, MeasuredNumber] = field(default_factory=dict)
