"""A paper of two studies, with numbers made up so that every verdict is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from publications.claims import Claim, Comparison, greater, not_tested
from publications.figures import accuracy_axis, draw_curves, draw_final, legend_below, new_figure
from publications.joint_curves import CurveRow
from publications.paper import Coverage, Paper, PaperFigure, PaperTable
from publications.provenance import Provenance
from publications.studies import AtEqualEpsilon, AuditOf, PaperNumber, PaperStudy
from publications.tables import METRICS, AuditRow, RunRow, StudyTable, Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RULE, SNR = "training.algorithm.name", "uplink.snr_db"
ABOUT = {
    "paper": "example",
    "size": "small",
    "overrides": [],
    "command": "wirelessfl papers run example --size small",
    "version": "0",
    "torch": "2",
    "seeds": {"first": [1, 2, 3], "second": [1, 2, 3]},
    "runs": {"first": 9, "second": 3},
}


ORIGIN = Provenance("0123456789ab", "0", "1", "2", "cpu, 1 thread", "a processor", 2.5)


def numbers(accuracy: float, epsilon: float = 1.0) -> dict[str, float]:
    """The numbers of a run; what does not matter is NaN."""
    known = {"test_accuracy": accuracy, "late_accuracy": accuracy, "first_accuracy": 0.1}
    known |= {"epsilon_published": epsilon, "epsilon_accounted": 10 * epsilon}
    return {metric: known.get(metric, math.nan) for metric in METRICS}


def study(name: str, accuracies: dict[str, list[float]], key: str = RULE) -> StudyTable:
    """A study of one key; one run a seed."""
    runs = tuple(
        RunRow({key: level}, seed, 5, numbers(value), f"{level}{seed}", ORIGIN)
        for level, values in accuracies.items()
        for seed, value in enumerate(values, start=1)
    )
    curves = tuple(CurveRow({key: level}, at, 0.1 * at, 0.01, 3) for level in accuracies for at in (1, 2))
    audits = (AuditRow({key: next(iter(accuracies))}, 1, 40, "sample", 1.0, 4.0, 10.0, 1e-5, "a canary"),)
    return StudyTable(name, (key,), runs, curves, audits, len(runs))


def at(level: str) -> tuple[str, dict[str, str]]:
    """A point of the first study."""
    return "first", {RULE: level}


def _curves(tables: Tables) -> Figure:
    figure, panels = new_figure(2)
    draw_curves(panels[0][0], tables.study("first"), [("good", {RULE: "good"}), ("bad", {RULE: "bad"})])
    draw_final(panels[0][1], tables, "first", [("both", [{RULE: "good"}, {RULE: "bad"}])], ["good", "bad"])
    accuracy_axis(panels[0][0])
    legend_below(figure, panels[0][0])
    return figure


def _nothing(tables: Tables) -> Figure:
    tables.study("absent")
    raise AssertionError


EXAMPLE = Paper(
    name="example",
    title="An example",
    reference="Nobody, 2026",
    studies=(
        PaperStudy(
            "first",
            "Good and bad | and so on",
            numbers=(PaperNumber({RULE: "good"}, 0.75, "Table I"),),
            equal=AtEqualEpsilon("second", lambda point: {SNR: 5} if point[RULE] == "good" else None),
            audits=(AuditOf({RULE: "good"}, 40),),
            words={RULE: "rule", "good": "GOOD"},
        ),
        PaperStudy("second", "At equal ε"),
        PaperStudy("absent", "Never run", sizes=("full",)),
    ),
    claims=(
        Claim("Good is better than bad.", "Fig. 1", greater(Comparison("good − bad", at("good"), at("bad")))),
        Claim("Bad is better than good.", "Fig. 1", greater(Comparison("bad − good", at("bad"), at("good")))),
        Claim("Good is better than itself.", "Fig. 2", greater(Comparison("same", at("good"), at("same")))),
        Claim("Good is 30 points better.", "Fig. 2", greater(Comparison("30", at("good"), at("bad")), least=0.3)),
        Claim("Absent is good.", "Fig. 3", greater(Comparison("?", ("absent", {}), at("bad")))),
        Claim("It works elsewhere.", "Fig. 4", lambda tables: not_tested("needs data that are not public")),
    ),
    figures=(PaperFigure("curves", "Curves.", _curves), PaperFigure("nothing", "Nothing.", _nothing)),
    coverage=(Coverage("Fig. 1", "curves", "#curves"), Coverage("Fig. 2", "a photograph", reason="nothing to run")),
    tables=(PaperTable("more", "More", lambda tables: [{"a": 0.5, "b": "x|y"}]),),
)

TABLES = Tables(
    ABOUT,
    {
        "first": study("first", {"good": [0.80, 0.70, 0.60], "bad": [0.60, 0.51, 0.39], "same": [0.79, 0.71, 0.60]}),
        "second": study("second", {"5": [0.3, 0.4, 0.5]}, SNR),
    },
)
