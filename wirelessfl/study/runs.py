"""Runs of a study by what they are: found by their settings, and listed in runs/index.csv beside their folders."""

import csv
import difflib
import io
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wirelessfl.errors import InputError
from wirelessfl.outputs import write_text
from wirelessfl.scenario.python_values import SEPARATOR
from wirelessfl.study.factors import Factor, point_text, value_text, values_at
from wirelessfl.study.record import RunRecord

_NUMBERS = ("test_accuracy", "epsilon_published", "epsilon_accounted")
_SHORTEST_ID = 4
_MOST = 5  # runs that a message names


def run_name(factors: Sequence[Factor], record: RunRecord) -> str:
    """Readable name of a run: its point and seed."""
    return f"{point_text(factors, record.levels)}, seed {record.seed}"


def index_text(factors: Sequence[Factor], records: Iterable[RunRecord]) -> str:
    """CSV with one line a run: its folder, the keys that vary, seed, status, final numbers, name and error."""
    keys = [key for factor in factors for key in factor.keys]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["run", *keys, "seed", "status", *_NUMBERS, "name", "error"])
    for record in records:
        values = values_at(factors, record.levels)
        summary = record.summary or {}
        table.writerow(
            [
                record.run,
                *(value_text(values[key], limit=1000) for key in keys),
                record.seed,
                summary.get("status", record.status),
                *("" if summary.get(name) is None else summary[name] for name in _NUMBERS),
                run_name(factors, record),
                " ".join((record.error or "").split()),
            ]
        )
    return text.getvalue()


class RunIndex:
    """The file runs/index.csv, written again while a study goes on, but not all the time.

    Args:
        path: Where it goes.
        clock: Seconds, for tests.
    """

    SHARE = 0.02  # of the time may go into making and writing its text
    INTERVAL_S = 1.0

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._due = -math.inf

    def refresh(self, text: Callable[[], str]) -> None:
        """Atomic write of the text where one is due.

        Raises:
            OutputError: the place cannot be written.
        """
        if self._clock() >= self._due:
            self.write(text)

    def write(self, text: Callable[[], str]) -> None:
        """Atomic write of the text.

        Raises:
            OutputError: the place cannot be written.
        """
        began = self._clock()
        self._path.parent.mkdir(exist_ok=True)
        write_text(self._path, text())
        ended = self._clock()
        self._due = ended + max(self.INTERVAL_S, (ended - began) / self.SHARE)


def matching(
    factors: Sequence[Factor], records: Sequence[RunRecord], which: str | None, settings: Mapping[str, Any]
) -> list[RunRecord]:
    """Runs with a name, or the beginning of an id, and with settings.

    Args:
        factors: Of the study.
        records: Of the study.
        which: ``"4f0c"``, the beginning of an id, or a name as in runs/index.csv; None for any.
        settings: ``{"snr_db": 5, "seed": 7}``: ends of keys that vary, with two underscores for a dot, and values.

    Raises:
        InputError: there is no such key, value or run.
    """
    wanted = [_setting(factors, records, name, value) for name, value in settings.items()]
    found = [record for record in records if all(holds(record) for holds in wanted)]
    if which is not None:
        found = [one for one in found if _is_named(factors, one, which)]
    if not found:
        words = ", ".join(
            [*([which] if which is not None else []), *(f"{key}={value!r}" for key, value in settings.items())]
        )
        raise InputError(f"{words}: found no such run; allowed: {_some(factors, records)}")
    return found


def only_one(factors: Sequence[Factor], found: Sequence[RunRecord]) -> RunRecord:
    """The one complete run among those that were found.

    Raises:
        InputError: there are several, or it is not complete.
    """
    if len(found) > 1:
        allowed = "settings of one run (Study.runs gives all)"
        raise InputError(f"found {len(found)} runs: {_some(factors, found)}; allowed: {allowed}")
    record = found[0]
    if record.status != "complete":
        why = f" ({record.error})" if record.error else ""
        raise InputError(
            f"{run_name(factors, record)}: found a run that is {record.status}{why}; allowed: a complete one"
        )
    return record


def _setting(
    factors: Sequence[Factor], records: Sequence[RunRecord], name: str, value: Any
) -> Callable[[RunRecord], bool]:
    if name == "seed":
        return lambda record: record.seed == value
    path = name.split(SEPARATOR)
    keys = [key for factor in factors for key in factor.keys]
    meant = [key for key in keys if key.split(".")[-len(path) :] == path]
    if len(meant) != 1:
        found = "the end of several keys" if meant else "no key that varies in this study"
        near = difflib.get_close_matches(name, [key.rpartition(".")[2] for key in keys], n=1)
        hint = f"; did you mean {near[0]}?" if near and not meant else ""
        raise InputError(f"{name}: found {found}; allowed: {', '.join([*(meant or keys), 'seed'])}{hint}")
    key = meant[0]
    there = [values_at(factors, record.levels)[key] for record in records]
    if value not in there:
        listed = ", ".join(dict.fromkeys(map(value_text, there)))
        raise InputError(f"{name}={value!r}: found no run with that value of {key}; allowed: {listed}")
    return lambda record: bool(values_at(factors, record.levels)[key] == value)


def _is_named(factors: Sequence[Factor], record: RunRecord, which: str) -> bool:
    is_id = len(which) >= _SHORTEST_ID and record.run.startswith(which)
    return is_id or run_name(factors, record) == which


def _some(factors: Sequence[Factor], records: Sequence[RunRecord]) -> str:
    names = [f"{record.run} ({run_name(factors, record)})" for record in records[:_MOST]]
    return "; ".join([*names, *([f"and {len(records) - _MOST} more"] if len(records) > _MOST else [])])
