"""The researcher's day, played by a machine: ``python -m benchmarks.day``.

Clones the repository, installs the clone into a new environment, and carries out every command of
``docs/tutorials/researchers-day.md`` there, in an empty folder. How long each part took goes to
``results/benchmarks/day.csv``, from where the page takes its table. What a person needed for a part, with reading and
writing, is entered with ``--walked``.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

import click

from tests.docs.pages import Block, blocks, commands

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path("docs") / "tutorials" / "researchers-day.md"
RESULTS = ROOT / "results" / "benchmarks" / "day.csv"
INSTALL = "Install"
GOALS = {
    "Your own scenario": 5,
    "Your own policy": 10,
    "Your own channel": 5,
    "A study": 5,
    "Three uplinks in one figure": 2,
    "Another policy on the same channels": 2,
    "Share it, and verify it elsewhere": 3,
}
"""Minutes that a part may take a person, by its heading on the page."""


@dataclass(frozen=True)
class Part:
    """What a part of the page took.

    Attributes:
        part: its heading.
        machine_s: seconds that its commands ran.
        walked_min: minutes that a person needed, with reading and writing; NaN where nobody was timed.
        date: when the commands ran.
        commit: of which version.
    """

    part: str
    machine_s: float
    walked_min: float = float("nan")
    date: str = ""
    commit: str = ""


def parts_of(markdown: str) -> Iterator[tuple[str, list[Block]]]:
    """The parts of the page that have a goal, each with its blocks."""
    for section in markdown.split("\n## ")[1:]:
        title = section.partition("\n")[0]
        if title in GOALS:
            yield title, list(blocks(section))


def play(found: Sequence[Block], folder: Path, programs: Path) -> float:
    """Seconds that the commands and snippets of a part take in a folder.

    Args:
        found: the blocks of the part.
        folder: where its files are written and its commands run.
        programs: the folder of ``wirelessfl`` and ``python``.

    Raises:
        click.ClickException: a command failed.
    """
    spent = 0.0
    for block in found:
        if block.title is not None:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            spent += _timed([str(programs / "python"), "-c", block.text], folder, programs)
        elif block.language == "console":
            for command, _ in commands(block.text):
                spent += _timed(["bash", "-ec", command], folder, programs)
    return spent


def _timed(command: list[str], folder: Path, programs: Path) -> float:
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(Path.home()), "LANG": "C.UTF-8"}
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise click.ClickException(f"exit code {done.returncode} of: {command[-1]}\n{done.stdout}{done.stderr}")
    return time.perf_counter() - started


def read_parts(path: Path = RESULTS) -> list[Part]:
    """What was measured, part by part; nothing where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Part(row["part"], float(row["machine_s"]), float(row["walked_min"]), row["date"], row["commit"])
            for row in csv.DictReader(file)
        ]


def write_parts(parts: Sequence[Part], path: Path = RESULTS) -> None:
    """The table as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Part)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(part) for part in parts)


def _installed_clone(folder: Path) -> Path:
    # The programs of a new environment that has a fresh clone of what is committed.
    clone, environment = folder / "clone", folder / "environment"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    subprocess.run([str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", str(clone)], check=True)
    return environment / "bin"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--here", is_flag=True, help="Play with the installation of this interpreter, without clone and install.")
@click.option("--walked", multiple=True, metavar="PART=MINUTES", help="Enter what a person needed; nothing is played.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS, show_default=True)
def main(here: bool, walked: tuple[str, ...], out: Path) -> None:
    """Play the researcher's day and write down how long each part took."""
    known = {part.part: part for part in read_parts(out)}
    if walked:
        for entry in walked:
            title, _, minutes = entry.rpartition("=")
            if title not in GOALS:
                raise click.BadParameter(f"found {title!r}; allowed: {', '.join(GOALS)}", param_hint="--walked")
            known[title] = replace(known.get(title, Part(title, float("nan"))), walked_min=float(minutes))
        write_parts([known[title] for title in (INSTALL, *GOALS) if title in known], out)
        return
    date = datetime.now(UTC).date().isoformat()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as temporary:
        started = time.perf_counter()
        programs = Path(sys.executable).parent if here else _installed_clone(Path(temporary))
        took = [] if here else [(INSTALL, time.perf_counter() - started)]
        desk = Path(temporary) / "desk"
        desk.mkdir()
        for title, found in parts_of((ROOT / PAGE).read_text(encoding="utf-8")):
            took.append((title, play(found, desk, programs)))
            click.echo(f"{title}: {took[-1][1]:.1f} s", err=True)
    nobody = Part("", 0.0)
    write_parts(
        [
            Part(title, round(s, 2), known.get(title, nobody).walked_min, date, commit.stdout.strip())
            for title, s in took
        ],
        out,
    )


if __name__ == "__main__":
    main()
