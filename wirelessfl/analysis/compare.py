"""Runs and studies beside each other: one figure over rounds, seconds, energy or ε, and one table."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from wirelessfl.analysis.replay.recording import Recording, open_recording
from wirelessfl.analysis.report.study import StudyData, open_study_data, short_labels, study_errors, study_points
from wirelessfl.analysis.telling_apart import RunName, distinct_names, leaves, unique
from wirelessfl.errors import InputError, ScenarioError, precondition
from wirelessfl.outputs import replacing
from wirelessfl.summary import summarise
from wirelessfl.summary.axes import XAxis, x_axis
from wirelessfl.summary.overlay import Entry, Overlay, caption, run_columns
from wirelessfl.summary.style import PAGE_IN, SUFFIXES
from wirelessfl.trace import open_trace, run_name, trace_errors

if TYPE_CHECKING:
    import pandas as pd

    from wirelessfl.summary.overlay_figure import ShownFigure

MOST_CURVES = 12
"""Curves of a figure; of more evenly spaced ones stand for the others, and the table has all."""

TABLE = {
    "rounds": "rounds",
    "test_accuracy": "accuracy",
    "test_loss": "loss",
    "epsilon_published": "ε published",
    "epsilon_accounted": "ε accounted",
    "participants_mean": "heard",
    "sim_time": "time (s)",
    "airtime": "airtime (s)",
    "energy": "energy (J)",
}
"""Numbers of a comparison, by their names in a summary, with the heads of their columns."""


@runtime_checkable
class HasFolder(Protocol):
    """A result of a run."""

    @property
    def folder(self) -> Path:
        """Its folder."""


@runtime_checkable
class HasPath(Protocol):
    """A study on disk."""

    @property
    def path(self) -> Path:
        """Its folder."""


Comparable = str | Path | HasPath | HasFolder


@dataclass(frozen=True, eq=False)
class Compared:
    """A run, or a point of a study.

    Attributes:
        entry: its name and columns.
        numbers: after the last round, by the keys of `TABLE`.
    """

    entry: Entry
    numbers: dict[str, float]


@dataclass(frozen=True, eq=False)
class RunComparison:
    """Runs and points of studies beside each other.

    Attributes:
        compared: all of them.
        x: the axis of the figure.
        width_in: width of the figure (inches).
    """

    compared: tuple[Compared, ...]
    x: XAxis = "round"
    width_in: float = PAGE_IN

    @property
    def overlay(self) -> Overlay:
        """Those that the figure shows."""
        return overlay_of(self.compared)

    @cached_property
    def figure(self) -> ShownFigure:
        """Accuracy, loss and accounted ε of all of them over the axis."""
        from wirelessfl.summary.overlay_figure import draw_overlay

        return draw_overlay(self.overlay, self.x, self.overlay.metrics(self.x), self.width_in)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row for each: its name, and its numbers after the last round, means over the seeds of a point."""
        import pandas as pd

        return pd.DataFrame([one.numbers for one in self.compared], index=[one.entry.name for one in self.compared])

    @property
    def remarks(self) -> list[str]:
        """What the axis does not show, or not with all rounds, and why."""
        return self.overlay.missing(self.x)

    def save(self, path: str | Path) -> None:
        """Figure as a file, whose suffix is the format: .pdf, .svg or .png.

        Raises:
            InputError: another suffix.
            OutputError: the place cannot be written.
        """
        path = Path(path)
        allowed = ", ".join(SUFFIXES)
        precondition(path.suffix in SUFFIXES, f"{path}: found {path.suffix!r}; allowed: {allowed}", InputError)
        from wirelessfl.summary.drawing import save

        with replacing(path) as new:
            save(self.figure, new)

    def _repr_html_(self) -> str:
        picture = base64.b64encode(self.figure._repr_png_()).decode()
        words = html.escape(" ".join([caption(self.overlay), *(f"{words}." for words in self.remarks)]))
        image = f'<img alt="comparison over {self.x}" width="700" src="data:image/png;base64,{picture}">'
        return f"{image}<p>{words}</p>{self.table.to_html(float_format='{:.4g}'.format)}"


