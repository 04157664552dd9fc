"""Plan of a scenario before it runs (sizes, cost), and result of a finished run (numbers, files)."""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.errors import InputError, OutputError, precondition
from wirelessfl.folder import RunFolder
from wirelessfl.scenario import Source, load_scenario
from wirelessfl.scenario.overrides import Overrides
from wirelessfl.scenario.scenario import power_notes, slot_notes
from wirelessfl.scenario.uplink import OverTheAir
from wirelessfl.summary import epsilon_text, rounds_text, summarise, to_json
from wirelessfl.summary.axes import x_axis
from wirelessfl.summary.figure_process import FigureProcess
from wirelessfl.summary.run_figures import SUMMARY, TIMELINE, unwritten
from wirelessfl.summary.style import COLUMN_IN, PNG_OF_A_PAGE, FigureOptions
from wirelessfl.trace import open_trace, read_values, trace_errors

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from wirelessfl.simulation import Forecast
    from wirelessfl.summary.overlay_figure import ShownFigure


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        folder: its folder.
        summary: the numbers of ``summary.json``, in SI units.
        missing: files of the summary that could not be written, each with the reason.
        figures: format and width of its figures.
    """

    folder: Path
    summary: dict[str, Any]
    missing: tuple[str, ...] = ()
    figures: FigureOptions = PNG_OF_A_PAGE

    def require_files(self) -> None:
        """Check that every file of the summary is on disk.

        Raises:
            OutputError: one is missing; the trace is there.
        """
        words = f"the run is complete and {self.trace} is complete, but files that are made from it are missing:"
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
        """Figure of the summary; not there where none is drawn."""
        return self._figure(SUMMARY)

    @property
    def timeline(self) -> Path:
        """Figure of all activities over simulated time; not there where none is drawn."""
        return self._figure(TIMELINE)

    def _figure(self, name: str) -> Path:
        return (self.figures if self.figures.drawn else PNG_OF_A_PAGE).file(self.folder / name)

    @cached_property
    def dataset(self) -> xr.Dataset:
        """Opened trace."""
        return open_trace(self.trace)

    def to_dataframe(self) -> pd.DataFrame:
        """Table of every per-round variable of the trace, a row for each ``round``."""
        with open_trace(self.trace) as trace, trace_errors(self.trace):
            names = [name for name, variable in trace.data_vars.items() if variable.dims == ("round",)]
            return trace[names].to_dataframe()

    def plot(self, x: str = "round", y: str = "test_accuracy", *, width_in: float = COLUMN_IN) -> ShownFigure:
        """Figure of one variable of the trace, which a notebook shows.

        Args:
            x: "round", "sim_time", "energy" (joules, or in units of the noise) or "epsilon" (accounted), each so far.
            y: a variable with one value a round.
            width_in: width (inches).

        Raises:
            InputError: an unknown axis or variable, or an axis on which the run has no place.
        """
        from wirelessfl.summary.overlay import run_columns
        from wirelessfl.summary.overlay_figure import plot_run

        with open_trace(self.trace) as trace, trace_errors(self.trace):
            columns = run_columns(trace)
        return plot_run(str(self.summary["name"]), columns, x_axis(x), y, width_in)

    def __repr__(self) -> str:
        summary = self.summary
        accuracy = summary["test_accuracy"]
        shown = "unknown" if math.isnan(accuracy) else f"{accuracy:.1%}"
        return (
            f"<Result {summary['name']}, seed {summary['seed']}: {summary['status']}, {summary['rounds']} rounds, "
            f"accuracy {shown},\n {_epsilons(summary, summary['delta'])}, in {self.folder}>"
        )

    def _repr_html_(self) -> str:
        summary = self.summary
        at = f"at δ = {summary['delta']:g}"
        rows = {
            "rounds": rounds_text(summary),
            "test accuracy": f"{summary['test_accuracy']:.1%}, loss {summary['test_loss']:.4g}",
            "ε published": f"{epsilon_text(summary['epsilon_published'])} {at}",
            "ε accounted": f"{epsilon_text(summary['epsilon_accounted'])} {at}",
            "simulated time": f"{summary['sim_time']:.4g} s, on the air {summary['airtime']:.4g} s",
            "trace": str(self.trace),
        }
        body = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in rows.items())
        caption = html.escape(f"{summary['name']}, seed {summary['seed']} ({summary['status']})")
        table = f"<table><caption>{caption}</caption><tbody>{body}</tbody></table>"
        kind = _IN_A_PAGE.get(self.picture.suffix)
        if kind is None or not self.picture.exists():
            return table
        picture = base64.b64encode(self.picture.read_bytes()).decode()
        return f'{table}<img alt="{caption}" width="400" src="data:{kind};base64,{picture}">'


_IN_A_PAGE = {".png": "image/png", ".svg": "image/svg+xml"}


def _epsilons(values: Mapping[str, Any], delta: float) -> str:
    published, accounted = (epsilon_text(values[f"epsilon_{which}"]) for which in ("published", "accounted"))
    return f"ε {published} published and {accounted} accounted at δ = {delta:g}"


def result_of(folder: RunFolder, figures: FigureOptions, drawing: FigureProcess) -> Result:
    """Summary files of a finished run from its trace alone, with figures if asked for."""
    drawing.begin(folder.trace)
    with read_values(folder.trace) as values, trace_errors(folder.trace):
        summary = summarise(values, json.loads(values.attrs["why_different"]))
    text = to_json(summary)
    missing = unwritten(folder.summary, lambda new: new.write_text(text, encoding="utf-8"))
    return Result(folder.path, summary, (*missing, *drawing.missing()), figures)


def open_run(path: str | Path) -> Result:
    """Result of a run that lies in a folder, from its trace alone; nothing is written.

    Args:
        path: its folder, or its trace.

    Raises:
        InputError: it is no path.
        TraceError: there is no readable trace.
    """
    precondition(isinstance(path, str | Path), f"path: found {path!r:.60}; allowed: the folder of a run", InputError)
    folder = RunFolder(Path(path).parent if Path(path).is_file() else Path(path))
    with read_values(folder.trace) as values, trace_errors(folder.trace):
        return Result(folder.path, summarise(values, json.loads(values.attrs["why_different"])))


@dataclass(frozen=True)
class Plan:
    """Plan of a scenario, as ``wirelessfl validate`` prints it.

    Attributes:
        name: the scenario.
        dimension: d.
        samples: |D|.
        clients: K.
        delta: δ of both ε.
        shortfall_probability: how often in a round the jammer lacks power.
        max_shortfall: how often it may.
        training_s: seconds after the broadcast by which a client must be ready for the slot; NaN without a deadline, or
            without a slot for all.
        pieces: of a slot over the air, or of a digital message on a link of median path gain; 1 where there is none.
        upload_s: seconds of that message; NaN without digital links.
        coherence_s: seconds in which the fastest channel keeps half of its correlation; infinite where none fades.
        forecast: what the run will cost.
        notes: what holds of the scenario and is easily overlooked.
    """

    name: str
    dimension: int
    samples: int
    clients: int
    delta: float
    shortfall_probability: float
    max_shortfall: float
    training_s: float
    pieces: int
    upload_s: float
    coherence_s: float
    forecast: Forecast
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        forecast = self.forecast
        return (
            f"<Plan {self.name}: {forecast.rounds} rounds, d = {self.dimension:,}, |D| = {self.samples:,} of "
            f"{self.clients:,} clients, {forecast.sim_time:.4g} s simulated, about "
            f"{forecast.memory_bytes / 2**20:,.0f} MiB,\n {_epsilons(asdict(forecast), self.delta)}>"
        )

    def as_mapping(self) -> dict[str, Any]:
        """Flat mapping with the names of trace and summary."""
        return {
            "name": self.name,
            "d": self.dimension,
            "samples": self.samples,
            "clients": self.clients,
            "delta": self.delta,
            **asdict(self.forecast),
            "shortfall_probability": self.shortfall_probability,
            "training_s": self.training_s,
            "pieces": self.pieces,
            "upload_s": self.upload_s,
            "coherence_s": self.coherence_s,
            "notes": list(self.notes),
        }


def make_plan(scenario: Source, overrides: Overrides = (), **keys: Any) -> Plan:
    """Plan of a scenario, by a rehearsal of everything but the training.

    Args:
        scenario: as for `load_scenario`.
        overrides: as for `load_scenario`.
        keys: as for `load_scenario`.

    Raises:
        ScenarioError: all that is wrong with the scenario, one line each.
        InputError: the data cannot be used.
        InfeasibleError: a privacy target that cannot be met.
    """
    from wirelessfl.assembly import (
        build_simulation,
        coherence_s,
        jammer_shortfall,
        plan_to_look,
        slot_pieces,
        training_time,
        upload_span,
    )
    from wirelessfl.simulation import rehearse

    scenario = load_scenario(scenario, overrides, **keys)
    simulation = build_simulation(scenario, plan_to_look(scenario.compute))
    parts = simulation.deployment
    jammer = scenario.uplink.jammer if isinstance(scenario.uplink, OverTheAir) else None
    span = upload_span(scenario, parts.uplink)
    return Plan(
        name=scenario.name,
        dimension=parts.learner.dimension,
        samples=parts.network.registry.total_samples,
        clients=parts.network.registry.count,
        delta=scenario.privacy.delta,
        shortfall_probability=jammer_shortfall(parts.uplink, parts.selection)[0],
        max_shortfall=jammer.max_shortfall if jammer is not None else 0.0,
        training_s=training_time(parts.wait_for, parts.uplink),
        pieces=max(slot_pieces(parts.uplink), span.pieces),
        upload_s=span.seconds,
        coherence_s=coherence_s(scenario),
        forecast=rehearse(simulation),
        notes=power_notes(scenario) + slot_notes(scenario),
    )
