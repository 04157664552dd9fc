"""Factors of a study, its points (one level of each factor), and their layout in its picture."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wirelessfl.scenario.yamltree import inline_yaml

_LABEL_LENGTH = 40
MOST_COLUMNS, MOST_ROWS = 6, 12
"""Largest numbers of panels; above them evenly spaced levels are shown, and the table has all."""

Levels = tuple[int, ...]
"""The position of a level in each of several factors."""


@dataclass(frozen=True)
class Factor:
    """Factor: one key of the grid, or the keys of the zip that vary together.

    Attributes:
        keys: Key paths in the scenario.
        levels: Their values, one a key in each level.
    """

    keys: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]

    @property
    def name(self) -> str:
        """The key, or the keys joined by +."""
        return " + ".join(self.keys)

    @property
    def short_name(self) -> str:
        """The ends of the keys, for narrow tables: jammer.epsilon for uplink.jammer.epsilon."""
        return " + ".join(".".join(name.split(".")[-2:]) for name in self.told_keys)

    @property
    def is_numeric(self) -> bool:
        """Whether the levels lie on one axis of numbers."""
        return len(self.keys) == 1 and all(is_number(level[0]) for level in self.levels)

    def label(self, level: int) -> str:
        """Label of a level; of mappings only what differs between the levels, and one of them where it says all."""
        return ", ".join(self._columns[at][level] for at in self._told)

    @property
    def told_keys(self) -> tuple[str, ...]:
        """Keys whose values labels have: all of them, or that of mappings one of which says all."""
        return tuple(self.keys[at] for at in self._told)

    @cached_property
    def _columns(self) -> tuple[list[str], ...]:
        # Texts of all levels, a list a key. Kept, since a study asks for every run, and each text follows from them all
        return tuple(column_texts(values) for values in zip(*self.levels, strict=True))

    @cached_property
    def _told(self) -> tuple[int, ...]:
        for at, values in enumerate(zip(*self.levels, strict=True)):
            if all(isinstance(value, dict) for value in values) and len(set(self._columns[at])) == len(values):
                return (at,)
        return tuple(range(len(self.keys)))

    def setting(self, level: int) -> str:
        """Text of the keys and values of a level."""
        texts = (column[level] for column in self._columns)
        return ", ".join(f"{name}={text}" for name, text in zip(self.keys, texts, strict=True))

    def values(self, level: int) -> dict[str, Any]:
        """Values of a level by key."""
        return dict(zip(self.keys, self.levels[level], strict=True))


def is_number(value: Any) -> bool:
    """Whether a value is a number; booleans are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def value_text(value: Any, limit: int = _LABEL_LENGTH) -> str:
    """Value as in YAML, on one line of at most ``limit`` characters; text as it is."""
    return value if isinstance(value, str) else inline_yaml(value, limit)


def values_at(factors: Sequence[Factor], levels: Sequence[int]) -> dict[str, Any]:
    """Values of a point by key."""
    return {
        name: value
        for factor, level in zip(factors, levels, strict=True)
        for name, value in factor.values(level).items()
    }


def point_text(factors: Sequence[Factor], levels: Sequence[int]) -> str:
    """Text of a point: keys and values."""
    return ", ".join(factor.setting(level) for factor, level in zip(factors, levels, strict=True)) or "the base"


def column_texts(values: Sequence[Any]) -> list[str]:
    """Texts of the values of one key at all levels: of mappings what differs; the same value has the same text."""
    if not all(isinstance(value, dict) for value in values):
        return [value_text(value) for value in values]
    distinct = [value for at, value in enumerate(values) if value not in values[:at]]
    texts = _mapping_texts(distinct) if len(distinct) > 1 else [value_text(distinct[0])]
    return [texts[distinct.index(value)] for value in values]


def _mapping_texts(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    # Shortest distinct text of each of several mappings: one name that tells all apart (digital), or by what not all of
    # them have the names alone (gaussian, shuffle), or with other values and their keys, or all of it as in YAML
    leaves = [_leaves(mapping) for mapping in mappings]
    for path in leaves[0]:
        values = [one.get(path) for one in leaves]
        if all(isinstance(value, str) for value in values) and len(set(values)) == len(values) > 1:
            return [str(value) for value in values]
    common = [leaf for leaf in leaves[0].items() if all(leaf in other.items() for other in leaves)]
    own = [[leaf for leaf in one.items() if leaf not in common] for one in leaves]
    names = [", ".join(value for _, value in each if isinstance(value, str)) for each in own]
    settings = [
        ", ".join(value if isinstance(value, str) else f"{path} {value_text(value)}" for path, value in each)
        for each in own
    ]
    whole = [inline_yaml(dict(one)) for one in mappings]
    return next((texts for texts in (names, settings) if all(texts) and len(set(texts)) == len(texts)), whole)


def _leaves(mapping: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    return {
        path: leaf
        for name, value in mapping.items()
        for path, leaf in (
            _leaves(value, f"{above}{name}.") if isinstance(value, Mapping) else {f"{above}{name}": value}
        ).items()
    }


_NOWHERE = Factor((), ((),))


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
        levels = dict(zip(self.rows, row, strict=True)) | {self.columns: column, self.colours: colour}
        return tuple(levels.get(position, 0) for position in range(len(self.factors)))

    def row_combinations(self) -> list[Levels]:
        """The levels of the factors over the rows, row by row of a metric."""
        every = list(itertools.product(*(range(len(self.factors[position].levels)) for position in self.rows)))
        return [every[index] for index in spread(len(every), MOST_ROWS)]

    def row_text(self, row: Levels) -> str:
        """Label of a row, a line for each factor."""
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
