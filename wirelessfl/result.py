"""What a finished run leaves: its numbers, and the files that are made of its trace."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.errors import OutputError
from wirelessfl.folder import RunFolder
from wirelessfl.outputs import replacing
from wirelessfl.summary import draw_summary, draw_timeline, epsilon_text, summarise
from wirelessfl.trace import open_trace, read_group
from wirelessfl.trace.failures import trace_errors

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        folder: where everything lies.
        summary: the numbers of ``summary.json``, in SI units.
        missing: files of the summary that could not be written, each with the reason.
    """

    folder: Path
    summary: dict[str, Any]
    missing: tuple[str, ...] = ()

    def require_files(self) -> None:
        """Make sure that everything is on disk.

        Raises:
            OutputError: something is missing; the trace is not.
        """
        if self.missing:
            raise OutputError(
                f"the run is complete and {self.trace} is whole, but not all that is made of it is there:\n  "
                + "\n  ".join(self.missing)
                + "\n--resume makes it from the trace, without running again"
            )

    @property
    def trace(self) -> Path:
        """The trace file; open it with ``wirelessfl.open_trace``."""
        return self.folder / "trace.h5"

    @property
    def picture(self) -> Path:
        """The summary figure."""
        return self.folder / "summary.png"

    @property
    def timeline(self) -> Path:
        """The figure of who did what, over simulated time."""
        return self.folder / "timeline.png"

    @cached_property
    def dataset(self) -> xr.Dataset:
        """The trace, opened."""
        return open_trace(self.trace)

    def to_dataframe(self) -> pd.DataFrame:
        """One row a round, indexed by ``round``: every variable of the trace that has one value a round."""
        with open_trace(self.trace) as trace, trace_errors(self.trace):
            names = [name for name, variable in trace.data_vars.items() if variable.dims == ("round",)]
            return trace[names].to_dataframe()

    def _repr_html_(self) -> str:
        """The numbers that count and the picture, for notebooks."""
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
    """The numbers of a finished run, and its pictures if they are wanted, from its trace alone."""
    with open_trace(folder.trace) as trace:
        with trace_errors(folder.trace):
            summary = summarise(trace, json.loads(trace.attrs["why_different"]))
        missing = [*_unwritten(folder.summary, lambda: folder.write_summary(summary))]
        if pictures:
            events = read_group(folder.trace, "events")
            with trace_errors(folder.trace):
                missing += _unwritten(folder.picture, lambda: _draw(draw_summary, trace, folder.picture))
                missing += _unwritten(folder.timeline, lambda: _draw(draw_timeline, trace, events, folder.timeline))
    return Result(folder.path, summary, tuple(missing))


def _draw(draw: Callable[..., None], *arguments: Any) -> None:
    """Draw a picture into its place, which is the last argument."""
    with replacing(arguments[-1]) as new:
        draw(*arguments[:-1], new)


def _unwritten(path: Path, write: Callable[[], None]) -> Iterator[str]:
    """Why a file is not there after it was to be written; a complete run makes no other, so that an old one serves."""
    try:
        write()
    except OutputError as error:
        if not path.exists():
            yield str(error)
