"""The folder of a study: which files lie there, and which of its runs are finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wirelessfl.errors import OutputError, TraceError
from wirelessfl.study.task import Outcome
from wirelessfl.summary import to_json
from wirelessfl.trace import FINISHED, read_attributes


class StudyFolder:
    """study.json, study.parquet, study.png and report.html of a study, and a folder for each of its runs."""

    def __init__(self, path: Path) -> None:
        """The folder at ``path``, which need not exist yet."""
        self.path = path
        self.record = path / "study.json"
        self.table = path / "study.parquet"
        self.picture = path / "study.png"
        self.report = path / "report.html"
        self.log = path / "workers.log"

    def of_run(self, run: str) -> Path:
        """Where the run of this id has its trace."""
        return self.path / "runs" / run

    def trace(self, run: str) -> Path:
        """The trace of a run."""
        return self.of_run(run) / "trace.h5"

    def refuse_if_taken(self) -> None:
        """A study that lies here is only touched when it is to be continued.

        Raises:
            OutputError: a study lies here.
        """
        if self.record.exists():
            raise OutputError(
                f"{self.path} holds a study already; use --resume to keep its finished runs and compute what is new or "
                "missing, or --out for another folder"
            )

    def drop_results(self) -> None:
        """Take away what was made of the runs before the study changed."""
        for file in (self.table, self.picture, self.report):
            file.unlink(missing_ok=True)

    def finished(self, run: str) -> Outcome | None:
        """The outcome of a run that is complete on disk, else None."""
        try:
            if read_attributes(self.trace(run))["status"] not in FINISHED:
                return None
            return Outcome(run, "complete", summary=_read_json(self.of_run(run) / "summary.json"))
        except (TraceError, OSError, ValueError):
            return None

    def read_record(self) -> dict[str, Any]:
        """study.json.

        Raises:
            OutputError: there is no readable one.
        """
        try:
            record: dict[str, Any] = _read_json(self.record)
        except (OSError, ValueError) as error:
            raise OutputError(f"{self.record}: no readable study ({error})") from error
        return record

    def write_record(self, record: dict[str, Any]) -> None:
        """Put study.json in place of the one before it.

        Raises:
            OutputError: the place cannot be written.
        """
        new = self.record.with_suffix(".new")
        try:
            new.write_text(to_json(record), encoding="utf-8")
            new.replace(self.record)
        except OSError as error:
            raise OutputError(f"{self.record} cannot be written: {error.strerror}") from error


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
