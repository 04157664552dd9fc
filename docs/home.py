"""Pictures of runs on the home page and in the first tutorial, drawn as a run draws them when the site is built.

MkDocs calls the functions named ``on_…``. A line ``<!-- picture: summary -->`` becomes the picture in both themes.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pictures import THEMES

import wirelessfl as wfl
from wirelessfl.errors import ModelWarning
from wirelessfl.summary.picture import draw_summary
from wirelessfl.summary.timeline import draw_timeline
from wirelessfl.trace import read_group


def _summary(trace: Path, path: Path) -> None:
    with wfl.open_trace(trace) as found:
        draw_summary(found, path)


def _timeline(trace: Path, path: Path) -> None:
    with wfl.open_trace(trace) as found:
        draw_timeline(found, read_group(trace, "events"), path)


class Shot(NamedTuple):
    """One picture.

    Attributes:
        scenario: the shipped scenario that is run for it.
        rounds: how many rounds of it.
        draw: draws it from a trace into a file.
        caption: what it shows.
    """

    scenario: str
    rounds: int
    draw: Callable[[Path, Path], None]
    caption: str


SHOTS = {
    "first-run": Shot("quickstart", 10, _summary, "Accuracy, loss, both ε, channels, energy and airtime of ten rounds"),
    "summary": Shot("quickstart", 20, _summary, "Accuracy, loss, both ε, channels, energy and airtime of quickstart"),
    "timeline": Shot(
        "urban-macro-deadline", 6, _timeline, "What each node does, and how each round ended for each client"
    ),
}
"""Pictures by name, each with the command that makes it on the page that shows it."""

FOLDER = "pictures"
_PLACE = re.compile(r"^<!-- picture: (?P<name>[\w-]+) -->$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pictures."""
    for name, theme, content in pictures():
        files.append(File.generated(config, f"{FOLDER}/{name}-{theme}.png", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Puts the pictures in."""
    up = "../" * page.file.src_uri.count("/")
    return _PLACE.sub(lambda place: shown(place["name"], f"{up}{FOLDER}"), markdown)


def shown(name: str, folder: str) -> str:
    """Markdown of a picture in both themes; it opens in its own size."""
    files = {theme: f"{folder}/{name}-{theme}.png" for theme in THEMES}
    return "\n".join(f"[![{SHOTS[name].caption}]({file}#only-{theme})]({file})" for theme, file in files.items())


def pictures() -> Iterator[tuple[str, str, bytes]]:
    """Name, theme and PNG of every picture."""
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        for name, shot in SHOTS.items():
            scenario = wfl.load_scenario(shot.scenario, overrides={"rounds": shot.rounds})
            result = wfl.simulate(scenario, Path(temporary) / name, device="cpu", pictures=False)
            for theme, colours in THEMES.items():
                path = Path(temporary) / f"{name}-{theme}.png"
                with mpl.rc_context(ground(colours["ink"])):
                    shot.draw(result.trace, path)
                yield name, theme, path.read_bytes()


def ground(ink: str) -> dict[Any, Any]:
    """Settings of matplotlib for a transparent picture with text and axes in a colour."""
    inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color")
    clear = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
    return dict.fromkeys(inked, ink) | dict.fromkeys(clear, "none")
