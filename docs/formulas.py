"""Formulas of the documentation as MathML, which browsers draw without any script.

MkDocs calls the functions named ``on_…`` when it builds the site; they run after the other hooks.
"""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert

_CODE = re.compile(r"^ *(```|~~~).*?^ *\1\s*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_FORMULA = re.compile(
    r"\$\$(?P<block>.+?)\$\$|(?<![\\$\w])\$(?P<inline>(?:[^$\n]|\n(?!\s*\n))+?)\$(?![\w$])", re.DOTALL
)
_PLACE = "formula{}place"
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|.", re.DOTALL)
_RELATIONS = {"=", "<", ">", r"\le", r"\ge", r"\ll", r"\gg", r"\sim", r"\approx", r"\in", r"\leftarrow", r"\to"}
_SHORT = 30
"""Characters of LaTeX up to which a formula stays in one piece, whatever relations it has."""
_OPENING, _CLOSING = {"{", r"\left", r"\begin"}, {"}", r"\right", r"\end"}
_ACCENTS = {"&#x0005E;": "&#x002C6;", "&#x0007E;": "&#x002DC;", "&#x000AF;": "&#x000AF;"}
"""Signs over a letter: those of a keyboard, and what fonts have for this place."""
_ACCENT = re.compile(rf"<mover[^>]*>(?P<base>(?:(?!<mover).)+?)<mo[^>]*>(?P<sign>{'|'.join(_ACCENTS)})</mo></mover>")
_BAR = re.compile(r"<mo(?P<how>[^>]*)>(?P<bar>&#x0007C;|&#x02016;)</mo>")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Takes the formulas out, so that Markdown does not touch them; code stays."""
    page.formulas = []

    def take(match: re.Match[str]) -> str:
        page.formulas.append(match)
        return _PLACE.format(len(page.formulas) - 1)

    pieces, last = [], 0
    for code in _CODE.finditer(markdown):
        pieces += [_FORMULA.sub(take, markdown[last : code.start()]), code.group()]
        last = code.end()
    return "".join([*pieces, _FORMULA.sub(take, markdown[last:])])


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Puts the formulas back as MathML."""
    for number, match in reversed(list(enumerate(page.formulas))):
        place = _PLACE.format(number)
        if match["block"]:
            html = html.replace(f"<p>{place}</p>", displayed(match["block"])).replace(place, displayed(match["block"]))
        else:
            html = html.replace(place, inline(re.sub(r"\s*\n\s*", " ", match["inline"])))
    return html


def displayed(latex: str) -> str:
    """A formula on lines of its own; parts separated by a wide space move below each other on a narrow page."""
    parts = "".join(f'<div class="part">{_mathml(part, "block")}</div>' for part in latex.split(r"\qquad"))
    return f'<div class="formula">{parts}</div>'


def inline(latex: str) -> str:
    """A formula within a line, cut before each relation: a line of text can end there, and not within MathML."""
    return "".join(_mathml(piece, "inline") for piece in cut_at_relations(latex))


def cut_at_relations(latex: str) -> list[str]:
    """A long formula in pieces, each but the first beginning with a relation outside of all braces and brackets."""
    if len(latex) <= _SHORT:
        return [latex]
    pieces, depth = [""], 0
    for match in _TOKEN.finditer(latex):
        token = match.group()
        depth += (token in _OPENING or token in "([") - (token in _CLOSING or token in ")]")
        if token in _RELATIONS and depth == 0 and pieces[-1].strip():
            pieces.append("")
        pieces[-1] += token
    return pieces


def _mathml(latex: str, display: str) -> str:
    """MathML of one formula; in words within it an underscore is written without its backslash."""
    plain = re.sub(r"\\text\{[^{}]*\}", lambda text: text.group().replace(r"\_", "_"), latex)
    return _with_sides(_ACCENT.sub(_accented, str(convert(plain.strip(), display=display))))


def _accented(mover: re.Match[str]) -> str:
    """A letter and its accent close above it, in the size of the font; only a bar is as wide as what it covers."""
    bar = mover["sign"] == "&#x000AF;"
    accent = f'<mo stretchy="{str(bar).lower()}">{_ACCENTS[mover["sign"]]}</mo>'
    return f'<mover accent="true">{mover["base"]}{accent}</mover>'


def _with_sides(mathml: str) -> str:
    """Bars in the height of a letter, each marked as the opening or the closing one of its pair."""
    opened: set[str] = set()

    def with_side(match: re.Match[str]) -> str:
        if "form=" in match["how"]:
            return match.group()
        opened.symmetric_difference_update({match["bar"]})
        form = "prefix" if match["bar"] in opened else "postfix"
        return f'<mo form="{form}" stretchy="false">{match["bar"]}</mo>'

    return _BAR.sub(with_side, mathml)
