"""``wirelessfl report``: a page over runs and studies."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirelessfl.cli.figure_options import figures_option, width_option
from wirelessfl.cli.terminal import (
    OutputPath,
    remark,
    say,
)

if TYPE_CHECKING:
    from wirelessfl.summary.axes import XAxis
    from wirelessfl.summary.style import FigureFormat


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option(
    "--out", type=OutputPath(), metavar="FILE.html", help="Where to write the page [report.html, beside PATH]."
)
@click.option(
    "--x",
    type=click.Choice(["round", "sim_time", "energy", "epsilon"]),
    help="What curves are drawn over when the page is opened, and in figures of studies [round; of a study its own "
    "x]; the reader of the page may choose another.",
)
@figures_option("none", "Also draw the figures of each PATH for print, beside the page, in this format.")
@width_option()
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
def report(
    paths: tuple[Path, ...], out: Path | None, x: XAxis | None, form: FigureFormat, width: float, show: bool
) -> None:
    """Write one HTML page over each PATH: a trace, the folder of a run or of a study, or an archive of them.

    Several of them are laid over each other on top of the page, and with --figures in a figure called comparison.
    The page is one file that loads nothing from the network: charts to hover and zoom, a map, a timeline down to single
    messages, the life of each client, and sortable tables.
    """
    from wirelessfl.analysis.compare import compare
    from wirelessfl.analysis.report.page import write_report
    from wirelessfl.cli.archive import folders_of
    from wirelessfl.cli.figures import draw_beside
    from wirelessfl.summary.style import FigureOptions

    options, shown = FigureOptions(form, width), x or "round"
    with folders_of(paths) as folders:
        if out is None and folders != [*paths]:  # beside the archive, not where it is unpacked
            out = Path("report.html") if len(paths) > 1 else paths[0].with_name(f"{paths[0].stem}-report.html")
        comparison = compare(folders, shown, width_in=width) if len(folders) > 1 or shown != "round" else None
        page = write_report(folders, out, x)
        say(f"report  {page}")
        files = draw_beside(page, folders, options, x)
        if comparison is not None and len(folders) > 1 and options.drawn:
            comparison.save(file := options.file(page.parent / "comparison"))
            files = [file, *files]
        for file in files:
            say(f"figure  {file}")
        for words in comparison.remarks if comparison is not None else ():
            remark(f"note: over {shown}, {words}")
    if show and not webbrowser.open(page.resolve().as_uri()):
        remark("note: found no browser to open the page with")
