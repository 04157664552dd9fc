"""Scripts, styles and data of the page; the data are written so that a browser cannot run them as a script."""

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from wirelessfl.analysis.report.colours import colour_variables
from wirelessfl.errors import precondition

LIBRARY = "vendor/echarts.min.js"
LICENCES = ("vendor/NOTICE", "vendor/LICENSE")
SCRIPTS = (
    *("numbers", "gestures", "plot", "curves", "section", "tables"),
    *("columns", "shades", "client_keys", "raster", "activities", "timeline", "map", "life", "start"),
)
"""Scripts of the page, in the order in which they need each other."""


def _read(name: str) -> str:
    return files("wirelessfl.analysis.report").joinpath("static", name).read_text(encoding="utf-8")


def style() -> Markup:
    """The style sheet of the page."""
    return Markup(colour_variables() + _read("style.css"))  # files of the package


def scripts() -> tuple[Markup, ...]:
    """The scripts of the page: the plotting library under its licence, and the page's own."""
    licence = "\n".join(_read(name).strip() for name in LICENCES)
    own = "\n".join(_read(f"{name}.js") for name in SCRIPTS)
    texts = (f"/*\n{licence}\n*/\n{_read(LIBRARY).strip()}", f'(() => {{\n"use strict";\n{own}}})();')
    for text in texts:
        precondition("</script" not in text.lower(), "a script of the page would end its element")
    return tuple(Markup(text) for text in texts)


def script_hashes(texts: tuple[Markup, ...]) -> Markup:
    """Source list of a Content-Security-Policy that lets these scripts run, and no other."""
    digests = (base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii") for text in texts)
    return Markup(" ".join(f"'sha256-{digest}'" for digest in digests))


def data_text(data: Any) -> Markup:
    """JSON for a script element: nothing in it can end the element or begin another."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)
