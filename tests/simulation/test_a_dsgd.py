"""A-DSGD in whole runs: the recovered step, residuals, the ledger, resuming, combinations, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_waveforms import COMBINATIONS
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.privacy import Caveat
from wirelessfl.radio.modulation import ADsgd
from wirelessfl.scenario import Scenario


def a_dsgd(scheme: dict[str, Any] | None = None, **overrides: Any) -> Scenario:
    chosen = {
        "uplink__modulation": {"scheme": "a_dsgd", **(scheme or {})},
        "uplink__power_control": {"policy": "truncated_inversion"},
        "faults__fade_threshold": 0.1,
    }
    return small(**{**chosen, **overrides})


def test_without_noise_the_step_is_the_mean_of_the_largest_coordinates() -> None:
    """Of one client on a quiet channel: what is sent is recovered, and the rest is its residual."""
    changes: dict[str, Any] = {"clients__count": 1, "clients__selection": {"scheme": "all"}, "rounds": 1}
    scenario = a_dsgd(
        {"kept": 0.05, "iterations": 60}, uplink__snr_db=120.0, channel__fading={"model": "static"}, **changes
    )
    simulation = run(scenario)[0]
    begin = build_simulation(scenario, PLAN).state.parameters
    step = simulation.state.parameters - begin
    exact = run(small(uplink={"kind": "ideal", "clip": 1.0}, **changes))[0].state.parameters - begin
    count = int(0.05 * len(exact))
    wanted = np.zeros_like(exact)
    places = np.argsort(-np.abs(exact))[:count]
    wanted[places] = exact[places]
    assert np.linalg.norm(step - wanted) < 0.05 * np.linalg.norm(wanted)
    residual = simulation.state.memories["error_feedback"]["0"]
    np.testing.assert_allclose(residual, exact - wanted, rtol=0, atol=1e-6)


def test_with_residuals_more_is_learnt_than_is_sent_at_once() -> None:
    """After many rounds the sum of the steps is near that of all updates, of which a round sends a twentieth."""
    changes: dict[str, Any] = {"uplink__snr_db": 120.0, "channel__fading": {"model": "static"}}
    kept = {name: run(a_dsgd({"kept": 0.05}, rounds=name, **changes))[0].state.parameters for name in (1, 12)}
    begin = build_simulation(a_dsgd(), PLAN).state.parameters
    assert np.count_nonzero(np.abs(kept[12] - begin) > 1e-6) > 2 * np.count_nonzero(np.abs(kept[1] - begin) > 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("symbols", [0.5, 0.15])
def test_the_page_has_the_accuracy_of_the_scenario(symbols: float, tmp_path: Path) -> None:
    """Page "Modulations" prints it for two lengths; other processors may round otherwise."""
    page = (Path(__file__).parents[2] / "docs/explanation/modulations.md").read_text(encoding="utf-8")
    found = re.search(r"from ([\d.]+) to ([\d.]+) % where `symbols` falls from 0\.5 to 0\.15", page)
    assert found is not None
    changes = {"uplink.modulation.symbols": symbols}
    accuracy = wfl.simulate("a-dsgd", tmp_path, overrides=changes, pictures=False, device="cpu").summary[
        "test_accuracy"
    ]
    assert 100 * accuracy == pytest.approx(float(found[1 if symbols == 0.5 else 2]), abs=0.6)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", COMBINATIONS)
def test_combinations_run(name: str, packed: bool) -> None:
    simulation, rounds, _ = run(a_dsgd(**{"rounds": 2, "uplink__iq_packing": packed, **COMBINATIONS[name]}))
    assert len(rounds) == 2 and np.all(np.isfinite(simulation.state.parameters))
    assert simulation.ledger.epsilon_published() == simulation.ledger.epsilon_accounted() == np.inf
    assert any(Caveat.OWN_NORM.value in reason for reason in simulation.ledger.why_different())


def test_half_the_symbols_take_half_the_airtime() -> None:
    whole, half = (run(a_dsgd({"symbols": share}, rounds=1))[1][0].values["airtime"] for share in (1.0, 0.5))
    assert half == pytest.approx(whole / 2, rel=0.01)


def test_a_resumed_run_keeps_its_residuals_to_the_bit(tmp_path: Any) -> None:
    whole, _ = goes_on_to_the_same_bits(a_dsgd(rounds=4), tmp_path)
    assert whole.state.memories["error_feedback"]


@pytest.mark.parametrize(
    ("scheme", "overrides", "message"),
    [
        ({"kept": 0.5}, {}, r"modulation\.kept: found 0\.5; allowed: less than symbols, 0\.5"),
        ({"symbols": 1.5}, {}, r"modulation\.symbols: found 1\.5"),
        ({"iterations": 0}, {}, r"modulation\.iterations: found 0"),
        ({}, {"uplink__power_control": {"policy": "full_power"}}, "policy: found full_power .*truncated_inversion"),
        ({}, {"uplink__jammer": {"epsilon": 2.0}}, "jammer: found a jammer with .*allowed: null"),
        ({}, {"training__algorithm": {"name": "feddyn"}}, "algorithm.name: found feddyn .*allowed: fedavg"),
    ],
)
def test_what_is_refused(scheme: dict[str, Any], overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        a_dsgd(scheme, **overrides)


@pytest.mark.parametrize("wrong", [{"kept": 0.6}, {"symbols": 0.0}, {"iterations": 0}, {"threshold": 0.0}])
def test_numbers_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs"):
        ADsgd(**wrong)


def test_the_reason_for_no_guarantee_is_the_scale_of_the_symbols() -> None:
    simulation, rounds, _ = run(a_dsgd(rounds=1))
    said = simulation.ledger.why_different()
    assert rounds[-1].values["epsilon_accounted"] == np.inf
    assert any(Caveat.OWN_NORM.value in reason for reason in said)
    assert not any("power control" in reason or "accounted figure counts the whole signal" in reason for reason in said)
