"""No number that a scenario takes ends in a traceback, a hang, or results that are no numbers."""

from __future__ import annotations

import copy
import math
import os
import time
from pathlib import Path
from typing import Any

import pytest

from wirelessfl.api import load_scenario, make_plan, simulate
from wirelessfl.errors import InfeasibleError, InputError, ScenarioError
from wirelessfl.scenario import Scenario, parse_scenario
from wirelessfl.scenario.shape import KeyInfo, all_keys, family_at, type_along
from wirelessfl.scenario.yamltree import dump_yaml

TINY: dict[str, Any] = {
    "name": "tiny",
    "rounds": 1,
    "data": {"limit": 40, "dataset": {"name": "digits"}, "partition": {"scheme": "iid"}},
    "model": {"name": "logistic"},
    "clients": {"count": 4},
    "training": {"steps": 1, "epochs": None, "batch_size": 5},
    "trace": {"models": "none"},
}
MOVING: dict[str, Any] = {
    **TINY,
    "channel": {
        "pathloss": {"model": "log_distance"},
        "placement": {"scheme": "random_waypoint"},
        "correlation": {"model": "gauss_markov"},
    },
}
VALUES: tuple[Any, ...] = (0, -1, 1e-300, 1e300, math.nan, math.inf, 2**63, 10**400, [1.0] * 1000, "1" * 5000)
NEVER: tuple[Any, ...] = (-math.inf, 10**400, "1" * 5000, {"a": 1}, [[]], True)
KNOWN = ("sim_time", "airtime", "test_loss", "test_accuracy", "epsilon_published", "epsilon_accounted")
LONGEST_S = 60.0


def numeric_keys() -> list[KeyInfo]:
    """Every key that takes a number, in each of its variants; data sets of which no file ships are the same keys."""
    foreign = ("package.module", "mnist", "cifar")
    keys = [info for info in all_keys(Scenario) if not any(name in info.variant for name in foreign)]
    return [info for info in keys if "number" in info.allowed]


def with_value(info: KeyInfo, value: Any, base: dict[str, Any]) -> str:
    """The scenario as YAML with a key at a value, in the variant that the key belongs to."""
    tree = copy.deepcopy(base)
    node, path = tree, info.path.split(".")
    tags = [variant.split(": ", 1) for variant in info.variant.split(", ")] if info.variant else []
    for depth, segment in enumerate(path[:-1], 1):
        if not isinstance(node.get(segment), dict):
            node[segment] = {}
        node = node[segment]
        if tags and family_at(type_along(Scenario, tree, tuple(path[:depth]))) is not None:
            tag_key, tag = tags.pop(0)
            if node.get(tag_key) != tag:
                node.clear()
            node[tag_key] = tag
    node[path[-1]] = value
    return dump_yaml(tree)


def outcome(text: str, out: Path) -> str:
    """How validate and a simulation of one round end."""
    try:
        scenario = parse_scenario(text, "tiny.yaml")
        make_plan(scenario)
        result = simulate(scenario, out, device="cpu", threads=1, pictures=False)
    except (InputError, InfeasibleError, MemoryError):
        return "refused"
    unknown = [name for name in KNOWN if math.isnan(result.summary[name])]
    assert not unknown or result.summary["status"] == "diverged", unknown
    return "played"


@pytest.mark.parametrize("info", numeric_keys(), ids=lambda info: f"{info.path} {info.variant}")
def test_what_is_never_a_number_is_refused(info: KeyInfo) -> None:
    for value in NEVER:
        if isinstance(value, dict | list) and ("list" in info.allowed or "mapping" in info.allowed):
            continue
        if isinstance(value, str) and ("text" in info.allowed or "path" in info.allowed):
            continue
        with pytest.raises(ScenarioError) as refusal:
            parse_scenario(with_value(info, value, TINY), "tiny.yaml")
        assert len(str(refusal.value)) < 2000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("base", [TINY, MOVING], ids=["at rest", "moving"])
@pytest.mark.parametrize("info", numeric_keys(), ids=lambda info: f"{info.path} {info.variant}")
def test_every_number_is_played_or_refused(info: KeyInfo, base: dict[str, Any], tmp_path: Path) -> None:
    for number, value in enumerate(VALUES):
        began = time.monotonic()
        outcome(with_value(info, value, base), tmp_path / str(number))
        assert time.monotonic() - began < LONGEST_S


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "change",
    [
        {"channel": {**MOVING["channel"], "placement": {"scheme": "random_waypoint", "min_speed": 1e300}}},
        {"channel": {**MOVING["channel"], "placement": {"scheme": "random_waypoint", "max_speed": 2.9e8}}},
        {"channel": {"correlation": {"model": "gauss_markov", "doppler_hz": 1e300, "interval_s": 1e300}}},
        {"channel": {"csi": {"error_std": 1e200}}},
        {"channel": {"sync": {"max_offset": 0.1}}, "uplink": {"kind": "digital"}},
        {"channel": {"sync": {"phase_std": 0.1}}, "uplink": {"kind": "ideal"}},
        {"channel": {"sync": {"phase_std": 0.1}}, "uplink": {"kind": "secure_aggregation"}},
        {"rounds": 10**9},
        {"clients": {"count": 10**12}},
        {"data": {"limit": 2**63}},
        {"timing": {"cpu_hz": [1e-300, 1e-300]}},
    ],
    ids=lambda change: str(change)[:40],
)
def test_beyond_what_is_built_is_refused_at_once(change: dict[str, Any]) -> None:
    began = time.monotonic()
    with pytest.raises(ScenarioError):
        parse_scenario(dump_yaml({**TINY, **change}), "tiny.yaml")
    assert time.monotonic() - began < 5


