"""Fuzz the command line: ``python -m tests.fuzz --kind traces --count 1000``."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from tests.fuzz.campaign import Finding, Tally, campaign, clear, play, scratch_subjects
from tests.fuzz.case import KINDS, Case
from tests.fuzz.sandbox import preload
from tests.fuzz.subjects import Subjects, make_subjects, warm_up

CORPUS = Path(__file__).parent / "corpus.jsonl"
"""What was found and mended, one case a line, with as few steps as showed it."""
SHORT = {"traces": 9, "scenarios": 24, "checkpoints": 7, "archives": 8}
"""Cases of a short campaign, one of each stratum or more; studies and signals take longer."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--kind", type=click.Choice(KINDS), multiple=True, help="What is damaged; repeatable [all].")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--count", type=click.IntRange(min=1), help="Cases of each kind [1000, or as --seconds allow].")
@click.option("--seconds", type=click.FloatRange(min=0), help="Stop each kind after this time.")
@click.option("--start", type=click.IntRange(min=0), default=0, show_default=True, help="Number of the first case.")
@click.option("--stride", type=click.IntRange(min=1), default=1, show_default=True, help="Take every so many cases.")
@click.option("--stratum", help="Only this family of damage.")
@click.option("--real", "as_process", is_flag=True, help="Each case as a process of its own, not as a forked child.")
@click.option("--case", "recipe", help="Play one case written as JSON, and print what the process printed.")
@click.option("--corpus", is_flag=True, help="Play what was found before, each case of corpus.jsonl.")
@click.option("--short", is_flag=True, help="Play that and a few cases of the kinds that take little time.")
@click.option("--subjects", "place", type=click.Path(path_type=Path), help="Folder of the healthy files.")
@click.option("--fresh", is_flag=True, help="Make the healthy files afresh.")
def main(
    kind: tuple[str, ...],
    seed: int,
    count: int | None,
    seconds: float | None,
    start: int,
    stride: int,
    stratum: str | None,
    as_process: bool,
    recipe: str | None,
    corpus: bool,
    short: bool,
    place: Path | None,
    fresh: bool,
) -> None:
    """Damage healthy files and run commands on them; exit code 1 if anything is found."""
    folder = place or scratch_subjects()
    if fresh:
        clear(folder)
    preload()
    subjects = make_subjects(folder.resolve())
    if recipe is not None:
        wrong, ending = play(Case.from_json(recipe), subjects, as_process=as_process)
        print(ending.out)
        print(*wrong or ["nothing found"], sep="\n")
        sys.exit(bool(wrong))
    if corpus:
        sys.exit(_play_corpus(subjects, as_process=as_process))
    found = short and _play_corpus(subjects, as_process=as_process)
    if not short:
        warm_up(subjects)  # which takes as long as a score of cases
    counts: Mapping[str, int | None] = dict.fromkeys(kind or KINDS, count if count or seconds else 1000)
    for one, cases in (SHORT if short else counts).items():
        indices = _indices(start, stride, cases, seconds)
        tally = campaign(
            one, seed, indices, subjects, stratum=stratum, as_process=as_process, on_finding=_print_finding
        )
        _print_tally(one, seed, tally)
        found = found or bool(tally.findings)
    sys.exit(found)


def _play_corpus(subjects: Subjects, *, as_process: bool) -> bool:
    found = False
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        case = Case.from_json(line)
        wrong, _ = play(case, subjects, as_process=as_process)
        if wrong:
            print(f"FOUND AGAIN: {'; '.join(wrong)}\n  {line}", flush=True)
        found = found or bool(wrong)
    return found


def _indices(start: int, stride: int, count: int | None, seconds: float | None) -> Iterator[int]:
    end = None if seconds is None else time.monotonic() + seconds
    for index in itertools.islice(itertools.count(start, stride), count):
        if end is not None and time.monotonic() > end:
            return
        yield index


def _print_finding(finding: Finding) -> None:
    print(f"FOUND case {finding.index}: {'; '.join(finding.faults)}")
    print(f"  {finding.case.to_json()}", flush=True)


def _print_tally(kind: str, seed: int, tally: Tally) -> None:
    total = sum(tally.cases.values())
    rate = 60 * total / tally.seconds if tally.seconds else 0.0
    print(f"{kind}, seed {seed}: {total} cases in {tally.seconds:.0f} s ({rate:.0f} a minute)")
    print("  " + ", ".join(f"{name} {number}" for name, number in sorted(tally.cases.items())))
    print("  endings: " + ", ".join(f"{name}: {number}" for name, number in sorted(tally.codes.items())))
    print(f"  findings: {len(tally.findings)}")


if __name__ == "__main__":
    main()
