"""Blind AirComp in whole runs: the step, the ledger, combinations, replay, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import wirelessfl as wfl
from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_waveforms import COMBINATIONS
from wirelessfl.assembly import build_simulation
from wirelessfl.cli import main
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import CohortBlock
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.simulation.uplinks.air.plan import AirPlan


def blind(**overrides: Any) -> Scenario:
    chosen = {"uplink__modulation": {"scheme": "blind"}, "uplink__power_control": {"policy": "no_csi"}}
    return small(**{**chosen, "uplink__receiver": {"antennas": 8}, **overrides})


def test_with_many_antennas_the_step_is_that_of_perfect_channels() -> None:
    """Against the noise-free sum of clients with equally many samples; the error falls with the antennas."""
    start = build_simulation(blind(), PLAN).state.parameters.copy()
    quiet = {"rounds": 1, "uplink__snr_db": 120.0}
    analog = {"uplink__power_control": {"policy": "full_power"}, "channel__fading": {"model": "static"}}
    exact = run(small(**quiet, **analog))[0].state.parameters - start
    errors = []
    for antennas in (16, 1024):
        found = run(blind(**quiet, uplink__receiver={"antennas": antennas}))[0].state.parameters - start
        errors.append(float(np.linalg.norm(found - exact) / np.linalg.norm(exact)))
    assert errors[1] < 0.25 and errors[1] < errors[0] / 2


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", COMBINATIONS)
def test_combinations_run(name: str, packed: bool) -> None:
    simulation, rounds, _ = run(blind(**{"rounds": 2, "uplink__iq_packing": packed, **COMBINATIONS[name]}))
    assert len(rounds) == 2 and np.all(np.isfinite(simulation.state.parameters))
    assert simulation.ledger.epsilon_published() == np.inf
    assert np.isfinite(simulation.ledger.epsilon_accounted())


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"uplink__power_control": {"policy": "full_power"}}, "policy: found full_power .*allowed: no_csi"),
        ({"uplink__receiver": {"antennas": 8, "combiner": "max_min"}}, "combiner: found max_min .*allowed: sum"),
        ({"channel__csi": {"error_std": 0.1}}, r"csi\.error_std: found 0\.1 .*clients have no estimate; allowed: 0"),
        ({"channel__csi": {"pilot_symbols": 4}}, r"csi\.pilot_symbols: found 4 .*allowed: null"),
        ({"faults__fade_threshold": 0.1}, r"faults\.fade_threshold: found 0\.1 .*allowed: 0"),
        ({"uplink__jammer": {"epsilon": 2.0}}, "jammer: found a jammer with .*allowed: null"),
        ({"topology": {"kind": "multi_cell"}}, "topology.kind: found multi_cell .*allowed: single_cell"),
        ({"training__algorithm": {"name": "scaffold"}}, "algorithm.name: found scaffold .*allowed: fedavg"),
    ],
)
def test_what_is_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        blind(**overrides)


def test_an_exact_replay(tmp_path: Path) -> None:
    summary = wfl.simulate(blind(rounds=2), tmp_path / "out", pictures=False, device="cpu").summary
    assert np.isfinite(summary["clip_excess_db"])  # updates are sent as they are, against the clip
    result = CliRunner().invoke(main, ["replay", str(tmp_path / "out" / "trace.h5"), "--verify", "--json"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("packed", [False, True])
def test_every_coordinate_of_an_odd_number_is_read_in_both_quadratures(packed: bool) -> None:
    """G = Σ_i f^H h_i Δ_i/K with f = Σ_j h_j/M, without noise; the last symbol carries one coordinate alone."""
    scenario = small(
        model__hidden=[3],
        uplink__snr_db=250.0,
        uplink__iq_packing=packed,
        uplink__power_control={"policy": "no_csi"},
        uplink__modulation={"scheme": "blind"},
        uplink__receiver={"antennas": 5},
    )
    uplink, everybody = build_simulation(scenario, PLAN).deployment.uplink, np.arange(6)
    assert isinstance(uplink, OverTheAir) and uplink.dimension % 2 == 1
    this = Round(1, everybody)
    plan = uplink.plan(this, everybody, None)
    assert isinstance(plan, AirPlan)
    updates = np.random.default_rng(0).standard_normal((6, uplink.dimension)).astype(np.float32)
    updates /= np.linalg.norm(updates, axis=1, keepdims=True)
    norm, loss = np.ones(6), np.zeros(6)
    block = CohortBlock(everybody, torch.from_numpy(updates), norm_raw=norm, norm=norm, train_loss=loss)
    found = uplink.receive(this, plan, [block]).aggregate
    channel = plan.antenna_links.channel[:, 0, 0]
    weights = channel @ (channel.sum(axis=0) / 5).conj() / 6
    pairs = np.pad(updates.astype(np.float64), ((0, 0), (0, 1)))
    symbols = weights @ (pairs[:, 0::2] + 1j * pairs[:, 1::2])
    apart = np.stack([symbols.real, symbols.imag], axis=1).ravel()[:-1]
    np.testing.assert_allclose(found, apart if packed else weights.real @ updates, rtol=1e-4, atol=1e-6)
