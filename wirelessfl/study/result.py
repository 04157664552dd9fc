"""Study on disk: its factors, and the end of each run."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.errors import OutputError
from wirelessfl.study.bands import Band, band
from wirelessfl.study.design import StudyDesign
from wirelessfl.study.factors import Factor, point_text, values_at
from wirelessfl.study.folder import StudyFolder
from wirelessfl.study.task import Outcome
from wirelessfl.summary import epsilon_text

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "wirelessfl-study"
VERSION = 1


@dataclass(frozen=True)
class RunRecord:
    """State of one run.

    Attributes:
        run: The hash of its scenario; its trace lies in runs/<run>/.
        levels: The level of each factor.
        seed: Its seed.
        status: waiting, interrupted, failed or complete.
        error: Reason of a failure.
        summary: Content of its summary.json, if it is complete; infinity is the text inf there, NaN is None.
    """

    run: str
    levels: tuple[int, ...]
    seed: int
    status: str
    error: str | None = None
    summary: dict[str, Any] | None = None


@dataclass(frozen=True)
class Study:
    """A study and its results.

    Attributes:
        path: Its folder.
        name: Its name.
        factors: Its factors.
        metrics: Metrics of its picture.
        records: Every run, point by point.
    """

    path: Path
    name: str
    factors: tuple[Factor, ...]
    metrics: tuple[str, ...]
    records: tuple[RunRecord, ...]

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
        return f"{point_text(self.factors, record.levels)}, seed {record.seed}"

    def to_dataframe(self) -> pd.DataFrame:
        """One row a run and round: run, the factors, seed, round, and every per-round variable of the trace.

        Raises:
            OutputError: the study was stopped before its end.
        """
        import pandas as pd

        if not self.folder.table.exists():
            raise OutputError(f"{self.path}: this study has not ended; continue it with --resume")
        return pd.read_parquet(self.folder.table)

    def final(self, name: str) -> dict[tuple[int, ...], Band]:
        """A number of the runs' summaries by point: its mean over the seeds, with the 95 % confidence interval."""
        return {
            levels: band([[_number((record.summary or {}).get(name))] for record in records])
            for levels, records in self.points().items()
        }

    def as_mapping(self) -> dict[str, Any]:
        """Content of study.json."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "metrics": list(self.metrics),
            "factors": [_plain(asdict(factor)) for factor in self.factors],
            "runs": [_plain(asdict(record)) for record in self.records],
        }

    def _repr_html_(self) -> str:
        accuracy = self.final("test_accuracy")
        epsilons = {"ε published": self.final("epsilon_published"), "ε accounted": self.final("epsilon_accounted")}
        rows = "".join(
            f"<tr><td>{html.escape(point_text(self.factors, levels))}</td><td>{len(records)}</td>"
            f"<td>{accuracy[levels].text(0, percent=True)}</td>"
            + "".join(f"<td>{epsilon_text(float(final[levels].mean[0]))}</td>" for final in epsilons.values())
            + "</tr>"
            for levels, records in self.points().items()
        )
        head = "".join(f"<th>{words}</th>" for words in ("point", "runs", "test accuracy", *epsilons))
        failed = f", {len(self.failures)} failed" if self.failures else ""
        caption = f"{html.escape(self.name)}: {len(self.complete)} of {len(self.records)} runs{failed}"
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def study_of(design: StudyDesign, folder: StudyFolder, outcomes: Mapping[str, Outcome]) -> Study:
    """The study as it stands, by the outcomes that are known and, for other runs, by what is on disk."""
    records = []
    for run in design.runs:
        outcome = outcomes.get(run.id) or folder.finished(run.id)
        if outcome is None:
            status = "interrupted" if folder.trace(run.id).exists() else "waiting"
            records.append(RunRecord(run.id, run.levels, run.scenario.seed, status))
        else:
            ended = (outcome.status, outcome.error, outcome.summary)
            records.append(RunRecord(run.id, run.levels, run.scenario.seed, *ended))
    return Study(folder.path, design.name, design.factors, design.metrics, tuple(records))


def open_study(path: str | Path) -> Study:
    """The study that lies in a folder.

    Raises:
        OutputError: there is none of this version.
    """
    folder = StudyFolder(Path(path))
    record = folder.read_record()
    if not isinstance(record, dict) or record.get("format") != FORMAT or record.get("version") != VERSION:
        raise OutputError(f"{folder.record}: not a wirelessfl study of version {VERSION}")
    factors = [Factor(tuple(f["keys"]), tuple(map(tuple, f["levels"]))) for f in record["factors"]]
    records = [RunRecord(**{**run, "levels": tuple(run["levels"])}) for run in record["runs"]]
    return Study(folder.path, record["name"], tuple(factors), tuple(record["metrics"]), tuple(records))


def _number(value: Any) -> float:
    # A number of a summary; JSON has null for NaN and the text inf
    return float("nan") if value is None else float(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
