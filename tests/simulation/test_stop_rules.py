"""What ends a run: public values and released models, never private data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_multi_cell import cellular
from wirelessfl import api
from wirelessfl.analysis.replay.ledger import recorded_ledger
from wirelessfl.assembly import build_simulation
from wirelessfl.privacy import ENDED_BY_ITS_OUTPUTS, gaussian_epsilon
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound, Simulation
from wirelessfl.simulation.rehearsal import without_training
from wirelessfl.summary import rounds_text

WATTS = {"uplink__snr_db": None, "uplink__tx_power_dbm": 10.0}
TINY = {"training__optimizer": {"name": "sgd", "lr": 1e-4}}
AVERAGE = {"faults__fade_threshold": 0.1}
ACTUAL = {"uplink__power_control": {"server_gain": 900.0, "backoff": "actual"}}


def loudest(scenario: Scenario) -> tuple[Simulation, list[FinishedRound]]:
    """The run with other data, in which every update has the norm that bounds it."""
    simulation = build_simulation(scenario, PLAN)
    without_training(simulation)
    rounds: list[FinishedRound] = []
    simulation.run(lambda this, _: rounds.append(this))
    return simulation, rounds


@pytest.mark.parametrize(
    ("make", "keys"),
    [
        (small, {}),
        (small, ACTUAL),
        (small, {"uplink__iq_packing": True, "timing__switched_capacitance": 1e-32}),
        (small, {"uplink__jammer": {"epsilon": 1.0, "role": "rotating"}, "timing__deadline_s": 0.05}),
        (small, {**AVERAGE, "uplink__power_control": {"policy": "truncated_inversion", "power_limit": "average"}}),
        (small, {**AVERAGE, "uplink__power_control": {"policy": "cotaf", "expected_norms": "measured"}}),
        (small, {"uplink__power_control": {"policy": "gbma", "expected_norms": [1e-3] * 12}}),
        (cellular, {}),
    ],
    ids=["bound", "actual", "iq", "jammer", "average", "measured", "gbma", "multi_cell"],
)
def test_stop_energy_follows_the_public_bound(make: Any, keys: dict[str, Any]) -> None:
    """Tiny updates and the largest that the clip admits end a run in the same round, that of the bound."""
    keys = {**WATTS, **TINY, **keys, "rounds": 12}
    _, whole = loudest(make(**keys))
    spent = np.cumsum([this.values["energy"] for this in whole])
    limit = float(spent[3] + spent[4]) / 2
    quiet, rounds, _ = run(make(**keys, stop={"energy_j": limit}))
    loud, others = loudest(make(**keys, stop={"energy_j": limit}))
    assert len(rounds) == len(others) == 5
    assert quiet.state.nominal_energy_j == loud.state.nominal_energy_j == pytest.approx(spent[4], rel=1e-12)
    realised = sum(this.values["energy"] for this in rounds)
    assert quiet.state.energy_j == pytest.approx(realised, rel=1e-12)
    assert realised < spent[4], "the trace keeps what was really spent"
    assert quiet.ledger.epsilon_accounted() == loud.ledger.epsilon_accounted()


@pytest.mark.parametrize(
    "keys",
    [
        {"uplink": {"kind": "digital", "tx_power_dbm": 20.0}, "timing__switched_capacitance": 1e-28},
        {"uplink": {"kind": "digital", "tx_power_dbm": 20.0}, "aggregation": {"mode": "asynchronous", "buffer": 2}},
        {"uplink": {"kind": "secure_aggregation", "tx_power_dbm": 20.0, "protocol": "secagg"}},
    ],
    ids=["digital", "asynchronous", "secagg"],
)
def test_without_analogue_transmissions_all_energy_is_public(keys: dict[str, Any]) -> None:
    quiet, rounds, _ = run(small(**TINY, **keys))
    loud, _ = loudest(small(**TINY, **keys))
    assert quiet.state.nominal_energy_j == quiet.state.energy_j == loud.state.nominal_energy_j > 0
    assert len(rounds) == 3


@pytest.mark.slow
def test_a_run_that_its_accuracy_ends_says_what_its_epsilon_holds_for(tmp_path: Path) -> None:
    """An end that the outputs decide is pointed out, in the run and in its recomputed ledger; no other end is."""
    early = api.simulate(small(stop={"accuracy": 1e-9}), out=tmp_path / "early")
    assert early.summary["rounds"] == 1
    assert ENDED_BY_ITS_OUTPUTS in early.summary["why_different"]
    assert ENDED_BY_ITS_OUTPUTS in recorded_ledger(early.trace, delta=1e-6).why_different()
    for name, stop in (("never", {"accuracy": 1.0}), ("public", {"accuracy": 1e-9, "epsilon": 1e-9})):
        run_of = api.simulate(small(stop=stop), out=tmp_path / name)
        assert ENDED_BY_ITS_OUTPUTS not in json.dumps(run_of.summary["why_different"], ensure_ascii=False)


@pytest.mark.parametrize("order", ["weak_first", "strong_first"])
def test_stopping_by_outputs_holds_as_the_page_says(order: str) -> None:
    """Two releases of a bit, the second one only if the first is below a threshold: exact, against both statements."""
    mu = (0.5, 2.0) if order == "weak_first" else (2.0, 0.5)
    total, after_one, delta = float(np.hypot(*mu)), mu[0], 1e-3
    ends = [float(gaussian_epsilon(after_one, delta)), float(gaussian_epsilon(total, delta))]
    worst = 0.0
    for threshold in np.linspace(-3.0, 8.0, 56):  # an accuracy reached: y₁ above it ends the run
        stopped, went_on = _excess(ends[0], mu[0], threshold), _excess_of_two(ends[1], mu, threshold)
        assert _excess(ends[1], mu[0], threshold) + went_on <= delta * (1 + 1e-6), "all rounds at δ"
        worst = max(worst, stopped + went_on)
    assert worst <= 2 * delta
    assert worst > 1.1 * delta, "the rounds that ran do not hold at δ alone"


def _excess(epsilon: float, mu: float, low: float) -> float:
    """The largest P(A) − e^ε Q(A) over events A of one output N(μ, 1) or N(0, 1) above a bound."""
    first = max(low, epsilon / mu + mu / 2)  # there the likelihood ratio passes e^ε
    return float(stats.norm.sf(first - mu) - np.exp(epsilon) * stats.norm.sf(first))


def _excess_of_two(epsilon: float, mu: tuple[float, float], high: float) -> float:
    """The same over two outputs, of which the first is below a bound: integrated over the first."""
    grid = np.linspace(-9.0, high, 8001)
    spent = mu[0] * grid - mu[0] ** 2 / 2
    second = (epsilon - spent) / mu[1] + mu[1] / 2
    under_p = stats.norm.pdf(grid - mu[0]) * stats.norm.sf(second - mu[1])
    under_q = stats.norm.pdf(grid) * stats.norm.sf(second)
    return float(np.trapezoid(under_p - np.exp(epsilon) * under_q, grid))


DIGITAL = {"uplink": {"kind": "digital", "tx_power_dbm": 20.0}, "evaluate__every": 3}


@pytest.mark.parametrize("key", ["sim_time_s", "energy_j", "epsilon"])
def test_the_model_with_which_a_run_ends_is_evaluated(key: str) -> None:
    """Round 4 of nine is the last, between two evaluations; without the limit it is as if it had been planned so."""
    noise = {"mechanism": "gaussian", "sampling": "poisson", "noise_multiplier": 1.0, "clip": 1.0}
    planned, four, _ = run(small(**DIGITAL, rounds=4, training__privacy=noise))
    last = four[-1].values
    spent = {"sim_time_s": last["sim_time"], "energy_j": planned.state.nominal_energy_j}
    limit = {f"stop__{key}": {**spent, "epsilon": last["epsilon_accounted"]}[key]}
    _, ended, _ = run(small(**DIGITAL, rounds=9, training__privacy=noise, **limit))
    assert len(ended) == 4
    for name in ("test_accuracy", "test_loss"):
        found, wanted = ([this.values[name] for this in rounds] for rounds in (ended, four))
        np.testing.assert_array_equal(found, wanted)
        assert list(np.isfinite(found)) == [False, False, True, True]


def test_a_model_that_is_not_finite_is_evaluated_in_the_round_that_it_ends() -> None:
    lost: dict[str, Any] = {"training__optimizer": {"name": "sgd", "lr": 1e38}, "evaluate__every": 100}
    _, rounds, _ = run(small(uplink={"kind": "ideal"}, rounds=9, **lost))
    assert len(rounds) == 2 and not np.isnan(rounds[-1].values["test_accuracy"])


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, "3, on average"),
        ({"accuracy": 1e-9}, "1, ended by stop.accuracy, on average"),
        ({"epsilon": 1e-9, "sim_time_s": 1e-9}, "1, ended by stop.epsilon and stop.sim_time_s, on average"),
        ({"energy_j": 1e9}, "3, on average"),
    ],
)
def test_the_limits_that_ended_a_run_are_named(tmp_path: Path, limits: dict[str, float], expected: str) -> None:
    result = api.simulate(small(**WATTS, stop=limits), out=tmp_path / "run")
    early = [f"stop.{key}" for key in limits] if result.summary["rounds"] == 1 else ["rounds"]
    assert result.summary["ended_by"] == json.loads(result.dataset.attrs["ended_by"]) == early
    assert rounds_text(result.summary).startswith(expected)


def test_a_run_that_diverges_names_the_limit(tmp_path: Path) -> None:
    keys = {"training__optimizer": {"name": "sgd", "lr": 1e30}, "uplink": {"kind": "ideal"}, "rounds": 6}
    result = api.simulate(small(**keys), out=tmp_path / "run")
    assert result.summary["ended_by"] == ["stop.diverged"] and result.summary["rounds"] < 6
