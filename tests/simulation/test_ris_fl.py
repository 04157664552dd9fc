"""RIS-FL's rule in whole runs: step, noise and energy, the ledger, combinations, replay, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

import wirelessfl as wfl
from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_waveforms import COMBINATIONS
from tests.statistics import assert_variance_gaussian
from wirelessfl.analysis.audit.audit import audit_simulation
from wirelessfl.assembly import build_simulation
from wirelessfl.cli import main
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import CohortBlock
from wirelessfl.privacy import Caveat
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound, Simulation
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.simulation.uplinks.air.plan import AirPlan

LOW = 1e-9
"""A floor below all variances."""
BETWEEN = 2e-5
"""A floor above some of them."""


def ris_fl(floor: float = LOW, **overrides: Any) -> Scenario:
    return small(**{"uplink__power_control": {"policy": "ris_fl", "variance_floor": floor}, **overrides})


def forty(floor: float, **overrides: Any) -> Scenario:
    """The released code's 40 devices and 5 antennas, with unequal samples."""
    sizes = {"scheme": "sizes"}
    array = {"antennas": 5, "combiner": "random"}
    chosen = {"clients__count": 40, "data__limit": 800, "data__partition": sizes, "uplink__receiver": array}
    return ris_fl(floor, **{**chosen, "rounds": 1, **overrides})


