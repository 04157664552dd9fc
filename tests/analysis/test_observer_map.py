"""Map of an observer: ε at each place is that of the run with the observer there; bad grids are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import wirelessfl as wfl
from tests.simulation.scenarios import PLAN
from tests.simulation.uplinks.test_observer import JAMMED, observed
from wirelessfl.analysis.observer_map import observer_map
from wirelessfl.assembly import build_simulation
from wirelessfl.cli import main
from wirelessfl.errors import InputError
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.rehearsal import rehearse
from wirelessfl.summary.observer_map import draw_observer_map

PLACE: dict[str, Any] = {"position_m": [60.0, 20.0], "antennas": 2, "noise_figure_db": 7.0}


def at(scenario: Scenario, x: float, y: float) -> float:
    """ε of the plan with the observer at a place."""
    moved = wfl.load_scenario(scenario, overrides={"privacy.observer.position_m": [x, y]})
    return rehearse(build_simulation(moved, PLAN)).epsilon_accounted


SETTINGS: dict[str, dict[str, Any]] = {
    "jammed": {"uplink": JAMMED},
    "a client jams, others drop out": {
        "uplink": {**JAMMED, "jammer": {"epsilon": 2.0, "role": "rotating"}},
        "faults": {"fade_threshold": 0.2, "availability": {"model": "bernoulli", "p": 0.8}},
    },
    "remembered fading": {
        "uplink": JAMMED,
        "channel__correlation": {"model": "gauss_markov", "doppler_hz": 5.0},
        "faults": {"fade_threshold": 0.5},
    },
    "walking": {
        "uplink": {**JAMMED, "jammer": {"epsilon": 2.0}},
        "channel__placement": {"scheme": "random_waypoint", "radius_m": 200, "min_speed": 5.0, "max_speed": 20.0},
        "faults": {"fade_threshold": 0.5},
    },
    "arrays and a delay line": {
        "uplink": {**JAMMED, "receiver": {"antennas": 3, "combiner": "max_min"}},
        "channel__fading": {"model": "tdl", "groups": 8, "delay_spread_s": 3e-7},
    },
    "local noise besides": {
        "training__privacy": {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 2.0},
        "privacy": {"colluding": 1},
    },
}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(changes, id=name, marks=() if name in ("jammed", "walking") else pytest.mark.slow)
        for name, changes in SETTINGS.items()
    ],
)
def test_each_place_has_the_epsilon_of_its_run(changes: dict[str, Any]) -> None:
    changes = dict(changes)
    privacy = changes.pop("privacy", {})
    scenario = observed(PLACE, **changes)
    scenario = wfl.load_scenario(scenario, overrides={f"privacy.{key}": value for key, value in privacy.items()})
    parts = list[float]()
    found = observer_map(scenario, extent_m=120.0, step_m=60.0, on_progress=parts.append)
    assert found.epsilon.shape == (5, 5) and found.x_m.tolist() == [-120.0, -60.0, 0.0, 60.0, 120.0]
    assert sum(parts) == pytest.approx(1.0) and found.rounds == 3
    for row, column in ((0, 0), (2, 3), (4, 1)):
        wanted = at(scenario, float(found.x_m[column]), float(found.y_m[row]))
        assert found.epsilon[row, column] == wanted


def test_without_an_observer_one_looks_at_the_scenario() -> None:
    plain, one = observed(), observed({"position_m": [0.0, 0.0]})
    found, wanted = (observer_map(scenario, extent_m=100.0, step_m=100.0).epsilon for scenario in (plain, one))
    np.testing.assert_array_equal(found, wanted)


def test_a_server_as_adversary_gives_way() -> None:
    scenario = wfl.load_scenario(observed(), overrides={"privacy.adversary": "server"})
    assert np.all(np.isfinite(observer_map(scenario, extent_m=100.0, step_m=100.0).epsilon))


@pytest.mark.parametrize(
    ("extent", "step", "words"),
    [
        (1e5, None, r"--extent: found 100000 m; allowed: above 0, up to 70710"),
        (-1.0, None, "--extent: found -1 m"),
        (float("nan"), None, "--extent: found nan m"),
        (100.0, 0.0, "--step: found 0 m"),
        (100.0, 101.0, "--step: found 101 m; allowed: above 0, up to the extent, 100 m"),
        (100.0, 0.5, r"--step: found 0.5 m, 160,801 places; allowed: at least 2.02 m"),
    ],
)
def test_bad_grids_are_refused(extent: float, step: float | None, words: str) -> None:
    with pytest.raises(InputError, match=words):
        observer_map(observed(PLACE), extent, step)


def test_runs_that_stop_by_their_epsilon_are_refused() -> None:
    with pytest.raises(InputError, match=r"stop\.epsilon: found 5"):
        observer_map(wfl.load_scenario(observed(PLACE), overrides={"stop.epsilon": 5.0}))


def test_the_command_draws_and_prints(tmp_path: Path) -> None:
    picture = tmp_path / "map.png"
    given = ["privacy", "map", "eavesdropper", "--set", "rounds=2", "--step", "200", "--extent", "200", "--json"]
    result = CliRunner().invoke(main, [*given, "--out", str(picture)])
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert np.shape(found["epsilon_accounted"]) == (3, 3) and found["jammer_m"] == [120.0, 90.0]
    assert picture.stat().st_size > 5000 and str(picture) in result.stderr


def test_an_accuracy_ends_nothing_where_nothing_is_trained() -> None:
    given = ["privacy", "map", "eavesdropper", "--set", "rounds=2", "--step", "200", "--extent", "200"]
    given += ["--set", "stop.accuracy=1e-6", "--figures", "none"]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 0 and "stop.accuracy: found 1e-06" in result.stderr
    assert "ε is that of all rounds" in " ".join(result.stderr.split())


def test_losses_without_noise_have_no_guarantee_at_any_place() -> None:
    selection = {"scheme": "power_of_choice", "count": 2, "candidates": 4}
    scenario = observed(PLACE, clients__selection=selection)
    assert np.isposinf(observer_map(scenario, extent_m=100.0, step_m=100.0).epsilon).all()


@pytest.mark.parametrize("epsilon", [[0.0, 0.0], [0.0, 2.0], [3.0, 3.0], [0.0, np.inf], [np.inf, np.inf], [1e-4, 50.0]])
def test_every_map_can_be_drawn(epsilon: list[float], tmp_path: Path) -> None:
    """Also where ε is 0 at some or at all places, as where nobody sends."""
    picture, axis = tmp_path / "map.svg", np.array([-1.0, 1.0])
    nodes = (np.zeros((1, 2)), None, None)
    draw_observer_map("map", (axis, axis), np.array([epsilon, epsilon]), nodes, "ε", picture, 3.5)
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("scenario", "words"),
    [("quickstart", "channel.pathloss.model: none"), ("digital-harq", "uplink.kind: digital")],
)
def test_scenarios_without_a_map_say_why(scenario: str, words: str) -> None:
    result = CliRunner().invoke(main, ["privacy", "map", scenario, "--figures", "none"])
    assert result.exit_code == 2 and words in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "map.jpg"], "map.jpg: found '.jpg' as the suffix of a figure; allowed: .pdf, .svg, .png"),
        (["--out", "map"], "map: found '' as the suffix"),
        (["--out", "map.PNG"], "map.PNG: found '.PNG' as the suffix"),
        (["--out", "map.png", "--figures", "pdf"], "--figures: found pdf with --out map.png; allowed: png"),
    ],
)
def test_files_of_other_formats_are_refused_at_once(options: list[str], words: str) -> None:
    result = CliRunner().invoke(main, ["privacy", "map", "eavesdropper", *options])
    assert result.exit_code == 2 and words in " ".join(result.stderr.split())
