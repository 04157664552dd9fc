"""Design of a study: all its runs, each checked as a whole scenario before the first one begins."""

import copy
import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from wirelessfl import plugins
from wirelessfl.errors import ScenarioError, precondition
from wirelessfl.scenario import Resolved, Scenario, locate, places_of, resolve_document
from wirelessfl.scenario.overrides import Override, Overrides, RefusedOverride, read_overrides
from wirelessfl.scenario.rejection import MAX_LINES, line, rejection
from wirelessfl.scenario.scenario import is_left_by_a_run, outside_code, refuse_outside_code
from wirelessfl.scenario.yamltree import Document, KeyPath, read_document
from wirelessfl.study.factors import Factor, point_text, values_at
from wirelessfl.study.file import MAX_SEED, StudyFile
from wirelessfl.summary.axes import JOULES, XAxis, without_joules

MAX_RUNS = 10_000

# What of a study file is a mapping from key paths of the scenario
_BY_KEY = ("set", "grid", "zip")


def content_id(scenario: Scenario) -> str:
    """Sixteen hexadecimal digits that are the same for equal scenarios, in every process and on every machine.

    They cover every key with the value that counts, defaults included, and nothing else: not the order of the keys in
    the file, not its comments, not how a value was written. Among n runs two different ones share an id with
    probability below n²/2⁶⁵, about 3e-12 for 10,000 runs.
    """
    content = json.dumps(scenario.model_dump(by_alias=True), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Run:
    """One scenario of a study.

    Attributes:
        id: The hash of its content.
        levels: The level of each factor.
        scenario: Its scenario, with its seed.
    """

    id: str
    levels: tuple[int, ...]
    scenario: Scenario


@dataclass(frozen=True)
class StudyDesign:
    """Design of a study, checked.

    Attributes:
        name: Its name.
        factors: Its factors, in the order of the file.
        seeds: The seeds that every point runs with: common random numbers, so that differences are paired.
        metrics: Per-round variables of the trace that the picture shows.
        runs: Every run, point by point, the seeds of a point together.
        notes: Keys that were dropped because another variant lacks them.
        sources: The files that it was read from.
        x: What the picture shows the metrics over.
    """

    name: str
    factors: tuple[Factor, ...]
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]
    runs: tuple[Run, ...]
    notes: tuple[str, ...] = ()
    sources: tuple[Path, ...] = ()
    x: tuple[XAxis, ...] = ("round",)

    def values(self, levels: Sequence[int]) -> dict[str, Any]:
        """The values of the varied keys at a point, given by the level of each factor."""
        return values_at(self.factors, levels)

    def describe(self, run: Run) -> str:
        """Label of a run: its point and seed."""
        return f"{point_text(self.factors, run.levels)}, seed {run.scenario.seed}"


def load_study(source: str | Path, overrides: Overrides = (), *, allow_plugins: bool = False) -> StudyDesign:
    """Design of a study from a file or a shipped name, with every point checked.

    Args:
        source: A path, or the name of a shipped study.
        overrides: ``{"base.rounds": 10}``, or ``["base.rounds=10"]`` with YAML values as on the command line. Below
            ``base`` lies the scenario; ``seeds``, ``metrics``, ``x``, ``name``, ``set.KEY``, ``grid.KEY`` and
            ``zip.KEY`` are the study's.
        allow_plugins: Whether a base that a run left beside its trace may name code from outside the package.

    Raises:
        ScenarioError: all errors of the study and of its points, one line each.
    """
    path = locate(source, "studies")
    document = read_document(path, "study", StudyFile.model_fields, "a base and a grid")
    precondition(
        document.tree is not None,
        line(document.place(()), (), "an empty file", "a mapping with at least a base and a grid"),
        ScenarioError,
    )
    typed = read_overrides(overrides)
    ours, of_base = _split(typed)
    document = _override_study(document, ours)
    try:
        file = StudyFile.model_validate(document.tree)
    except ValidationError as error:
        raise rejection(error, _nested(document), StudyFile) from None
    base, base_path = _base(file, document, path)
    recorded = is_left_by_a_run(base_path)
    builder = _Builder(file, document, base, None if recorded else base_path.parent, of_base)
    name = file.name or re.sub(r"[^A-Za-z0-9._-]", "-", path.stem).lstrip("._-")[:100] or "study"
    design = replace(builder.design(name), sources=(path, base_path))
    places = places_of(base_path, path)
    design = replace(design, runs=tuple(replace(run, scenario=run.scenario.placed(places)) for run in design.runs))
    own = [change.value for change in typed] + [file.set, file.grid, file.zip]
    for run in design.runs:
        if recorded:
            refuse_outside_code(run.scenario, str(base_path), allow_plugins, own)
        elif outside_code(run.scenario):
            plugins.search(base_path.parent)
    return design


