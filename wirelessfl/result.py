"""Result of a finished run: its numbers, and the files made of its trace."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.errors import OutputError, precondition
from wirelessfl.folder import RunFolder
from wirelessfl.outputs import replacing
from wirelessfl.summary import epsilon_text, summarise, to_json
from wirelessfl.trace import open_trace, read_group, trace_errors

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        folder: its folder.
        summary: the numbers of ``summary.json``, in SI units.
        missing: files of the summary that could not be written, each with the reason.
    """

    folder: Path
    summary: dict[str, Any]
    missing: tuple[str, ...] = ()

    def require_files(self) -> None:
        """Check that every file of the summary is on disk.

        Raises:
            OutputError: one is missing; the trace is there.
        """
        words = f"the run is complete and {self.trace} is whole, but not all that is made of it is there:"
        listed = "\n  ".join([words, *self.missing])
        precondition(
            not self.missing, f"{listed}\n--resume makes it from the trace, without running again", OutputError
        )

    @property
    def trace(self) -> Path:
        """Trace file, for ``wirelessfl.open_trace``."""
        return self.folder / "trace.h5"

    @property
    def picture(self) -> Path:
        """Figure of the summary."""
        return self.folder / "summary.png"

    @property
    def timeline(self) -> Path:
        """Figure of all activities over simulated time."""
        return self.folder / "timeline.png"

    @cached_property
    def dataset(self) -> xr.Dataset:
        """Opened trace."""
        return open_trace(self.trace)

    def to_dataframe(self) -> pd.DataFrame:
        """Table of every per-round variable of the trace, a row for each ``round``."""
        with open_trace(self.trace) as trace, trace_errors(self.trace):
            names = [name for name, variable in trace.data_vars.items() if variable.dims == ("round",)]
            return trace[names].to_dataframe()

    def _repr_html_(self) -> str:
        summary = self.summary
        at = f"at δ = {summary['delta']:g}"
        rows = {
            "rounds": f"{summary['rounds']}, on average {summary['participants_mean']:.1f} clients heard",
            "test accuracy": f"{summary['test_accuracy']:.1%}, loss {summary['test_loss']:.4g}",
            "ε published": f"{epsilon_text(summary['epsilon_published'])} {at}",
            "ε accounted": f"{epsilon_text(summary['epsilon_accounted'])} {at}",
            "simulated time": f"{summary['sim_time']:.4g} s, on the air {summary['airtime']:.4g} s",
            "trace": str(self.trace),
        }
        body = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in rows.items())
        caption = html.escape(f"{summary['name']}, seed {summary['seed']} ({summary['status']})")
        table = f"<table><caption>{caption}</caption><tbody>{body}</tbody></table>"
        if not self.picture.exists():
            return table
        picture = base64.b64encode(self.picture.read_bytes()).decode()
        return f'{table}<img alt="{caption}" width="400" src="data:image/png;base64,{picture}">'


def result_of(folder: RunFolder, pictures: bool) -> Result:
    """Summary files of a finished run from its trace alone, with pictures if asked for."""
    with open_trace(folder.trace) as trace:
        with trace_errors(folder.trace):
            summary = summarise(trace, json.loads(trace.attrs["why_different"]))
        text = to_json(summary)
        missing = _unwritten(folder.summary, lambda new: new.write_text(text, encoding="utf-8"))
        if pictures:
            from wirelessfl.summary.picture import draw_summary
            from wirelessfl.summary.timeline import draw_timeline

            events = read_group(folder.trace, "events")
            with trace_errors(folder.trace):
                missing += _unwritten(folder.picture, lambda new: draw_summary(trace, new))
                missing += _unwritten(folder.timeline, lambda new: draw_timeline(trace, events, new))
    return Result(folder.path, summary, tuple(missing))


def _unwritten(path: Path, write: Callable[[Path], object]) -> list[str]:
    # Reason why a file could not be written; none where an earlier one is there, which has the same content
    try:
        with replacing(path) as new:
            write(new)
    except OutputError as error:
        return [] if path.exists() else [str(error)]
    return []
