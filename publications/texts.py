"""Numbers and tables as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from publications.files import cell, number
from publications.long_table import long_table
from publications.studies import PaperStudy
from publications.tables import Tables

_HEADINGS = {
    "accuracy": "accuracy",
    "accuracy_equal_epsilon": "accuracy at equal accounted ε",
    "paper_accuracy": "paper",
    "epsilon_published": "ε published",
    "epsilon_accounted": "ε accounted",
    "equal_epsilon_accounted": "its ε",
    "epsilon_empirical": "ε empirical, at least",
}


def table_for_people(tables: Tables, study: PaperStudy) -> list[dict[str, str]]:
    """The long table of a study with intervals joined to means, accuracies in percent, and plain words."""
    rows = [{key: cell(value) for key, value in row.items()} for row in long_table(tables, study)]
    if len({row["seeds"] for row in rows}) == 1:  # then `about` says it
        rows = [{key: text for key, text in row.items() if key != "seeds"} for row in rows]
    return [
        {study.words.get(head, head): study.words.get(text, text) for head, text in _joined(row).items()}
        for row in rows
    ]


def _joined(row: Mapping[str, str]) -> dict[str, str]:
    joined = {}
    for key, text in row.items():
        if key.endswith("_half_width") or key == "paper_source":
            continue
        if key in ("accuracy", "accuracy_equal_epsilon", "paper_accuracy"):
            half = row.get(f"{key}_half_width", "")
            source = f" ({row['paper_source']})" if key == "paper_accuracy" and text else ""
            stated = key == "paper_accuracy" and text  # with the paper's own digits
            text = f"{100 * number(text):.2f} %{source}" if stated else percent(number(text), number(half))
        elif key in _HEADINGS:
            text = epsilon(number(text))
        joined[_HEADINGS.get(key, key)] = text
    return joined


def percent(mean: float, half_width: float = math.nan) -> str:
    """An accuracy for people."""
    if math.isnan(mean):
        return "–"
    return f"{100 * mean:.1f} %" if math.isnan(half_width) else f"{100 * mean:.1f} ± {100 * half_width:.1f} %"


def epsilon(value: float) -> str:
    """An ε for people."""
    if math.isnan(value):
        return "–"
    return "∞" if math.isinf(value) else number_text(value, 3)


def number_text(value: float, digits: int) -> str:
    """A number with so many digits; without a power of ten where it is large."""
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


def duration(seconds: float) -> str:
    """A time for people."""
    if math.isnan(seconds):
        return "–"
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def markdown(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """A table of rows with equal keys."""
    heads = list(rows[0])
    lines = ["| " + " | ".join(escape(head) for head in heads) + " |", "| --- " * len(heads) + "|"]
    return [*lines, *("| " + " | ".join(escape(row[head]) for head in heads) + " |" for row in rows)]


def escape(text: str) -> str:
    """A text for a cell of a table: numbers outside of code with a minus and powers of ten, and never broken."""
    parts = text.replace("|", "\\|").replace("\n", " ").split("`")
    return "`".join(part if at % 2 else _typeset(part) for at, part in enumerate(parts))


_TIE = "\N{NO-BREAK SPACE}"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _typeset(text: str) -> str:
    text = re.sub(r"(?<![\w.])(\d(?:\.\d+)?)e([+-]\d+)\b", _power, text)
    text = re.sub(r"(?<![\w.\N{MINUS SIGN}-])-(?=\d)", "\N{MINUS SIGN}", text)
    text = re.sub(r" (±|=) (?=[\d.∞\N{MINUS SIGN}])", rf"{_TIE}\1{_TIE}", text)
    return re.sub(r"(?<=\d) (?=(?:%|s|min|h)(?!\w))", _TIE, text)


def _power(found: re.Match[str]) -> str:
    power = f"10{str(int(found[2])).translate(_RAISED)}"
    return power if found[1] == "1" else f"{found[1]}·{power}"
