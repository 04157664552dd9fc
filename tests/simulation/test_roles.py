"""Clients that do not follow the protocol: who they are, what they send, what it costs, and whose ε it changes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.learning.roles import drawn_roles
from wirelessfl.privacy import AirRelease
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound, Simulation
from wirelessfl.streams import Streams
from wirelessfl.trace import Role, Status, open_trace

ROLES = [{"role": "sign_flip", "factor": 2.0}, {"role": "scaled", "factor": 3.0}, {"role": "free_rider"}]
UPLINKS: dict[str, dict[str, Any]] = {
    "ideal": {"kind": "ideal"},
    "digital": {"kind": "digital"},
    "secure": {"kind": "secure_aggregation", "clip": 10.0},
    "secagg": {"kind": "secure_aggregation", "protocol": "secagg", "clip": 10.0},
}
AIR = {"kind": "over_the_air", "snr_db": 30.0, "power_control": {"policy": "weakest_inversion"}}


def of(simulation: Simulation, role: Role) -> list[int]:
    """The clients with a role."""
    roles = simulation.deployment.roles
    assert roles is not None
    return [int(client) for client in roles.clients[roles.codes == role]]


def first_updates(scenario: Scenario) -> np.ndarray:
    """(K, d) what honest clients would send in the first round, in double precision."""
    simulation = build_simulation(scenario, PLAN)
    learner, state = simulation.deployment.learner, simulation.state
    clients = np.arange(scenario.clients.count)
    blocks = list(learner.train(state.parameters, state, clients, 1))
    return np.concatenate([block.updates.numpy().astype(np.float64) for block in blocks])


def step_of(scenario: Scenario) -> tuple[Simulation, FinishedRound, np.ndarray]:
    """A run of one round: it, its round, and by what the model moved."""
    start = build_simulation(scenario, PLAN).state.parameters.astype(np.float64)
    simulation, (this,), _ = run(scenario)
    return simulation, this, simulation.state.parameters.astype(np.float64) - start


# ------------------------------------------------------------------------------------------------ who they are


def test_they_are_those_with_the_smallest_draws_of_their_own() -> None:
    streams, registered = Streams(5), 30
    draws = [streams.nodes("roles", 0, np.array([client])).uniform()[0, 0] for client in range(registered)]
    order = sorted(range(registered), key=lambda client: draws[client])
    first, second = drawn_roles(streams, registered, [4, 7])
    assert first.tolist() == sorted(order[:4]) and second.tolist() == sorted(order[4:11])


def test_more_of_one_role_keep_those_before_them() -> None:
    few, many = (drawn_roles(Streams(5), 30, [count])[0] for count in (4, 9))
    assert set(few) < set(many)


def test_every_client_is_as_likely() -> None:
    """Of 10 clients 3 have a role: 2,000 seeds give each 600 times, give or take 6 standard deviations."""
    seen = np.bincount(np.concatenate([drawn_roles(Streams(seed), 10, [3])[0] for seed in range(2000)]), minlength=10)
    assert np.all(np.abs(seen - 600) < 6 * math.sqrt(2000 * 0.3 * 0.7))


@pytest.mark.parametrize(("fraction", "count"), [(0.0, 0), (0.25, 2), (0.24, 1), (1.0, 6)])
def test_a_fraction_is_rounded_to_whole_clients(fraction: float, count: int) -> None:
    scenario = small(clients__roles=[{"role": "silent", "fraction": fraction}])
    assert scenario.clients.roles[0].held_by(6) == count


def test_without_roles_nothing_changes() -> None:
    plain, _, _ = run(small())
    for roles in ([], [{"role": "silent", "count": 0}], [{"fraction": 0}]):
        simulation, rounds, _ = run(small(clients__roles=roles))
        assert simulation.state.parameters.tobytes() == plain.state.parameters.tobytes()
        assert "role" not in rounds[0].slots


REFUSED = [
    ([{"role": "silent", "count": 7}], r"clients\.roles\.0\.count: found 7; allowed: at most 6 of 6 clients"),
    ([{"count": 4}, {"fraction": 0.5}], r"clients\.roles\.1\.fraction: found 0\.5, which is 3 clients; .* at most 2"),
    ([{"role": "label_flip", "factor": 2}], r"clients\.roles\.0\.factor: found 2.* allowed: null, or sign_flip"),
    ([{"role": "silent", "count": 1, "fraction": 0.1}], r"exactly one of count and fraction"),
    ([{"role": "thief"}], r"clients\.roles\.0\.role: found thief; allowed: label_flip \| sign_flip"),
    ([{"role": "scaled", "factor": 0}], r"clients\.roles\.0\.factor: found 0; allowed: a number above 0"),
    ({"role": "silent"}, r"clients\.roles: found .*; allowed: a list"),
]


@pytest.mark.parametrize(("roles", "words"), REFUSED)
def test_what_is_refused(roles: Any, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        small(clients__roles=roles)


def test_what_goes_with_no_uplink_of_that_kind_is_refused() -> None:
    cheat, scaled = [{"role": "power_cheat"}], [{"role": "scaled"}]
    for uplink in UPLINKS.values():
        with pytest.raises(ScenarioError, match=r"roles\.0\.role: found power_cheat with uplink\.kind"):
            small(clients__roles=cheat, uplink=uplink)
    votes = {
        "uplink": {"power_control": {"policy": "truncated_inversion"}, "modulation": {"scheme": "obda"}},
        "faults": {"fade_threshold": 0.1},
    }
    with pytest.raises(ScenarioError, match=r"found scaled by 10 with the modulation obda"):
        small(clients__roles=scaled, **votes)
    run(small(clients__roles=[*cheat, {"role": "sign_flip"}, {"role": "free_rider"}], **votes))
    with pytest.raises(ScenarioError, match=r"uplink\.jammer\.role: found rotating with clients\.roles"):
        small(clients__roles=cheat, uplink__jammer={"epsilon": 1.0, "role": "rotating"})


# ------------------------------------------------------------------------------------------------ what they send


@pytest.mark.parametrize("natural", [False, True], ids=["shared", "on demand"])
def test_flipped_labels_are_those_of_their_clients_alone(natural: bool) -> None:
    data: dict[str, Any] = {"data__partition": {"scheme": "dirichlet", "alpha": 0.5}}
    if natural:
        data = {"data": {"dataset": {"name": "synthetic"}, "partition": {"scheme": "natural"}}, "model": {}}
    roles = [{"role": "label_flip", "count": 2}]
    plain, poisoned = (build_simulation(small(clients__roles=some, **data), PLAN).deployment for some in ([], roles))
    assert poisoned.roles is not None
    everyone = np.array([4, 0, 1, 3, 2, 5])
    before, after = (parts.learner.population.shards(everyone) for parts in (plain, poisoned))
    for row, client in enumerate(everyone.tolist()):
        for place in range(int(before.sizes[row])):
            label = int(before.targets[before.index[row, place]])
            wanted = 9 - label if client in poisoned.roles.clients else label
            assert int(after.targets[after.index[row, place]]) == wanted
    assert bool((plain.learner.population.test.targets == poisoned.learner.population.test.targets).all())


@pytest.mark.parametrize("name", UPLINKS)
def test_the_mean_is_that_of_what_they_send(name: str) -> None:
    uplink = UPLINKS[name]
    scenario = small(rounds=1, clients__roles=ROLES, uplink=uplink)
    simulation, this, step = step_of(scenario)
    honest = first_updates(small(rounds=1, uplink=uplink))
    factor = np.ones(6)
    factor[of(simulation, Role.SIGN_FLIP)] = -2.0
    factor[of(simulation, Role.SCALED)] = 3.0
    factor[of(simulation, Role.FREE_RIDER)] = 0.0
    weight = simulation.deployment.network.registry.weight(np.arange(6))
    expected = sum(w * f * row for w, f, row in zip(weight, factor, honest, strict=True)) / weight.sum()
    np.testing.assert_allclose(step, expected, atol=2e-5 if "secure" in uplink["kind"] else 1e-7)
    np.testing.assert_allclose(this.slots["update_norm"], np.linalg.norm(honest, axis=1) * abs(factor), rtol=1e-5)
    np.testing.assert_array_equal(this.slots["role"][of(simulation, Role.SCALED)], int(Role.SCALED))


def test_a_secure_sum_holds_no_more_of_a_client_than_its_encoding() -> None:
    """A factor of a million would leave the ring: every coordinate is cut to the clip."""
    uplink = {"kind": "secure_aggregation", "clip": 1.0}
    scenario = small(rounds=1, clients__roles=[{"role": "scaled", "factor": 1e6}], uplink=uplink)
    simulation, _, step = step_of(scenario)
    sent = first_updates(small(rounds=1, uplink=uplink))
    (client,) = of(simulation, Role.SCALED)
    sent[client] = np.clip(1e6 * sent[client], -1.001, 1.001)
    weight = simulation.deployment.network.registry.weight(np.arange(6))
    np.testing.assert_allclose(step, weight @ sent / weight.sum(), atol=1e-3)


def test_a_free_rider_neither_trains_nor_pays_for_it() -> None:
    uplink = {"kind": "digital", "tx_power_dbm": 10.0}
    changes = {"uplink": uplink, "timing__switched_capacitance": 1e-28}
    _, honest, _ = run(small(**changes))
    simulation, rounds, _ = run(small(clients__roles=[{"role": "free_rider", "count": 2}], **changes))
    riders = of(simulation, Role.FREE_RIDER)
    others = np.setdiff1d(np.arange(6), riders)
    for this, plain in zip(rounds, honest, strict=True):
        assert np.all(this.slots["compute_time"][riders] == 0.0)
        assert np.all(np.isnan(this.slots["compute_energy_j"][riders]))
        np.testing.assert_array_equal(this.slots["compute_time"][others], plain.slots["compute_time"][others])
        assert np.all(this.slots["update_norm"][riders] == 0.0)
        assert math.isfinite(this.values["train_loss"])
    everyone = small(clients__roles=[{"role": "free_rider", "fraction": 1.0}], **changes)
    simulation, rounds, _ = run(everyone)
    start = build_simulation(everyone, PLAN).state.parameters
    assert np.array_equal(simulation.state.parameters, start) and math.isnan(rounds[0].values["train_loss"])


@pytest.mark.parametrize("uplink", [AIR, *UPLINKS.values()], ids=["air", *UPLINKS])
def test_who_is_silent_is_never_heard_and_costs_nothing(uplink: dict[str, Any]) -> None:
    simulation, rounds, _ = run(small(clients__roles=[{"role": "silent"}], uplink=uplink))
    silent = of(simulation, Role.SILENT)
    for this in rounds:
        assert np.all(this.status[silent] == Status.UNAVAILABLE)
        assert this.values["participants"] == 5
    assert np.all(simulation.ledger.client_epsilons()[1][silent] == 0.0)


def test_asynchronous_clients_have_roles_too() -> None:
    changes = {"uplink": {"kind": "digital"}, "aggregation": {"mode": "asynchronous", "buffer": 6}, "rounds": 1}
    simulation, _, step = step_of(small(clients__roles=ROLES, **changes))
    _, _, plain = step_of(small(**changes))
    honest, weight = first_updates(small(**changes)), simulation.deployment.network.registry.weight(np.arange(6))
    less = {Role.SIGN_FLIP: -3.0, Role.SCALED: 2.0, Role.FREE_RIDER: -1.0}
    change = sum(
        more * weight[of(simulation, role)[0]] * honest[of(simulation, role)[0]] for role, more in less.items()
    )
    assert scenario_mixing(simulation) > 0
    np.testing.assert_allclose(step - plain, scenario_mixing(simulation) * change / weight.sum(), atol=1e-6)


def scenario_mixing(simulation: Simulation) -> float:
    """α of asynchronous aggregation."""
    uplink: Any = simulation.deployment.uplink
    return float(uplink.mixing.rate)


# ------------------------------------------------------------------------------------------------ privacy


@pytest.mark.parametrize("changes", [{}, {"uplink__jammer": {"epsilon": 2.0}}, {"uplink__receiver": {"antennas": 2}}])
def test_cheaters_change_no_guarantee_of_others_and_have_none(changes: dict[str, Any]) -> None:
    plain, _, _ = run(small(**changes))
    roles = [{"role": "power_cheat", "factor": 9}, {"role": "scaled", "factor": 100}]
    simulation, rounds, _ = run(small(clients__roles=roles, **changes))
    cheaters = of(simulation, Role.POWER_CHEAT) + of(simulation, Role.SCALED)
    honest = np.setdiff1d(np.arange(6), cheaters)
    for found, expected in zip(simulation.ledger.client_epsilons(), plain.ledger.client_epsilons(), strict=True):
        np.testing.assert_array_equal(found[honest], expected[honest])
        assert np.all(found[cheaters] == 0.0)
    (release,) = rounds[0].round.releases
    assert isinstance(release, AirRelease) and release.clients.tolist() == honest.tolist()
    assert any("have no guarantee" in sentence for sentence in simulation.ledger.why_different())


def test_noise_of_who_does_not_follow_the_protocol_hides_nothing_in_a_secure_sum() -> None:
    zcdp = {"mechanism": "zcdp", "clip": 1.0, "noise_std": 0.1}
    changes = {"uplink": UPLINKS["secagg"], "training__privacy": zcdp, "rounds": 1}
    roles = [{"role": "label_flip"}, {"role": "free_rider"}, {"role": "silent"}]
    _, (this,), _ = run(small(clients__roles=roles, **changes))
    (release,) = (one for one in this.round.releases if type(one).__name__ == "ZcdpRelease")
    assert release.secure_sum is not None and release.secure_sum.survivors == 3  # type: ignore[attr-defined]
    assert this.values["participants"] == 5


def test_a_trusted_server_clips_what_a_client_scales() -> None:
    noise = {"mechanism": "gaussian", "unit": "client", "clip": 0.5, "noise_multiplier": 1.0}
    changes = {"uplink": {"kind": "ideal"}, "training__privacy": noise, "privacy": {"adversary": "observer"}}
    plain, _, _ = run(small(**changes))
    simulation, rounds, _ = run(small(clients__roles=[{"role": "scaled", "factor": 1e5}], **changes))
    assert simulation.ledger.epsilon_accounted() == plain.ledger.epsilon_accounted()
    assert float(np.nanmax(rounds[0].slots["update_norm"])) <= 0.5 * (1 + 1e-6)


# ------------------------------------------------------------------------------------------------ runs and traces

EVERY = [
    {"role": "label_flip"},
    {"role": "sign_flip"},
    {"role": "scaled", "factor": 4},
    {"role": "free_rider"},
    {"role": "silent"},
]
FAULTY = {"faults": {"availability": {"p": 0.7}, "crash_rate_per_s": 5.0}}


@pytest.mark.parametrize("uplink", [AIR, *UPLINKS.values()], ids=["air", *UPLINKS])
def test_a_run_goes_on_as_if_it_had_not_stopped(uplink: dict[str, Any], tmp_path: Path) -> None:
    scenario = small(clients__roles=EVERY, uplink=uplink, training__algorithm={"name": "fedprox"}, **FAULTY)
    goes_on_to_the_same_bits(scenario, tmp_path)


@pytest.mark.parametrize("payload", [1, 2])
def test_algorithms_that_keep_rows_of_clients(payload: int) -> None:
    scaffold = {"name": "scaffold", "payload": payload}
    scenario = small(clients__roles=EVERY, uplink={"kind": "digital"}, training__algorithm=scaffold, training__steps=3)
    simulation, _, _ = run(scenario)
    assert np.all(np.isfinite(simulation.state.parameters))


def test_the_trace_has_the_role_of_every_slot(tmp_path: Path) -> None:
    selection = {"scheme": "uniform", "count": 4}
    scenario = small(clients__roles=[*EVERY, {"role": "power_cheat"}], clients__selection=selection)
    wfl.simulate(scenario, tmp_path / "run", pictures=False)
    roles = build_simulation(scenario, PLAN).deployment.roles
    assert roles is not None
    with open_trace(tmp_path / "run" / "trace.h5") as ds:
        for clients, codes in zip(ds["client_id"].values, ds["role"].values, strict=True):
            np.testing.assert_array_equal(codes, roles.of(clients))
        assert ds["role"].attrs["flag_meanings"].split()[int(Role.FREE_RIDER)] == "free_rider"