@pytest.mark.filterwarnings("ignore")
def test_waypoints_beyond_number_are_refused(tmp_path: Path) -> None:
    """1,000 radii a second for months of simulated time would be played waypoint by waypoint."""
    placement = {"scheme": "random_waypoint", "radius_m": 0.01, "min_speed": 5.0, "max_speed": 10.0, "pause_s": 0.0}
    months = {"timing": {"cycles_per_sample": 1e15, "cpu_hz": [1e9, 1e9], "straggler_scale": 0.0}}
    text = dump_yaml({**MOVING, **months, "rounds": 2, "channel": {**MOVING["channel"], "placement": placement}})
    with pytest.raises(InfeasibleError, match=r"max_speed: found 10 m/s, .* radii"):
        make_plan(parse_scenario(text, "tiny.yaml"))


def test_a_forecast_of_a_million_rounds_is_refused_in_words() -> None:
    with pytest.raises(InfeasibleError, match=r"rounds: found 1,000,000, .* at most 100,000; simulate takes more"):
        make_plan(parse_scenario(dump_yaml({**TINY, "rounds": 10**6}), "tiny.yaml"))


def test_clients_beyond_the_memory_are_refused() -> None:
    data = {"dataset": {"name": "synthetic"}, "partition": {"scheme": "natural"}}
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(InfeasibleError, match="found 4 clients"),
    ):
        patch.setattr("wirelessfl.assembly.plan.available_memory", lambda: 100.0)
        make_plan(parse_scenario(dump_yaml({**TINY, "data": data}), "tiny.yaml"))


@pytest.mark.parametrize("passes", [{"steps": 10**9}, {"steps": None, "epochs": 10**9}], ids=str)
def test_batches_beyond_the_memory_are_refused(passes: dict[str, Any], tmp_path: Path) -> None:
    """10^9 steps of 5 samples take 75 GiB for each client; they ended in a MemoryError or killed the process."""
    scenario = parse_scenario(dump_yaml({**TINY, "training": {**TINY["training"], **passes}}), "tiny.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wirelessfl.assembly.plan.available_memory", lambda: 8.0 * 2**30)
        for attempt in (
            lambda: make_plan(scenario),
            lambda: simulate(scenario, tmp_path / "run", device="cpu", pictures=False),
        ):
            with pytest.raises(InfeasibleError, match=r"training\.(steps|epochs): found 1,000,000,000, .* GiB"):
                attempt()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"timing": {"deadline_s": 1e300}}, "timing.deadline_s"),
        ({"uplink": {"kind": "secure_aggregation", "stage_timeout_s": 1e300}}, "uplink.stage_timeout_s"),
        ({"uplink": {"jammer": {"margin": 1e300}}}, "uplink.jammer.margin"),
        ({"uplink": {"jammer": {"epsilon": 1e-300}}}, "uplink.jammer.epsilon"),
        ({"uplink": {"power_control": {"policy": "cross_layer", "epsilon": 1e-300}}}, "uplink.power_control.epsilon"),
    ],
    ids=str,
)
def test_waits_and_budgets_beyond_floating_point_are_refused(change: dict[str, Any], words: str) -> None:
    """These passed validation and ended in OverflowError and ZeroDivisionError."""
    with pytest.raises(ScenarioError, match=f"{words}: found 1"):
        parse_scenario(dump_yaml({**TINY, **change}), "tiny.yaml")


@pytest.mark.filterwarnings("ignore")
def test_the_longest_waits_are_played(tmp_path: Path) -> None:
    waits = {"timing": {"deadline_s": 1e12}, "uplink": {"kind": "secure_aggregation", "stage_timeout_s": 1e12}}
    assert outcome(dump_yaml({**TINY, **waits}), tmp_path / "run") == "played"


def test_a_pipe_is_no_scenario(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ScenarioError, match="a pipe, socket or device"):
        load_scenario(tmp_path / "pipe.yaml")


def test_norms_of_other_layers_are_refused() -> None:
    clipping = {"name": "per_layer", "norms": [1.0] * 1000}
    privacy = {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.0, "clipping": clipping}
    text = dump_yaml({**TINY, "training": {**TINY["training"], "privacy": privacy}})
    with pytest.raises(ScenarioError, match=r"clipping\.norms: found 1000 norms; allowed here: 1,"):
        make_plan(parse_scenario(text, "tiny.yaml"))
