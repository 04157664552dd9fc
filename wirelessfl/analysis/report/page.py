"""One self-contained HTML page over runs and studies: nothing is loaded from anywhere."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from wirelessfl.analysis.compare import compared_of, open_source, run_titles
from wirelessfl.analysis.replay.recording import Recording
from wirelessfl.analysis.report.channel import ChannelStatistics, channel_statistics
from wirelessfl.analysis.report.charts import Chart, chart_data, packed, thinned
from wirelessfl.analysis.report.comparison import compared_charts, compared_table, study_charts
from wirelessfl.analysis.report.elements import (
    Drawing,
    SortedTable,
    cost_facts,
    cost_table,
    round_table,
    secure_aggregation_costs,
)
from wirelessfl.analysis.report.explorer import Explorer, read_explorer
from wirelessfl.analysis.report.rounds import read_rounds
from wirelessfl.analysis.report.run_charts import run_charts
from wirelessfl.analysis.report.scripts import data_text, script_hashes, scripts, style
from wirelessfl.analysis.report.study import (
    StudyData,
    point_table,
    study_errors,
    study_figures,
    study_points,
)
from wirelessfl.errors import OutputError, precondition
from wirelessfl.outputs import write_text, writing
from wirelessfl.summary import epsilon_text, of_clients_text, personal_text, rounds_text, summarise
from wirelessfl.summary.axes import XAxis
from wirelessfl.trace import FINISHED, open_trace, trace_errors


@dataclass(frozen=True)
class Section:
    """One run or study on the page.

    Attributes:
        anchor: its id on the page.
        title: its heading.
        facts: what is to be known of it first, as pairs of words and value.
        reasons: why the two ε differ.
        warnings: what the reader must know of it.
        charts: its charts, which the reader explores.
        axis: the x axis that they show first.
        axis_labels: labels of the x axes to choose from, by name.
        places: places (m,) of the rounds on each axis; none in a section over several runs.
        missing: why nothing has a place on an axis, by name.
        explorer: what the reader explores of a run beside the charts; None in a section over several runs.
        figures: figures that stand still.
        tables: its tables.
        scenario: its scenario as YAML; "" for a study.
    """

    anchor: str
    title: str
    facts: list[tuple[str, str]]
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    charts: tuple[Chart, ...] = ()
    axis: XAxis = "round"
    axis_labels: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    explorer: Explorer | None = None
    figures: list[Drawing] = field(default_factory=list)
    tables: list[SortedTable] = field(default_factory=list)
    scenario: str = ""

    @property
    def rounds(self) -> int:
        """Rounds that a reader may step through."""
        return len(self.places.get("round", ()))

    @property
    def data(self) -> Markup:
        """What the page's scripts read."""
        return data_text(
            {
                "axis": self.axis,
                "axes": {name: packed(values) for name, values in self.places.items()},
                "missing": dict(self.missing),
                "axisLabels": dict(self.axis_labels),
                "charts": [chart_data(chart) for chart in self.charts],
                "run": None if self.explorer is None else self.explorer.data,
            }
        )


def write_report(paths: Sequence[Path], out: Path | None = None, x: XAxis | None = None) -> Path:
    """Page over traces, folders of runs and folders of studies, written to a file.

    Args:
        paths: one or more of them.
        out: the HTML file; by default ``report.html`` in the folder of the one path, or here for several.
        x: the x axis that charts show first; by default rounds, and of a study the first of its own.

    Returns:
        The file.

    Raises:
        InputError: a path holds neither a trace nor a study, or one that cannot be read.
        OutputError: the file cannot be written.
    """
    if out is None:
        folder = Path() if len(paths) > 1 else paths[0] if paths[0].is_dir() else paths[0].parent
        out = folder / "report.html"
    # A page takes the place of another page at most: never that of a trace, a study or any other file.
    with writing(out):
        precondition(
            out.parent.is_dir(),
            f"{out}: the folder {out.parent} does not exist; allowed: a file in an existing folder",
            OutputError,
        )
        precondition(not out.is_dir(), f"{out}: found a folder; allowed: a file", OutputError)
        if out.is_file():
            with out.open("rb") as file:
                begins = file.read(256).lstrip().lower()
            precondition(
                not begins or begins.startswith(b"<!doctype html"),
                f"{out}: found a file that is no HTML page; allowed: a new file or a page to replace",
                OutputError,
            )
    write_text(out, report_html(paths, x))
    return out


