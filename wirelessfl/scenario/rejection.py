"""Why a scenario is refused, in words: place, key path, what was found, what is allowed, and a guess what was meant."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from wirelessfl.errors import ScenarioError
from wirelessfl.scenario.base import Section
from wirelessfl.scenario.family import Family
from wirelessfl.scenario.shape import (
    all_keys,
    allowed,
    alternatives,
    family_at,
    keys_of,
    section_at,
    tags_of,
    type_along,
    value_along,
    words_of,
)
from wirelessfl.scenario.yamltree import Document, KeyPath, inline_yaml

MAX_LINES = 30


def rejection(error: ValidationError, document: Document, root: type[Section]) -> ScenarioError:
    """All that is wrong with a document, one line each, as the exception to raise."""
    lines: dict[str, None] = {}
    errors = error.errors(include_url=False)
    for at, one in enumerate(errors):
        # A guess of the key that was meant takes long where a hundred thousand are unknown
        if len(lines) >= MAX_LINES:
            lines[f"and {len(errors) - at} more"] = None
            break
        lines.update(dict.fromkeys(_lines(one, document, root)))
    return ScenarioError("\n".join(lines))


def dotted(path: KeyPath) -> str:
    """A key path as it is written in overrides."""
    return ".".join(str(segment) for segment in path)


def line(place: str, path: KeyPath, found: str, allowed_text: str, hint: str = "") -> str:
    """One reason for a refusal."""
    name = f"{dotted(path)}: " if path else ""
    return f"{place}: {name}found {found}; allowed: {allowed_text}{f'; {hint}' if hint else ''}"


def _segment(text: str) -> str | int:
    # Items of lists have numbers
    return int(text) if text.isdecimal() else text


def _lines(error: ErrorDetails, document: Document, root: type[Section]) -> Iterator[str]:
    path = _key_path(error)
    place = document.place(path)
    match error["type"]:
        case "contradiction":
            for below, found, allowed_text in error["ctx"]["contradictions"]:
                where = (*path, *map(_segment, below.split("."))) if below else path
                yield line(document.place(where), where, found + _if_default(document, where), allowed_text)
        case "extra_forbidden" | "invalid_key":
            found = f"an unknown key (with the value {inline_yaml(value_along(document.tree, path))})"
            yield line(place, path, found, *unknown_key(root, document.tree, path))
        case "missing":
            yield line(place, path, "nothing", allowed(type_along(root, document.tree, path)))
        case "union_tag_invalid" if (family := family_at(type_along(root, document.tree, path))) is not None:
            yield _unknown_tag(error["input"], path, document, *family)
        case _ if path and error["loc"][-1] == "[key]":  # of a mapping whose keys are the user's own
            mapping = type_along(root, document.tree, path[:-1])
            yield line(place, path[:-1], f"the key {inline_yaml(error['input'])}", allowed(mapping))
        case _:
            yield _wrong_value(error, path, place, document, root)


def _key_path(error: ErrorDetails) -> KeyPath:
    # The path in the file: the loc without the variants that pydantic names in it, which begin with @.
    if not error["loc"]:
        return ()
    *front, last = error["loc"]
    front = [segment for segment in front if not str(segment).startswith("@")]
    # An unknown key may be any text, and end in what pydantic writes for a place that is no key.
    is_key = error["type"] == "extra_forbidden" or (last not in ("", "[key]") and not str(last).startswith("@"))
    return tuple(front + [last] * is_key)


def _if_default(document: Document, path: KeyPath) -> str:
    # Words for a value that is found and was not written by the user.
    parent = value_along(document.tree, path[:-1])
    written = isinstance(parent, list) or (isinstance(parent, Mapping) and path[-1] in parent)
    return "" if written else ", by default"


def unknown_key(root: type[Section], tree: Any, path: KeyPath) -> tuple[str, str]:
    """Keys that are allowed in place of an unknown one, and a guess of the one meant."""
    parent_type = type_along(root, tree, path[:-1])
    parent = value_along(tree, path[:-1])
    section = section_at(parent_type, parent if isinstance(parent, Mapping) else {})
    if section is None:
        return "no key at this place", ""
    names = list(keys_of(section))
    wrong = str(path[-1])
    return ", ".join(names), _guess(wrong, names) or _elsewhere(root, parent_type, path[:-1], wrong)


def _elsewhere(root: type[Section], parent_type: Any, parent: KeyPath, wrong: str) -> str:
    # Where a key that is unknown here would be known: in another variant, or at another place.
    family = family_at(parent_type)
    if family is not None:
        variants = family[0].variants(family[1]).values()
        tags = [tag for tag, variant in zip(tags_of(*family), variants, strict=True) if wrong in keys_of(variant)]
        if tags:
            return f"{wrong} goes with {dotted((*parent, family[0].key))}: {' | '.join(tags)}"
    places = dict.fromkeys(info.path for info in all_keys(root) if info.path.split(".")[-1] == wrong)
    return f"did you mean {' or '.join(list(places)[:3])}?" if places else ""


def _unknown_tag(value: Any, path: KeyPath, document: Document, family: Family, union: Any) -> str:
    found = value.get(family.key, family.default)
    tags = tags_of(family, union)
    where = (*path, family.key)
    return line(document.place(where), where, inline_yaml(found), " | ".join(tags), _guess(found, tags))


def _wrong_value(error: ErrorDetails, path: KeyPath, place: str, document: Document, root: type[Section]) -> str:
    tp = type_along(root, document.tree, path)
    found = inline_yaml(error["input"])
    if tp is None or tp is Any:
        return line(place, path, found, "plain finite values: text, numbers, true, false, null, lists, mappings")
    return line(place, path, found, allowed(tp), _value_hint(error["input"], tp))


def _value_hint(value: Any, tp: Any) -> str:
    types = set(alternatives(tp))
    family = family_at(tp)
    if isinstance(value, float) and value.is_integer() and "whole number" in allowed(tp):
        return f"did you mean {int(value)}?"
    if not isinstance(value, str):
        return ""
    if bool in types and value.lower() in ("yes", "no", "on", "off", "y", "n", "true", "false"):
        return f"did you mean {'true' if value.lower() in ('yes', 'on', 'y', 'true') else 'false'}?"
    if family is not None and (tag := closest(value, tags_of(*family))):
        return f"did you mean {{{family[0].key}: {tag}}}?"
    return _guess(value, words_of(tp)) or _number_hint(value, tp)


def _number_hint(value: str, tp: Any) -> str:
    try:
        float(value)
    except ValueError:
        return ""
    return "write it without quotes" if "number" in allowed(tp) else ""


def _guess(wrong: Any, right: Iterable[str]) -> str:
    found = closest(wrong, right)
    return f"did you mean {found}?" if found else ""


def closest(wrong: Any, right: Iterable[str]) -> str:
    """The word most like a misspelt one, or nothing."""
    if not isinstance(wrong, str):
        return ""
    by_lower = {word.lower(): word for word in right}
    near = difflib.get_close_matches(wrong.lower().replace("-", "_"), by_lower, n=1, cutoff=0.6)
    return by_lower[near[0]] if near else ""
