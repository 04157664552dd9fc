"""Speed of this checkout over that of another commit, case by case, measured in pairs on the same machine.

    python -m benchmarks check [--against COMMIT]

Each case is measured by the code of both commits, each time in a process of its own, and every other pair begins with
the other of the two: whatever else the machine does meets both alike. A case is slower where the whole interval of its
ratio lies below one less ``--slack``; the exit code is then 3.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import cast

import click
from rich.console import Console
from rich.table import Table

from benchmarks.catalogue import collect_cases
from benchmarks.checked import Checked, append, last_commit
from benchmarks.measurement import Case
from benchmarks.paired import LEAST_PAIRS, Ratio, paired_ratio
from publications.provenance import current_commit

ROOT = Path(__file__).resolve().parents[1]
STORED = Path("results/benchmarks/checked.csv")
DEFAULT_CASES = ("W1", "W2", "W3")
EXIT_SLOWER = 3

# Earlier commits have `collect_cases` under this name too.
_CHILD = """
import json, sys
from benchmarks.__main__ import collect_cases
group, name, threads, quick = json.loads(sys.argv[1])
cases = {(case.group, case.name): case for case in collect_cases(threads, None, quick=quick)}
case = cases.get((group, name))
print(json.dumps(None if case is None else case.measure().value))
"""


@click.command()
@click.option("--against", metavar="COMMIT", help="What to compare with. Default: the commit that was checked last.")
@click.option("--only", multiple=True, metavar="GROUP[:CASE]", help="May be repeated. Default: W1, W2 and W3.")
@click.option("--pairs", type=click.IntRange(min=LEAST_PAIRS), default=8, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), default=os.cpu_count() or 1, show_default=True)
@click.option(
    "--slack",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Loss of speed that is not counted as slower.",
)
@click.option("--quick", is_flag=True, help="Tiny settings, not stored: shows that it works, not how fast it is.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=STORED, show_default=True)
def check(
    against: str | None, only: tuple[str, ...], pairs: int, threads: int, slack: float, quick: bool, out: Path
) -> None:
    """Compare the speed of this checkout with that of another commit, in turns."""
    cases = choose_cases(collect_cases(threads, None, quick=quick), only or DEFAULT_CASES)
    other_commit = resolve(against or last_commit(out))
    rows: list[tuple[Checked, Ratio]] = []
    console = Console()
    _provide_kernels(ROOT)  # its sources may have changed since it was installed
    with checkout(other_commit) as other, console.status("") as status:
        for case in cases:

            def announce(done: int, case: Case = case) -> None:
                status.update(f"{case.group}: {case.name}, {done} of {pairs} pairs")

            question = json.dumps([case.group, case.name, threads, quick])
            ratios = measure_pairs(case, question, (ROOT, other), pairs, announce)
            ratio = paired_ratio(ratios)
            row = Checked.now(current_commit(ROOT), other_commit[:12], case, ratio, threads)
            rows.append((row, ratio))
            if not quick:
                append(row, out)
    console.print(_table(rows, slack))
    if any(ratio.is_below(1 - slack) for _, ratio in rows):
        raise SystemExit(EXIT_SLOWER)


def choose_cases(cases: Sequence[Case], only: Sequence[str]) -> list[Case]:
    """Cases of the simulator in the named groups, and those named with their group.

    Raises:
        click.BadParameter: for a name that is not there.
    """
    chosen = []
    for name in only:
        group, _, single = name.partition(":")
        found = [
            case
            for case in cases
            if case.group == group and (case.name == single if single else case.reference is None)
        ]
        if not found:
            raise click.BadParameter(_allowed(cases, group, single), param_hint="--only")
        chosen += found
    return chosen


def _allowed(cases: Sequence[Case], group: str, single: str) -> str:
    names = [f'"{case.name}"' for case in cases if case.group == group]
    if names:
        return f"{group} has no case {single!r}; it has {', '.join(names)}"
    groups = dict.fromkeys(case.group for case in cases)
    return f"no group {group!r}; groups: {', '.join(groups)}"


def resolve(commit: str | None) -> str:
    """Full hash of a commit of this repository.

    Raises:
        click.UsageError: where there is none to compare with.
    """
    if commit is None:
        raise click.UsageError("no commit was checked before: name one with --against")
    done = _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    if done.returncode:
        raise click.BadParameter(f"{commit!r} is no commit of {ROOT}", param_hint="--against")
    return done.stdout.strip()


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A commit's files in a folder of their own, with its compiled kernels, for the time of the block."""
    with tempfile.TemporaryDirectory(prefix="wirelessfl-check-") as parent:
        folder = Path(parent) / commit[:12]
        added = _git("worktree", "add", "--detach", str(folder), commit)
        if added.returncode:
            raise click.ClickException(f"git worktree add {commit[:12]}: {added.stderr.strip()}")
        try:
            _provide_kernels(folder)
            yield folder
        finally:
            _git("worktree", "remove", "--force", str(folder))


