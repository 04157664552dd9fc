"""Measure all that is to be measured on a GPU: ``make gpu``, or ``python -m benchmarks.gpu``.

Arguments are read by the standard library: on a bare machine the packages that the rest needs are added first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu.prepare import ROOT, NotReadyError, prepare

_OUT = ROOT / "results" / "benchmarks"
_REHEARSAL = ROOT / "build" / "gpu-rehearsal"
_LIMIT_S = 290.0


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser("python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="wheels of packages that are missing")
    parser.add_argument("--only", action="append", metavar="PART", help="measure this part, again; may be repeated")
    parser.add_argument("--again", action="store_true", help="measure also what has been measured at this commit")
    parser.add_argument("--within", type=float, metavar="SECONDS", help="begin no part that has no time left")
    parser.add_argument("--limit", type=float, default=_LIMIT_S, metavar="SECONDS", help="for a part [%(default)s]")
    parser.add_argument("--commit", help="name of the commit, where there is no git")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where gpu.csv lies [results/benchmarks]")
    parser.add_argument(
        "--rehearse",
        action="store_true",
        help="every part in tiny on the CPU, into rehearsal.csv [build/gpu-rehearsal]: shows that it works, no more",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Prepare the machine and measure; 0 also without a GPU, 1 where a part failed, 2 where nothing can be run."""
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

    from benchmarks.gpu import session

    if unknown := set(options.only or ()) - set(session.PART_NAMES):
        arguments().error(f"--only: found {', '.join(sorted(unknown))}; allowed is {' | '.join(session.PART_NAMES)}")
    wanted = session.Wanted(tuple(options.only or ()), options.again, options.limit, options.within)
    if options.rehearse:
        return session.rehearse(wanted, options.out or _REHEARSAL, options.commit)
    return session.measure(wanted, options.out or _OUT, options.commit)


if __name__ == "__main__":
    sys.exit(main())
