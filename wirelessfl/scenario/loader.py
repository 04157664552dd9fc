"""Scenario files in and out: file, then profile, then overrides, then checks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from wirelessfl import plugins
from wirelessfl.errors import ScenarioError
from wirelessfl.inputs import Places
from wirelessfl.scenario.channel import Channel
from wirelessfl.scenario.data import settle_source
from wirelessfl.scenario.library import list_shipped, locate, shelf_folder
from wirelessfl.scenario.located import Written
from wirelessfl.scenario.overrides import Override, Overrides, apply_overrides, read_overrides
from wirelessfl.scenario.python_values import given_document, named_parameters, read_changes
from wirelessfl.scenario.rejection import dotted, line, rejection
from wirelessfl.scenario.scenario import Scenario, is_left_by_a_run, outside_code, refuse_outside_code
from wirelessfl.scenario.shape import child_at, family_at, keys_of, section_at
from wirelessfl.scenario.uplink import earlier_names
from wirelessfl.scenario.yamltree import (
    Document,
    KeyPath,
    dump_yaml,
    inline_yaml,
    parse_yaml,
    plain_value,
    read_document,
)


@dataclass(frozen=True)
class Resolved:
    """A scenario, and what the reader did that the user should be told of."""

    scenario: Scenario
    notes: tuple[str, ...] = ()


Source = str | Path | Mapping[str, Any] | Scenario
"""A shipped name, the path of a file, a mapping as a file would have it, or a scenario that is made already."""


def load_scenario(source: Source, overrides: Overrides = (), *, allow_plugins: bool = False, **keys: Any) -> Scenario:
    """The scenario of a shipped name, a file, or a mapping with the keys of a file, with overrides.

    Args:
        source: The name of a shipped scenario, a path, a mapping such as ``{"name": "mine", "rounds": 5}``, or a
            scenario that is to be changed.
        overrides: ``{"uplink.snr_db": 5}``, or ``["uplink.snr_db=5"]`` with YAML values as on the command line.
        allow_plugins: Whether a file that a run left beside its trace may name code from outside the package; a file
            elsewhere is the caller's own and always may.
        keys: Further overrides as keyword arguments, with two underscores for a dot: ``rounds=5, uplink__snr_db=10``.

    Raises:
        ScenarioError: all that is wrong with it, one line each.
    """
    own = named_parameters(load_scenario)
    return resolve_scenario(source, overrides, keys, own, allow_plugins=allow_plugins).scenario


def resolve_scenario(
    source: Source,
    overrides: Overrides = (),
    keys: Mapping[str, Any] | None = None,
    parameters: Collection[str] = (),
    *,
    allow_plugins: bool = False,
) -> Resolved:
    """As `load_scenario`, together with notes on keys that overrides dropped.

    Args:
        source: As for `load_scenario`.
        overrides: As for `load_scenario`.
        keys: Overrides that were given as keyword arguments.
        parameters: Of the function that took them, so that a misspelt one is told from a misspelt key.
        allow_plugins: As for `load_scenario`.

    Raises:
        ScenarioError: all that is wrong with it, one line each.
    """
    changes = read_changes(overrides, keys or {}, list(keys_of(Scenario)), parameters)
    if isinstance(source, Scenario) and not changes:
        return Resolved(source)
    if isinstance(source, Scenario | Mapping):
        given, places = (source, Places()) if isinstance(source, Mapping) else (plain_value(source), source.places)
        resolved = resolve_document(given_document(given, "scenario"), changes, Path())
        return _own(_placed(resolved, places), Path())
    path = locate(source)
    document = read_document(path, "scenario", Scenario.model_fields, "a name")
    recorded = is_left_by_a_run(path)
    resolved = resolve_document(document, changes, None if recorded else path.parent)
    resolved = _placed(resolved, places_of(path))
    if not recorded:
        return _own(resolved, path.parent)
    refuse_outside_code(resolved.scenario, str(path), allow_plugins, [change.value for change in changes])
    return resolved


def _placed(resolved: Resolved, places: Places) -> Resolved:
    return replace(resolved, scenario=resolved.scenario.placed(places))


def _own(resolved: Resolved, folder: Path) -> Resolved:
    # A scenario of the caller's own, whose plug-ins are looked up in a folder
    if outside_code(resolved.scenario):
        plugins.search(folder)
    return resolved


def places_of(*files: Path) -> Places:
    """Places in which the files are looked up that a scenario names, or a study: the folders of its own files first.

    Those that come with the package lie in no folder of the user's.
    """
    shelf = shelf_folder("scenarios").resolve()
    return Places.beside(*(file.parent for file in files if not file.resolve().is_relative_to(shelf)))


def resolve_document(document: Document, overrides: Sequence[Override], folder: Path | None) -> Resolved:
    """As `resolve_scenario`, from a tree that remembers where its keys stood.

    Args:
        document: The scenario as it is written.
        overrides: New values, each with the place it came from.
        folder: What the path of a channel profile is relative to; None where a recorded scenario may name none.

    Raises:
        ScenarioError: all that is wrong with it, one line each.
    """
    if not isinstance(document.tree, dict):
        found = "an empty file" if document.tree is None else inline_yaml(document.tree)
        raise ScenarioError(line(document.place(()), (), found, "a mapping with at least a name"))
    document = with_own_profile(document, folder)
    notes: list[str] = []
    for group in _groups(overrides):
        document, dropped = apply_overrides(document, group)
        notes += dropped
        document = _after_override(document, group[-1])
    tree, settled = settle_source(document.tree)
    try:
        scenario = Scenario.model_validate(tree).written(Written(document.places))
    except ValidationError as error:
        raise rejection(error, document, Scenario) from None
    return Resolved(scenario, (*notes, *settled, *earlier_names(scenario.uplink)))


def parse_scenario(
    text: str, origin: str = "scenario", overrides: Overrides = (), places: Places | None = None
) -> Scenario:
    """The scenario of a YAML text, such as the one a trace carries.

    Args:
        text: The YAML text.
        origin: What it is called in messages.
        overrides: As for `load_scenario`.
        places: Places in which the files that it names are looked up.

    Raises:
        ScenarioError: all that is wrong with it, one line each.
    """
    document = parse_yaml(text, lambda number: f"{origin}:{number}")
    scenario = resolve_document(document, read_overrides(overrides), None).scenario
    return scenario.placed(places or Places()).written(Written())  # nobody has the lines of this text


def dump_scenario(scenario: Scenario) -> str:
    """The resolved scenario as YAML: every key, with the value that counts."""
    return dump_yaml(plain_value(scenario))


def differing_keys(a: Scenario, b: Scenario) -> list[str]:
    """The key paths in which two scenarios differ, each as ``path: value in a -> value in b``."""
    values_a, values_b = dict(_leaves(plain_value(a), ())), dict(_leaves(plain_value(b), ()))
    paths = list(values_a) + [path for path in values_b if path not in values_a]
    texts = [(path, _shown(values_a, path), _shown(values_b, path)) for path in paths]
    return [f"{dotted(path)}: {in_a} -> {in_b}" for path, in_a, in_b in texts if in_a != in_b]


def _leaves(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    else:
        yield path, value


def _shown(values: Mapping[KeyPath, Any], path: KeyPath) -> str:
    return inline_yaml(values[path], limit=10_000) if path in values else "absent"


def _groups(overrides: Sequence[Override]) -> Iterator[list[Override]]:
    # Overrides in their order, cut after each that may name a channel profile.
    group: list[Override] = []
    for override in overrides:
        group.append(override)
        if override.path in (("channel",), ("channel", "profile")):
            yield group
            group = []
    if group:
        yield group


def _after_override(document: Document, last: Override) -> Document:
    # Profile that an override named, expanded: beside other new keys it is their base, alone it counts.
    if last.path == ("channel",):
        return with_own_profile(document, Path())
    if last.path == ("channel", "profile"):
        profile = _profile(document, Path())
        return document if profile is None else _overlay_channel(document, base=_without_profile(document), top=profile)
    return document


def with_own_profile(document: Document, folder: Path | None) -> Document:
    """The document with the keys of its channel profile filled in below its own.

    Args:
        document: A scenario as it is written.
        folder: What the path of the profile is relative to; None where a recorded scenario may name none.

    Raises:
        ScenarioError: there is no such profile.
    """
    profile = _profile(document, folder)
    return document if profile is None else _overlay_channel(document, base=profile, top=_without_profile(document))


def _without_profile(document: Document) -> Document:
    channel = {key: value for key, value in document.tree["channel"].items() if key != "profile"}
    return Document(channel, {path[1:]: place for path, place in document.places.items() if path[:1] == ("channel",)})


def _profile(document: Document, folder: Path | None) -> Document | None:
    # The channel profile that the document names, if it names one. Raises ScenarioError: there is no such profile, it
    # is no mapping, or a recorded scenario names a file.
    channel = document.tree.get("channel")
    name = channel.get("profile") if isinstance(channel, dict) else None
    if not isinstance(name, str):
        return None
    if folder is None:
        names = [shipped.name for shipped in list_shipped("channels")]
        if name not in names:
            allowed = f"allowed in a recorded scenario: {', '.join(names)}"
            raise ScenarioError(f"{document.place(('channel', 'profile'))}: channel.profile: found {name}; {allowed}")
    try:
        path = locate(name, "channels", folder)
    except ScenarioError as error:
        raise ScenarioError(f"{document.place(('channel', 'profile'))}: channel.profile: {error}") from None
    profile = read_document(path, "channel profile", Channel.model_fields, "one key of channel")
    if not isinstance(profile.tree, dict):
        raise ScenarioError(line(profile.place(()), (), inline_yaml(profile.tree), "a mapping with keys of channel"))
    if "profile" in profile.tree:
        raise ScenarioError(line(profile.place(("profile",)), ("profile",), "a profile in a profile", "its own keys"))
    return profile


def _overlay_channel(document: Document, base: Document, top: Document) -> Document:
    channel = _overlay(Channel, base.tree, top.tree)
    below = {**base.places, **top.places}
    places = {("channel", *path): place for path, place in below.items() if path}
    return Document({**document.tree, "channel": channel}, {**document.places, **places})


def _overlay(tp: Any, base: Any, top: Any) -> Any:
    # `top` over `base` key by key; another variant replaces the whole mapping, a missing tag keeps the base's.
    if not isinstance(base, dict) or not isinstance(top, dict):
        return top
    family = family_at(tp)
    if family is not None and top.get(family[0].key, base.get(family[0].key)) != base.get(family[0].key):
        return top
    if section_at(tp, base) is None:
        return top
    merged = {key: _overlay(child_at(tp, base, key), base[key], top[key]) for key in base if key in top}
    return {**base, **top, **merged}
