"""The models: defaults, variants, strictness, schema."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from tests.scenario.contract import EXAMPLE, JAMMER
from wirelessfl.scenario import Scenario, Steps, all_keys, load_scenario, parse_scenario, scenario_schema
from wirelessfl.scenario.base import Section
from wirelessfl.scenario.data import Digits
from wirelessfl.scenario.family import Family
from wirelessfl.scenario.published_data import EmnistByClass
from wirelessfl.scenario.scenario import families as named_families
from wirelessfl.scenario.shape import alternatives, family_at, keys_of, section_at, type_of
from wirelessfl.scenario.uplink import OverTheAir

DEFAULTS = Scenario(name="x")


def sections(section: type[Section] = Scenario) -> Iterator[tuple[type[Section], str, Any]]:
    """Every (section, key, type of the key), through all variants."""
    for key, field in keys_of(section).items():
        tp = type_of(field)
        yield section, key, tp
        family = family_at(tp)
        below = list(family[0].variants(family[1]).values()) if family else [section_at(tp, {})]
        for child in below:
            if child is not None:
                yield from sections(child)


def families() -> list[tuple[Family, Any]]:
    found = {id(family[1]): family for _, _, tp in sections() if (family := family_at(tp))}
    return list(found.values())


def test_the_defaults_are_those_of_the_contract() -> None:
    assert parse_scenario(EXAMPLE) == parse_scenario("name: quickstart")


def test_the_default_jammer_is_that_of_the_contract() -> None:
    stated = parse_scenario(f"{{name: x, uplink: {{jammer: {JAMMER}}}}}")
    assert stated == parse_scenario("{name: x, uplink: {jammer: {}}}")
    assert isinstance(stated.uplink, OverTheAir)
    assert stated.uplink.jammer is not None


def test_quickstart_is_the_contract_with_its_jammer() -> None:
    assert load_scenario("quickstart") == parse_scenario(EXAMPLE.replace("jammer: null", f"jammer: {JAMMER}"))


@pytest.mark.parametrize(("section", "key", "tp"), list(sections()), ids=lambda x: getattr(x, "__name__", str(x))[:30])
def test_an_empty_mapping_means_the_default(section: type[Section], key: str, tp: Any) -> None:
    """Overrides rely on it: a key set below nothing creates {} there."""
    default = keys_of(section)[key].default
    if isinstance(default, Section):
        below = section_at(tp, {})
        assert below is not None
        assert below.model_validate({}) == default


@pytest.mark.parametrize(("section", "key", "tp"), list(sections()), ids=lambda x: getattr(x, "__name__", str(x))[:30])
def test_every_key_says_what_it_means(section: type[Section], key: str, tp: Any) -> None:
    description = keys_of(section)[key].description
    assert description
    assert description.endswith(".")
    if key.endswith(("_s", "_hz", "_db", "_dbm", "_j", "_bps")):
        assert "[" in description, f"{section.__name__}.{key} states no unit"


@pytest.mark.parametrize(("family", "union"), families(), ids=lambda x: getattr(x, "key", ""))
def test_every_variant_is_chosen_by_its_tag(family: Family, union: Any) -> None:
    variants = family.variants(union)
    assert family.default in variants
    assert len(variants) == len(get_args(union) or [union])
    for tag, variant in variants.items():
        written = tag or "pkg.mod:Name"
        assert family.variant(union, {family.key: written}) is variant
        required = {name: "x" for name, field in variant.model_fields.items() if field.is_required()}
        assert getattr(variant.model_validate({**required, family.key: written}), family.key) == written
    assert family.variant(union, {}) is variants[family.default]
    assert family.variant(union, {family.key: "nonsense"}) is None
    assert family.variant(union, {family.key: 3}) is None


def test_families_with_an_outside_variant() -> None:
    outside = {
        f"{section.__name__}.{key}"
        for section, key, tp in sections()
        if (f := family_at(tp)) and "" in f[0].variants(f[1])
    }
    of_the_radio = {"fading", "correlation", "pathloss", "placement"}
    assert outside >= {"OverTheAir.power_control", "Faults.availability"} | {f"Channel.{one}" for one in of_the_radio}


def test_outside_variant_keeps_its_options() -> None:
    scenario = parse_scenario(
        "{name: x, channel: {fading: {model: 'a.b:Law', options: {k: 3, deep: [1, {x: y}], on: null}}}}"
    )
    assert scenario.channel.fading.model_dump() == {
        "model": "a.b:Law",
        "options": {"k": 3, "deep": [1, {"x": "y"}], "on": None},
    }


@pytest.mark.parametrize("bad", ["a.b", "a b:C", "a.b:C.d", ":C", "a.b:", "a..b:C", "1a:C", "a.b:C()"])
def test_outside_variant_must_look_importable(bad: str) -> None:
    with pytest.raises(ValidationError):
        Scenario.model_validate({"name": "x", "model": {"name": bad}})


def test_a_scenario_is_frozen_hashable_and_survives_pickling() -> None:
    scenario = load_scenario("quickstart")
    with pytest.raises(ValidationError, match="frozen"):
        scenario.rounds = 3  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        scenario.uplink.kind = "ideal"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(scenario)) == scenario  # noqa: S301 - our own bytes
    assert hash(scenario) == hash(load_scenario("quickstart"))


def test_clip_defaults_by_kind_of_uplink() -> None:
    assert parse_scenario("{name: x, uplink: {kind: over_the_air}}").uplink.clip == 1.0
    assert parse_scenario("{name: x, uplink: {kind: ideal}}").uplink.clip is None
    assert parse_scenario("{name: x, uplink: {kind: ideal, clip: 2}}").uplink.clip == 2.0


def test_power_is_given_once() -> None:
    by_watts = parse_scenario("{name: x, uplink: {tx_power_dbm: 23}}").uplink
    assert isinstance(by_watts, OverTheAir)
    assert (by_watts.snr_db, by_watts.tx_power_dbm) == (None, 23.0)
    assert isinstance(DEFAULTS.uplink, OverTheAir)
    assert (DEFAULTS.uplink.snr_db, DEFAULTS.uplink.tx_power_dbm) == (1.0, None)


def test_steps_replace_epochs() -> None:
    training = parse_scenario("{name: x, training: {steps: 3}}").training
    assert (training.epochs, training.steps) == (None, 3)
    assert (DEFAULTS.training.epochs, DEFAULTS.training.steps) == (5, None)


def test_a_schedule_holds_from_its_first_round_on() -> None:
    schedule = Steps((1, 26, 51), (0.1, 0.2, 0.3))
    assert [schedule.at(m) for m in (1, 25, 26, 50, 51, 900)] == [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]


def test_a_schedule_is_sorted_by_round() -> None:
    training = parse_scenario("{name: x, training: {lr_schedule: {30: 0.1, 1: 1}}}").training
    assert training.lr_schedule == Steps((1, 30), (1.0, 0.1))


def test_model_interval_of_the_trace() -> None:
    intervals = {
        text: parse_scenario(f"{{name: x, trace: {{models: {text}}}}}").trace.model_interval
        for text in ("none", "final", "every 10")
    }
    assert intervals == {"none": None, "final": None, "every 10": 10}


def test_classes_in_use() -> None:
    assert isinstance(DEFAULTS.data.dataset, Digits) and DEFAULTS.data.dataset.num_classes == 10
    letters = parse_scenario("{name: x, data: {dataset: {name: emnist_byclass, classes: [36, 37, 38, 39, b]}}}")
    assert isinstance(letters.data.dataset, EmnistByClass) and letters.data.dataset.num_classes == 5


def test_reference_lists_every_key_once_for_each_variant() -> None:
    keys = [(info.path, info.variant) for info in all_keys(Scenario)]
    assert len(keys) == len(set(keys))
    assert ("training.algorithm.lambda", "name: upcycled") in keys
    assert ("uplink.jammer.epsilon", "kind: over_the_air") in keys
    required = list(dict.fromkeys(info.path for info in all_keys(Scenario) if info.required))
    tags = [f"{path}.{one.tag}" for one in named_families().values() if one.external for path in one.paths]
    own = {f"data.dataset.{name}" for name in ("file", "label", "root")}
    assert set(required) == {"name", *tags, *own}, "a name, what code from outside is called, and one's own files"


def test_only_one_section_at_a_place_without_variants() -> None:
    """`section_at` takes the first; a second one would never be reached."""
    for section, key, tp in sections():
        if family_at(tp) is None:
            found = [m for m in alternatives(tp) if isinstance(m, type) and issubclass(m, Section)]
            assert len(found) <= 1, f"{section.__name__}.{key}"


def test_schema_describes_every_key_of_every_section() -> None:
    schema = scenario_schema()
    assert schema["$schema"].endswith("2020-12/schema")
    definitions = schema["$defs"]
    objects = [schema, *(definition for definition in definitions.values() if definition)]
    assert len(objects) > 40
    for section in objects:
        assert section["additionalProperties"] is False
        for key, value in section["properties"].items():
            described = {**definitions.get(value.get("$ref", "").split("/")[-1], {}), **value}
            assert described.get("description"), f"{section['title']}.{key}"


def test_schema_shows_defaults_as_in_the_file() -> None:
    schema = scenario_schema()
    lam = schema["$defs"]["Upcycled"]["properties"]["lambda"]["default"]
    assert {int(first): value for first, value in lam.items()} == {1: 0.15, 26: 0.4, 51: 0.9, 76: 1.9}
    assert "lambda" in schema["properties"]["training"]["default"]["algorithm"]
