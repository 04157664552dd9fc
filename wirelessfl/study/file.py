"""Study file: a base scenario and its factors."""

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import AfterValidator, WithJsonSchema, model_validator

from wirelessfl.errors import precondition
from wirelessfl.scenario import Scenario, all_keys, scenario_schema
from wirelessfl.scenario.base import Says, Section, contradictions, key
from wirelessfl.scenario.sections import Name
from wirelessfl.scenario.yamltree import inline_yaml
from wirelessfl.summary.axes import X_AXES
from wirelessfl.trace import ROOT

MAX_SEEDS = 10_000
MAX_SEED = 2**63 - 1

BY_KEY = ("set", "grid", "zip")
"""What of a study file is a mapping from key paths of the scenario."""

METRICS = tuple(variable.name for variable in ROOT.of("round") if variable.name != "event_count")
"""Names of all variables of the trace with one value a round."""

_VALUES = "a list of at least one value"


def _where(holds: Callable[[Any], bool]) -> AfterValidator:
    # Refuses other values without words: those that users read are in Says
    def check(value: Any) -> Any:
        precondition(holds(value), "")
        return value

    return AfterValidator(check)


def _check_axes(axes: Any) -> Any:
    # Keys with lists of values; the values themselves are checked with every point
    precondition(isinstance(axes, dict) and axes, "")
    wrong = []
    for name, values in axes.items():
        if not isinstance(name, str) or not all(name.split(".")):
            wrong.append((str(name), f"the key path {name!r}", "keys joined by dots, as in uplink.snr_db"))
        elif name == "seed":
            wrong.append((name, "the seed as an axis", "seeds beside grid, so that all points share them"))
        elif not isinstance(values, list) or not values:
            wrong.append((name, inline_yaml(values), f"{_VALUES}, under a dotted key such as uplink.snr_db"))
    if wrong:
        raise contradictions(wrong)
    return axes


def _is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _are_seeds(seeds: Any) -> bool:
    if not isinstance(seeds, list):
        return _is_whole(seeds, 1, MAX_SEEDS)
    known = 0 < len(seeds) <= MAX_SEEDS and all(_is_whole(seed, 0, MAX_SEED) for seed in seeds)
    return known and len(set(seeds)) == len(seeds)


def _check_metrics(metrics: Any) -> Any:
    precondition(isinstance(metrics, list) and metrics and all(metric in METRICS for metric in metrics), "")
    return list(dict.fromkeys(metrics))


def _check_x(x: Any) -> Any:
    names = [x] if isinstance(x, str) else x
    precondition(isinstance(names, list) and names and all(name in X_AXES for name in names), "")
    return list(dict.fromkeys(names))


def _check_changes(changes: Any) -> Any:
    precondition(isinstance(changes, dict), "")
    wrong = [
        (str(name), f"the key path {name!r}", "keys joined by dots, as in uplink.snr_db")
        for name in changes
        if not isinstance(name, str) or not all(name.split("."))
    ]
    if wrong:
        raise contradictions(wrong)
    return changes


_SCENARIO_KEYS = {"type": "object", "additionalProperties": {"type": "array", "minItems": 1}}

Base = Annotated[
    Any,
    _where(lambda base: isinstance(base, str | dict) and bool(base)),
    WithJsonSchema({"type": ["string", "object"]}),
    Says("a scenario file, the name of a shipped scenario, or a scenario written here"),
]
Axes = Annotated[
    Any,
    AfterValidator(_check_axes),
    WithJsonSchema({**_SCENARIO_KEYS, "minProperties": 1}),
    Says("a mapping from at least one key of the scenario to its values, as in {uplink.snr_db: [-5, 0, 5]}"),
]
Changes = Annotated[
    Any,
    AfterValidator(_check_changes),
    WithJsonSchema({"type": "object"}),
    Says("a mapping from keys of the scenario to their value, as in {rounds: 20, uplink.snr_db: 5}"),
]
_SEED = {"type": "integer", "minimum": 0, "maximum": MAX_SEED}
Seeds = Annotated[
    Any,
    _where(_are_seeds),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MAX_SEEDS},
                {"type": "array", "items": _SEED, "minItems": 1, "maxItems": MAX_SEEDS, "uniqueItems": True},
            ]
        }
    ),
    Says(f"a number of seeds from 1 to {MAX_SEEDS}, or a list of different whole numbers of at least 0"),
]
Metrics = Annotated[
    Any,
    AfterValidator(_check_metrics),
    WithJsonSchema({"type": "array", "items": {"enum": list(METRICS)}, "minItems": 1}),
    Says(f"a list of at least one of {', '.join(METRICS)}"),
]
X = Annotated[
    Any,
    AfterValidator(_check_x),
    WithJsonSchema(
        {"anyOf": [{"enum": list(X_AXES)}, {"type": "array", "items": {"enum": list(X_AXES)}, "minItems": 1}]}
    ),
    Says(f"one of {', '.join(X_AXES)}, or a list of them"),
]