def _provide_kernels(folder: Path) -> None:
    # Those that the checkout has, of its own sources, headers and flags, where one changed after it was compiled
    package, build = folder / "wirelessfl", folder / "hatch_build.py"
    compile_kernel = _compile_kernel_of(build)
    sources = [build, *(one for end in ("c", "h") for one in package.rglob(f"*.{end}"))]
    changed = max(one.stat().st_mtime for one in sources)
    for source in package.rglob("kernel.c"):
        library = source.with_suffix(".bin")
        if library.exists() and library.stat().st_mtime > changed:
            continue
        try:
            compile_kernel(source, library)
        except (OSError, subprocess.CalledProcessError) as error:
            raise click.ClickException(
                f"{source.relative_to(folder)} is not compiled, without which speeds do not compare: {error}"
            ) from error


def _compile_kernel_of(build: Path) -> Callable[[Path, Path], None]:
    # A checkout compiles as its own build does
    spec = spec_from_file_location("hatch_build_of_a_checkout", build)
    if spec is None or spec.loader is None or not build.exists():
        raise click.ClickException(f"{build.parent} has no {build.name}, which compiles its kernels")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("Callable[[Path, Path], None]", module.compile_kernel)


def measure_pairs(
    case: Case, question: str, trees: tuple[Path, Path], pairs: int, announce: Callable[[int], None]
) -> list[float]:
    """Speed of the first tree over that of the second, pair by pair.

    Args:
        case: what is measured.
        question: it, as the process of either tree is asked for it.
        trees: folders of the two checkouts.
        pairs: how many; every other one begins with the second tree.
        announce: hears how many are done.
    """
    ratios = []
    for pair in range(pairs):
        announce(pair)
        values = [math.nan, math.nan]
        for tree in (0, 1) if pair % 2 == 0 else (1, 0):
            values[tree] = _measure(trees[tree], case, question)
        first, second = values
        ratios.append(first / second if case.is_rate else second / first)
    return ratios


def _measure(tree: Path, case: Case, question: str) -> float:
    command = [sys.executable, "-c", _CHILD, question]
    done = subprocess.run(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise click.ClickException(f"{case.group}, {case.name}, in {tree.name}:\n{done.stderr.strip()[-2000:]}")
    value = json.loads(done.stdout.splitlines()[-1])
    if value is None:
        raise click.ClickException(f"{tree.name} has no case {case.name!r} of {case.group}")
    return float(value)


def _table(rows: Sequence[tuple[Checked, Ratio]], slack: float) -> Table:
    table = Table(title="Speed over that of the other commit", title_style="bold")
    for heading in ("group", "case"):
        table.add_column(heading)
    for heading in ("ratio", "95 % interval", "pairs"):
        table.add_column(heading, justify="right")
    table.add_column("verdict")
    for row, ratio in rows:
        if ratio.is_below(1 - slack):
            verdict = "[red]slower[/red]"
        else:
            verdict = "faster" if ratio.low > 1 else "no difference seen"
        interval = f"{ratio.low:.3f} – {ratio.high:.3f}"
        table.add_row(row.group, row.case, f"{ratio.median:.3f}", interval, str(ratio.pairs), verdict)
    return table


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
