"""Groups of clients with a slot each over the air, and a robust rule over their sums."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wirelessfl as wfl
from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from tests.speed import rest_slow
from wirelessfl.analysis.replay.ledger import recorded_ledger
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import InfeasibleError, ScenarioError
from wirelessfl.learning.robust import Bulyan, CollectedRows
from wirelessfl.privacy import AirRelease, gaussian_epsilon
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import rehearsal
from wirelessfl.trace import Status

GAIN = {"policy": "cross_layer", "server_gain": 50.0}
LOUD = {"kind": "over_the_air", "snr_db": 200.0, "power_control": {"policy": "weakest_inversion"}}


def grouped(groups: int, rule: str = "mean", count: int = 8, **changes: Any) -> Scenario:
    """Some clients in groups, one round."""
    air = {"kind": "over_the_air", "slot_groups": groups, **changes.pop("uplink", {})}
    given = {"rounds": 1, "clients": {"count": count}, "training__robust": {"rule": rule}, **changes}
    return small(uplink=air, **given)


def with_means(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, list[NDArray[np.float64]]]:
    """A run, and the means of the groups (G, d) in each round."""
    seen: list[list[NDArray[np.float64]]] = []

    class Watched(CollectedRows):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            seen.append([])

        def add(self, updates: Any, positions: NDArray[np.int64]) -> None:
            seen[-1].append(np.array(updates[0]))
            super().add(updates, positions)

    monkeypatch.setattr("wirelessfl.simulation.uplinks.air.groups.CollectedRows", Watched)
    simulation, rounds, _ = run(scenario)
    return simulation, rounds, [np.array(means) for means in seen]


def honest_updates(**changes: Any) -> NDArray[np.float64]:
    """(K, d) what honest clients send in the first round, in double precision, in the order of their numbers."""
    simulation = build_simulation(small(rounds=1, **changes), PLAN)
    learner, state = simulation.deployment.learner, simulation.state
    clients = np.arange(len(simulation.deployment.network.registry.samples))
    rows = np.zeros((len(clients), learner.upload_dimension))
    for block in learner.train(state.parameters, state, clients, 1):
        rows[block.positions] = block.updates.numpy()
    return rows


def group_of(this: Any) -> NDArray[np.int64]:
    """(n,) groups of a round in which all are ready."""
    return np.asarray(this.slots["slot_group"]).astype(np.int64)


# ------------------------------------------------------------------------------------------------ numbers


def test_bulyan_too() -> None:
    """Its last choices are ties of two, which the order of the rows decides: here that of the groups."""
    scenario = grouped(8, uplink=LOUD, training__robust={"rule": "bulyan", "f": 1})
    start = build_simulation(scenario, PLAN).state.parameters
    simulation, (this,), _ = run(scenario)
    rows = honest_updates(clients={"count": 8})[np.argsort(group_of(this))].astype(np.float32)
    expected = Bulyan(1).combine(rows, np.full(8, 1 / 8)).value
    np.testing.assert_allclose(simulation.state.parameters - start, expected, atol=3e-6)


def test_the_noise_of_a_group_is_that_of_a_slot_over_its_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """σ = τ σ_c/(α_u Σ p): G times that of one slot for all, √G times after the mean over groups.

    4·700 normal numbers give σ to 1.4 %: 6 % is exceeded with probability below 1e-5.
    """
    changes = {"clip": 0.5, "power_control": GAIN, "snr_db": 60.0}
    noisy, (this,), (means,) = with_means(grouped(4, uplink=changes), monkeypatch)
    honest = honest_updates(clients={"count": 8}, uplink__clip=0.5)
    groups = group_of(this)
    found = np.array([means[g] - honest[groups == g].mean(axis=0) for g in range(4)])
    one_slot = 0.5 * 1.0 / 50.0
    np.testing.assert_allclose(found.std(axis=1), 4 * one_slot, rtol=0.12)
    assert found.std() == pytest.approx(4 * one_slot, rel=0.06)
    assert found.mean(axis=0).std() == pytest.approx(2 * one_slot, rel=0.12)
    assert this.values["aggregate_noise_std"] == pytest.approx(2 * one_slot)
    correlation = np.corrcoef(found) - np.eye(4)
    assert np.abs(correlation).max() < 5 / math.sqrt(found.shape[1])
    assert noisy.state.parameters.size == found.shape[1]


def test_every_slot_has_jamming_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    jammer = {"epsilon": 0.5, "calibration": "exact"}
    changes = {"power_control": GAIN, "snr_db": 60.0, "jammer": jammer}
    _, (this,), (means,) = with_means(grouped(4, uplink=changes), monkeypatch)
    honest, groups = honest_updates(clients={"count": 8}), group_of(this)
    found = np.array([means[g] - honest[groups == g].mean(axis=0) for g in range(4)])
    assert this.values["effective_noise_std"] > 3 / 50.0, "most of the noise is jamming"
    expected = 4 * this.values["effective_noise_std"]
    np.testing.assert_allclose(found.std(axis=1), expected, rtol=0.12)
    correlation = np.corrcoef(found) - np.eye(4)
    assert np.abs(correlation).max() < 5 / math.sqrt(found.shape[1])


def test_malicious_clients_spoil_their_own_groups_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    roles = [{"role": "power_cheat", "factor": 1000.0, "count": 2}]
    changes: dict[str, Any] = {"count": 20, "uplink": LOUD}
    _, _, (honest,) = with_means(grouped(10, "median", **changes), monkeypatch)
    attacked = grouped(10, "median", **changes, clients={"count": 20, "roles": roles})
    simulation, (this,), (means,) = with_means(attacked, monkeypatch)
    who = simulation.deployment.roles
    assert who is not None
    spoiled = np.flatnonzero(np.linalg.norm(means - honest, axis=1) > 1e-4)
    np.testing.assert_array_equal(spoiled, np.unique(group_of(this)[who.clients]))
    assert 1 <= len(spoiled) <= 2


# ------------------------------------------------------------------------------------------------ the ledger


def test_the_ledger_by_hand(tmp_path: Path) -> None:
    """Over M rounds μ² = Σ (X_i/σ)², X_i/σ = 2 p_i α_g/σ_c with α_g = min over the group of |h_i|√P_i/p_i."""
    control = {"snr_db": 10.0, "power_control": {"policy": "weakest_inversion"}}
    partition = {"scheme": "dirichlet", "alpha": 1.0}
    scenario = grouped(
        3, "median", uplink=control, rounds=4, channel__fading={"model": "rayleigh"}, data__partition=partition
    )
    simulation, rounds, _ = run(scenario)
    registry = simulation.deployment.network.registry
    p, squares = registry.weight(np.arange(8)), np.zeros(8)
    for this in rounds:
        h = np.hypot(this.slots["channel_re"], this.slots["channel_im"])
        reach, groups = h * np.sqrt(registry.power_budget) / p, group_of(this)
        sends = this.status == Status.PARTICIPATED
        for group in range(3):
            mine = (groups == group) & sends
            if mine.any():
                squares[mine] += (2 * p[mine] * reach[mine].min()) ** 2
    _, accounted = simulation.ledger.client_epsilons()
    expected = [gaussian_epsilon(math.sqrt(square), 1e-5) for square in squares]
    np.testing.assert_allclose(accounted, expected, rtol=1e-9)
    wfl.simulate(scenario, tmp_path / "run", pictures=False)
    again = recorded_ledger(tmp_path / "run" / "trace.h5").client_epsilons()[1]
    np.testing.assert_allclose(again[:8], expected, rtol=1e-9)


def test_no_theorem_is_claimed_and_the_reason_is_given() -> None:
    simulation, rounds, _ = run(grouped(2, "median", uplink={"power_control": GAIN}))
    (release,) = rounds[0].round.uplink_releases
    assert isinstance(release, AirRelease) and release.theorem == "slot_groups"
    assert rounds[0].values["epsilon_published"] == math.inf
    assert any("one sum of all clients" in reason for reason in simulation.ledger.why_different())
    weakest, rounds, _ = run(grouped(2, "median", uplink={"power_control": {"policy": "weakest_inversion"}}))
    (release,) = rounds[0].round.uplink_releases
    assert isinstance(release, AirRelease) and release.theorem == "none"
    assert not any("one sum" in reason for reason in weakest.ledger.why_different())


def test_a_step_on_mini_batches_counts_the_batch_of_each_client() -> None:
    """One step per sample clipped: X_i/σ = 2 α p_i/min(n_i, b) with samples exchanged; groups with n_i <= b beside."""
    changes: dict[str, Any] = {
        "training__privacy": {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 0.0},
        "training__optimizer": {"name": "sgd", "lr": 0.1},
        "training__batch_size": 14,
        "training__epochs": None,
        "training__steps": 1,
        "privacy__adjacency": "replace",
        "data__partition": {"scheme": "dirichlet", "alpha": 0.3},
    }
    for groups in (1, 4):
        uplink = {"clip": 0.1, "power_control": GAIN, "snr_db": 60.0}
        simulation, (this,), _ = run(grouped(groups, uplink=uplink, **changes))
        (release,) = (one for one in this.round.uplink_releases if isinstance(one, AirRelease))
        assert release.rule == "gradient_step"
        samples = simulation.deployment.network.registry.samples
        assert samples.min() < 14 < samples.max()
        shift = 2 * 50.0 * samples / samples.sum() / np.minimum(samples, 14)
        accounted = simulation.ledger.client_epsilons()[1]
        np.testing.assert_allclose(accounted, [gaussian_epsilon(one, 1e-5) for one in shift], rtol=1e-9)


# ------------------------------------------------------------------------------------------------ time and energy


def test_the_largest_slots_of_unequal_groups() -> None:
    simulation, (this,), _ = run(grouped(3, channel__csi={"pilot_symbols": 5}))
    assert simulation.deployment.uplink.airtime == pytest.approx(this.values["airtime"])  # type: ignore[attr-defined]


def test_a_jammer_spends_its_energy_in_every_slot() -> None:
    changes = {"power_control": GAIN, "snr_db": 60.0, "jammer": {"epsilon": 0.5, "calibration": "exact"}}
    _, (one,), _ = run(grouped(1, uplink=changes))
    _, (four,), _ = run(grouped(4, uplink=changes))
    assert four.values["jammer_energy"] == pytest.approx(4 * one.values["jammer_energy"])
    assert four.values["epsilon_accounted"] == pytest.approx(one.values["epsilon_accounted"])
    assert four.values["epsilon_accounted"] == pytest.approx(0.5, rel=1e-6)


def test_a_deadline_shorter_than_all_slots_is_refused() -> None:
    simulation = build_simulation(grouped(4), PLAN)
    whole = simulation.deployment.uplink.airtime  # type: ignore[attr-defined]
    with pytest.raises(InfeasibleError, match=r"timing\.deadline_s"):
        build_simulation(grouped(4, timing__deadline_s=0.9 * whole), PLAN)
    build_simulation(grouped(1, timing__deadline_s=0.9 * whole), PLAN)


def test_clients_of_later_slots_have_later_channels() -> None:
    correlation = {"model": "clarke", "doppler_hz": 40.0}
    changes: dict[str, Any] = {"channel__fading": {"model": "rayleigh"}, "channel__correlation": correlation}
    changes["timing__bandwidth_hz"] = 1e6
    _, (one,), _ = run(grouped(1, **changes))
    _, (four,), _ = run(grouped(4, **changes))
    h = [this.slots["channel_re"] + 1j * this.slots["channel_im"] for this in (one, four)]
    first = group_of(four) == 0
    np.testing.assert_array_equal(h[0][first], h[1][first])
    assert np.all(h[0][~first] != h[1][~first])


# ------------------------------------------------------------------------------------------------ lost clients


# ------------------------------------------------------------------------------------------------ combinations

COMBINATIONS: dict[str, dict[str, Any]] = {
    "antennas": {"uplink": {"receiver": {"antennas": 4, "combiner": "max_min"}, "snr_db": 10.0}},
    "subcarriers": {
        "uplink": {"snr_db": 10.0, "power_control": {"policy": "truncated_inversion"}},
        "channel__fading": {"model": "tdl", "groups": 4, "delay_spread_s": 1e-7},
        "faults": {"fade_threshold": 0.2},
    },
    "packing": {"uplink": {"iq_packing": True, "snr_db": 10.0}, "channel__csi": {"error_std": 0.1}},
    "jammer": {"uplink": {"jammer": {"epsilon": 5.0, "calibration": "exact"}, "snr_db": 20.0}},
    "jammed_array": {
        "uplink": {
            "receiver": {"antennas": 2, "combiner": "sum"},
            "jammer": {"epsilon": 50.0, "calibration": "exact", "antennas": 2, "max_shortfall": 0.5},
        },
    },
    "pieces": {
        "channel__fading": {"model": "rayleigh"},
        "channel__correlation": {"model": "gauss_markov", "doppler_hz": 60.0},
        "timing__bandwidth_hz": 1e5,
    },
    "scaffold": {"training__algorithm": {"name": "scaffold", "payload": 1}, "training__steps": 2},
    "roles": {"clients": {"count": 8, "roles": [{"role": "free_rider"}, {"role": "silent"}]}},
    "poisson": {"clients": {"count": 12, "selection": {"scheme": "poisson", "rate": 0.5}}},
    "full_power": {"uplink": {"power_control": {"policy": "full_power"}}},
    "actual": {"uplink": {"power_control": {"policy": "cross_layer", "backoff": "actual"}}},
}


@pytest.mark.parametrize("name", rest_slow(COMBINATIONS, fast=0))
def test_it_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    scenario = grouped(4, "median", **{"rounds": 3, **COMBINATIONS[name]})
    whole, _ = goes_on_to_the_same_bits(scenario, tmp_path)
    assert np.all(np.isfinite(whole.state.parameters))
    assert whole.rounds[-1].values["epsilon_accounted"] > 0


def test_a_rehearsal_says_what_the_run_costs() -> None:
    scenario = grouped(4, "median", rounds=3, uplink={"power_control": GAIN})
    forecast = rehearsal.rehearse(build_simulation(scenario, PLAN))
    _, rounds, _ = run(scenario)
    assert forecast.epsilon_accounted == rounds[-1].values["epsilon_accounted"]
    assert forecast.airtime == max(this.values["airtime"] for this in rounds)


# ------------------------------------------------------------------------------------------------ refusals

REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"uplink__slot_groups": 6, "training__robust": {"rule": "krum"}, "timing__wait_for": {"count": 4}},
        r"robust\.f: found 1, which needs 5 of the 4 clients of a round that are waited for",
    ),
    (
        {"uplink__slot_groups": 2, "uplink__power_control": {"policy": "privacy_for_free", "schedule": "static"}},
        r"power_control\.policy: found privacy_for_free with uplink\.slot_groups: 2",
    ),
    (
        {"uplink__slot_groups": 2, "uplink__power_control": {"policy": "lower_gain"}},
        r"power_control\.calibration: found theorem with uplink\.slot_groups: 2",
    ),
    ({"uplink__slot_groups": 2, "uplink__modulation": {"scheme": "d_dsgd"}}, r"uplink\.slot_groups: found 2"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_what_groups_do_not_go_with(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        small(**changes)
