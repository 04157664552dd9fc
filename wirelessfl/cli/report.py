"""``wirelessfl report``: a page over runs and studies."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirelessfl.cli.terminal import OutputPath, figures_option, remark, say, width_option

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
    default="round",
    show_default=True,
    help="What curves are drawn over when the page is opened; the reader may choose another.",
)
@figures_option("none", "Also draw the figures of each PATH for print, beside the page, in this format.")
@width_option
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
def report(paths: tuple[Path, ...], out: Path | None, x: XAxis, form: FigureFormat, width: float, show: bool) -> None:
    """Write one HTML page over each PATH: a trace, the folder of a run or of a study, or an archive of them.

    The page is one file that loads nothing from the network: charts to hover and zoom, a map, a timeline down to single
    messages, the life of each client, and sortable tables.
    """
    from wirelessfl.analysis.report.page import write_report
    from wirelessfl.cli.archive import folders_of
    from wirelessfl.cli.figures import draw_beside
    from wirelessfl.summary.style import FigureOptions

    options = FigureOptions(form, width)
    with folders_of(paths) as folders:
        if out is None and folders != [*paths]:  # beside the archive, not where it is unpacked
            out = Path("report.html") if len(paths) > 1 else paths[0].with_name(f"{paths[0].stem}-report.html")
        page = write_report(folders, out, x)
        say(f"report  {page}")
        for file in draw_beside(page, folders, options):
            say(f"figure  {file}")
    if show and not webbrowser.open(page.resolve().as_uri()):
        remark("note: found no browser to open the page with")
