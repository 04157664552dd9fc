"""Overrides: dotted key paths with new values, laid over what a file says."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wirelessfl.errors import ScenarioError, precondition
from wirelessfl.scenario.rejection import dotted, line, unknown_key
from wirelessfl.scenario.scenario import Scenario
from wirelessfl.scenario.shape import (
    allowed,
    child_at,
    family_at,
    is_nullable,
    is_schedule,
    keys_of,
    section_at,
    tags_of,
    type_of,
    words_of,
)
from wirelessfl.scenario.yamltree import Document, KeyPath, inline_yaml, is_finite, parse_yaml, plain_value

Overrides = Mapping[str, Any] | Sequence[str]
"""``{"uplink.snr_db": 5}``, or ``["uplink.snr_db=5"]`` with YAML values as on the command line."""

_PLACE_LENGTH = 100  # a longer override is cut in messages


@dataclass(frozen=True)
class Override:
    """One new value: its key path, and how its place is named in messages."""

    path: tuple[str, ...]
    value: Any
    place: str


class RefusedOverride(ScenarioError):
    """An override whose key path leads nowhere.

    Attributes:
        override: Which one.
    """

    def __init__(self, message: str, override: Override) -> None:
        """The refusal, in words, of ``override``."""
        super().__init__(message)
        self.override = override


def read_overrides(overrides: Overrides) -> list[Override]:
    """Overrides in either form as a list.

    Raises:
        ScenarioError: no ``=``, an empty path, or a value that is not YAML.
    """
    precondition(
        isinstance(overrides, Mapping | Sequence) and not isinstance(overrides, str | bytes),
        f"overrides: found {overrides!r:.60}; allowed: a mapping, or a list of KEY=VALUE texts",
        ScenarioError,
    )
    if isinstance(overrides, Mapping):
        plain = [(key, plain_value(value)) for key, value in overrides.items()]
        items = [(str(key), value, f"{key}={inline_yaml(value)}") for key, value in plain]
        for key, value, place in items:
            _require_finite(value, place, (key,))
    else:
        for text in overrides:
            precondition(
                isinstance(text, str), f"overrides: found {text!r:.60}; allowed: texts KEY=VALUE", ScenarioError
            )
        items = [_read(text) for text in overrides]
    for key, _, place in items:
        if not all(key.split(".")):
            raise ScenarioError(
                f"{place}: found the key path {key!r}; allowed: keys joined by dots, as in uplink.snr_db"
            )
    return [Override(tuple(key.split(".")), value, place) for key, value, place in items]


def _read(text: str) -> tuple[str, Any, str]:
    place = f"--set {text if len(text) <= _PLACE_LENGTH else text[: _PLACE_LENGTH - 3] + '...'}"
    key, equals, value = text.partition("=")
    if not equals:
        raise ScenarioError(f"{place}: found no '='; allowed: KEY=VALUE, as in uplink.snr_db=5")
    key = key.strip()
    return key, parse_yaml(value, lambda _: place, tuple(key.split("."))).tree, place


def _require_finite(value: Any, place: str, path: KeyPath) -> None:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    for below, item in items:
        _require_finite(item, place, (*path, below))
    if not is_finite(value):
        raise ScenarioError(line(place, path, str(value), "a finite number"))


def apply_overrides(document: Document, overrides: Sequence[Override]) -> tuple[Document, list[str]]:
    """Document with overrides, in their order.

    Setting the key that names a variant drops the siblings that the new variant lacks; setting one of two exclusive
    keys drops the other if it came from the document. Setting a key below null or below nothing creates the default
    there first.

    Returns:
        The new document, and one note for each key that was dropped.

    Raises:
        RefusedOverride: a key path that does not exist.
    """
    result, fixed = Document(copy.deepcopy(document.tree), dict(document.places)), set[KeyPath]()
    return result, [note for override in overrides for note in _Setter(result, override, fixed).apply()]


# Sets one value in a document's tree.
@dataclass(frozen=True)
class _Setter:
    document: Document
    override: Override
    fixed: set[KeyPath]
    notes: list[str] = field(default_factory=list)

    def apply(self) -> list[str]:
        tp: Any = Scenario
        node = self.document.tree
        path: KeyPath = ()
        for text in self.override.path[:-1]:
            segment = self._segment(tp, node, text, path)
            below = self._child_type(tp, node, (*path, segment))
            node, tp, path = self._descend(tp, node, below, (*path, segment)), below, (*path, segment)
        last = self._segment(tp, node, self.override.path[-1], path)
        self._child_type(tp, node, (*path, last))
        node[last] = copy.deepcopy(self.override.value)
        self._note_place((*path, last))
        self._drop_lacking(tp, node, path, last)
        self._drop_exclusive(tp, node, path, last)
        return self.notes

    def _note_place(self, path: KeyPath) -> None:
        places = self.document.places
        for stale in [known for known in places if known[: len(path)] == path]:
            del places[stale]
        places[path] = self.override.place
        self.fixed.add(path)

    def _segment(self, tp: Any, node: Any, text: str, path: KeyPath) -> str | int:
        # A part of the key path as key or index: a number in lists and in schedules over rounds.
        if isinstance(node, list):
            if not text.isdecimal() or int(text) >= len(node):
                allowed = f"an index from 0 to {len(node) - 1}" if node else "no index, as the list is empty"
                raise self._refusal((*path, text), "no such item", allowed)
            return int(text)
        return int(text) if text.isdecimal() and is_schedule(tp) else text

    def _child_type(self, tp: Any, node: Any, path: KeyPath) -> Any:
        below = child_at(tp, node, path[-1])
        if below is not None:
            return below
        family = family_at(tp)
        if family is not None and section_at(tp, node) is None:
            found = inline_yaml(node.get(family[0].key))
            raise self._refusal((*path[:-1], family[0].key), found, " | ".join(tags_of(*family)))
        raise self._refusal(path, "an unknown key", *unknown_key(Scenario, self.document.tree, path))

    def _descend(self, tp: Any, node: Any, below: Any, path: KeyPath) -> Any:
        # The mapping or list under the last segment of `path`, made from the default where there is none.
        value = node.get(path[-1]) if isinstance(node, dict) else node[path[-1]]
        if value is None or value in words_of(below):
            value = _default_container(tp, node, below, path[-1])
        if not isinstance(value, dict | list):
            raise self._refusal(path, f"a key below {inline_yaml(value)}", allowed(below))
        node[path[-1]] = value
        return value

    def _drop_lacking(self, tp: Any, node: Any, path: KeyPath, last: str | int) -> None:
        family, variant = family_at(tp), section_at(tp, node)
        if family is None or last != family[0].key or variant is None:
            return
        known = keys_of(variant)
        for sibling in list(node):
            if sibling not in known or (node[sibling] is None and not is_nullable(type_of(known[sibling]))):
                self._drop(node, (*path, sibling), f"{last}: {node[last]} does not have it")

    def _drop_exclusive(self, tp: Any, node: Any, path: KeyPath, last: str | int) -> None:
        section = section_at(tp, node)
        if section is None or self.override.value is None:
            return
        for other in (pair[1 - pair.index(str(last))] for pair in section.exclusive if last in pair):
            if node.get(other) is not None and (*path, other) not in self.fixed:
                self._drop(node, (*path, other), f"{last} stands in its place")

    def _drop(self, node: dict[Any, Any], path: KeyPath, why: str) -> None:
        self.notes.append(f"{self.override.place}: dropped {dotted(path)}: {inline_yaml(node[path[-1]])} ({why})")
        del node[path[-1]]

    def _refusal(self, path: KeyPath, found: str, allowed_text: str, hint: str = "") -> RefusedOverride:
        return RefusedOverride(line(self.override.place, path, found, allowed_text, hint), self.override)


def _default_container(tp: Any, node: Any, below: Any, segment: str | int) -> Any:
    # What to begin with where a key is to be set below nothing: the default there, a section's being `{}`.
    if below is Any or section_at(below, {}) is not None:
        return {}
    section = section_at(tp, node)
    default = None if section is None else keys_of(section)[str(segment)].default
    return {} if default is None and is_schedule(below) else plain_value(default)
