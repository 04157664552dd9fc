"""The rows of ``gpu.csv``: one a workload of a part, written the moment it is measured."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.table import Table

NO_CUDA = "no CUDA"
OK = "ok"


@dataclass(frozen=True)
class Row:
    """One line; NaN where something does not apply.

    Attributes:
        part: name of the part.
        workload: what was measured.
        device: name of the GPU.
        driver: its version.
        torch: its version.
        commit: of this repository.
        seconds: of the workload; of local training alone where a round is trained.
        rounds_per_s: rounds a second through the whole simulator.
        share_of_peak: seconds at the machine's peaks over ``seconds``.
        kernel_share: of a round's wall time, in which a kernel runs on the GPU.
        launch_share: in which nothing runs there and the host launches.
        copy_share: in which the GPU copies and no kernel runs; what is left of 1 is idle.
        max_abs_diff_cpu: largest absolute difference of a coordinate of an update from the CPU's in double precision.
        ks_p: p of the two-sample test of Kolmogorov and Smirnov, the noise of the GPU against that of the CPU.
        status: "ok", with details behind a colon; else why there is no measurement.
    """

    part: str
    workload: str
    device: str = ""
    driver: str = ""
    torch: str = ""
    commit: str = ""
    seconds: float = math.nan
    rounds_per_s: float = math.nan
    share_of_peak: float = math.nan
    kernel_share: float = math.nan
    launch_share: float = math.nan
    copy_share: float = math.nan
    max_abs_diff_cpu: float = math.nan
    ks_p: float = math.nan
    status: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether the numbers stand."""
        return self.status.split(":")[0] == OK

    @property
    def key(self) -> tuple[str, str]:
        """What a newer row of the same replaces."""
        return self.part, self.workload

    def is_of(self, other: Row) -> bool:
        """Whether both are of one GPU, driver and torch."""
        return (self.device, self.driver, self.torch) == (other.device, other.driver, other.torch)


class TableError(Exception):
    """A file that is no table of measurements; the text says where and why."""


def read_rows(path: Path) -> list[Row]:
    """The rows of a file; none where there is none.

    Raises:
        TableError: it is there, and is not as it was written.
    """
    if not path.exists():
        return []
    names = [item.name for item in fields(Row)]
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file, strict=True)
            if (header := next(lines, [])) != names:
                raise TableError(f"{path}: line 1: found columns {','.join(header)}; allowed are {','.join(names)}")
            return [_parse(cells, f"{path}: line {lines.line_num}") for cells in lines]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path}: {error}") from error


def _parse(cells: Sequence[str], place: str) -> Row:
    if len(cells) != len(fields(Row)):
        raise TableError(f"{place}: found {len(cells)} cells; allowed are {len(fields(Row))}")
    values: dict[str, Any] = {}
    for item, cell in zip(fields(Row), cells, strict=True):
        try:
            values[item.name] = float(cell or "nan") if item.type == "float" else cell
        except ValueError:
            raise TableError(f"{place}: {item.name}: found {cell!r}; allowed is a number or nothing") from None
    return Row(**values)


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """All rows, four digits each, in place of the file: a kill leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(item.name for item in fields(Row))
        writer.writerows([_cell(value) for value in asdict(row).values()] for row in rows)
    partial.replace(path)


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return "" if math.isnan(value) else f"{value:.4g}"


def with_row(rows: Sequence[Row], new: Row, order: Sequence[tuple[str, str]]) -> list[Row]:
    """The rows with one more, in place of an older one of its key, in the order of the parts."""
    kept = [row for row in rows if row.key != new.key]
    places = {key: place for place, key in enumerate(order)}
    return sorted([*kept, new], key=lambda row: places.get(row.key, len(places)))


def to_tables(rows: Iterable[Row], meanings: Mapping[str, str]) -> Iterator[Table]:
    """A table a part for a terminal, under what the part is about; columns without a number are left out."""
    for part, group in groupby(rows, key=lambda row: row.part):
        yield _part_table(list(group), f"{part}: {meanings.get(part, '')}")


def _part_table(rows: Sequence[Row], title: str) -> Table:
    columns = {
        "seconds": [_number(row.seconds) for row in rows],
        "rounds/s": [_number(row.rounds_per_s) for row in rows],
        "of peak": [_percent(row.share_of_peak) for row in rows],
        "kernels": [_percent(row.kernel_share) for row in rows],
        "launches": [_percent(row.launch_share) for row in rows],
        "copies": [_percent(row.copy_share) for row in rows],
        "difference": [_number(row.max_abs_diff_cpu) for row in rows],
        "KS p": [_number(row.ks_p) for row in rows],
    }
    used = {heading: cells for heading, cells in columns.items() if any(cells)}
    table = Table(title=title, title_style="bold", title_justify="left")
    table.add_column("workload", min_width=20)
    for heading in used:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("status", overflow="fold")
    for index, row in enumerate(rows):
        table.add_row(row.workload, *(cells[index] for cells in used.values()), row.status)
    return table


def _number(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _percent(value: float) -> str:
    return "" if math.isnan(value) else f"{_number(100 * value)}%"
