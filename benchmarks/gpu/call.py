"""One call: which parts are measured, what is kept of earlier calls, and what is shown in the end."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.gpu.parts import KEYS, PARTS, Part
from benchmarks.gpu.probe import Machine, look
from benchmarks.gpu.roofline import with_shares
from benchmarks.gpu.runner import run_part
from benchmarks.gpu.setting import Measured, Setting
from benchmarks.gpu.table import NO_CUDA, OK, Row, TableError, read_rows, to_tables, with_row, write_rows
from wirelessfl.cli.terminal import open_console

PART_NAMES = tuple(part.name for part in PARTS)
REHEARSED = "rehearsal on the CPU"
_TOO_SHORT_S = 20.0  # in which no part gets anywhere


@dataclass(frozen=True)
class Wanted:
    """What a call asks for.

    Attributes:
        only: Parts to measure, again; empty for all that are not measured yet.
        again: Whether to measure all, also what was measured at this commit on this machine.
        limit_s: Seconds for a part.
        within_s: Seconds for the whole call; None for no limit.
    """

    only: tuple[str, ...] = ()
    again: bool = False
    limit_s: float = 290.0
    within_s: float | None = None

    def left(self, part: Part, rows: Sequence[Row], machine: Machine) -> list[str]:
        """Workloads of a part that are to be measured; failed ones are tried again."""
        if self.only:
            return list(part.workloads) if part.name in self.only else []
        if self.again:
            return list(part.workloads)
        done = {row.key for row in rows if row.is_measured and _is_from(row, machine)}
        return [workload for workload in part.workloads if (part.name, workload) not in done]


def _is_from(row: Row, machine: Machine) -> bool:
    return (row.device, row.driver, row.torch, row.commit) == (
        machine.device,
        machine.driver,
        machine.torch,
        machine.commit,
    )


def measure(wanted: Wanted, out: Path, commit: str | None) -> int:
    """Measure on the GPU, into ``gpu.csv``; without one say so for every part, and leave the file as it is."""
    machine = look(commit)
    if not machine.has_cuda:
        _say_no_cuda(wanted, machine)
        return 0
    with _alone(out):
        return _run(wanted, out / "gpu.csv", machine, Setting("cuda"))


def _say_no_cuda(wanted: Wanted, machine: Machine) -> None:
    table = Table(title=f"torch {machine.torch} sees no GPU", title_style="bold", title_justify="left")
    for heading in ("part", "what it measures", "status"):
        table.add_column(heading)
    for part in PARTS:
        if not wanted.only or part.name in wanted.only:
            table.add_row(part.name, part.meaning, NO_CUDA)
    console = open_console()
    console.print(table)
    console.print("Nothing was measured, and no file was written.")


def rehearse(wanted: Wanted, out: Path, commit: str | None) -> int:
    """Every part in tiny on the CPU, into a file of its own."""
    found = look(commit)
    machine = Machine(REHEARSED, "", found.torch, found.commit)
    with _alone(out):
        return _run(wanted, out / "rehearsal.csv", machine, Setting("cpu", tiny=True))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else measures into this folder meanwhile: two calls would disturb each other, and lose rows.

    Raises:
        TableError: somebody does, or nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise TableError(f"{folder}: no folder to write in ({error.strerror}); --out names another") from error
    try:
        if not os.access(folder, os.W_OK):
            raise TableError(f"{folder}: no folder to write in (Permission denied); --out names another")
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TableError(f"{folder}: another call measures into it; allowed is one at a time") from None
        except OSError:  # a file system without such locks, as over a network, is no reason to measure nothing
            pass
        yield
    finally:
        os.close(place)


def _run(wanted: Wanted, path: Path, machine: Machine, setting: Setting) -> int:
    began = time.monotonic()
    measured: list[Row] = []
    not_begun: list[str] = []
    todo = [(part, left) for part in PARTS if (left := wanted.left(part, read_rows(path), machine))]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=open_console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=sum(len(left) for _, left in todo))
        for part, workloads in todo:
            limit = wanted.limit_s
            if wanted.within_s is not None:
                limit = min(limit, wanted.within_s - (time.monotonic() - began))
            if limit < min(_TOO_SHORT_S, wanted.limit_s):
                not_begun.append(part.name)
                continue
            progress.update(bar, description=f"{part.name}: {part.meaning}")

            def keep(workload: str, numbers: Measured, name: str = part.name) -> None:
                row = _row(name, workload, numbers, machine)
                measured.append(row)
                rows = with_row(read_rows(path), row, KEYS)
                write_rows(with_shares(rows, setting), path)
                progress.console.print(f"{name}: {workload}: {row.status}")
                progress.advance(bar)

            log = path.with_name(f"{path.stem}-{part.name}.txt")
            run_part(part.name, workloads, setting, limit, log, keep)
    return _conclude(measured, not_begun, path, machine)


def _row(part: str, workload: str, numbers: Measured, machine: Machine) -> Row:
    detail = f"{OK}: {numbers.detail}" if numbers.detail else OK
    return Row(
        part,
        workload,
        machine.device,
        machine.driver,
        machine.torch,
        machine.commit,
        seconds=numbers.seconds,
        rounds_per_s=numbers.rounds_per_s,
        kernel_share=numbers.kernel_share,
        launch_share=numbers.launch_share,
        copy_share=numbers.copy_share,
        max_abs_diff_cpu=numbers.max_abs_diff_cpu,
        ks_p=numbers.ks_p,
        status=f"failed: {numbers.failure}" if numbers.failure else detail,
    )


def _conclude(measured: Sequence[Row], not_begun: Sequence[str], path: Path, machine: Machine) -> int:
    """Show the table and what is missing from it; 1 where something failed in this call."""
    console = open_console()
    rows = read_rows(path)
    console.print(f"{machine.device}, torch {machine.torch}, commit {machine.commit}", style="bold")
    for table in to_tables(rows, {part.name: part.meaning for part in PARTS}):
        console.print(table)
    if older := sorted({row.commit for row in rows} - {machine.commit}):
        console.print(f"Some rows are of earlier commits: {', '.join(older)}.")
    if not_begun:
        console.print(f"Not begun, no time was left: {', '.join(not_begun)}. The same command goes on there.")
    failed = sorted({row.part for row in measured if not row.is_measured})
    if failed:
        logs = ", ".join(f"{path.stem}-{part}.txt" for part in failed)
        console.print(f"Failed: {', '.join(failed)}; what they printed is in {logs} beside {path}.")
    if not any(row.part == "peaks" and row.is_measured for row in rows):
        console.print("Shares of the peaks are missing until the part peaks has been measured.")
    console.print(f"{len(measured)} rows measured now, {len(rows)} in {path}.")
    return 1 if failed else 0