def report_html(paths: Sequence[Path], x: XAxis | None = None) -> str:
    """The page as text.

    Args:
        paths: traces, folders of runs, folders of studies.
        x: as for `write_report`.

    Raises:
        InputError: a path holds neither a trace nor a study, or one that cannot be read.
    """
    sources = [open_source(path) for path in paths]
    recordings = [source for source in sources if isinstance(source, Recording)]
    titles = dict(zip(map(id, recordings), run_titles(recordings), strict=True))
    shown = x or "round"
    sections = _comparison(sources, shown) if len(sources) > 1 else []
    for number, source in enumerate(sources):
        prefix = f"s{number}"
        if isinstance(source, StudyData):
            with study_errors(source.path):
                sections.append(_study_section(prefix, source, x))
        else:
            with trace_errors(source.path), open_trace(source.path) as trace:
                summary, share = summarise(trace, source.why_different), 1 / len(paths)
                sections.append(_run_section(prefix, titles[id(source)], source, trace, summary, shown, share))
    title = sections[0].title if len(sections) == 1 else f"{len(sources)} runs and studies"
    loader = PackageLoader("wirelessfl.analysis.report", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    texts = scripts()
    return environment.get_template("report.html.j2").render(
        title=title,
        sections=sections,
        style=style(),
        scripts=texts,
        script_hashes=script_hashes(texts),
    )


def _comparison(sources: Sequence[Recording | StudyData], x: XAxis) -> list[Section]:
    # All runs and points over each other; none where no run has ended well
    compared = compared_of(sources)
    if not compared:
        return []
    shown = compared_charts(compared)
    return [
        Section(
            anchor="comparison",
            title="Comparison",
            facts=[],
            charts=shown.charts,
            axis=x,
            axis_labels=shown.labels,
            missing=shown.missing,
            tables=[compared_table(compared)],
        )
    ]


def _run_section(
    prefix: str, title: str, recording: Recording, trace: xr.Dataset, summary: dict[str, Any], x: XAxis, share: float
) -> Section:
    statistics = channel_statistics(trace, recording.scenario)
    rounds = read_rounds(trace)
    costs = secure_aggregation_costs(recording)
    secure_facts, secure_tables = ([], []) if costs is None else (cost_facts(costs), [cost_table(costs)])
    incomplete = [] if summary["status"] in FINISHED else [f"The run is not complete but {summary['status']}."]
    kept = thinned(len(rounds.columns["round"]))
    return Section(
        anchor=prefix,
        title=title,
        facts=[*_run_facts(summary, statistics), *secure_facts],
        reasons=[*recording.why_different, summary["privacy_scope"]],
        warnings=[*incomplete, *(f"{words}." for words in summary["warnings"])],
        charts=run_charts(rounds, float(summary["delta"]), statistics),
        axis=x,
        axis_labels=rounds.labels,
        places={axis: values[kept] for axis, values in rounds.places.items()},
        missing=rounds.missing,
        explorer=read_explorer(prefix, recording, trace, share),
        tables=[*secure_tables, round_table(trace)],
        scenario=str(trace.attrs["scenario"]),
    )


def _run_facts(summary: dict[str, Any], statistics: ChannelStatistics | None) -> list[tuple[str, str]]:
    delta = f"at δ = {summary['delta']:g}".replace("-", "\N{NON-BREAKING HYPHEN}")
    received, on_mean, joules = (summary[name] for name in ("effective_noise_std", "aggregate_noise_std", "energy"))
    facts = [
        ("test accuracy", _known(summary["test_accuracy"], ".1%")),
        ("test loss", _known(summary["test_loss"], ".4g", " nat")),
        ("clients' accuracy", of_clients_text(summary)),
        ("personal models' accuracy", personal_text(summary)),
        ("ε published", f"{epsilon_text(summary['epsilon_published'])} {delta}"),
        ("ε accounted", f"{epsilon_text(summary['epsilon_accounted'])} {delta}"),
        ("rounds", rounds_text(summary)),
        ("model", f"{summary['d']:,} parameters, {summary['samples']:,} samples"),
        ("effective noise", "" if math.isnan(received) else f"σ_m = {received:.4g} a coordinate, before rescaling"),
        (
            "noise on the mean update",
            "" if math.isnan(on_mean) else f"{on_mean:.4g} a coordinate and round, rescaled (times τ)",
        ),
        ("simulated time", f"{summary['sim_time']:.4g} s, on the air {summary['airtime']:.3g} s"),
        ("energy", "" if math.isnan(joules) else f"{joules:.4g} J"),
        *([] if statistics is None else _channel_facts(statistics)),
    ]
    return [(name, words) for name, words in facts if words]


def _known(value: float, form: str, unit: str = "") -> str:
    return "not known" if math.isnan(value) else f"{value:{form}}{unit}"


def _channel_facts(statistics: ChannelStatistics) -> list[tuple[str, str]]:
    expected, critical, law = statistics.below_tenth_expected, statistics.critical, statistics.law
    by_law = "" if expected is None else f"; {expected:.2%} expected"
    compared = "" if critical is None else f"; chance alone exceeds {critical:.3g} in 1 % of runs"
    return [
        ("mean |h|²/β", f"{statistics.mean:.4g}{'' if isinstance(law, str) else '; 1 expected'}"),
        ("fades of 10 dB or more", f"{statistics.below_tenth:.2%}{by_law}"),
        ("distribution of |h|²/β", law if isinstance(law, str) else ""),
        (
            "difference from the expected distribution",
            "" if statistics.distance is None else f"{statistics.distance:.3g} (Kolmogorov-Smirnov){compared}",
        ),
    ]


def _study_section(prefix: str, study: StudyData, x: XAxis | None) -> Section:
    points = study_points(study) if len(study.rows) else []
    shown = study_charts(points) if points else None
    unfinished = [f"{study.unfinished} runs are not finished."] if study.unfinished else []
    warnings = [*(f"Failed: {failure}" for failure in study.failures), *unfinished]
    return Section(
        anchor=prefix,
        title=f"study {study.name}",
        facts=[
            ("points", str(len(points))),
            ("runs", str(study.rows["run"].nunique())),
            ("seeds", str(study.rows["seed"].nunique())),
            ("varied", ", ".join(study.keys).replace(".", ".\N{ZERO WIDTH SPACE}")),  # where a long key may break
        ],
        warnings=warnings if points else [*warnings, "No run has ended well."],
        charts=shown.charts if shown else (),
        axis=x or study.x[0],
        axis_labels=shown.labels if shown else {},
        missing=shown.missing if shown else {},
        figures=study_figures(prefix, points) if points else [],
        tables=[point_table(points)],
    )
