"""What a study varies, and its points: one level of each factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wirelessfl.scenario.yamltree import inline_yaml

_LABEL_LENGTH = 40


@dataclass(frozen=True)
class Factor:
    """One key of the grid, or the keys of the zip that move together.

    Attributes:
        keys: Key paths in the scenario.
        levels: What they are set to, one value a key in each level.
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
        return " + ".join(".".join(name.split(".")[-2:]) for name in self.keys)

    @property
    def is_numeric(self) -> bool:
        """Whether the levels lie on one axis of numbers."""
        return len(self.keys) == 1 and all(is_number(level[0]) for level in self.levels)

    def label(self, level: int) -> str:
        """A level in words, for legends and tables."""
        return ", ".join(value_text(value) for value in self.levels[level])

    def values(self, level: int) -> dict[str, Any]:
        """What a level sets, by key."""
        return dict(zip(self.keys, self.levels[level], strict=True))


def is_number(value: Any) -> bool:
    """Whether a value is a number; booleans are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def value_text(value: Any) -> str:
    """A value as it would be written in YAML, on one short line."""
    return value if isinstance(value, str) else inline_yaml(value, limit=_LABEL_LENGTH)


def values_at(factors: Sequence[Factor], levels: Sequence[int]) -> dict[str, Any]:
    """What a point sets, by key."""
    return {
        name: value
        for factor, level in zip(factors, levels, strict=True)
        for name, value in factor.values(level).items()
    }


def point_text(values: Mapping[str, Any]) -> str:
    """A point in words."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in values.items()) or "the base"
