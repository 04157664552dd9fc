"""The folder of a study: which files lie there, and which of its runs are finished."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wirelessfl.errors import OutputError, TraceError
from wirelessfl.locks import STUDY_LOCK
from wirelessfl.outputs import PARTIAL, refuse_inputs, write_text
from wirelessfl.study.task import Outcome
from wirelessfl.summary import to_json
from wirelessfl.trace import FINISHED, read_attributes
from wirelessfl.trace.containment import refuse_irregular

_MAX_NAMED = 5


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
        self.runs = path / "runs"

    def of_run(self, run: str) -> Path:
        """Where the run of this id has its trace."""
        return self.runs / run

    def trace(self, run: str) -> Path:
        """The trace of a run."""
        return self.of_run(run) / "trace.h5"

    def refuse_if_taken(self) -> None:
        """A study that lies here is only touched when it is to be continued.

        Raises:
            OutputError: a study lies here.
        """
        try:
            taken = self.record.exists()
        except OSError as error:  # such as a name that is too long
            raise OutputError(f"{self.path} cannot be written: {error.strerror}") from error
        if taken:
            raise OutputError(
                f"{self.path} holds a study already; use --resume to keep its finished runs and compute what is new or "
                "missing, or --out for another folder"
            )

    @property
    def files(self) -> tuple[Path, ...]:
        """What a study writes, but for its runs."""
        return (self.record, self.table, self.picture, self.report, self.log)

    def refuse_foreign(self, inputs: Iterable[str | Path] = ()) -> None:
        """A study begins where nothing else lies, and writes over nothing that it is made from.

        Args:
            inputs: files that the study is made from.

        Raises:
            OutputError: naming what else lies here, or the input that would be written over.
        """
        refuse_inputs(self.files, inputs)
        try:
            there = sorted(entry.name for entry in self.path.iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}") from error
        if self.record.name in there:
            return
        known = {self.log.name, self.runs.name, STUDY_LOCK}
        foreign = [name for name in there if name not in known and not name.startswith((PARTIAL, ".nfs"))]
        if foreign:
            raise OutputError(
                f"{self.path}: found what no study has written ({', '.join(foreign[:_MAX_NAMED])}); allowed: an empty "
                "or a new folder, or one with a study; choose another with --out"
            )

    def drop_results(self) -> None:
        """Take away what was made of the runs before the study changed.

        Raises:
            OutputError: the place cannot be written.
        """
        try:
            for file in (self.table, self.picture, self.report):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}") from error

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
        write_text(self.record, to_json(record))


def _read_json(path: Path) -> Any:
    refuse_irregular(path)
    return json.loads(path.read_text(encoding="utf-8"))
