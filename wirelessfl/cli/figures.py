"""Figures beside a report, for a paper: those of each run and study that the page shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from wirelessfl.errors import OutputError, precondition

if TYPE_CHECKING:
    from wirelessfl.summary.axes import XAxis
    from wirelessfl.summary.style import FigureOptions


def draw_beside(page: Path, paths: Sequence[Path], options: FigureOptions, x: XAxis | None = None) -> list[Path]:
    """Figures of runs and studies in the folder of a page.

    One path has the names of its own folder (``summary.pdf``, ``study.pdf``); those of several begin with the name of
    the run or study, and its place among the paths where two have the same one.

    Args:
        page: the page.
        paths: traces, folders of runs, folders of studies: what the page shows.
        options: format and width.
        x: what figures of studies are drawn over; by default what each study says.

    Returns:
        The files; none with the format "none".

    Raises:
        OutputError: the place cannot be written.
    """
    if not options.drawn:
        return []
    prefixes = [""] if len(paths) == 1 else _prefixes(paths)
    return [
        file for path, prefix in zip(paths, prefixes, strict=True) for file in _draw(page, path, prefix, options, x)
    ]


def _draw(page: Path, path: Path, prefix: str, options: FigureOptions, x: XAxis | None) -> Sequence[Path]:
    if _is_study(path):
        from wirelessfl.analysis.report.study import study_errors
        from wirelessfl.study.collect import write_figure
        from wirelessfl.study.result import open_study

        file = options.file(page.parent / f"{prefix}study")
        with study_errors(path):
            study = open_study(path)
            write_figure(study if x is None else replace(study, x=(x,)), options, file)
        return [file]
    from wirelessfl.summary.run_figures import draw_run

    drawn = draw_run(_trace(path), options, page.parent, prefix)
    precondition(not drawn.missing, "\n".join(drawn.missing), OutputError)
    return drawn.files


def _prefixes(paths: Sequence[Path]) -> list[str]:
    names = [_name(path) for path in paths]
    return [f"{name}-{place + 1}-" if names.count(name) > 1 else f"{name}-" for place, name in enumerate(names)]


def _name(path: Path) -> str:
    if _is_study(path):
        from wirelessfl.study.result import open_study

        return open_study(path).name
    from wirelessfl.trace import read_attributes, run_name

    attributes = read_attributes(_trace(path))
    return f"{run_name(attributes)}-{attributes['seed']}"


def _is_study(path: Path) -> bool:
    return (path / "study.json").exists()


def _trace(path: Path) -> Path:
    return trace if (trace := path / "trace.h5").exists() else path