def _split(overrides: Sequence[Override]) -> tuple[list[Override], list[Override]]:
    # Overrides of the study, and those of its base with paths from the base on
    ours, of_base = [], []
    for override in overrides:
        first, *rest = override.path
        if first == "base" and rest:
            of_base.append(Override(tuple(rest), override.value, override.place))
        elif first in _BY_KEY or (first in StudyFile.model_fields and not rest):
            ours.append(override)
        else:
            known = ", ".join(f"{name}.KEY" if name in _BY_KEY else name for name in StudyFile.model_fields)
            hint = f"did you mean base.{'.'.join(override.path)}?" if first in Scenario.model_fields else ""
            raise ScenarioError(line(override.place, override.path, "an unknown key", f"base.KEY, {known}", hint))
    return ours, of_base


def _override_study(document: Document, overrides: Sequence[Override]) -> Document:
    # The document with new values for the study's own keys; a key of grid or zip is one dotted name
    tree, places = dict(document.tree), dict(document.places)
    for override in overrides:
        first, *rest = override.path
        path: KeyPath = (first, ".".join(rest)) if rest else (first,)
        if rest:
            below = tree.get(first)
            tree[first] = {**(below if isinstance(below, dict) else {}), path[1]: override.value}
            places.setdefault((first,), override.place)
        else:
            tree[first] = override.value
        places = {known: place for known, place in places.items() if known[: len(path)] != path}
        places[path] = override.place
    return Document(tree, places)


def _nested(document: Document) -> Document:
    # The document with ``grid: {a.b: ...}`` also as ``grid: {a: {b: ...}}``, for messages on the key path grid.a.b
    tree, places = copy.deepcopy(document.tree), dict(document.places)
    for axis in _BY_KEY:
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


def _base(file: StudyFile, document: Document, study: Path) -> tuple[Document, Path]:
    # The base scenario as it is written, and the file that it stands in
    if isinstance(file.base, dict):
        places = {path[1:]: place for path, place in document.places.items() if path[:1] == ("base",)}
        return Document(file.base, places), study
    try:
        path = locate(file.base, "scenarios", study.parent)
    except ScenarioError as error:
        raise ScenarioError(f"{document.place(('base',))}: base: {error}") from None
    return read_document(path, "scenario", Scenario.model_fields, "a name"), path


