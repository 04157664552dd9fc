"""The results: a table for people, a CSV file for machines, and a picture."""

from __future__ import annotations

import csv
import itertools
import math
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from benchmarks.catalogue import GROUPS
from benchmarks.machine import COPY, GEMM
from benchmarks.measurement import PLAIN_LOOP, Resource, Row, best_reference
from benchmarks.scaling import CURVES
from wirelessfl.processor import processor_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#7F7F7F"
"""Of Okabe and Ito's palette, which colour-blind readers can tell apart."""


@dataclass(frozen=True)
class Record:
    """One line of the results; NaN where something does not apply.

    Attributes:
        group: cases of a group are compared with each other.
        case: what was measured.
        unit: of median, low and high.
        median: over the runs.
        low: the smallest.
        high: the largest.
        runs: number of samples.
        to_plain_loop: median over the runs of the ratio to the plain loop.
        to_plain_loop_cpu: the same by processor time, for a machine that is shared.
        to_near_limit: the ratio to the best hand-written program near the machine's limit, where peers were run.
        to_opacus: the ratio to Opacus' best, where peers were run.
        cpu_seconds: of the processor for one round, all threads together, median.
        share_of_peak: of the machine's matrix products or copying, as measured in the same run.
        loss: of the trained model on all training samples.
        memory_mib: largest memory of the process.
        load: load average of the machine, one minute, at the end of the run.
        date: of the run.
        processor: its kind, as `wirelessfl.processor.processor_name` has it; empty before it was kept.
    """

    group: str
    case: str
    unit: str
    median: float
    low: float
    high: float
    runs: int
    to_plain_loop: float
    to_plain_loop_cpu: float
    to_near_limit: float
    to_opacus: float
    cpu_seconds: float
    share_of_peak: float
    loss: float
    memory_mib: float
    load: float
    date: str
    processor: str = ""


def to_records(rows: Sequence[Row], machine: Sequence[Row]) -> list[Record]:
    """The lines of some groups of cases.

    Args:
        rows: cases that were measured in turn.
        machine: the machine's peaks, measured in the same run.
    """
    peaks: dict[str, float] = {row.case.name: max(row.values) for row in machine}
    peak_of: dict[Resource, float] = {"gemm": peaks[GEMM], "copy": peaks[COPY]}
    load, date = os.getloadavg()[0], datetime.now(UTC).isoformat(timespec="minutes")
    records = []
    for row in (row for row in rows if row.is_complete):
        case, plain = row.case, best_reference(rows, row.case.group, PLAIN_LOOP)
        records.append(
            Record(
                group=case.group,
                case=case.name,
                unit=case.unit,
                median=row.median,
                low=min(row.values),
                high=max(row.values),
                runs=len(row.samples),
                to_plain_loop=_ratio(row, plain),
                to_plain_loop_cpu=row.cpu_ratio_to(plain) if plain is not None and case.is_rate else math.nan,
                to_near_limit=_ratio(row, best_reference(rows, case.group, "near-limit")),
                to_opacus=_ratio(row, best_reference(rows, case.group, "Opacus")),
                cpu_seconds=statistics.median(sample.cpu_seconds for sample in row.samples),
                share_of_peak=row.median * case.work.amount / peak_of[case.work.resource] if case.work else math.nan,
                loss=row.loss,
                memory_mib=row.memory_mib,
                load=load,
                date=date,
                processor=processor_name(),
            )
        )
    return records


def _ratio(row: Row, reference: Row | None) -> float:
    return row.ratio_to(reference) if reference is not None and row.case.is_rate else math.nan


def merge(old: Iterable[Record], new: Sequence[Record]) -> list[Record]:
    """Groups measured again on a kind of processor replace the older ones of it; others stay, with date and load."""
    measured = {(record.group, record.processor) for record in new}
    return [record for record in old if (record.group, record.processor) not in measured] + list(new)


def read_csv(path: Path) -> list[Record]:
    """The lines of an earlier run; none where there was no run."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [_parse(line) for line in csv.DictReader(file)]


def _parse(line: dict[str, str]) -> Record:
    values: dict[str, Any] = dict(line)
    for item in fields(Record):
        if item.type == "float":
            values[item.name] = float(line.get(item.name, "nan"))  # a column that an earlier run did not have
        elif item.type == "int":
            values[item.name] = int(line[item.name])
    return Record(**values)


def write_csv(records: Sequence[Record], path: Path) -> None:
    """All lines, four digits each."""
    with _replacing(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(item.name for item in fields(Record))
        for record in records:
            writer.writerow(f"{x:.4g}" if isinstance(x, float) else x for x in asdict(record).values())


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file to write that takes the place of another once it is whole: a killed run loses no earlier results."""
    partial = path.with_name(f".{path.name}.partial")
    yield partial
    partial.replace(path)