def released_rule(
    g: NDArray[np.float64],
    h: NDArray[np.complex128],
    f: NDArray[np.complex128],
    samples: NDArray[np.int64],
    power: float,
    floor: float,
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """The step without noise, η, and energy per symbol of each device, as the released code has them, in loops.

    With the code's own words: g (M, d), h (N, M), f (N,), K_m samples, P_0 power of a symbol.
    """
    devices, d = g.shape
    mean = [sum(row) / d for row in g.tolist()]
    variance = [max(sum((x - m) ** 2 for x in row) / d, floor) for row, m in zip(g.tolist(), mean, strict=True)]
    inner = [sum(f[n].conjugate() * h[n, m] for n in range(len(f))) for m in range(devices)]
    eta = min(power * abs(inner[m]) ** 2 / (samples[m] ** 2 * variance[m]) for m in range(devices))
    y, energy = np.zeros((len(f), d), dtype=np.complex128), np.zeros(devices)
    for m in range(devices):
        x = samples[m] * math.sqrt(eta) * inner[m].conjugate() / abs(inner[m]) ** 2 * (g[m] - mean[m])
        energy[m] = float((np.abs(x) ** 2).sum())
        y += np.outer(h[:, m], x)
    step = (f.conj() @ y / math.sqrt(eta)).real + sum(k * m for k, m in zip(samples.tolist(), mean, strict=True))
    return step / samples.sum(), eta, energy


def heard(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> tuple[Simulation, FinishedRound, AirPlan, Any]:
    """A run of one round, with its plan and all updates as they came from training."""
    simulation = build_simulation(scenario, PLAN)
    uplink, kept, rounds = simulation.deployment.uplink, list[Any](), list[FinishedRound]()
    assert isinstance(uplink, OverTheAir)
    receive = uplink.receive

    def spy(this: Any, plan: Any, blocks: Any) -> Any:
        found: list[CohortBlock] = list(blocks)
        rows = np.zeros((len(plan.senders), uplink.dimension))
        for block in found:
            rows[block.positions] = block.updates.numpy()
        kept.append((plan, rows))
        return receive(this, plan, iter(found))

    monkeypatch.setattr(uplink, "receive", spy)
    simulation.run(lambda this, batch: rounds.append(this))
    return simulation, rounds[0], *kept[0]


@pytest.mark.parametrize("threshold", [0.0, 0.4])
@pytest.mark.parametrize("floor", [LOW, BETWEEN])
def test_the_released_rule_with_40_devices_and_5_antennas(
    threshold: float, floor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step, scale, energies and noise of a run against the released code's equations, recomputed device by device."""
    scenario = forty(floor, uplink__snr_db=40.0, faults__fade_threshold=threshold)
    start = build_simulation(scenario, PLAN).state.parameters.copy()
    simulation, this, plan, updates = heard(scenario, monkeypatch)
    assert (len(updates) == 40) == (threshold == 0) and len(updates) > 20
    h = plan.heard[:, 0, 0, 0, :].T
    behind = plan.links.own.channel[:, 0, 0, 0]
    f = np.linalg.lstsq(h.T, behind, rcond=None)[0].conj().astype(np.complex128)
    np.testing.assert_allclose(f.conj() @ h, behind, rtol=1e-9)
    registry = simulation.deployment.network.registry
    samples, budget = registry.samples[plan.clients], registry.power_budget
    variances = updates.var(axis=1)
    assert len(set(samples.tolist())) > 5 and (variances.min() < floor < variances.max() or floor == LOW)
    step, eta, energy = released_rule(updates, h, f, samples, budget / updates.shape[1], floor)
    sent = np.isfinite(this.slots["tx_energy"])
    np.testing.assert_allclose(this.slots["tx_energy"][sent], energy, rtol=1e-4)
    assert energy.max() <= budget * (1 + 1e-9)
    # τ √η with weights n_i/|D| in place of n_i
    assert this.values["server_gain"] == pytest.approx(math.sqrt(eta) * registry.total_samples, rel=1e-6)
    found = simulation.state.parameters - start
    noise = np.linalg.norm(f) / math.sqrt(eta) / samples.sum()
    assert this.values["aggregate_noise_std"] == pytest.approx(noise, rel=1e-6)
    assert_variance_gaussian(found - step, noise**2)
    assert np.linalg.norm(step) > 3 * noise * math.sqrt(len(step)), "the noise would hide another step"


def test_without_noise_the_step_is_the_weighted_mean() -> None:
    """Over subcarriers, pieces and combiners, whose ranges have gains of their own; means are added to each."""
    for overrides in (
        COMBINATIONS["groups"],
        {**COMBINATIONS["pieces"], "channel__csi": {"refresh": "piece"}},
        {"uplink__receiver": {"antennas": 3, "combiner": "max_min"}, "uplink__iq_packing": True},
    ):
        quiet = {"rounds": 1, "uplink__snr_db": 250.0, "data__partition": {"scheme": "sizes"}, **overrides}
        exact = run(small(**{**quiet, "uplink__power_control": {"server_gain": 1e9}}))[0].state.parameters
        found = run(ris_fl(**quiet))[0].state.parameters
        np.testing.assert_allclose(found, exact, rtol=0, atol=2e-6)


def test_one_client_sends_at_full_power_in_every_round() -> None:
    simulation, rounds, _ = run(ris_fl(uplink__snr_db=3.0))
    budget = simulation.deployment.network.registry.power_budget
    for this in rounds:
        assert this.slots["tx_energy"].max() == pytest.approx(budget, rel=1e-5)


def test_a_battery_drains_by_the_power_budget() -> None:
    """A bound that does not depend on updates: what is drained is at least what was sent."""
    uplink = {"kind": "over_the_air", "tx_power_dbm": 10, "power_control": {"policy": "ris_fl", "variance_floor": LOW}}
    simulation, rounds, _ = run(small(uplink=uplink, faults__battery_j=1.0))
    parts = simulation.deployment
    full = parts.network.registry.power_budget * parts.uplink.joules_per_unit  # type: ignore[attr-defined]
    np.testing.assert_allclose(simulation.state.battery_used_j, 3 * full, rtol=1e-9)
    assert all(this.slots["tx_energy_j"].max() <= full * (1 + 1e-6) for this in rounds)


@pytest.mark.parametrize("adversary", ["observer", "server", "individual"])
@pytest.mark.parametrize("antennas", [1, 3])
def test_no_guarantee_holds_and_none_is_published(adversary: str, antennas: int) -> None:
    array = {"antennas": antennas}
    simulation, _, _ = run(ris_fl(privacy__adversary=adversary, rounds=1, uplink__receiver=array))
    assert simulation.ledger.epsilon_accounted() == simulation.ledger.epsilon_published() == math.inf
    why = simulation.ledger.why_different()
    assert any("states no privacy theorem" in reason for reason in why)
    assert adversary == "individual" or any(Caveat.MEANS_TOLD_APART.value in reason for reason in why)


@pytest.mark.parametrize("name", sorted(set(COMBINATIONS) - {"peak"}))
def test_combinations_run(name: str) -> None:
    simulation, rounds, _ = run(ris_fl(rounds=2, uplink__snr_db=20.0, **COMBINATIONS[name]))
    assert len(rounds) == 2 and np.all(np.isfinite(simulation.state.parameters))
    budget = simulation.deployment.network.registry.power_budget
    assert all(np.nanmax(this.slots["tx_energy"], initial=0.0) <= budget * (1 + 1e-5) for this in rounds)


def test_updates_that_diverged_count_as_zeros() -> None:
    simulation, _, _ = run(ris_fl(rounds=1, training__optimizer={"name": "sgd", "lr": 1e30}))
    assert np.all(np.isfinite(simulation.state.parameters))


def test_a_run_goes_on_from_a_checkpoint_and_repeats_to_the_same_bits(tmp_path: Path) -> None:
    scenario = ris_fl(uplink__receiver={"antennas": 3, "combiner": "max_min"}, channel__csi={"error_std": 0.1})
    goes_on_to_the_same_bits(scenario, tmp_path)
    wfl.simulate(scenario, tmp_path / "out", pictures=False, device="cpu")
    result = CliRunner().invoke(main, ["replay", str(tmp_path / "out" / "trace.h5"), "--verify", "--json"])
    assert result.exit_code == 0, result.output


def test_the_audit_sees_the_canary_in_the_mean_and_is_refused_where_it_would_hear_nothing(tmp_path: Path) -> None:
    audit = audit_simulation(build_simulation(ris_fl(rounds=1), PLAN), "small", 10)
    assert audit.epsilon_empirical > 1000
    file = tmp_path / "array.yaml"
    keys = "uplink:\n  power_control: {policy: ris_fl}\n  receiver: {antennas: 2}\n"
    file.write_text(f"name: array\nrounds: 1\n{keys}")
    result = CliRunner().invoke(main, ["audit", str(file)])
    assert result.exit_code != 0 and "nothing is sent beside the mean told apart" in result.output


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"uplink__jammer": {"epsilon": 2.0}}, "jammer: found a jammer with the power control ris_fl.*allowed: null"),
        ({"uplink__peak_power_db": 3.0}, "peak_power_db: found 3 with the power control ris_fl"),
        (
            {"topology": {"kind": "multi_cell"}, "channel__pathloss": {"model": "log_distance"}},
            "topology.kind: found multi_cell with the power control ris_fl.*allowed: single_cell",
        ),
        (
            {"topology": {"kind": "hierarchical"}, "channel__pathloss": {"model": "log_distance"}},
            "topology.kind: found hierarchical with the power control ris_fl",
        ),
        ({"uplink__modulation": {"scheme": "obda"}}, "found ris_fl with the modulation obda"),
        (
            {"uplink__modulation": {"scheme": "wirelessfl.radio.modulation:Analog"}},
            "found ris_fl with the modulation wirelessfl.radio.modulation:Analog, to whose sum no means",
        ),
        ({"clients__roles": [{"role": "scaled"}]}, r"roles\.0\.role: found scaled by 10 with the power control ris_fl"),
        ({"clients__roles": [{"role": "power_cheat"}]}, "found power_cheat by 10 with the power control ris_fl"),
        ({"uplink__power_control": {"policy": "ris_fl", "variance_floor": 0}}, "found 0; allowed: a number above 0"),
    ],
)
def test_what_is_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        ris_fl(**overrides)
