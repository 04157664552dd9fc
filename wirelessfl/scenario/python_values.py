"""Scenarios as Python values: a mapping in place of a file, keyword arguments in place of overrides."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from wirelessfl.errors import ScenarioError, instance_of, precondition
from wirelessfl.scenario.overrides import Override, Overrides, read_overrides
from wirelessfl.scenario.rejection import closest, line
from wirelessfl.scenario.yamltree import MAX_DEPTH, Document, KeyPath, is_finite, plain_value

SEPARATOR = "__"
"""What stands in a keyword for the dot of a key path; no key of a scenario or study has it."""

_SHOWN = 60


def given_document(given: Mapping[str, Any], kind: str) -> Document:
    """A mapping as the reader of a file would have given it; its places in messages are key paths alone.

    Args:
        given: Keys and values; paths and arrays of NumPy are taken as the texts, numbers and lists that they stand for.
        kind: What it should be, for messages.

    Raises:
        ScenarioError: a key that is neither text nor a whole number, nesting without end, or a number not finite.
    """
    return Document(_plain(given, (), kind), {(): kind})


def _plain(value: Any, path: KeyPath, kind: str) -> Any:
    if len(path) > MAX_DEPTH:
        raise ScenarioError(line(kind, path[:1], f"more than {MAX_DEPTH} levels of nesting", "at most that"))
    value = value if isinstance(value, Mapping | list | tuple) else plain_value(value)
    if isinstance(value, Mapping):
        tree = {}
        for given, item in value.items():
            key = plain_value(given)
            if isinstance(key, bool) or not isinstance(key, str | int):
                raise ScenarioError(line(kind, path, f"the key {given!r}", "keys that are text or whole numbers"))
            tree[key] = _plain(item, (*path, key), kind)
        return tree
    if isinstance(value, list | tuple):
        return [_plain(item, (*path, index), kind) for index, item in enumerate(value)]
    found = instance_of(type(value))
    precondition(not isinstance(value, Iterator), line(kind, path, found, "a list of its values"), ScenarioError)
    precondition(is_finite(value), line(kind, path, str(value), "a finite number"), ScenarioError)
    return value


def read_changes(
    overrides: Overrides, keywords: Mapping[str, Any], keys: Collection[str], parameters: Collection[str] = ()
) -> list[Override]:
    """Overrides in either form, then those that are given as keyword arguments.

    Args:
        overrides: As for `load_scenario`.
        keywords: ``{"rounds": 5, "training__optimizer__lr": 0.1}``.
        keys: The keys at the top of the file.
        parameters: What the function that takes the keywords has for parameters, for a guess of the one meant.

    Raises:
        ScenarioError: a value that is no number of YAML, a key that is given in both ways, or a misspelt parameter.
    """
    first = read_overrides(overrides)
    known = {override.path for override in first}
    changes = [_keyword(name, value) for name, value in keywords.items()]
    for change in changes:
        top = change.path[0]
        if change.path in known:
            found = "the key in overrides as well as in a keyword"
            raise ScenarioError(line(change.place, change.path, found, "every key once"))
        if top not in keys and (meant := closest(top, [*keys, *parameters])) in parameters:
            found, allowed = "an unknown key", f"{', '.join(keys)}; and {', '.join(parameters)}"
            raise ScenarioError(line(change.place, change.path, found, allowed, f"did you mean {meant}?"))
    return [*first, *changes]


def named_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the parameters of a function that can be given as keywords."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(name for name, one in inspect.signature(function).parameters.items() if one.kind in kinds)


def _keyword(name: str, value: Any) -> Override:
    path = tuple(name.split(SEPARATOR))
    plain = _plain(value, (), name)
    shown = repr(plain)
    place = f"{name}={shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + '...'}"
    if not all(path):
        allowed = "keys joined by two underscores, as in uplink__snr_db"
        raise ScenarioError(f"{place}: found the key path {name!r}; allowed: {allowed}")
    return Override(path, plain, place)
