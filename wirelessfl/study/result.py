"""Study on disk: its factors, the end of each run, and means over seeds with confidence intervals."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.errors import OutputError, precondition
from wirelessfl.result import Result, open_run
from wirelessfl.study.design import StudyDesign
from wirelessfl.study.factors import Factor, point_text, values_at
from wirelessfl.study.folder import StudyFolder
from wirelessfl.study.record import RunRecord
from wirelessfl.study.runs import matching, only_one, run_name
from wirelessfl.study.task import Outcome
from wirelessfl.summary import epsilon_text, number_text
from wirelessfl.summary.axes import XAxis, x_axis
from wirelessfl.summary.curves import Band, band

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "wirelessfl-study"
VERSION = 1
_EPSILONS = {"ε published": "epsilon_published", "ε accounted": "epsilon_accounted"}


@dataclass(frozen=True)
class Study:
    """A study and its results.

    Attributes:
        path: Its folder.
        name: Its name.
        factors: Its factors.
        metrics: Metrics of its picture.
        records: Every run, point by point.
        x: What the picture shows the metrics over.
    """

    path: Path
    name: str
    factors: tuple[Factor, ...]
    metrics: tuple[str, ...]
    records: tuple[RunRecord, ...]
    x: tuple[XAxis, ...] = ("round",)

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        keys = ", ".join(factor.name for factor in self.factors) or "seeds alone"
        head = f"<Study {self.name}: {len(self.complete)} of {len(self.records)} runs complete{failed}, over {keys}"
        return f"{', '.join([head, *self._ranges()])},\n in {self.path}>"

    def _ranges(self) -> Iterator[str]:
        # The least and the largest mean over the seeds, where there is one
        for words, name in {"accuracy": "test_accuracy", **_EPSILONS}.items():
            means = [float(one.mean[0]) for one in self.final(name).values() if not math.isnan(one.mean[0])]
            if means:
                ends = [
                    f"{end:.1%}" if name == "test_accuracy" else epsilon_text(end) for end in (min(means), max(means))
                ]
                yield f"{words} {' to '.join(dict.fromkeys(ends))}"

    @property
    def folder(self) -> StudyFolder:
        """Its folder."""
        return StudyFolder(self.path)

    @property
    def complete(self) -> tuple[RunRecord, ...]:
        """Complete runs."""
        return tuple(record for record in self.records if record.status == "complete")

    @property
    def failures(self) -> tuple[RunRecord, ...]:
        """Failed runs, each with its error."""
        return tuple(record for record in self.records if record.status == "failed")

    def points(self) -> dict[tuple[int, ...], tuple[RunRecord, ...]]:
        """Complete runs by point, also for points without any."""
        points: dict[tuple[int, ...], tuple[RunRecord, ...]] = {record.levels: () for record in self.records}
        for record in self.complete:
            points[record.levels] += (record,)
        return points

    def values(self, levels: tuple[int, ...]) -> dict[str, Any]:
        """Values of a point by key of the scenario."""
        return values_at(self.factors, levels)

    def describe(self, record: RunRecord) -> str:
        """Label of a run: its point and seed."""
        return run_name(self.factors, record)

    def run(self, which: str | None = None, /, **settings: Any) -> Result:
        """Result of one run, by its settings: ``study.run(snr_db=5, seed=7)``.

        Args:
            which: Its name as in runs/index.csv, or the beginning of its id; None for any.
            settings: Keys that vary, or the ends of their paths, with two underscores for a dot; and ``seed``.

        Raises:
            InputError: no run, several runs, or one that is not complete.
        """
        record = only_one(self.factors, matching(self.factors, self.records, which, settings))
        return open_run(self.folder.runs / record.run)

    def runs(self, **settings: Any) -> tuple[Result, ...]:
        """Results of all complete runs with these settings, in the order of the design.

        Args:
            settings: As for `run`.

        Raises:
            InputError: no run has them.
        """
        found = matching(self.factors, self.records, None, settings)
        return tuple(open_run(self.folder.runs / record.run) for record in found if record.status == "complete")

    def to_dataframe(self) -> pd.DataFrame:
        """One row a run and round: run, the factors, seed, round, and every per-round variable of the trace.

        Raises:
            OutputError: the study was stopped before its end.
        """
        import pandas as pd

        precondition(
            self.folder.table.exists(),
            f"{self.path}: this study has not ended; continue it with --resume",
            OutputError,
        )
        return pd.read_parquet(self.folder.table)

    def final(self, name: str) -> dict[tuple[int, ...], Band]:
        """A number of the runs' summaries by point: its mean over the seeds, with the 95 % confidence interval."""

        def number(record: RunRecord) -> float:
            value = (record.summary or {}).get(name)
            return math.nan if value is None else float(value)  # JSON has null for NaN and the text inf

        return {levels: band([[number(one)] for one in records]) for levels, records in self.points().items()}

    def as_mapping(self) -> dict[str, Any]:
        """Content of study.json."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "metrics": list(self.metrics),
            "x": list(self.x),
            "factors": [{"keys": list(one.keys), "levels": list(map(list, one.levels))} for one in self.factors],
            "runs": [{**asdict(record), "levels": list(record.levels)} for record in self.records],
        }

    def _repr_html_(self) -> str:
        accuracy = self.final("test_accuracy")
        epsilons = {words: self.final(name) for words, name in _EPSILONS.items()}
        spent = {"heard": self.final("participants_mean"), "airtime (s)": self.final("airtime")}
        rows = "".join(
            f"<tr><td>{html.escape(point_text(self.factors, levels))}</td><td>{len(records)}</td>"
            f"<td>{accuracy[levels].text(0, percent=True)}</td>"
            + "".join(f"<td>{epsilon_text(float(final[levels].mean[0]))}</td>" for final in epsilons.values())
            + "".join(f"<td>{number_text(float(final[levels].mean[0]), 3)}</td>" for final in spent.values())
            + "</tr>"
            for levels, records in self.points().items()
        )
        head = "".join(f"<th>{words}</th>" for words in ("point", "runs", "test accuracy", *epsilons, *spent))
        failed = f", {len(self.failures)} failed" if self.failures else ""
        caption = f"{html.escape(self.name)}: {len(self.complete)} of {len(self.records)} runs{failed}"
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def study_of(design: StudyDesign, folder: StudyFolder, outcomes: Mapping[str, Outcome]) -> Study:
    """The study as it stands, by the outcomes that are known and, for other runs, by what is on disk."""
    records = []
    for run in design.runs:
        outcome = outcomes.get(run.id) or folder.finished(run.id)
        status = "interrupted" if folder.trace(run.id).exists() else "waiting"
        ended = (status,) if outcome is None else (outcome.status, outcome.error, outcome.summary)
        records.append(RunRecord(run.id, run.levels, run.scenario.seed, *ended))
    return Study(folder.path, design.name, design.factors, design.metrics, tuple(records), design.x)


def open_study(path: str | Path) -> Study:
    """The study that lies in a folder.

    Raises:
        OutputError: there is none of this version.
    """
    folder = StudyFolder(Path(path))
    record = folder.read_record()
    ours = isinstance(record, dict) and record.get("format") == FORMAT and record.get("version") == VERSION
    precondition(ours, f"{folder.record}: not a wirelessfl study of version {VERSION}", OutputError)
    factors = [Factor(tuple(f["keys"]), tuple(map(tuple, f["levels"]))) for f in record["factors"]]
    records = [RunRecord(**{**run, "levels": tuple(run["levels"])}) for run in record["runs"]]
    x = tuple(map(x_axis, record.get("x", ["round"])))  # a record of 0.2 has none
    return Study(folder.path, record["name"], tuple(factors), tuple(record["metrics"]), tuple(records), x)
