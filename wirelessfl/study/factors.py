"""Factors of a study, and its points: one level of each factor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wirelessfl.scenario.yamltree import inline_yaml

_LABEL_LENGTH = 40


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
        return " + ".join(".".join(name.split(".")[-2:]) for name in self.keys)

    @property
    def is_numeric(self) -> bool:
        """Whether the levels lie on one axis of numbers."""
        return len(self.keys) == 1 and all(is_number(level[0]) for level in self.levels)

    def label(self, level: int) -> str:
        """Label of a level; of a mapping only what differs between the levels."""
        if len(self.keys) == 1 and all(isinstance(values[0], dict) for values in self.levels):
            return mapping_texts([values[0] for values in self.levels])[level]
        return ", ".join(value_text(value) for value in self.levels[level])

    def setting(self, level: int) -> str:
        """Text of the keys and values of a level."""
        if len(self.keys) == 1:
            return f"{self.keys[0]}={self.label(level)}"
        return ", ".join(f"{name}={value_text(value)}" for name, value in self.values(level).items())

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


def mapping_texts(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Shortest distinct text of each of several mappings, by what not all of them have.

    These are the names alone (gaussian, shuffle), or with other values and their keys, or all of it as in YAML.
    """
    leaves = [_leaves(mapping) for mapping in mappings]
    common = [leaf for leaf in leaves[0].items() if all(leaf in other.items() for other in leaves)]
    own = [[leaf for leaf in one.items() if leaf not in common] for one in leaves]
    names = [", ".join(value for _, value in each if isinstance(value, str)) for each in own]
    settings = [
        ", ".join(value if isinstance(value, str) else f"{path} {value_text(value)}" for path, value in each)
        for each in own
    ]
    for texts in (names, settings):
        if all(texts) and len(set(texts)) == len(texts):
            return texts
    return [inline_yaml(dict(one)) for one in mappings]


def _leaves(mapping: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for name, value in mapping.items():
        leaves |= _leaves(value, f"{above}{name}.") if isinstance(value, Mapping) else {f"{above}{name}": value}
    return leaves
