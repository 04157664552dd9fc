"""Indices of symbols in running text: what is written η_C, or h_{CJ}, is shown with a subscript.

MkDocs calls the functions named ``on_…``. Code, formulas and the names of several letters stay as they are.
"""

from __future__ import annotations

import re
from typing import Any

_KEPT = re.compile(r"(?s)(<(code|pre|script|style|svg|math)\b.*?</\2>|<!--.*?-->|<[^>]*>)")
_INDEX = r"_(?:\{([^{}<>]+)\}|([A-Za-z0-9Α-Ωα-ω]+))(?!\w|\.\w)"
_SYMBOL = re.compile(rf"(?<![A-Za-z0-9_./\\&#-])(?![a-z]_[a-z]{{4}})([A-Za-zΑ-Ωα-ω]){_INDEX}")
"""A letter and its index. A small letter before four others begins a name, as ``x_train`` does."""


def on_page_content(content: str, **_: Any) -> str:
    """Sets the index of each symbol that stands outside of tags, code and pictures as a subscript."""
    pieces, last = [], 0
    for kept in _KEPT.finditer(content):
        pieces += [_with_indices(content[last : kept.start()]), kept.group()]
        last = kept.end()
    return "".join([*pieces, _with_indices(content[last:])])


def _with_indices(text: str) -> str:
    return _SYMBOL.sub(lambda symbol: f"{symbol[1]}<sub>{symbol[2] or symbol[3]}</sub>", text)
