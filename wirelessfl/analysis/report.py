"""One self-contained HTML page over runs and studies: nothing is loaded from anywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.analysis.replay import Recording, open_recording
from wirelessfl.analysis.report_channel import ChannelStatistics, channel_statistics, power_law
from wirelessfl.analysis.report_figures import Drawing, run_figures
from wirelessfl.analysis.report_study import StudyData, open_study_data, study_figures, study_points
from wirelessfl.errors import InputError, OutputError

if TYPE_CHECKING:
    from jinja2 import Template

MOST_ROWS = 1000
"""A table of more rounds than these shows every second, every third, ... of them."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table: what is shown, and by what it is sorted."""

    text: str
    value: float | str


@dataclass(frozen=True)
class SortedTable:
    """A table whose rows the reader may sort.

    Attributes:
        caption: what its rows are.
        head: names of the columns.
        rows: of cells.
    """

    caption: str
    head: tuple[str, ...]
    rows: list[list[Cell]]


@dataclass(frozen=True)
class Section:
    """One run or study on the page.

    Attributes:
        anchor: its id on the page.
        title: its heading.
        facts: what is to be known of it first, as pairs of words and value.
        reasons: why the two ε differ.
        warnings: what the reader must know of it.
        figures: its figures.
        tables: its tables.
        scenario: its scenario as YAML; "" for a study.
    """

    anchor: str
    title: str
    facts: list[tuple[str, str]]
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    figures: list[Drawing] = field(default_factory=list)
    tables: list[SortedTable] = field(default_factory=list)
    scenario: str = ""


def write_report(paths: Sequence[Path], out: Path | None = None) -> Path:
    """Write a page over traces, folders of runs and folders of studies.

    Args:
        paths: one or more of them.
        out: the HTML file; by default ``report.html`` in the folder of the one path, or here for several.

    Returns:
        The file.

    Raises:
        InputError: a path holds neither a trace nor a study, or one that cannot be read.
        OutputError: the file cannot be written.
    """
    if out is None:
        folder = Path() if len(paths) > 1 else paths[0] if paths[0].is_dir() else paths[0].parent
        out = folder / "report.html"
    if not out.parent.is_dir():
        raise OutputError(f"{out}: the folder {out.parent} does not exist; allowed: a file in an existing folder")
    page = report_html(paths)
    try:
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{out} cannot be written: {error.strerror or error}") from error
    return out


def report_html(paths: Sequence[Path]) -> str:
    """The page as text.

    Raises:
        InputError: a path holds neither a trace nor a study, or one that cannot be read.
    """
    sections, runs = [], []
    for number, path in enumerate(paths):
        prefix = f"s{number}"
        source = _open(path)
        if isinstance(source, StudyData):
            sections.append(_study_section(prefix, source))
        else:
            runs.append((prefix, source))
            sections.append(_run_section(prefix, source))
    overview = [_overview(runs)] if len(runs) > 1 else []
    title = sections[0].title if len(sections) == 1 else f"{len(sections)} runs and studies"
    return _template().render(title=title, sections=sections, overview=overview)


