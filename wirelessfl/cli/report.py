"""``wirelessfl report``: one self-contained page over runs and studies."""

from pathlib import Path

import click

from wirelessfl.cli.options import OutputPath
from wirelessfl.cli.terminal import say


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--out", type=OutputPath(), metavar="FILE.html", help="The page [report.html, beside PATH].")
def command(paths: tuple[Path, ...], out: Path | None) -> None:
    """Write one HTML page over each PATH: a trace, the folder of a run, or the folder of a study.

    The page holds everything itself: figures, tables that sort, no network. It can be mailed and printed.
    """
    from wirelessfl.analysis.report.page import write_report

    say(f"report  {write_report(paths, out)}")
