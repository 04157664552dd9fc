"""Overrides: what they set, what they drop, what they refuse."""
# ruff: noqa: E501 - messages are compared word for word

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wirelessfl.errors import ScenarioError
from wirelessfl.scenario import Scenario, Steps, differing_keys, dump_scenario, parse_scenario
from wirelessfl.scenario.algorithm import Upcycled
from wirelessfl.scenario.loader import resolve_scenario
from wirelessfl.scenario.shape import value_along
from wirelessfl.scenario.yamltree import parse_yaml


def override(*texts: str, base: str = "name: x") -> Scenario:
    return parse_scenario(base, "f.yaml", list(texts))


def value(scenario: Scenario, path: str) -> Any:
    keys = tuple(int(key) if key.isdecimal() else key for key in path.split("."))
    return value_along(parse_yaml(dump_scenario(scenario), str).tree, keys)


def notes(*texts: str, source: str = "quickstart") -> tuple[str, ...]:
    return resolve_scenario(source, list(texts)).notes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rounds=3", 3),
        ("seed=0", 0),
        ("uplink.snr_db=-5", -5.0),
        ("uplink.snr_db=1e-5", 1e-5),
        ("name=other", "other"),
        ("trace.events=false", False),
        ("timing.deadline_s=3", 3.0),
        ("timing.deadline_s=null", None),
        ("timing.deadline_s=", None),
        ("timing.wait_for={fraction: 0.5}", {"fraction": 0.5, "count": None}),
        ("timing.wait_for.count=3", 3),
        ("timing.cpu_hz=[1, 2]", [1.0, 2.0]),
        ("timing.cpu_hz.0=5e8", 5e8),
        ("model.hidden.0=64", 64),
        ("model.activation.name=tanh", "tanh"),
        ("training.algorithm.lambda=0.5", 0.5),
        ("training.algorithm.lambda.26=0.5", 0.5),
        ("training.algorithm.lambda.30=0.5", 0.5),
        ("training.lr_schedule={1: 1, 20: 0.1}", {1: 1.0, 20: 0.1}),
        ("training.lr_schedule.1=0.5", 0.5),
        ("uplink.jammer.epsilon=0.5", 0.5),
        ("uplink.power_control.server_gain=3", 3.0),
        ("channel.csi.error_std=0.1", 0.1),
        ("data.dataset={name: synthetic}", {"name": "synthetic", "alpha": 1.0, "beta": 1.0, "iid": False,
                                            "min_samples": 50, "max_samples": 500}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("resolved", [False, True], ids=["over a short file", "over a resolved file"])
def test_set(text: str, expected: object, resolved: bool) -> None:
    base = dump_scenario(parse_scenario("name: x")) if resolved else "name: x"
    assert value(override(text, base=base), text.partition("=")[0]) == expected


def test_the_rest_stays() -> None:
    plain = parse_scenario("name: x")
    assert differing_keys(plain, override("timing.cpu_hz.1=3e9")) == [
        "timing.cpu_hz: [1000000000.0, 2000000000.0] -> [1000000000.0, 3000000000.0]"
    ]
    schedule = override("training.algorithm.lambda.26=9").training.algorithm
    assert isinstance(schedule, Upcycled)
    assert schedule.lam == Steps((1, 26, 51, 76), (0.15, 9.0, 0.9, 1.9))


def test_setting_below_null_creates_the_default_first() -> None:
    assert override("uplink.jammer.margin=7", base="{name: x, uplink: {jammer: null}}") == parse_scenario(
        "{name: x, uplink: {jammer: {margin: 7}}}"
    )


def test_the_last_of_two_settings_counts() -> None:
    assert override("rounds=3", "rounds=5").rounds == 5
    assert override("uplink.jammer.epsilon=1", "uplink.jammer=null") == parse_scenario("name: x")


def test_a_value_may_hold_an_equals_sign() -> None:
    model = override("model={name: 'a:b', options: {text: 'x=y'}}").model
    assert model.model_dump()["options"] == {"text": "x=y"}


def test_options_of_an_outside_variant_are_free() -> None:
    fading = override("channel.fading.model=a.b:C", "channel.fading.options.deep.k=3").channel.fading
    assert fading.model_dump() == {"model": "a.b:C", "options": {"deep": {"k": 3}}}


def test_a_mapping_of_python_values() -> None:
    scenario = parse_scenario(
        "name: x",
        overrides={
            "uplink.snr_db": np.float64(3.0),
            "rounds": np.int64(4),
            "timing.cpu_hz": (1e9, 3e9),
            "training.algorithm.lambda": Steps((1, 5), (0.1, 0.2)),
            "name": "yes",
            "uplink.jammer": parse_scenario("{name: x, uplink: {jammer: {margin: 7}}}").uplink.jammer,  # type: ignore[union-attr]
        },
    )
    assert scenario == parse_scenario(
        "{name: 'yes', rounds: 4, uplink: {snr_db: 3, jammer: {margin: 7}}, timing: {cpu_hz: [1e9, 3e9]}, "
        "training: {algorithm: {lambda: {1: 0.1, 5: 0.2}}}}"
    )


def test_overrides_leave_their_values_alone() -> None:
    jammer = {"epsilon": 1.0}
    parse_scenario("name: x", overrides={"uplink.jammer": jammer, "uplink.jammer.epsilon": 2.0})
    assert jammer == {"epsilon": 1.0}


def test_a_new_variant_drops_what_it_lacks_and_says_so() -> None:
    assert notes("uplink.kind=ideal") == (
        "--set uplink.kind=ideal: dropped uplink.snr_db: 1 (kind: ideal does not have it)",
        "--set uplink.kind=ideal: dropped uplink.power_control: {policy: cross_layer, server_gain: auto, epsilon: 6.52, "
        "b... (kind: ideal does not have it)",
        "--set uplink.kind=ideal: dropped uplink.jammer: {epsilon: 2.0, margin: 1} (kind: ideal does not have it)",
    )
    assert notes("training.optimizer.name=adam") == (
        "--set training.optimizer.name=adam: dropped training.optimizer.momentum: 0.5 (name: adam does not have it)",
    )


def test_what_both_variants_have_stays() -> None:
    adam = override("training.optimizer.name=adam", base="{name: x, training: {optimizer: {lr: 0.2, momentum: 0.9}}}")
    assert value(adam, "training.optimizer.lr") == 0.2
    assert override("uplink.kind=ideal", base="{name: x, uplink: {clip: 3}}").uplink.clip == 3.0


def test_setting_the_same_variant_drops_nothing() -> None:
    assert notes("uplink.kind=over_the_air", "model.name=mlp", "data.partition.scheme=classes") == ()


@pytest.mark.parametrize("path", ["training.algorithm.name", "clients.selection.scheme", "channel.fading.model"])
def test_there_and_back_is_the_default(path: str) -> None:
    there = {
        "training.algorithm.name": "fedavg",
        "clients.selection.scheme": "uniform",
        "channel.fading.model": "static",
    }
    back = value(parse_scenario("name: x"), path)
    base = dump_scenario(parse_scenario("name: x"))
    assert override(f"{path}={there[path]}", f"{path}={back}", base=base) == parse_scenario("name: x")


def test_a_null_that_the_new_variant_refuses_is_dropped() -> None:
    ideal = dump_scenario(parse_scenario("{name: x, uplink: {kind: ideal}}"))
    assert override("uplink.kind=over_the_air", base=ideal) == parse_scenario("name: x")


def test_one_of_two_exclusive_keys_replaces_the_other_of_the_file() -> None:
    resolved = dump_scenario(parse_scenario("name: x"))
    assert override("uplink.tx_power_dbm=23", base=resolved) == parse_scenario("{name: x, uplink: {tx_power_dbm: 23}}")
    assert override("training.steps=3", base=resolved) == parse_scenario("{name: x, training: {steps: 3}}")
    assert notes("training.steps=3") == (
        "--set training.steps=3: dropped training.epochs: 5 (steps stands in its place)",
    )


def test_both_of_two_exclusive_keys_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"uplink\.snr_db=1: uplink\.snr_db: found both snr_db and tx_power_dbm"):
        override("uplink.snr_db=1", "uplink.tx_power_dbm=23")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rounds", "--set rounds: found no '='; allowed: KEY=VALUE, as in uplink.snr_db=5"),
        ("=3", "--set =3: found the key path ''; allowed: keys joined by dots"),
        ("uplink..snr_db=3", "found the key path 'uplink..snr_db'"),
        (".=3", "found the key path '.'"),
        ("rounds=[1", "--set rounds=[1: not valid YAML"),
        ("rounds=!!python/name:os.system", "found the tag !!python/name:os.system"),
        ("uplink.snr_db=.inf", "--set uplink.snr_db=.inf: uplink.snr_db: found .inf; allowed: a finite number"),
        ("clients.count=[1, .nan]", "--set clients.count=[1, .nan]: clients.count.1: found .nan; allowed: a finite"),
        ("model={name: .inf}", "--set model={name: .inf}: model.name: found .inf; allowed: a finite number"),
        ("rouds=3", "--set rouds=3: rouds: found an unknown key; allowed: name, seed, rounds"),
        ("rouds=3", "did you mean rounds?"),
        ("uplink.jamer.epsilon=1", "uplink.jamer: found an unknown key; allowed: kind, snr_db"),
        ("uplink.jammer.epsilon.x=1", "uplink.jammer.epsilon: found a key below 2.0; allowed: a number from 1e-09 to 1e+100"),
        ("rounds.x=1", "rounds: found a key below 40; allowed: a whole number"),
        ("trace.models.every=1", "trace.models: found a key below final; allowed: none | final"),
        ("timing.deadline_s.x=1", "timing.deadline_s: found a key below null; allowed: a number above 0 and of at most"),
        ("timing.cpu_hz.2=1", "timing.cpu_hz.2: found no such item; allowed: an index from 0 to 1"),
        ("timing.cpu_hz.-1=1", "timing.cpu_hz.-1: found no such item"),
        ("timing.cpu_hz.x=1", "timing.cpu_hz.x: found no such item"),
        ("training.algorithm.lambda.x=1", "training.algorithm.lambda.x: found an unknown key"),
        ("training.optimizer.beta1=0.5", "beta1 goes with training.optimizer.name: adam"),
        ("uplink.jammer.epsilon=-1", "--set uplink.jammer.epsilon=-1: uplink.jammer.epsilon: found -1; allowed: a number"),
        ("uplink.kind=idal", "--set uplink.kind=idal: uplink.kind: found idal; allowed: ideal | over_the_air | "),
        ("clients.selection={scheme: uniform, count: 51}", "clients.selection.count: found 51; allowed: at most 50"),
        ("clients.count=", "--set clients.count=: clients.count: found null; allowed: a whole number"),
    ],
)  # fmt: skip
def test_refused(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        override(text)
    assert message in str(caught.value)
    assert "f.yaml" not in str(caught.value), "the place is the override, not the file"


@pytest.mark.parametrize(
    ("base", "text", "message"),
    [
        ("{name: x, uplink: 5}", "uplink.snr_db=3", "uplink: found a key below 5; allowed: a mapping such as"),
        ("{name: x, uplink: [5]}", "uplink.snr_db=3", "uplink.snr_db: found no such item"),
        ("{name: x, channel: {fading: {model: foo}}}", "channel.fading.k_db=3", "channel.fading.model: found foo"),
        (
            "{name: x, training: {algorithm: {lambda: 1}}}",
            "training.algorithm.lambda.1=3",
            "lambda: found a key below 1; allowed: a",
        ),
    ],
)
def test_set_below_what_is_wrong_in_the_file(base: str, text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        override(text, base=base)
    assert message in str(caught.value)


def test_infinite_python_values_are_refused() -> None:
    with pytest.raises(ScenarioError, match="found inf; allowed: a finite number"):
        parse_scenario("name: x", overrides={"model": {"name": "a:b", "options": {"k": [float("inf")]}}})


def test_one_text_is_no_list_of_overrides() -> None:
    with pytest.raises(ScenarioError, match="allowed: a mapping, or a list of KEY=VALUE texts"):
        parse_scenario("name: x", overrides="rounds=3")


def test_a_long_override_is_cut_in_messages() -> None:
    with pytest.raises(ScenarioError) as caught:
        override(f"rounds={'x' * 5000}")
    assert len(str(caught.value)) < 300
