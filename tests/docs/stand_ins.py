"""Stand-ins for trackers that are not installed: they keep what is logged."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, TracebackType
from typing import Any

import pytest

TRACKERS = ("wandb", "mlflow")


class Tracker:
    """What the pages call of either tracker, and what they gave it."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, dict[str, float]]] = []
        self.settings: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.folders: list[str] = []
        self.ended = False

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.ended = True

    def begin(self, **settings: Any) -> Tracker:
        """Begin of a run."""
        self.settings |= settings
        return self

    def log(self, values: dict[str, float], step: int) -> None:
        """Numbers of a step."""
        self.steps.append((step, values))

    def log_params(self, params: dict[str, Any]) -> None:
        """Settings of the run."""
        self.settings |= params

    def log_artifacts(self, folder: str, place: str) -> None:
        """A folder that goes along."""
        self.folders.append(folder)


def put_in_place(monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...] = TRACKERS) -> dict[str, Tracker]:
    """Stand-ins under these names of modules."""
    trackers = {name: Tracker() for name in names}
    for name, tracker in trackers.items():
        module = ModuleType(name)
        calls = {"init": tracker.begin, "start_run": tracker.begin, "log_metrics": tracker.log}
        for call, function in {
            **calls,
            "log_params": tracker.log_params,
            "log_artifacts": tracker.log_artifacts,
        }.items():
            monkeypatch.setattr(module, call, function, raising=False)
        monkeypatch.setitem(sys.modules, name, module)
    return trackers


def missing(names: tuple[str, ...] = TRACKERS) -> tuple[str, ...]:
    """The ones that are not installed."""
    return tuple(name for name in names if importlib.util.find_spec(name) is None)
