"""Folder of a study: its files, and the finished ones of its runs."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wirelessfl.errors import OutputError, TraceError, precondition
from wirelessfl.outputs import STUDY_LOCK, refuse_foreign, refuse_inputs, write_text, writing
from wirelessfl.study.task import Outcome
from wirelessfl.summary import to_json
from wirelessfl.summary.style import figure_files
from wirelessfl.trace import FINISHED, read_attributes, refuse_irregular


class StudyFolder:
    """Folder of a study: study.yaml, study.json, study.parquet, its figure, report.html, and a folder for each run.

    Args:
        path: The folder, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record = path / "study.json"
        self.file = path / "study.yaml"
        self.table = path / "study.parquet"
        self.figure = path / "study"
        self.report = path / "report.html"
        self.log = path / "workers.log"
        self.runs = path / "runs"
        self.index = self.runs / "index.csv"

    def trace(self, run: str) -> Path:
        """Trace of a run, by id."""
        return self.runs / run / "trace.h5"

    def refuse_if_taken(self) -> None:
        """Refusal of a folder with a study.

        Raises:
            OutputError: a study lies here.
        """
        with writing(self.path):  # the name may be too long
            taken = self.record.exists()
        precondition(
            not taken,
            f"{self.path} holds a study already; use --resume to keep its finished runs and compute what is new or "
            "missing, or --out for another folder",
            OutputError,
        )

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that a study writes, without its runs."""
        return (self.record, self.file, self.table, *figure_files(self.figure), self.report, self.log)

    def refuse_foreign(self, inputs: Iterable[str | Path] = ()) -> None:
        """Refusal of a folder with files that no study wrote.

        Args:
            inputs: files that the study is made from.

        Raises:
            OutputError: naming what else lies here, or the input that would be written over.
        """
        refuse_inputs(self.files, inputs)
        own = {self.log.name, self.runs.name, STUDY_LOCK}
        allowed = "an empty or a new folder, or one with a study"
        refuse_foreign(self.path, lambda there: set(there) if self.record.name in there else own, "study", allowed)

    def drop_results(self) -> None:
        """Removal of table, figures and report.

        Raises:
            OutputError: the place cannot be written.
        """
        with writing(self.path):
            for file in (self.table, *figure_files(self.figure), self.report):
                file.unlink(missing_ok=True)

    def finished(self, run: str) -> Outcome | None:
        """Outcome of a run that is complete on disk, else None."""
        try:
            ended = read_attributes(self.trace(run))["status"] in FINISHED
            return Outcome(run, "complete", summary=_read_json(self.runs / run / "summary.json")) if ended else None
        except (TraceError, OSError, ValueError):
            return None

    def read_record(self) -> Any:
        """Content of study.json.

        Raises:
            OutputError: there is no readable one.
        """
        try:
            return _read_json(self.record)
        except (OSError, ValueError) as error:
            raise OutputError(f"{self.record}: no readable study ({error})") from error

    def write_record(self, record: dict[str, Any]) -> None:
        """Atomic write of study.json.

        Raises:
            OutputError: the place cannot be written.
        """
        write_text(self.record, to_json(record))


def _read_json(path: Path) -> Any:
    refuse_irregular(path)
    return json.loads(path.read_text(encoding="utf-8"))
