"""Measure all that is to be measured on a GPU: ``make gpu``, or ``python -m benchmarks.gpu``.

Arguments are read by the standard library: on a bare machine the packages that the rest needs are added first.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu.prepare import ROOT, NotReadyError, prepare

_OUT = ROOT / "results" / "benchmarks"
_REHEARSAL = ROOT / "build" / "gpu-rehearsal"
_LIMIT_S = 290.0
_INTERRUPTED = 130
_STOPPED = "stopped by the user; what was measured is kept, and the same command goes on there"


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser("python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="wheels of packages that are missing")
    parser.add_argument("--only", action="append", metavar="PART", help="measure this part, again; may be repeated")
    parser.add_argument("--again", action="store_true", help="measure also what has been measured at this commit")
    parser.add_argument("--within", type=_seconds, metavar="SECONDS", help="begin no part that has no time left")
    parser.add_argument("--limit", type=_seconds, default=_LIMIT_S, metavar="SECONDS", help="for a part [%(default)s]")
    parser.add_argument("--commit", help="name of the commit, where there is no git")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where gpu.csv lies [results/benchmarks]")
    parser.add_argument(
        "--rehearse",
        action="store_true",
        help="every part in tiny on the CPU, into rehearsal.csv [build/gpu-rehearsal]: shows that it works, no more",
    )
    return parser


def _seconds(text: str) -> float:
    """A positive number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"found {text}; allowed is a number above 0")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Prepare the machine and measure.

    Returns:
        0 also without a GPU, 1 where a part failed, 2 where nothing can be run, 130 where a signal ended it.
    """
    try:
        return _main(argv)
    except KeyboardInterrupt:  # before the package could be imported
        print(_STOPPED, file=sys.stderr)
        return _INTERRUPTED


def _main(argv: Sequence[str] | None) -> int:
    options = arguments().parse_args(argv)
    if options.wheels is not None and not options.wheels.is_dir():
        arguments().error(f"--wheels: {options.wheels} is no folder")
    try:
        notes = prepare(options.wheels)
    except NotReadyError as error:
        print(error, file=sys.stderr)
        return 2
    for note in notes:
        print(note, file=sys.stderr)

    try:
        from benchmarks.gpu import call
        from benchmarks.gpu.table import TableError
        from wirelessfl.cli.terminal import escape_what_is_lacking
        from wirelessfl.errors import RunInterrupted
        from wirelessfl.interrupts import stop_at_once
    except ImportError as error:  # what is installed does not fit together
        print(f"packages cannot be imported: {error}", file=sys.stderr)
        return 2

    escape_what_is_lacking()
    if unknown := set(options.only or ()) - set(call.PART_NAMES):
        arguments().error(f"--only: found {', '.join(sorted(unknown))}; allowed is {' | '.join(call.PART_NAMES)}")
    wanted = call.Wanted(tuple(options.only or ()), options.again, options.limit, options.within)
    begin, folder = (call.rehearse, _REHEARSAL) if options.rehearse else (call.measure, _OUT)
    try:
        with stop_at_once():
            return begin(wanted, options.out or folder, options.commit)
    except RunInterrupted:
        print(_STOPPED, file=sys.stderr)
        return _INTERRUPTED
    except (TableError, NotReadyError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
