"""Design of a study: all its runs, each checked as a whole scenario before the first one begins."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from wirelessfl import plugins
from wirelessfl.errors import ScenarioError, precondition
from wirelessfl.inputs import Places
from wirelessfl.scenario import Resolved, Scenario, resolve_document
from wirelessfl.scenario.overrides import Override, RefusedOverride
from wirelessfl.scenario.rejection import MAX_LINES, line
from wirelessfl.scenario.scenario import outside_code, outside_sources
from wirelessfl.scenario.yamltree import Document
from wirelessfl.study.content import id_of
from wirelessfl.study.factors import Factor, point_text, values_at
from wirelessfl.study.file import BY_KEY, MAX_SEED, StudyFile
from wirelessfl.summary.axes import JOULES, XAxis, without_joules

MAX_RUNS = 10_000


@dataclass(frozen=True)
class Run:
    """One scenario of a study.

    Attributes:
        id: The hash of its content and of the sources that it runs, from `content_id`.
        levels: The level of each factor.
        scenario: Its scenario, with its seed.
        source_digests: Digests of the code from outside that it calls, by path, and versions by package.
    """

    id: str
    levels: tuple[int, ...]
    scenario: Scenario
    source_digests: Mapping[str, str] = field(default_factory=dict)


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
        text: The study as one file, of which the same runs follow.
    """

    name: str
    factors: tuple[Factor, ...]
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]
    runs: tuple[Run, ...]
    notes: tuple[str, ...] = ()
    sources: tuple[Path, ...] = ()
    x: tuple[XAxis, ...] = ("round",)
    text: str = ""

    def values(self, levels: Sequence[int]) -> dict[str, Any]:
        """The values of the varied keys at a point, given by the level of each factor."""
        return values_at(self.factors, levels)

    def __repr__(self) -> str:
        points = len({run.levels for run in self.runs})
        keys = ", ".join(factor.name for factor in self.factors) or "seeds alone"
        return (
            f"<StudyDesign {self.name}: {points} points × {len(self.seeds)} seeds = {len(self.runs)} runs over {keys}>"
        )

    def describe(self, run: Run) -> str:
        """Label of a run: its point and seed."""
        return f"{point_text(self.factors, run.levels)}, seed {run.scenario.seed}"


@dataclass(frozen=True)
class DesignBuilder:
    """All runs of a study that was read, with the errors of all points.

    Attributes:
        file: its keys.
        document: the same as it is written.
        base: the base scenario as it is written.
        folder: what the paths of the base are relative to; None where a recorded scenario may name none.
        of_base: overrides of the base.
        places: where the files that it names are looked up.
    """

    file: StudyFile
    document: Document
    base: Document
    folder: Path | None
    of_base: list[Override]
    places: Places
    _wrong: dict[str, list[str]] = field(default_factory=dict, init=False)  # points by error
    _notes: dict[str, None] = field(default_factory=dict, init=False)
    _runs: dict[str, Run] = field(default_factory=dict, init=False)

    @cached_property
    def _factors(self) -> tuple[Factor, ...]:
        grid = [Factor((name,), tuple((value,) for value in values)) for name, values in self.file.grid.items()]
        zipped = self.file.zip
        together = [Factor(tuple(zipped), tuple(zip(*zipped.values(), strict=True)))] if zipped else []
        return (*grid, *together)

    def design(self, name: str) -> StudyDesign:
        """The design, under a name.

        Raises:
            ScenarioError: all errors of its points, one line each.
        """
        self._refuse_lost_overrides()
        sizes = [len(factor.levels) for factor in self._factors]
        count = math.prod(sizes) * (len(self.file.seeds) if isinstance(self.file.seeds, list) else self.file.seeds)
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
        metrics, x = tuple(self.file.metrics), tuple(self.file.x)
        alone = without_joules([run.scenario for run in runs]) if "energy" in x else []
        other = point_text(self._factors, runs[alone[0]].levels) if alone else ""
        found = f"energy, known in joules at some points and not at {other}"
        allowed = f"points of one unit; joules are known with {JOULES}"
        precondition(not alone, line(self.document.place(("x",)), ("x",), found, allowed), ScenarioError)
        return StudyDesign(name, self._factors, seeds, metrics, runs, tuple(self._notes), x=x)

    def _refuse_lost_overrides(self) -> None:
        # Overrides of the base that every point would overwrite
        keys = {name: axis for axis in ("grid", "zip") for name in getattr(self.file, axis)}
        for override in self.of_base:
            dotted = ".".join(map(str, override.path))
            if dotted == "seed" and isinstance(self.file.seeds, list):
                found, allowed = "a seed beside a list of seeds", "one of them, or a number of seeds"
                raise ScenarioError(line(override.place, ("base", "seed"), found, allowed))
            over = next((name for name in keys if dotted == name or dotted.startswith(f"{name}.")), None)
            if over is not None:
                found, allowed = f"a key that is on the axis {keys[over]}.{over} too", "every key in one place only"
                raise ScenarioError(line(override.place, ("base", *override.path), found, allowed))

    def _on_grid(self, found: str, allowed: str) -> str:
        return line(self.document.place(("grid",)), ("grid",), found, allowed)

    def _add(self, levels: tuple[int, ...]) -> None:
        point = point_text(self._factors, levels)
        resolved = self._resolve(self._overrides(values_at(self._factors, levels)), point)
        if resolved is None:
            return
        self._notes.update(dict.fromkeys(resolved.notes))
        if self.folder is not None and outside_code(resolved.scenario):
            plugins.search(self.folder)
        sources = outside_sources(resolved.scenario)
        digests = {} if sources is None else sources.digests
        for seed in self._seeds(resolved.scenario):
            scenario = resolved.scenario.model_copy(update={"seed": seed}).placed(self.places)
            run = Run(id_of(scenario, sources), levels, scenario, digests)
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
                resolved = resolve_document(self.base, overrides, self.folder)
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
        axes = {name: axis for axis in BY_KEY for name in getattr(self.file, axis)}
        of_file, of_point = (
            [Override(tuple(name.split(".")), value, self.document.place((axes[name], name))) for name, value in items]
            for items in (self.file.set.items(), sorted(values.items(), key=lambda item: item[0].count(".")))
        )
        return [*of_file, *self.of_base, *of_point]

    def _seeds(self, scenario: Scenario) -> Sequence[int]:
        if isinstance(self.file.seeds, list):
            return self.file.seeds
        seeds = range(scenario.seed, scenario.seed + self.file.seeds)
        place, found = self.document.place(("seeds",)), f"{len(seeds)} seeds from the base's {scenario.seed} on"
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