def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("wirelessfl.analysis", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("report.html.j2")


def _open(path: Path) -> Recording | StudyData:
    if not path.exists():
        raise InputError(f"{path}: not found; allowed: a trace, the folder of a run, the folder of a study")
    if path.is_dir():
        if (path / "study.json").exists() or (path / "study.parquet").exists():
            return open_study_data(path)
        if not (path / "trace.h5").exists():
            raise InputError(f"{path}: holds neither trace.h5 nor study.parquet; allowed: the folder of a run or study")
        path = path / "trace.h5"
    return open_recording(path)


def _run_section(prefix: str, recording: Recording) -> Section:
    trace, summary, scenario = recording.dataset, recording.summary(), recording.scenario
    statistics, law = channel_statistics(trace, scenario), power_law(scenario)
    warnings = [] if summary["status"] == "complete" else [f"The run is not complete but {summary['status']}."]
    return Section(
        anchor=prefix,
        title=f"{summary['name']}, seed {summary['seed']}",
        facts=_run_facts(summary, statistics),
        reasons=[*recording.why_different, summary["privacy_scope"]],
        warnings=warnings,
        figures=run_figures(prefix, recording, statistics, law),
        tables=[_round_table(recording)],
        scenario=str(trace.attrs["scenario"]),
    )


def _run_facts(summary: dict[str, Any], statistics: ChannelStatistics | None) -> list[tuple[str, str]]:
    delta = f"at δ = {summary['delta']:g}".replace("-", "\N{NON-BREAKING HYPHEN}")
    facts = [
        ("test accuracy", f"{summary['test_accuracy']:.1%}"),
        ("test loss", f"{summary['test_loss']:.4g} nat"),
        ("ε published", f"{number_text(summary['epsilon_published'])} {delta}"),
        ("ε accounted", f"{number_text(summary['epsilon_accounted'])} {delta}"),
        ("rounds", f"{summary['rounds']}, {summary['participants_mean']:.1f} clients heard on average"),
        ("model", f"{summary['d']:,} parameters, {summary['samples']:,} samples"),
        ("simulated time", f"{summary['sim_time']:.4g} s, on the air {summary['airtime']:.3g} s"),
    ]
    if not math.isnan(summary["energy"]):
        facts.append(("energy", f"{summary['energy']:.4g} J"))
    if statistics is not None:
        facts += _channel_facts(statistics)
    return facts


def _channel_facts(statistics: ChannelStatistics) -> list[tuple[str, str]]:
    below = f"{statistics.below_tenth:.2%}"
    if statistics.below_tenth_expected is not None:
        below += f", by the law {statistics.below_tenth_expected:.2%}"
    facts = [
        ("mean |h|²/β", f"{statistics.mean:.4g}, by the law 1"),
        ("fades of 10 dB or more", below),
    ]
    if statistics.distance is not None:
        words = f"{statistics.distance:.3g}"
        if statistics.critical is not None:
            words += f"; the law stays below {statistics.critical:.3g} in 99 of 100 runs"
        facts.append(("distance from the law", f"{words} (Kolmogorov)"))
    return facts


def number_text(value: float) -> str:
    """A number for people; ∞ and – where there is none."""
    if math.isnan(value):
        return "–"
    return "∞" if math.isinf(value) else f"{value:.4g}"


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{share:.1%}"


def _cell(value: float) -> Cell:
    return Cell(number_text(value), value)


_ROUND_COLUMNS = (
    ("accuracy", "test_accuracy"),
    ("loss", "test_loss"),
    ("heard", "participants"),
    ("ε published", "epsilon_published"),
    ("ε accounted", "epsilon_accounted"),
    ("α_u", "server_gain"),
    ("α_CJ", "jammer_gain"),
    ("σ_m", "effective_noise_std"),
    ("time (s)", "sim_time"),
)


def _round_table(recording: Recording) -> SortedTable:
    trace = recording.dataset
    step = -(-trace.sizes["round"] // MOST_ROWS)
    columns = [trace["round"].values, *(trace[name].values for _, name in _ROUND_COLUMNS)]
    rows = [
        [Cell(_percent(float(value)), float(value)) if at == 1 else _cell(float(value)) for at, value in enumerate(row)]
        for row in zip(*(column[::step] for column in columns), strict=True)
    ]
    caption = "Rounds" if step == 1 else f"Every {step}th round"
    return SortedTable(caption, ("round", *(words for words, _ in _ROUND_COLUMNS)), rows)


_RUN_COLUMNS = (
    ("ε published", "epsilon_published"),
    ("ε accounted", "epsilon_accounted"),
    ("rounds", "rounds"),
    ("heard", "participants_mean"),
    ("time (s)", "sim_time"),
    ("airtime (s)", "airtime"),
    ("energy (J)", "energy"),
)


def _overview(runs: list[tuple[str, Recording]]) -> SortedTable:
    rows = []
    for _, recording in runs:
        summary = recording.summary()
        name = f"{summary['name']}, seed {summary['seed']}"
        accuracy = Cell(_percent(summary["test_accuracy"]), summary["test_accuracy"])
        rows.append([Cell(name, name), accuracy, *(_cell(float(summary[key])) for _, key in _RUN_COLUMNS)])
    return SortedTable("Runs", ("run", "accuracy", *(words for words, _ in _RUN_COLUMNS)), rows)


_POINT_COLUMNS = (
    ("ε published", "epsilon_published"),
    ("ε accounted", "epsilon_accounted"),
    ("time (s)", "sim_time"),
    ("airtime (s)", "airtime"),
    ("energy (J)", "energy"),
)


def _study_section(prefix: str, study: StudyData) -> Section:
    points = study_points(study) if len(study.rows) else []
    rows = []
    for point in points:
        accuracy, width = point.last["test_accuracy"], point.half_width[-1]
        words = f"{accuracy:.1%}" + ("" if math.isnan(width) else f" ± {100 * width:.1f}")
        rows.append(
            [
                Cell(point.label, point.label),
                _cell(point.runs),
                Cell(words, accuracy),
                *(_cell(point.last[name]) for _, name in _POINT_COLUMNS),
            ]
        )
    warnings = [f"Failed: {failure}" for failure in study.failures]
    warnings += [f"{study.unfinished} runs are not finished."] if study.unfinished else []
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
        figures=study_figures(prefix, points) if points else [],
        tables=[
            SortedTable(
                "Points: means over the seeds after the last round, ± 95 % confidence",
                ("point", "runs", "accuracy", *(words for words, _ in _POINT_COLUMNS)),
                rows,
            )
        ],
    )
