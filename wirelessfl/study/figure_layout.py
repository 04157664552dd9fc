"""Layout of a study's picture: its factors over columns, rows and colours."""

import itertools
from dataclasses import dataclass

import numpy as np

from wirelessfl.study.factors import Factor

MOST_COLUMNS, MOST_ROWS = 6, 12
"""Largest numbers of panels; above them evenly spaced levels are shown, and the table has all."""

_NOWHERE = Factor((), ((),))

Levels = tuple[int, ...]
"""The position of a level in each of several factors."""


@dataclass(frozen=True)
class Layout:
    """Layout of the factors; with fewer of them there are single columns, rows or curves.

    Attributes:
        factors: All factors of the study; a point has one level of each.
        columns: Position of the factor over the columns, None without.
        rows: Positions of the factors over the rows.
        colours: Position of the factor that the colours tell apart, None without.
    """

    factors: tuple[Factor, ...]
    columns: int | None
    rows: tuple[int, ...]
    colours: int | None

    def factor(self, position: int | None) -> Factor:
        """The factor at a position; one with a single nameless level where there is none."""
        return _NOWHERE if position is None else self.factors[position]

    def point(self, row: Levels, column: int, colour: int) -> Levels:
        """The levels of the curve of a colour in a panel."""
        levels = dict.fromkeys(range(len(self.factors)), 0) | dict(zip(self.rows, row, strict=True))
        levels |= {
            position: level
            for position, level in ((self.columns, column), (self.colours, colour))
            if position is not None
        }
        return tuple(levels.values())

    def row_combinations(self) -> list[Levels]:
        """The levels of the factors over the rows, row by row of a metric."""
        every = list(itertools.product(*(range(len(self.factors[position].levels)) for position in self.rows)))
        return [every[index] for index in spread(len(every), MOST_ROWS)]

    def row_text(self, row: Levels) -> str:
        """What a row shows, a line for each factor."""
        pairs = zip(self.rows, row, strict=True)
        return "\n".join(f"{self.factors[at].name} = {self.factors[at].label(level)}" for at, level in pairs)


def lay_out(factors: tuple[Factor, ...]) -> Layout:
    """The first factor that varies over the columns, the last one as colours, those between over the rows."""
    varied = [position for position, factor in enumerate(factors) if len(factor.levels) > 1]
    first = varied[0] if len(varied) > 1 else None
    return Layout(factors, first, tuple(varied[1:-1]), varied[-1] if varied else None)


def spread(count: int, most: int) -> list[int]:
    """All of ``count`` positions, or ``most`` of them at even distances with both ends."""
    return list(range(count)) if count <= most else [round(at) for at in np.linspace(0, count - 1, most)]
