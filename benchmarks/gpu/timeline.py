"""Where the wall time of one round of local training goes on a GPU, from the events of ``torch.profiler``.

The profiler itself takes time on the host, so that the share of launches is an upper bound.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.gpu.setting import Measure, Measured, Setting
from benchmarks.gpu.tasks import CNN_CIFAR10, W1, W2, Task
from benchmarks.gpu.training import train_once
from benchmarks.recorded import prepare

Kind = Literal["kernel", "copy", "launch"]
_ROUND = "one round"
_COPIES = {"gpu_memcpy", "gpu_memset"}
_CALLS = {"cuda_runtime", "cuda_driver"}


class Span(NamedTuple):
    """Something that lasts from ``start`` to ``end``, in microseconds."""

    kind: Kind
    start: float
    end: float


class Shares(NamedTuple):
    """Shares of the wall time, which add up to 1.

    Attributes:
        kernel: In which at least one kernel runs.
        copy: In which memory is copied or set and no kernel runs.
        launch: In which the GPU does nothing and the host is in a call that launches something.
        idle: The rest.
    """

    kernel: float
    copy: float
    launch: float
    idle: float


def shares(spans: Iterable[Span], start: float, end: float) -> Shares:
    """What fills the time between ``start`` and ``end``, where spans may overlap and reach beyond."""
    spans = list(spans)
    kinds: tuple[Kind, ...] = ("kernel", "copy", "launch")
    filled = [0.0]
    for count in range(1, 4):
        filled.append(_covered([span for span in spans if span.kind in kinds[:count]], start, end) / (end - start))
    return Shares(*(after - before for before, after in zip(filled, [*filled[1:], 1.0], strict=True)))


def _covered(spans: Iterable[Span], start: float, end: float) -> float:
    """Length of the union of the spans between ``start`` and ``end``."""
    total, reached = 0.0, start
    for span in sorted(spans, key=lambda span: span.start):
        begin, stop = max(span.start, reached), min(span.end, end)
        if stop > begin:
            total += stop - begin
            reached = stop
    return total


def read_spans(events: Iterable[Mapping[str, Any]]) -> tuple[list[Span], float, float]:
    """Spans, start and end of the round, from the events of a Chrome trace.

    Raises:
        ValueError: the round is not among the events.
    """
    spans: list[Span] = []
    window: tuple[float, float] | None = None
    for event in events:
        if event.get("ph") != "X":
            continue
        category, name, start = event.get("cat", ""), event["name"], float(event["ts"])
        end = start + float(event.get("dur", 0))
        if category == "kernel":
            spans.append(Span("kernel", start, end))
        elif category in _COPIES:
            spans.append(Span("copy", start, end))
        elif category in _CALLS and "Launch" in name:
            spans.append(Span("launch", start, end))
        elif category == "user_annotation" and name == _ROUND:
            window = start, end
    if window is None:
        raise ValueError(f"no event named {_ROUND!r} in the profile")
    return spans, *window


def measure_shares(task: Task, setting: Setting) -> Measured:
    """The shares of one round of local training after two that warm up."""
    simulation = prepare(task.at(setting).scenario(), 1 if setting.tiny else None, setting.device)
    for round_index in (1, 2):
        train_once(simulation, setting, round_index)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if setting.device == "cuda" else [])]
    with profile(activities=activities) as profiler, record_function(_ROUND):
        seconds = train_once(simulation, setting, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        found = shares(*read_spans(json.loads(path.read_text(encoding="utf-8"))["traceEvents"]))
    if setting.device == "cuda" and found.kernel == 0:
        return Measured(seconds, failure="the profiler saw no kernel")
    detail = f"{found.idle:.0%} idle"
    return Measured(seconds, kernel_share=found.kernel, launch_share=found.launch, copy_share=found.copy, detail=detail)


WORKLOADS: dict[str, Measure] = {task.name: partial(measure_shares, task) for task in (W1, W2, CNN_CIFAR10)}
