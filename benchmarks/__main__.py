"""Run the benchmarks: ``python -m benchmarks``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from benchmarks import machine
from benchmarks.catalogue import GROUPS, collect_cases
from benchmarks.check import check
from benchmarks.measurement import Row, measure_in_turn
from benchmarks.peers import attempt, peer_cases
from benchmarks.report import Record, draw, merge, read_csv, to_records, to_table, write_csv

WIDTH = 140  # a table that is broken to the 80 columns of a file is of no use to anybody


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
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
@click.pass_context
def main(
    context: click.Context,
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
    if context.invoked_subcommand is not None:
        return
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


main.add_command(check)

if __name__ == "__main__":
    main()
