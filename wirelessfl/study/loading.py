"""Study files in: a shipped name, a file or a mapping, then overrides, then the design of all runs."""

import copy
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from wirelessfl.errors import ScenarioError, precondition
from wirelessfl.scenario import Scenario, locate, places_of
from wirelessfl.scenario.overrides import Override, Overrides
from wirelessfl.scenario.python_values import given_document, named_parameters, read_changes
from wirelessfl.scenario.rejection import line, rejection
from wirelessfl.scenario.scenario import is_left_by_a_run, refuse_outside_code
from wirelessfl.scenario.yamltree import Document, KeyPath, read_document
from wirelessfl.study.design import DesignBuilder, StudyDesign
from wirelessfl.study.file import BY_KEY, StudyFile
from wirelessfl.study.text import self_contained

StudySource = str | Path | Mapping[str, Any]
"""A shipped name, the path of a file, or a mapping as a file would have it."""


def load_study(
    source: StudySource, overrides: Overrides = (), *, allow_plugins: bool = False, **keys: Any
) -> StudyDesign:
    """Design of a study from a shipped name, a file or a mapping with the keys of one, with every point checked.

    Args:
        source: The name of a shipped study, a path, or a mapping such as ``{"base": "quickstart", "seeds": 3}``.
        overrides: ``{"base.rounds": 10}``, or ``["base.rounds=10"]`` with YAML values as on the command line. Below
            ``base`` lies the scenario; ``seeds``, ``metrics``, ``x``, ``name``, ``set.KEY``, ``grid.KEY`` and
            ``zip.KEY`` are the study's.
        allow_plugins: Whether a base that a run left beside its trace may name code from outside the package.
        keys: Further overrides as keyword arguments, with two underscores for a dot: ``seeds=3, base__rounds=10``.

    Raises:
        ScenarioError: all errors of the study and of its points, one line each.
    """
    return design_study(source, overrides, keys, named_parameters(load_study), allow_plugins=allow_plugins)


def design_study(
    source: StudySource,
    overrides: Overrides,
    keys: Mapping[str, Any],
    parameters: Collection[str],
    *,
    allow_plugins: bool = False,
) -> StudyDesign:
    """As `load_study`.

    Args:
        source: As for `load_study`.
        overrides: As for `load_study`.
        keys: Overrides that were given as keyword arguments.
        parameters: Of the function that took them, so that a misspelt one is told from a misspelt key.
        allow_plugins: As for `load_study`.

    Raises:
        ScenarioError: all errors of the study and of its points, one line each.
    """
    typed = read_changes(overrides, keys, list(StudyFile.model_fields), parameters)
    document, path = _document(source)
    folder = Path() if path is None else path.parent
    precondition(
        document.tree is not None,
        line(document.place(()), (), "an empty file", "a mapping with at least a base and a grid"),
        ScenarioError,
    )
    ours, of_base = _split(typed)
    document = _override_study(document, ours)
    try:
        file = StudyFile.model_validate(document.tree)
    except ValidationError as error:
        raise rejection(error, _nested(document), StudyFile) from None
    base, base_path = _base(file, document, path, folder)
    recorded = base_path is not None and is_left_by_a_run(base_path)
    base_folder = folder if base_path is None else base_path.parent
    stem = "" if path is None else re.sub(r"[^A-Za-z0-9._-]", "-", path.stem).lstrip("._-")[:100]
    read = tuple(place for place in (path, base_path) if place is not None)
    name = file.name or stem or "study"
    places = places_of(*reversed(read))
    relative_to = None if recorded else base_folder
    design = DesignBuilder(file, document, base, relative_to, of_base, places).design(name)
    own = [change.value for change in typed] + [file.set, file.grid, file.zip]
    for run in design.runs:
        if recorded:
            refuse_outside_code(run.scenario, str(base_path), allow_plugins, own)
    return replace(
        design,
        sources=read,
        text=self_contained(name, file, base, relative_to, of_base),
    )


def _document(source: StudySource) -> tuple[Document, Path | None]:
    # A study as it is written, and its file
    if isinstance(source, Mapping):
        return given_document(source, "study"), None
    path = locate(source, "studies")
    return read_document(path, "study", StudyFile.model_fields, "a base and a grid"), path


def _split(overrides: Sequence[Override]) -> tuple[list[Override], list[Override]]:
    # Overrides of the study, and those of its base with paths from the base on
    ours, of_base = [], []
    for override in overrides:
        first, *rest = override.path
        if first == "base" and rest:
            of_base.append(Override(tuple(rest), override.value, override.place))
        elif first in BY_KEY or (first in StudyFile.model_fields and not rest):
            ours.append(override)
        else:
            known = ", ".join(f"{name}.KEY" if name in BY_KEY else name for name in StudyFile.model_fields)
            hint = f"did you mean base.{'.'.join(override.path)}?" if first in Scenario.model_fields else ""
            raise ScenarioError(line(override.place, override.path, "an unknown key", f"base.KEY, {known}", hint))
    return ours, of_base


def _override_study(document: Document, overrides: Sequence[Override]) -> Document:
    # The document with new values for the study's own keys; a key of grid or zip is one dotted name, which an index of
    # its values may follow
    tree, places = dict(document.tree), dict(document.places)
    for override in overrides:
        first, *rest = override.path
        path: KeyPath = (first, ".".join(rest)) if rest else (first,)
        if rest:
            held = tree.get(first)
            below = held if isinstance(held, dict) else {}
            *name, last = rest
            values = below.get(".".join(name))
            if isinstance(values, list) and last.isdecimal() and path[1] not in below:
                changed = _with_item(values, int(last), override)
                path = (first, ".".join(name))
            else:
                changed = override.value
            tree[first] = {**below, path[1]: changed}
            places.setdefault((first,), override.place)
        else:
            tree[first] = override.value
        places = {known: place for known, place in places.items() if known[: len(path)] != path}
        places[path] = override.place
    return Document(tree, places)


def _with_item(values: list[Any], index: int, override: Override) -> list[Any]:
    if index >= len(values):
        allowed = f"an index from 0 to {len(values) - 1}" if values else "a list that is not empty"
        raise ScenarioError(line(override.place, override.path, "no such item", allowed))
    return [*values[:index], override.value, *values[index + 1 :]]


def _nested(document: Document) -> Document:
    # The document with ``grid: {a.b: ...}`` also as ``grid: {a: {b: ...}}``, for messages on the key path grid.a.b
    tree, places = copy.deepcopy(document.tree), dict(document.places)
    for axis in BY_KEY:
        values = tree.get(axis)
        for name, value in list(values.items()) if isinstance(values, dict) else []:
            *parents, last = str(name).split(".")
            node = values
            for parent in parents:
                node = node.setdefault(parent, {})
                if not isinstance(node, dict):
                    break
            else:
                node.setdefault(last, value)
                places.setdefault((axis, *parents, last), document.place((axis, name)))
    return Document(tree, places)


def _base(file: StudyFile, document: Document, study: Path | None, folder: Path) -> tuple[Document, Path | None]:
    # The base scenario as it is written, and the file that it stands in
    if isinstance(file.base, dict):
        places = {path[1:]: place for path, place in document.places.items() if path[:1] == ("base",)}
        return Document(file.base, places), study
    try:
        path = locate(file.base, "scenarios", folder)
    except ScenarioError as error:
        raise ScenarioError(f"{document.place(('base',))}: base: {error}") from None
    return read_document(path, "scenario", Scenario.model_fields, "a name"), path