class StudyFile(Section):
    """Many runs of one scenario: every combination of the grid, at every seed."""

    name: Name | None = key(None, "Name of the study; results go to results/<name>/. null: the file's name.")
    base: Base = key(..., "The scenario that is varied: a file, a shipped name, or the scenario itself.")
    set: Changes = key({}, "Key paths with values that hold at all points of this study.")
    grid: Axes = key({}, "Key paths with lists of values; every combination of values is a point.")
    zip: Axes = key({}, "Key paths with lists of values that change together: first with first, second with second.")
    seeds: Seeds = key(1, "Number of seeds, counted from the base's seed, or a list of seeds; all points share them.")
    metrics: Metrics = key(["test_accuracy"], "Per-round variables of the trace that the picture shows.")
    x: X = key(
        ["round"],
        "Horizontal axis of the picture: round, sim_time (simulated seconds), energy (joules, or units of the noise "
        "where no power is given in watts) or epsilon (accounted), each added up so far.",
    )

    @model_validator(mode="after")
    def _check_axes_together(self) -> Self:
        wrong = []
        if not self.model_fields_set & {"grid", "zip", "seeds"}:
            wrong.append(("grid", "nothing that varies", "a grid, a zip, or several seeds"))
        if len({len(values) for values in self.zip.values()}) > 1:
            found = ", ".join(f"{len(values)} for {name}" for name, values in self.zip.items())
            wrong.append(("zip", f"lists of unequal length ({found})", "the same number of values for each key"))
        wrong += self._overlapping_keys()
        if wrong:
            raise contradictions(wrong)
        return self

    def _overlapping_keys(self) -> list[tuple[str, str, str]]:
        keys = [("grid", name) for name in self.grid] + [("zip", name) for name in self.zip]
        wrong = [
            (f"set.{name}", f"a key that is on the axis {axis} too", "every key in one place only")
            for axis, name in keys
            if name in self.set
        ]
        twice = [
            (f"{axis}.{name}", "the key a second time" if name == other else f"a key that overlaps with {other}")
            for index, (axis, name) in enumerate(keys)
            for _, other in keys[:index]
            if self._overlap(name, other)
        ]
        return wrong + [(*one, "every part of the scenario on one axis only") for one in twice]

    def _overlap(self, name: str, other: str) -> bool:
        # Whether two axes set the same part; one may change a key of the mappings that the other sets
        outer, inner = sorted((name, other), key=len)
        mappings = all(isinstance(value, dict) for value in (self.grid | self.zip)[outer])
        return outer == inner or (inner.startswith(f"{outer}.") and not mappings)


def study_schema() -> dict[str, Any]:
    """The JSON Schema of study files, for editors; grid and zip know the keys of a scenario."""
    scenario = scenario_schema()
    schema = StudyFile.model_json_schema(by_alias=True)
    paths = {info.path: {"description": info.description} for info in all_keys(Scenario) if info.path != "seed"}
    for axis in ("set", "grid", "zip"):
        schema["properties"][axis] |= {"properties": paths}
    schema["properties"]["base"] |= {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Scenario"}]}
    schema["properties"]["base"].pop("type")
    definitions = {**scenario.pop("$defs"), "Scenario": scenario}
    return {"$schema": scenario.pop("$schema"), **schema, "title": "wirelessfl study", "$defs": definitions}
