"""Legend of curves below all panels, in as many columns as fit; long names are broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wirelessfl.summary.drawing import broken
from wirelessfl.summary.style import STYLE

_LINE_IN, _LETTER_EM, _HANDLE_EM = 0.16, 0.6, 4.0


@dataclass(frozen=True)
class Legend:
    """Names of curves in columns.

    Attributes:
        texts: in lines that fit.
        columns: how many.
        title: above them; "" for none.
    """

    texts: tuple[str, ...]
    columns: int
    title: str = ""

    @property
    def height_in(self) -> float:
        """Height (inches), 0 without a name."""
        if not self.texts:
            return 0.0
        columns = np.array_split(np.arange(len(self.texts)), self.columns)  # as Matplotlib fills them
        lines = max(sum(self.texts[at].count("\n") + 1 for at in column) for column in columns)
        return _LINE_IN * float(lines + bool(self.title))

    def draw(self, figure: Figure, axes: Axes) -> None:
        """Legend of the curves of a panel, whose labels are positions of the texts: "0", "1", ....

        Matplotlib takes what lies between two dollars for mathematics and hides a label that begins with an underscore:
        the texts are set afterwards, as they are.
        """
        if not self.texts:
            return
        legend = figure.legend(
            *axes.get_legend_handles_labels(),
            title=self.title or None,
            loc="outside lower center",
            ncols=self.columns,
        )
        for text in legend.get_texts():
            position = int(text.get_text())
            text.set_parse_math(False)
            text.set_text(self.texts[position])


def legend_of(names: Sequence[str], width_in: float, title: str = "") -> Legend:
    """Legend of a width (inches)."""
    size = STYLE["legend.fontsize"]
    most = width_in - _HANDLE_EM * size / 72
    texts = tuple(broken(name, most, size) for name in names)
    letters = max((len(line) for text in texts for line in text.splitlines()), default=0)
    entry_in = (letters * _LETTER_EM + _HANDLE_EM) * size / 72
    return Legend(texts, max(1, min(len(texts), int(width_in / entry_in))), title)
