"""The JSON Schema accepts what the reader accepts; checked with a small validator of the keywords it uses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from wirelessfl.scenario import dump_scenario, list_shipped, load_scenario, scenario_schema
from wirelessfl.scenario.yamltree import parse_yaml, read_text

SCHEMA = scenario_schema()
KEYWORDS = {
    "$schema", "$defs",
    "$ref", "oneOf", "anyOf", "const", "enum", "type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "minLength", "pattern", "properties", "additionalProperties", "required", "minProperties", "items", "prefixItems",
    "minItems", "maxItems", "title", "description", "default", "propertyNames",
}  # fmt: skip
TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "null": type(None), "boolean": bool, "integer": int,
    "number": (int, float),
}  # fmt: skip


def valid(value: Any, schema: dict[str, Any]) -> bool:
    assert schema.keys() <= KEYWORDS, schema.keys() - KEYWORDS
    checks = [
        "$ref" not in schema or valid(value, SCHEMA["$defs"][schema["$ref"].split("/")[-1]]),
        "oneOf" not in schema or sum(valid(value, option) for option in schema["oneOf"]) == 1,
        "anyOf" not in schema or any(valid(value, option) for option in schema["anyOf"]),
        "const" not in schema or value == schema["const"],
        "enum" not in schema or value in schema["enum"],
        "type" not in schema or _typed(value, schema["type"]),
    ]
    return (
        all(checks) and _number(value, schema) and _text(value, schema) and _list(value, schema) and _map(value, schema)
    )


def _typed(value: Any, name: str) -> bool:
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _number(value: Any, schema: dict[str, Any]) -> bool:
    if not isinstance(value, int | float):
        return True
    above = value >= schema.get("minimum", value) and value > schema.get("exclusiveMinimum", value - 1)
    return bool(above and value <= schema.get("maximum", value) and value < schema.get("exclusiveMaximum", value + 1))


def _text(value: Any, schema: dict[str, Any]) -> bool:
    if not isinstance(value, str):
        return True
    return len(value) >= schema.get("minLength", 0) and re.search(schema.get("pattern", ""), value) is not None


def _list(value: Any, schema: dict[str, Any]) -> bool:
    if not isinstance(value, list):
        return True
    fits = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
    items = schema.get("prefixItems", [schema.get("items", {})] * len(value))
    return fits and all(valid(item, option) for item, option in zip(value, items, strict=True))


def _map(value: Any, schema: dict[str, Any]) -> bool:
    if not isinstance(value, dict):
        return True
    known = schema.get("properties", {})
    extra = schema.get("additionalProperties", True)
    others = [item for key, item in value.items() if key not in known]
    extra_fit = all(extra is True or (extra is not False and valid(item, extra)) for item in others)
    return (
        set(schema.get("required", [])) <= value.keys()
        and extra_fit
        and all(valid(item, known[key]) for key, item in value.items() if key in known)
    )


def _tree(text: str) -> Any:
    return parse_yaml(text, str).tree


@pytest.mark.parametrize("name", [shipped.name for shipped in list_shipped()])
def test_shipped_scenarios_fit_the_schema(name: str) -> None:
    path = next(shipped.path for shipped in list_shipped() if shipped.name == name)
    assert valid(_tree(read_text(path)), SCHEMA)
    assert valid(_tree(dump_scenario(load_scenario(name))), SCHEMA)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("name: x", True),
        ("{}", False),
        ("{name: x, channel: {fading: {}}}", True),
        ("{name: x, channel: {fading: {model: static}}}", True),
        ("{name: x, channel: {fading: {model: 'a.b:C', options: {k: 1}}}}", True),
        ("{name: x, channel: {fading: {model: ab}}}", False),
        ("{name: x, training: {algorithm: {lambda: 0.5}}}", True),
        ("{name: x, training: {algorithm: {lambda: -0.5}}}", False),
        ("{name: x, training: {algorithm: {name: fedavg, mu: 1}}}", False),
        ("{name: x, timing: {wait_for: {fraction: 0.5}}}", True),
        ("{name: x, timing: {wait_for: some}}", False),
        ("{name: x, timing: {cpu_hz: [1, 2, 3]}}", False),
        ("{name: x, model: {name: 'torchvision:vgg11', norm: group, lora: {rank: 2}}}", True),
        ("{name: x, model: {name: torchvision, architecture: vgg11}}", True),
        ("{name: x, model: {name: 'torchvision:vgg11', hidden: [3]}}", False),
        ("{name: x, model: {name: 'a.b:c', trainable: 'x'}}", True),
        ("{name: x, data: {augment: {flip: 2}}}", False),
        ("{name: x, rounds: true}", False),
        ("{name: x, rouds: 3}", False),
        ("{name: x, privacy: {delta: 1}}", False),
    ],
)
def test_the_schema_tells_right_from_wrong(text: str, fits: bool) -> None:
    assert valid(_tree(text), SCHEMA) is fits
