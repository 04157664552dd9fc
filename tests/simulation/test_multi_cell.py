"""Several cells in one slot, and edges with models of their own, against the formulas written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import AlgorithmFacts, FedAvg
from wirelessfl.privacy import gaussian_epsilon, zcdp_epsilon
from wirelessfl.radio.network import Network
from wirelessfl.scenario import Scenario, load_scenario
from wirelessfl.simulation import FinishedRound, Simulation
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.trace import EventKind, Status

CELLS = {"kind": "multi_cell", "rings": 1, "inter_site_distance_m": 400.0}
HEXAGONS = {"scheme": "hexagonal", "rings": 1, "inter_site_distance_m": 400.0}
LOG = {"model": "log_distance", "exponent": 3.5, "shadowing_db": 6.0}
# float32 sums of up to 14 updates of norm up to 1.
ROUNDING = 2e-6


def cellular(**overrides: Any) -> Scenario:
    """14 clients over 7 cells; every cell hears the others at some ten decibels less."""
    defaults: dict[str, Any] = {
        "topology": CELLS,
        "clients__count": 14,
        "data__limit": 280,
        "channel__placement": HEXAGONS,
        "channel__pathloss": LOG,
        "uplink__power_control": {"server_gain": 60.0},
        "uplink__snr_db": 10.0,
    }
    return small(**{**defaults, **overrides})


def played(scenario: Scenario) -> tuple[Simulation, list[FinishedRound], np.ndarray]:
    """A run of one round, and what it changed of the model."""
    simulation = build_simulation(scenario, PLAN)
    before = simulation.state.parameters
    rounds: list[FinishedRound] = []
    simulation.run(lambda this, _: rounds.append(this))
    return simulation, rounds, simulation.state.parameters.astype(np.float64) - before


def network_of(simulation: Simulation) -> Network:
    network = simulation.deployment.network
    assert network.sites is not None
    return network


def updates_of(simulation: Simulation, start: np.ndarray, clients: np.ndarray, round_index: int) -> np.ndarray:
    """(n, d) the updates of clients that train from ``start``."""
    learner = simulation.deployment.learner
    assert isinstance(learner, Learner)
    state = learner.initial_state(0)
    state.parameters = start
    blocks = list(learner.train(start, state, clients, round_index))
    order = np.argsort(np.concatenate([block.positions for block in blocks]))
    return np.concatenate([block.updates.numpy() for block in blocks])[order].astype(np.float64)


def tx_gains(this: FinishedRound) -> np.ndarray:
    """α_i from the trace: its magnitude, and the phase of ĥ turned back."""
    estimate = this.slots["csi_re"] + 1j * this.slots["csi_im"]
    return np.asarray(this.slots["tx_gain_abs"] * np.exp(-1j * np.angle(estimate)))


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"channel__csi": {"error_std": 0.3}, "faults__fade_threshold": 0.3},
        {"uplink__iq_packing": True, "channel__csi": {"error_std": 0.3}},
        {"channel__correlation": {"model": "gauss_markov", "doppler_hz": 10.0}, "faults__availability": {"p": 0.7}},
    ],
    ids=["plain", "csi", "iq", "correlated"],
)
def test_a_single_cell_is_the_same_with_and_without_the_word(overrides: dict[str, Any]) -> None:
    common = {"topology": {"kind": "single_cell"}, "rounds": 3, **overrides}
    one, rounds, _ = run(cellular(**common))
    # One cell without rings and a backhaul of less than a tick, a picosecond: the same bits.
    other, again, _ = run(cellular(**{**common, "topology": {"kind": "multi_cell", "rings": 0, "backhaul_bps": 1e18}}))
    np.testing.assert_array_equal(one.state.parameters, other.state.parameters)
    for first, second in zip(rounds, again, strict=True):
        for name, column in first.slots.items():
            np.testing.assert_array_equal(column, second.slots[name])
        for name in ("sim_time", "epsilon_published", "effective_noise_std", "server_gain", "airtime"):
            assert first.values[name] == second.values[name]
        assert first.values["epsilon_accounted"] == pytest.approx(second.values["epsilon_accounted"], rel=1e-12)
        assert second.values["interference_std"] == 0.0


@pytest.mark.parametrize("policy", ["cross_layer", "full_power", "mmse", "weakest_inversion"])
def test_what_is_received_is_the_formula(policy: str) -> None:
    """y_c = Re Σ_i h_ic α_i Δ_i + z_c over all clients at every base station that serves somebody."""
    control = {"policy": policy, **({"server_gain": 60.0} if policy == "cross_layer" else {})}
    scenario = cellular(rounds=1, channel__csi={"error_std": 0.2}, uplink__power_control=control)
    simulation, (this,), change = played(scenario)
    network, uplink = network_of(simulation), simulation.deployment.uplink
    assert isinstance(uplink, OverTheAir)
    clients = np.arange(14)
    links = network.cell_links(clients, this.round.moment)
    updates = updates_of(simulation, build_simulation(scenario, PLAN).state.parameters, clients, 1)
    alpha, weight = tx_gains(this), network.registry.weight(clients)
    total, interference = np.zeros(610), np.zeros(610)
    for station in range(7):
        mine = links.serving == station
        if not mine.any():
            continue
        heard = np.real(links.channel[:, station, 0, 0, 0] * alpha) @ updates
        noise = network.streams.generator("receiver_noise", 1, station).standard_normal(610)
        gain = uplink.policies[station].plan(links.own.take(np.flatnonzero(mine)).rows(), 1, uplink.air).server_gain
        total += (heard + noise) / gain
        interference += np.real(links.channel[~mine, station, 0, 0, 0] * alpha[~mine]) @ updates[~mine] / gain
    np.testing.assert_allclose(change, total / weight.sum(), rtol=0, atol=ROUNDING * max(1.0, np.abs(total).max()))
    assert this.values["interference_std"] == pytest.approx(np.sqrt(np.mean(interference**2)), rel=1e-4)
    assert this.values["interference_std"] > 0


def test_clients_are_served_by_the_base_station_they_hear_best() -> None:
    simulation, rounds, _ = run(cellular())
    network = network_of(simulation)
    for this in rounds:
        found = [
            source.channels(this.clients, this.round.moment).path_gain for source in (network.clients, *network.others)
        ]
        np.testing.assert_array_equal(this.slots["cell"], np.argmax(found, axis=0))
        np.testing.assert_array_equal(this.slots["path_gain"], np.max(found, axis=0))
    assert len(np.unique(rounds[0].slots["cell"])) > 3


def test_cells_far_apart_do_not_disturb_each_other() -> None:
    """Steep path loss, no noise to speak of, no fading: federated averaging."""
    steep = {
        "channel__pathloss": {"model": "log_distance", "exponent": 10.0, "reference_distance_m": 10.0},
        "channel__placement": {
            "scheme": "positions",
            "points_m": [[400.0 * (i % 2) + 10.0, 0.0] for i in range(14)],
        },
        "channel__fading": {"model": "static"},
        "uplink__snr_db": 250.0,
        "uplink__power_control": {"server_gain": 1e10},
    }
    found, rounds, _ = run(cellular(**steep))
    ideal, _, _ = run(small(clients__count=14, data__limit=280, uplink={"kind": "ideal", "clip": 1.0}))
    assert (
        sorted(np.unique(rounds[0].slots["cell"]).tolist()) == [0.0, 4.0]
        or len(np.unique(rounds[0].slots["cell"])) == 2
    )
    assert max(this.values["interference_std"] for this in rounds) < 1e-9
    np.testing.assert_allclose(found.state.parameters, ideal.state.parameters, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("policy", ["cross_layer", "mmse"])
def test_every_base_station_adds_to_what_is_known_of_a_client(policy: str) -> None:
    """By hand: 2 |h_ic α_i| τ/σ_c at each of the seven, in independent noise."""
    control = {"policy": policy, **({"server_gain": 60.0} if policy == "cross_layer" else {})}
    scenario = cellular(channel__csi={"error_std": 0.2}, uplink__power_control=control)
    simulation, rounds, _ = run(scenario)
    mu_squared = np.zeros(14)
    for this in rounds:
        links = network_of(simulation).cell_links(this.clients, this.round.moment)
        mu_squared += np.sum(
            (2 * np.abs(links.channel[:, :, 0, 0, 0]) * this.slots["tx_gain_abs"][:, None]) ** 2, axis=1
        )
    expected = gaussian_epsilon(np.sqrt(mu_squared), scenario.privacy.delta)
    np.testing.assert_allclose(simulation.ledger.client_epsilons()[1], expected, rtol=1e-9)


def test_the_theorem_counts_a_clients_own_cell() -> None:
    """Theorem 1 with s_i: Σ_m α_u²/(2 |D|² s² σ_c²)."""
    simulation, rounds, _ = run(cellular())
    rho = sum(60.0**2 / (2 * 280**2 * this.slots["backoff"] ** 2) for this in rounds)
    expected = [zcdp_epsilon(float(value), 1e-5) for value in np.asarray(rho)]
    np.testing.assert_allclose(simulation.ledger.client_epsilons()[0], expected, rtol=1e-9)


def test_energy_stays_in_the_budget_and_adds_up() -> None:
    uplink = {"kind": "over_the_air", "tx_power_dbm": 20.0, "power_control": {"policy": "mmse"}}
    simulation, rounds, _ = run(cellular(uplink=uplink))
    budget = simulation.deployment.network.registry.power_budget
    for this in rounds:
        assert np.nanmax(this.slots["tx_energy"]) <= budget * (1 + 1e-6)
        assert this.values["energy"] == pytest.approx(float(np.nansum(this.slots["tx_energy_j"])), rel=1e-12)


def test_the_backhaul_takes_its_time() -> None:
    topology = {**CELLS, "backhaul_bps": 1e4}
    _, slow, _ = run(cellular(topology=topology, rounds=2))
    _, fast, _ = run(cellular(topology={**CELLS, "backhaul_bps": 1e18}, rounds=2))
    for index, (one, other) in enumerate(zip(slow, fast, strict=True), start=1):
        assert one.values["sim_time"] - other.values["sim_time"] == pytest.approx(index * 2 * 32 * 610 / 1e4, abs=1e-9)


class Announcing(FedAvg):
    """The server sends three vectors, the clients one."""

    def facts(self) -> AlgorithmFacts:
        return AlgorithmFacts(broadcast=3)


def test_the_backhaul_carries_all_that_the_server_sends() -> None:
    own = {"training__algorithm": {"name": f"{__name__}:Announcing"}, "rounds": 1}
    _, (slow,), _ = run(cellular(topology={**CELLS, "backhaul_bps": 1e4}, **own))
    _, (fast,), _ = run(cellular(topology={**CELLS, "backhaul_bps": 1e18}, **own))
    assert slow.values["sim_time"] - fast.values["sim_time"] == pytest.approx((3 + 1) * 32 * 610 / 1e4, abs=1e-9)


def hierarchical(edge_rounds: int, **overrides: Any) -> Scenario:
    topology = {**CELLS, "kind": "hierarchical", "edge_rounds": edge_rounds, "backhaul_bps": 1e4}
    return cellular(**{"topology": topology, "rounds": 4, **overrides})


def test_averaging_in_every_round_is_the_flat_topology() -> None:
    edges, _, _ = run(hierarchical(1))
    flat, _, _ = run(cellular(rounds=4))
    np.testing.assert_allclose(edges.state.parameters, flat.state.parameters, rtol=0, atol=4 * ROUNDING)


@pytest.mark.parametrize(
    ("restarts", "apart"), [({}, 2), ({"p": 0.5, "downtime_s": 0.01}, 3)], ids=["none", "restarts"]
)
def test_edges_go_on_from_their_own_models(restarts: dict[str, float], apart: int) -> None:
    """Averagings in six rounds, written out: each edge steps by its own mean, the cloud weighs by data heard.

    In a round whose uploads a restart of the server loses nothing changes, and nothing is averaged: here 3 and 5.
    """
    faults = {"faults__availability": {"p": 0.6}, **({"faults__server_restart": restarts} if restarts else {})}
    scenario = hierarchical(apart, rounds=6, **faults)
    simulation, rounds, _ = run(scenario)
    lost = [bool(np.any(this.round.status == Status.LOST)) for this in rounds]
    assert [at for at, one in enumerate(lost, start=1) if one] == ([3, 5] if restarts else [])
    network = network_of(simulation)
    model = build_simulation(scenario, PLAN).state.parameters.astype(np.float64)
    edges, heard = np.repeat(model[None], 7, axis=0), np.zeros(7)
    for this in rounds:
        senders = this.round.with_status(Status.PARTICIPATED)
        if lost[this.index - 1]:
            assert len(senders) == 0
            continue
        clients = this.clients[senders]
        links = network.cell_links(clients, this.round.moment)
        updates = np.stack(
            [
                updates_of(simulation, edges[station].astype(np.float32), clients[[row]], this.index)[0]
                for row, station in enumerate(links.serving)
            ]
        )
        alpha, weight = tx_gains(this)[senders], network.registry.weight(clients)
        for station in np.unique(links.serving):
            mine = links.serving == station
            noise = network.streams.generator("receiver_noise", this.index, int(station)).standard_normal(610)
            read = (np.real(links.channel[:, station, 0, 0, 0] * alpha) @ updates + noise) / 60.0
            edges[station] += read / weight[mine].sum()
            heard[station] += weight[mine].sum()
        model = heard @ edges / heard.sum()
        if this.index % apart == 0:
            edges, heard = np.repeat(model[None], 7, axis=0), np.zeros(7)
    np.testing.assert_allclose(simulation.state.parameters, model, rtol=0, atol=20 * ROUNDING)


def test_the_cloud_is_heard_of_every_few_rounds() -> None:
    _, rounds, events = run(hierarchical(2))
    clouds = [int(np.sum(np.asarray(batch.kind) == EventKind.CLOUD)) for batch in events]
    assert clouds == [0, 1, 0, 1]
    length = np.diff([0.0] + [this.values["sim_time"] for this in rounds])
    nominal = length - [0.0, 2 * 32 * 610 / 1e4, 0.0, 2 * 32 * 610 / 1e4]
    assert np.all(nominal > 0) and np.ptp(nominal) < 0.2


def test_a_round_without_anybody_leaves_every_edge_where_it_is() -> None:
    simulation, rounds, _ = run(hierarchical(2, faults__fade_threshold=1e9))
    start = build_simulation(hierarchical(2), PLAN).state.parameters
    np.testing.assert_array_equal(simulation.state.parameters, start)
    assert [this.values["participants"] for this in rounds] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"uplink": {"kind": "ideal"}}, r"uplink\.kind: found ideal with topology\.kind: multi_cell"),
        ({"uplink__jammer": {"epsilon": 1.0}}, r"uplink\.jammer: found a jammer with topology\.kind: multi_cell"),
        ({"channel__pathloss": {"model": "none"}}, r"channel\.pathloss\.model: found none with topology"),
        (
            {"channel__fading": {"model": "recorded", "file": "gains.csv"}},
            r"channel\.fading\.model: found recorded with topology",
        ),
        (
            {"topology": {"kind": "hierarchical"}, "training__algorithm": {"name": "upcycled"}},
            r"training\.algorithm\.name: found upcycled with topology\.kind: hierarchical",
        ),
    ],
)
def test_topologies_that_do_not_go_together(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        cellular(**overrides)


@pytest.mark.filterwarnings("ignore::wirelessfl.errors.ModelWarning")
def test_the_shipped_urban_scenario_has_all_it_promises() -> None:
    """Several cells, clients on the move, correlated fading, stragglers behind a deadline, dropouts; energy adds up."""
    quick = {"rounds": 4, "training.epochs": 1, "timing.cycles_per_sample": 5e8}
    simulation, rounds, _ = run(load_scenario("urban-macro-deadline", quick))
    statuses = {int(status) for this in rounds for status in this.status}
    assert {Status.PARTICIPATED, Status.UNAVAILABLE, Status.LATE} <= statuses
    gains = np.stack([this.slots["path_gain"] for this in rounds])
    both = np.isfinite(gains).all(axis=0)
    assert np.all(np.ptp(gains[:, both], axis=0) > 0), "everybody moves"
    assert all(len(np.unique(this.slots["cell"][~np.isnan(this.slots["cell"])])) == 7 for this in rounds)
    assert all(this.values["interference_std"] > 0 for this in rounds)
    parts = sum(np.nansum(this.slots["tx_energy_j"]) + np.nansum(this.slots["compute_energy_j"]) for this in rounds)
    assert simulation.state.energy_j == pytest.approx(float(parts), rel=1e-12)