class _Builder:
    # All runs of a study, with the errors of all points

    def __init__(
        self, file: StudyFile, document: Document, base: Document, folder: Path | None, of_base: list[Override]
    ) -> None:
        self._file = file
        self._document = document
        self._base = base
        self._folder = folder
        self._of_base = of_base
        grid = [Factor((name,), tuple((value,) for value in values)) for name, values in file.grid.items()]
        together = [Factor(tuple(file.zip), tuple(zip(*file.zip.values(), strict=True)))] if file.zip else []
        self._factors = (*grid, *together)
        self._wrong: dict[str, list[str]] = {}  # points by error
        self._notes: dict[str, None] = {}
        self._runs: dict[str, Run] = {}

    def design(self, name: str) -> StudyDesign:
        sizes = [len(factor.levels) for factor in self._factors]
        count = math.prod(sizes) * (len(self._file.seeds) if isinstance(self._file.seeds, list) else self._file.seeds)
        precondition(
            count <= MAX_RUNS,
            self._on_grid(f"{count:,} runs", f"at most {MAX_RUNS:,}, seeds included"),
            ScenarioError,
        )
        for levels in itertools.product(*map(range, sizes)):
            self._add(levels)
            if len(self._wrong) > MAX_LINES:
                break
        precondition(not self._wrong, "\n".join(self._messages(math.prod(sizes))), ScenarioError)
        seeds = tuple(dict.fromkeys(run.scenario.seed for run in self._runs.values()))
        runs = tuple(self._runs.values())
        metrics, x = tuple(self._file.metrics), tuple(self._file.x)
        alone = without_joules([run.scenario for run in runs]) if "energy" in x else []
        other = point_text(self._factors, runs[alone[0]].levels) if alone else ""
        found = f"energy, known in joules at some points and not at {other}"
        allowed = f"points of one unit; joules are known with {JOULES}"
        precondition(not alone, line(self._document.place(("x",)), ("x",), found, allowed), ScenarioError)
        return StudyDesign(name, self._factors, seeds, metrics, runs, tuple(self._notes), x=x)

    def _on_grid(self, found: str, allowed: str) -> str:
        return line(self._document.place(("grid",)), ("grid",), found, allowed)

    def _add(self, levels: tuple[int, ...]) -> None:
        point = point_text(self._factors, levels)
        resolved = self._resolve(self._overrides(values_at(self._factors, levels)), point)
        if resolved is None:
            return
        self._notes |= dict.fromkeys(resolved.notes)
        for seed in self._seeds(resolved.scenario):
            scenario = resolved.scenario.model_copy(update={"seed": seed})
            run = Run(content_id(scenario), levels, scenario)
            twin = self._runs.setdefault(run.id, run)
            if twin is not run:
                found = self._on_grid("the same scenario at two points", "points that differ")
                self._refuse(found, f"{point} and {point_text(self._factors, twin.levels)}")
                return

    def _resolve(self, overrides: list[Override], point: str) -> Resolved | None:
        # The scenario of a point; None where it is refused, with every reason noted
        refused = False
        while True:
            try:
                resolved = resolve_document(self._base, overrides, self._folder)
            except RefusedOverride as error:
                # A key that leads nowhere hides what else is wrong: note it and look on without it.
                self._refuse(str(error), point)
                overrides = [override for override in overrides if override is not error.override]
                refused = True
            except ScenarioError as error:
                for text in str(error).splitlines():
                    self._refuse(text, point)
                return None
            else:
                return None if refused else resolved

    def _overrides(self, values: dict[str, Any]) -> list[Override]:
        # Of a point: whole mappings first, then keys that other axes change in them
        axes = {name: axis for axis in _BY_KEY for name in getattr(self._file, axis)}
        of_file, of_point = (
            [Override(tuple(name.split(".")), value, self._document.place((axes[name], name))) for name, value in items]
            for items in (self._file.set.items(), sorted(values.items(), key=lambda item: item[0].count(".")))
        )
        return [*of_file, *self._of_base, *of_point]

    def _seeds(self, scenario: Scenario) -> Sequence[int]:
        if isinstance(self._file.seeds, list):
            return self._file.seeds
        seeds = range(scenario.seed, scenario.seed + self._file.seeds)
        place, found = self._document.place(("seeds",)), f"{len(seeds)} seeds from the base's {scenario.seed} on"
        words = line(place, ("seeds",), found, f"seeds up to {MAX_SEED}")
        precondition(seeds.stop <= MAX_SEED + 1, words, ScenarioError)
        return seeds

    def _refuse(self, text: str, point: str) -> None:
        self._wrong.setdefault(text, []).append(point)

    def _messages(self, total: int) -> Iterator[str]:
        # Error messages, with the point of those that do not hold everywhere
        for text, points in itertools.islice(self._wrong.items(), MAX_LINES):
            others = f" and {len(points) - 1} more" if len(points) > 1 else ""
            yield text if len(points) == total else f"{text} (at {points[0]}{others})"
        if len(self._wrong) > MAX_LINES:
            yield "and more"