def to_table(records: Sequence[Record]) -> Table:
    """The lines for a terminal."""
    table = Table(title="wirelessfl benchmarks", title_style="bold")
    table.add_column("group")
    table.add_column("case", overflow="fold")
    table.add_column("median", justify="right")
    table.add_column("low – high", justify="right")
    table.add_column("unit")
    for heading in ("× plain", "CPU", "× limit", "× Opacus", "CPU s", "of peak", "loss", "MiB", "runs"):
        table.add_column(heading, justify="right")
    for before, record in zip([None, *records], records, strict=False):
        if before is not None and before.group != record.group:
            table.add_section()
        table.add_row(
            record.group if before is None or before.group != record.group else "",
            record.case,
            number(record.median),
            f"{number(record.low)} – {number(record.high)}" if record.runs > 1 else "",
            record.unit,
            number(record.to_plain_loop),
            number(record.to_plain_loop_cpu),
            number(record.to_near_limit),
            number(record.to_opacus),
            number(record.cpu_seconds),
            "" if math.isnan(record.share_of_peak) else f"{record.share_of_peak:.0%}",
            number(record.loss),
            "" if math.isnan(record.memory_mib) else f"{record.memory_mib:.0f}",
            str(record.runs),
        )
    return table


def number(value: float) -> str:
    """Three digits for people; nothing for NaN."""
    if math.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def draw(records: Sequence[Record], path: Path) -> None:
    """Ratios to the plain loop, and the scaling curves; panels without data are left out."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    compared = [record for record in records if not math.isnan(record.to_plain_loop) and record.case != PLAIN_LOOP]
    curves = {name: [record for record in records if record.group == name] for name in CURVES}
    drawn = {name: points for name, points in curves.items() if points}
    if not compared and not drawn:
        return
    heights = [1.0 + 0.22 * len(_positions(compared))] * bool(compared) + [2.6] * bool(drawn)
    figure = Figure(figsize=(7.2, sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    parts = list(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0])
    processors = dict.fromkeys(record.processor for record in itertools.chain(compared, *drawn.values()))
    markers = dict(zip(processors, itertools.cycle("osD^v"), strict=False))
    if compared:
        _draw_ratios(parts[0], compared, markers)
    if drawn:
        panels = parts[-1].subplots(1, len(drawn), sharey=True, squeeze=False)[0]
        for axes, (name, points) in zip(panels, drawn.items(), strict=True):
            _draw_curve(axes, name, points, markers)
        panels[0].set_ylabel("seconds a round", fontsize=8)
    if len(markers) > 1:
        for processor, marker in markers.items():
            figure.axes[0].plot([], [], marker, markersize=4, color=GREY, label=processor or "processor not kept")
        parts[0].legend(loc="outside upper left", fontsize=7, ncols=2)
    with _replacing(path) as partial:
        figure.savefig(partial, dpi=200, format="png")


def _draw_ratios(part: SubFigure, records: Sequence[Record], markers: Mapping[str, str]) -> None:
    """One line a case, of one group together, with a marker of each kind of processor."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes = part.subplots()
    positions = _positions(records)
    for record in records:
        colour = GREY if record.case.startswith("peer") else BLUE
        place = (record.to_plain_loop, positions[record.group, record.case])
        axes.plot(*place, markers[record.processor], markersize=4, color=colour, alpha=0.8)
        if len(markers) == 1:
            axes.annotate(number(record.to_plain_loop), place, (6, -3), textcoords="offset points", fontsize=7)
    axes.set_yticks(list(positions.values()), ["  ".join(names) for names in positions], fontsize=7)
    axes.axvline(1.0, color=ORANGE, linewidth=1.0)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.15)
    axes.set_ylim(0.4, len(positions) + 0.6)
    axes.grid(axis="y", alpha=0.25, linewidth=0.5)
    axes.set_xlabel("rounds a second, as a multiple of the plain loop in the same run", fontsize=8)
    axes.tick_params(axis="x", which="both", labelsize=7)


def _positions(records: Sequence[Record]) -> dict[tuple[str, str], int]:
    """Heights of the lines by group and case, the first on top, groups in the order of the catalogue."""
    cases = dict.fromkeys((record.group, record.case) for record in records)
    ordered = sorted(cases, key=lambda names: GROUPS.index(names[0]))
    return dict(zip(ordered, range(len(ordered), 0, -1), strict=True))


def _draw_curve(axes: Axes, name: str, points: Sequence[Record], markers: Mapping[str, str]) -> None:
    for processor in dict.fromkeys(point.processor for point in points):
        own = [point for point in points if point.processor == processor]
        at, median, low, high = zip(*((float(p.case), p.median, p.low, p.high) for p in own), strict=True)
        axes.plot(at, median, marker=markers[processor], markersize=3, color=BLUE, linewidth=1.2)
        axes.fill_between(at, low, high, color=BLUE, alpha=0.2, linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(name, fontsize=8)
    axes.tick_params(which="both", labelsize=7)
    axes.grid(alpha=0.25, linewidth=0.5)
