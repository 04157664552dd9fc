"""Run the benchmarks: ``python -m benchmarks``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from benchmarks import (
    air,
    dp,
    machine,
    scaling,
    secagg,
    shell,
    start,
    study_workers,
    trace_writer,
    vector_radio,
    workloads,
)
from benchmarks.measurement import Case, Row, Runner, Sample, in_fresh_process, in_this_process, measure_in_turn
from benchmarks.peers import attempt, peer_cases
from benchmarks.report import Record, draw, merge, read_csv, to_records, to_table, write_csv

SECAGG = "secagg"
WIDTH = 140  # a table that is broken to the 80 columns of a file is of no use to anybody
GROUPS = (
    "W1",
    "W2",
    "W3",
    dp.GROUP,
    air.GROUP,
    vector_radio.GROUP,
    SECAGG,
    shell.GROUP,
    trace_writer.GROUP,
    study_workers.GROUP,
    start.GROUP,
    *scaling.CURVES,
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="Tiny settings in this process: shows that everything works, not how fast.")
@click.option("--only", multiple=True, type=click.Choice(GROUPS), help="Measure this group; may be repeated.")
@click.option("--runs", type=click.IntRange(min=1), help="Samples of each case. Default: 5, with --quick 1.")
@click.option("--rounds", type=click.IntRange(min=2), help="Rounds of W1, W2 and W3 instead of 10, 5 and 5.")
@click.option("--threads", type=click.IntRange(min=1), default=os.cpu_count() or 1, show_default=True)
@click.option(
    "--peers",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    is_flag=False,
    flag_value="../shared/peers",
    help="Run the peers' scripts of this folder in the same turns; without a folder, ../shared/peers.",
)
@click.option(
    "--environments",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("~/.venv-peers").expanduser(),
    show_default=True,
    help="Where the virtual environments of the peers lie.",
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default="results/benchmarks", show_default=True
)
def main(
    quick: bool,
    only: tuple[str, ...],
    runs: int | None,
    rounds: int | None,
    threads: int,
    peers: Path | None,
    environments: Path,
    out: Path,
) -> None:
    """Measure the simulator beside a plain loop and the machine's peaks, and write a table and a picture.

    Groups that are not measured keep their lines of an earlier run.
    """
    console = Console()
    console.width = max(console.width, WIDTH)
    runs = runs or (1 if quick else 5)
    cases = collect_cases(threads, rounds, quick=quick)
    if peers is not None:
        cases += map(attempt, peer_cases(peers, environments, threads))
    machine_cases = machine.machine_cases(threads, quick=quick)
    records: list[Record] = []
    with console.status("") as status:

        def announce(row: Row) -> None:
            status.update(f"{row.case.group}: {row.case.name}, {len(row.samples)} of {min(runs, row.case.most)}")

        for group in only or GROUPS:
            # The peaks are taken again before every group: they change with the load.
            peaks = measure_in_turn(machine_cases, 1, announce)
            rows = measure_in_turn([case for case in cases if case.group == group], runs, announce)
            records = merge(records, [*to_records(rows, peaks), *to_records(peaks, peaks)])
            save(records, out)
    console.print(to_table(records))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    console.print(f"{threads} threads on {os.cpu_count()} cores; load averages {load}; written to {out}")


def save(records: Sequence[Record], out: Path) -> None:
    """Write what there is so far, beside the groups of earlier runs."""
    out.mkdir(parents=True, exist_ok=True)
    everything = merge(read_csv(out / "benchmarks.csv"), records)
    write_csv(everything, out / "benchmarks.csv")
    draw(everything, out / "benchmarks.png")


def collect_cases(threads: int, rounds: int | None, *, quick: bool) -> list[Case]:
    """All cases but the machine's and the peers'; ``rounds`` shortens the workloads."""
    chosen = [each.smaller() if quick else each for each in workloads.WORKLOADS]
    if rounds is not None:
        chosen = [replace(each, rounds=rounds) for each in chosen]
    fedavg, private, _ = chosen
    runner: Runner = in_this_process if quick else in_fresh_process
    return [
        *workloads.workload_cases(chosen, threads, runner),
        *dp.mechanism_cases(private, threads, runner),
        *dp.noise_cases(quick=quick),
        *air.air_cases(threads, quick=quick),
        *vector_radio.vector_cases(quick=quick),
        *secagg_cases(quick=quick),
        *shell.shell_cases(fedavg, threads, runner, quick=quick),
        *trace_writer.trace_cases(quick=quick),
        *study_workers.study_cases(quick=quick),
        *start.start_cases(quick=quick),
        *scaling.scaling_cases(threads, runner, quick=quick),
    ]


def secagg_cases(*, quick: bool) -> list[Case]:
    """Rounds of secure aggregation against their cryptography alone."""
    chosen = (secagg.Case(30, 1_000, 2, 2),) if quick else secagg.CASES

    def measure(case: secagg.Case) -> Sample:
        return Sample(secagg.compare(case, repeats=1).cpu_ratio)

    return [
        Case(
            SECAGG,
            f"n = {case.num_clients:,}, d = {case.dimension:,}, {case.colluding} colluding",
            "× floor, CPU",
            partial(measure, case),
            most=2,
        )
        for case in chosen
    ]


if __name__ == "__main__":
    main()