def compare(results: Sequence[Comparable], x: str = "round", *, width_in: float = PAGE_IN) -> RunComparison:
    """Runs and studies beside each other, over one axis.

    Args:
        results: results of runs, studies, or paths of either; every point of a study is a curve, the mean of its seeds.
        x: "round", "sim_time", "energy" (joules, or in units of the noise) or "epsilon" (accounted), each so far.
        width_in: width of the figure (inches).

    Returns:
        What a notebook shows; ``.figure`` is a Matplotlib figure, ``.table`` a pandas data frame, ``.save`` a file.

    Raises:
        InputError: no run, one that cannot be read, an unknown axis, one on which nothing has a place, or energies in
            joules beside others in units of the noise.
    """
    listed = isinstance(results, Sequence) and not isinstance(results, str)
    found = "none" if listed else f"a single {type(results).__name__}"
    precondition(listed and len(results), f"results: found {found}; allowed: a list of runs and studies", InputError)
    axis, sources = x_axis(x), [open_source(_path(result)) for result in results]
    compared = compared_of(sources)
    overlay_of(compared).require(axis)
    return RunComparison(compared, axis, width_in)


def _path(result: Comparable) -> Path:
    match result:
        case str() | Path():
            return Path(result)
        case HasPath():
            return result.path
        case HasFolder():
            return result.folder
        case _:
            raise InputError(
                f"results: found {type(result).__name__}; allowed: results of runs, studies, or their paths"
            )


def open_source(path: Path) -> Recording | StudyData:
    """The run or the study that lies at a path.

    Raises:
        InputError: there is neither, or it cannot be read.
    """
    precondition(
        path.exists(), f"{path}: not found; allowed: a trace, the folder of a run, the folder of a study", InputError
    )
    if path.is_dir():
        if (path / "study.json").exists() or (path / "study.parquet").exists():
            return open_study_data(path)
        precondition(
            (path / "trace.h5").exists(),
            f"{path}: holds neither trace.h5 nor study.parquet; allowed: the folder of a run or study",
            InputError,
        )
    return open_recording(path)


def compared_of(sources: Sequence[Recording | StudyData]) -> tuple[Compared, ...]:
    """Runs and points of several sources, in their order, under names that tell them apart."""
    recordings = [source for source in sources if isinstance(source, Recording)]
    names = dict(zip(map(id, recordings), run_names(recordings), strict=True))
    found: list[Compared] = []
    paths: list[Path] = []
    for source in sources:
        if isinstance(source, Recording):
            found.append(_run(source, names[id(source)]))
        else:
            found += _points(source, prefix="" if len(sources) == 1 else f"{source.name}: ")
        paths += [source.path] * (len(found) - len(paths))
    labels = unique([one.entry.name for one in found], paths)
    return tuple(Compared(Entry(label, one.entry.runs), one.numbers) for label, one in zip(labels, found, strict=True))


def run_names(recordings: Sequence[Recording]) -> list[str]:
    """Names of several runs, which tell them apart."""
    return distinct_names([_name(recording) for recording in recordings])


def run_titles(recordings: Sequence[Recording]) -> list[str]:
    """Headings of several runs: name and seed, or where these do not tell them apart the names that do."""
    titles = [f"{run_name(run.attributes)}, seed {run.attributes['seed']}" for run in recordings]
    names = run_names(recordings)
    return [title if titles.count(title) == 1 else name for title, name in zip(titles, names, strict=True)]


def _name(recording: Recording) -> RunName:
    attributes = recording.attributes
    try:
        settings = leaves(recording.scenario.model_dump(mode="json", by_alias=True))
    except ScenarioError:  # of another version
        settings = {}
    folder = recording.path.parent if recording.path.name == "trace.h5" else recording.path
    return RunName(run_name(attributes), int(attributes["seed"]), settings, folder)


def _run(recording: Recording, name: str) -> Compared:
    with open_trace(recording.path) as trace, trace_errors(recording.path):
        columns, summary = run_columns(trace), summarise(trace, recording.why_different)
    return Compared(Entry(name, (columns,)), {key: float(summary[key]) for key in TABLE})


def _points(study: StudyData, prefix: str) -> list[Compared]:
    with study_errors(study.path):
        points = study_points(study) if len(study.rows) else []
        return [
            Compared(
                Entry(f"{prefix}{label}", point.columns),
                {"rounds": float(np.mean([len(run["round"]) for run in point.columns]))}
                | {key: point.last[key] for key in TABLE if key != "rounds"},
            )
            for label, point in zip(short_labels(points), points, strict=True)
        ]


def overlay_of(compared: Sequence[Compared]) -> Overlay:
    """Those of several runs and points that one figure shows: all of them, or some at even distances with both ends."""
    count = min(len(compared), MOST_CURVES)
    chosen: Any = np.linspace(0, len(compared) - 1, count).round().astype(int).tolist() if count else []
    return Overlay(tuple(compared[at].entry for at in chosen))
