"""Pictures of runs on the home page and in the first tutorial, drawn as a run draws them when the site is built.

MkDocs calls the functions named ``on_…``. A line ``<!-- picture: timeline -->`` becomes the picture in both themes, on
a phone that in the width of a column.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from kept import kept
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pictures import THEMES

import wirelessfl as wfl
from wirelessfl.errors import ModelWarning
from wirelessfl.summary.picture import draw_summary
from wirelessfl.summary.style import COLUMN_IN, PAGE_IN
from wirelessfl.summary.timeline import draw_timeline
from wirelessfl.trace import read_group


def _summary(trace: Path, path: Path, width_in: float) -> None:
    with wfl.open_trace(trace) as found:
        draw_summary(found, path, width_in)


def _timeline(trace: Path, path: Path, width_in: float) -> None:
    with wfl.open_trace(trace) as found:
        draw_timeline(found, read_group(trace, "events"), path, width_in)


class Shot(NamedTuple):
    """One picture.

    Attributes:
        scenario: the shipped scenario that is run for it.
        rounds: how many rounds of it.
        draw: draws it from a trace into a file, in a width (inches).
        caption: what it shows.
    """

    scenario: str
    rounds: int
    draw: Callable[[Path, Path, float], None]
    caption: str


SHOTS = {
    "first-run": Shot("quickstart", 10, _summary, "Accuracy, loss, both ε, channels, energy and airtime of ten rounds"),
    "timeline": Shot(
        "urban-macro-deadline", 6, _timeline, "What each node does, and how each round ended for each client"
    ),
}
"""Pictures by name, each with the command that makes it on the page that shows it."""

FOLDER = "pictures"
WIDTHS: Mapping[str, float] = {"wide": PAGE_IN, "phone": COLUMN_IN}
"""Widths (inches) of each picture: style.css shows the one in which the letters can be read."""
_PLACE = re.compile(r"^<!-- picture: (?P<name>[\w-]+) -->$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pictures."""
    for name, content in pictures():
        files.append(File.generated(config, f"{FOLDER}/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Puts the pictures in."""
    up = "../" * page.file.src_uri.count("/")
    return _PLACE.sub(lambda place: shown(place["name"], f"{up}{FOLDER}"), markdown)


def shown(name: str, folder: str) -> str:
    """Markdown of a picture in both themes and widths; it opens in its own size."""
    caption = SHOTS[name].caption
    files = ((width, theme, f"{folder}/{_file(name, width, theme)}") for width in WIDTHS for theme in THEMES)
    return "\n".join(f"[![{caption}]({file}#only-{theme}){{ .on-{width} }}]({file})" for width, theme, file in files)


def _file(name: str, width: str, theme: str) -> str:
    return f"{name}-{theme}.png" if width == "wide" else f"{name}-{width}-{theme}.png"


def pictures() -> Iterator[tuple[str, bytes]]:
    """File name and PNG of every picture."""
    with tempfile.TemporaryDirectory() as temporary:
        run = cache(partial(_run, Path(temporary)))
        for name in SHOTS:
            for width in WIDTHS:
                for theme in THEMES:
                    file = _file(name, width, theme)
                    yield file, kept(file, lambda: _drawn(run(name), name, width, theme))  # noqa: B023 - called at once


def _run(folder: Path, name: str) -> Path:
    # Trace of the run behind a picture
    scenario = wfl.load_scenario(SHOTS[name].scenario, overrides={"rounds": SHOTS[name].rounds})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return wfl.simulate(scenario, folder / name, device="cpu", pictures=False).trace


def _drawn(trace: Path, name: str, width: str, theme: str) -> bytes:
    path = trace.with_name(_file(name, width, theme))
    with mpl.rc_context(ground(THEMES[theme]["ink"])):
        SHOTS[name].draw(trace, path, WIDTHS[width])
    return path.read_bytes()


def ground(ink: str) -> dict[Any, Any]:
    """Settings of matplotlib for a transparent picture with text and axes in a colour."""
    inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color")
    clear = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
    return dict.fromkeys(inked, ink) | dict.fromkeys(clear, "none")
