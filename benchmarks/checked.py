"""Comparisons of commits that were made, in ``results/benchmarks/checked.csv``."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from benchmarks.measurement import Case
from benchmarks.paired import Ratio


@dataclass(frozen=True)
class Checked:
    """One compared case, a line of the file.

    Attributes:
        date: of the measurement.
        commit: that was checked, with ``+`` where files differ from it.
        against: the commit it was compared with.
        group: of the case.
        case: its name.
        ratio: median speed over that of the other commit; above one is faster.
        low: lower end of the 95 % interval.
        high: its upper end.
        pairs: number of pairs.
        threads: of each measurement.
    """

    date: str
    commit: str
    against: str
    group: str
    case: str
    ratio: float
    low: float
    high: float
    pairs: int
    threads: int

    @classmethod
    def now(cls, commit: str, against: str, case: Case, ratio: Ratio, threads: int) -> Self:
        """The line of a case that has just been measured."""
        date = datetime.now(UTC).isoformat(timespec="minutes")
        values = (ratio.median, ratio.low, ratio.high)
        return cls(date, commit, against, case.group, case.name, *values, ratio.pairs, threads)


def append(row: Checked, path: Path) -> None:
    """Add a line, four digits each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    begins = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if begins:
            writer.writerow(item.name for item in fields(Checked))
        writer.writerow(f"{x:.4g}" if isinstance(x, float) else x for x in asdict(row).values())


def last_commit(path: Path) -> str | None:
    """The commit that was checked last without changes beside it; None where none was."""
    if not path.exists():
        return None
    with path.open(newline="", encoding="utf-8") as file:
        commits = [line["commit"] for line in csv.DictReader(file)]
    return next((commit for commit in reversed(commits) if commit and not commit.endswith("+")), None)
