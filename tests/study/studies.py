"""Small studies, and workers inside the test's own process."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pandas as pd

from wirelessfl.scenario.yamltree import dump_yaml
from wirelessfl.study import Message, StudyDesign, load_study
from wirelessfl.study.task import Task, run_task

BASE: dict[str, Any] = {
    "name": "small",
    "seed": 11,
    "rounds": 3,
    "data": {"limit": 120, "partition": {"scheme": "iid"}},
    "model": {"name": "mlp", "hidden": [8]},
    "clients": {"count": 6},
    "training": {"algorithm": {"name": "fedavg"}, "epochs": 1},
}
SLOW_ROUNDS = 150
"""Rounds of a run that is still going on when a test interferes with it: a second or more."""


def write_study(folder: Path, name: str = "small-study", **keys: Any) -> Path:
    """A study file over the small scenario."""
    path = folder / f"{name}.yaml"
    path.write_text(dump_yaml({"base": BASE, **keys}), encoding="utf-8")
    return path


def design(folder: Path, overrides: dict[str, Any] | None = None, **keys: Any) -> StudyDesign:
    """The design of a study over the small scenario."""
    return load_study(write_study(folder, **keys), overrides or {})


def without_clock(table: pd.DataFrame) -> pd.DataFrame:
    """A study's table without what no two executions share."""
    return table.drop(columns="wall_time")


def same_numbers(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether two tables agree in every bit but the wall clock's; NaN equals NaN."""
    a, b = without_clock(one), without_clock(other)
    return list(a) == list(b) and len(a) == len(b) and all(_same(a[name], b[name]) for name in a)


def _same(one: pd.Series[Any], other: pd.Series[Any]) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


class InlineWorkers:
    """Workers that compute in this process, one run after another, when they are asked for a message."""

    def __init__(self) -> None:
        """No work yet."""
        self.submitted: list[Task] = []
        self._waiting: deque[Task] = deque()
        self._messages: deque[Message] = deque()

    def __enter__(self) -> Self:
        return self

    def submit(self, task: Task) -> None:
        """Remember a task."""
        self.submitted.append(task)
        self._waiting.append(task)

    def next_message(self, timeout: float) -> Message | None:
        """Compute the next run where no message is left."""
        if not self._messages and self._waiting:
            self._messages.append(run_task(self._waiting.popleft(), self._messages.append))
        return self._messages.popleft() if self._messages else None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._waiting.clear()
        self._messages.clear()
