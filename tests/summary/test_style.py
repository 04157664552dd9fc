"""One style for all pictures: a role has one colour, files are small, whole and the same whenever they are drawn."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from wirelessfl.errors import InputError
from wirelessfl.summary import overview, timeline
from wirelessfl.summary.drawing import drawing
from wirelessfl.summary.style import (
    ACTIVITIES,
    COLUMN_IN,
    CYCLE,
    OUTCOMES,
    PAGE_IN,
    ROLES,
    FigureOptions,
    figure_files,
    read_width,
)
from wirelessfl.trace import Status

PACKAGE = Path(timeline.__file__).parents[1]

# Machado, Oliveira and Fernandes 2009, table 1 at severity 1: linear RGB as deuteranopes and protanopes see it.
EYES = {
    "normal": np.eye(3),
    "deutan": np.array([[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9690]]),
    "protan": np.array([[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]),
}
TO_XYZ = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])


def lab(colour: str, eyes: str) -> np.ndarray:
    """CIELAB of a colour of the screen as some eyes see it."""
    rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(EYES[eyes] @ linear, 0, 1) / TO_XYZ.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("roles", [ACTIVITIES, OUTCOMES], ids=["activities", "outcomes"])
def test_roles_of_one_picture_are_told_apart(roles: dict[str, str], eyes: str) -> None:
    # A difference of 2.3 is just noticeable between patches side by side; cells far from their legend need several.
    for one, other in itertools.combinations(roles.values(), 2):
        assert np.linalg.norm(lab(one, eyes) - lab(other, eyes)) > 15, (one, other)


def test_every_outcome_has_a_colour_and_every_picture_takes_it_from_the_palette() -> None:
    assert set(OUTCOMES) == {status.name.lower() for status in Status}
    assert {status: OUTCOMES[status.name.lower()] for status in Status} == overview.STATUS_COLOURS
    assert {colour for _, _, colour in timeline.MARKS.values()} <= set(ROLES.values())
    assert set(timeline.DOING_COLOURS.values()) == set(ACTIVITIES.values())


def test_no_drawing_names_a_colour_of_its_own() -> None:
    page = {"analysis/report/svg.py", "analysis/report/colours.py"}  # ink and paper of the page
    allowed = {"summary/style.py", *page}
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).as_posix() not in allowed:
            assert not re.findall(r'"#[0-9A-Fa-f]{6}"', path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(
    ("text", "inches"), [("column", COLUMN_IN), ("page", PAGE_IN), ("5", 5.0), ("4.25", 4.25), ("40", 40.0)]
)
def test_widths(text: str, inches: float) -> None:
    assert read_width(text) == inches


@pytest.mark.parametrize("text", ["0", "-3", "foo", "", "inf", "nan", "1000", "1", "7,2", "3.5in"])
def test_other_widths_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(InputError, match=r"width of figures: found .*; allowed: column \(3\.5 in\), page \(7\.16 in\)"):
        read_width(text)


def test_other_formats_are_refused_with_what_is_allowed() -> None:
    with pytest.raises(InputError, match=r"format of figures: found 'jpg'; allowed: pdf, svg, png, none"):
        FigureOptions("jpg")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="width of figures: found nan"):
        FigureOptions("pdf", math.nan)


def test_names_of_figures() -> None:
    stem = Path("run.v1") / "summary"
    assert FigureOptions("pdf").file(stem) == Path("run.v1/summary.pdf")
    assert {path.suffix for path in figure_files(stem)} == {".pdf", ".svg", ".png"}


DRAW = """
import sys
from pathlib import Path
from wirelessfl.summary.drawing import drawing
for path in map(Path, sys.argv[1:]):
    with drawing(path, "ε at δ, ‖x‖", (3.5, 2.0)) as figure:
        axes = figure.subplots()
        axes.plot([1, 2], [1, 3], label="σ_m")
        axes.legend()
"""


@pytest.mark.slow
def test_a_figure_has_the_same_bytes_whenever_it_is_drawn(tmp_path: Path) -> None:
    digests = []
    for turn in ("0", "1"):
        folder = tmp_path / turn
        folder.mkdir()
        files = [folder / f"a.{form}" for form in ("pdf", "svg", "png")]
        environment = {**os.environ, "PYTHONHASHSEED": turn, "SOURCE_DATE_EPOCH": "0"} if turn == "0" else None
        subprocess.run([sys.executable, "-c", DRAW, *map(str, files)], check=True, env=environment)
        digests.append([hashlib.sha256(path.read_bytes()).hexdigest() for path in files])
    assert digests[0] == digests[1]


@pytest.mark.parametrize("width", [COLUMN_IN, PAGE_IN, 5.0])
def test_files_have_the_width_in_inches_and_fonts_that_journals_take(tmp_path: Path, width: float) -> None:
    for form in ("pdf", "svg", "png"):
        with drawing(tmp_path / f"a.{form}", "ε", (width, 2.0)) as figure:
            figure.subplots().plot([1, 2])
    pdf = (tmp_path / "a.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf)
    assert box is not None and [float(side) / 72 for side in box.groups()] == pytest.approx([width, 2.0])
    assert b"/FontFile2" in pdf and b"/Subtype /Type3" not in pdf  # whole TrueType outlines
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert re.search(rf'width="{72 * width:g}pt"', svg) and "<text" not in svg
    across = int.from_bytes((tmp_path / "a.png").read_bytes()[16:20])
    assert across == pytest.approx(200 * width, abs=1)


def test_series_have_seven_colours_of_their_own() -> None:
    assert len(set(CYCLE)) == 7
