"""Names that tell runs and points apart: by what differs between them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wirelessfl.scenario.yamltree import inline_yaml

_LENGTH = 40
Settings = Mapping[str, Any]
"""Values by key path."""


@dataclass(frozen=True)
class RunName:
    """What a run can be called by.

    Attributes:
        name: of its scenario.
        seed: its seed.
        settings: the leaves of its scenario by key path.
        path: where it lies.
    """

    name: str
    seed: int
    settings: Settings
    path: Path


def leaves(mapping: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Values by key path of nested mappings."""
    found: dict[str, Any] = {}
    for key, value in mapping.items():
        found |= leaves(value, f"{above}{key}.") if isinstance(value, Mapping) and value else {f"{above}{key}": value}
    return found


def telling_keys(rows: Sequence[Settings]) -> list[str]:
    """The first key that tells all rows apart, else keys in order, each of which tells more of them apart."""
    texts = [{key: _text(value) for key, value in row.items()} for row in rows]
    keys = [
        key for key in dict.fromkeys(key for row in texts for key in row) if len({row.get(key) for row in texts}) > 1
    ]

    def groups(chosen: Sequence[str]) -> int:
        return len({tuple(row.get(key) for key in chosen) for row in texts})

    alone = next((key for key in keys if groups([key]) == groups(keys)), None)
    if alone is not None:
        return [alone]
    chosen: list[str] = []
    for key in keys:
        if groups([*chosen, key]) > max(groups(chosen), 1):
            chosen.append(key)
    return chosen


def setting_text(row: Settings, keys: Sequence[str]) -> str:
    """Values of some keys in words; a word says by itself what it is, a number does not."""
    parts = ((key, row.get(key)) for key in keys)
    return ", ".join(
        value if isinstance(value, str) else f"{'.'.join(key.split('.')[-2:])}={_text(value)}" for key, value in parts
    )


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else inline_yaml(value, _LENGTH)


def distinct_names(runs: Sequence[RunName]) -> list[str]:
    """A name for each run: that of its scenario, and behind it what differs where several have it.

    That is the seed, else the settings that differ, else the place.
    """
    names = [run.name for run in runs]
    for name, count in Counter(names).items():
        if count > 1:
            same = [at for at, run in enumerate(runs) if run.name == name]
            for at, text in zip(same, _told_apart([runs[at] for at in same]), strict=True):
                names[at] = f"{name}, {text}" if text else name
    return unique(names, [run.path for run in runs])


def _told_apart(runs: Sequence[RunName]) -> list[str]:
    if len({run.seed for run in runs}) == len(runs):
        return [f"seed {run.seed}" for run in runs]
    rows = [{**run.settings, "seed": run.seed} for run in runs]
    keys = telling_keys(rows)
    return [setting_text(row, keys) for row in rows]


def unique(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """The names, with the place behind those that come more than once, and a number where it does too."""
    seen, found = Counter(names), list[str]()
    for name, path in zip(names, paths, strict=True):
        wanted = name if seen[name] == 1 else f"{name} ({path})"
        number = 2
        while wanted in found:
            wanted, number = f"{name} ({path}), {number}", number + 1
        found.append(wanted)
    return found
