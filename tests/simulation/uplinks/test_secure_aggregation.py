"""Secure aggregation message by message: exact sums, dropouts, costs, state and privacy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.uplinks.cells import play
from tests.simulation.uplinks.secure import FAST, NEVER, PROTOCOLS, clients_with, exact_mean, record_of, secure, vanish
from wirelessfl.assembly import build_simulation
from wirelessfl.privacy.releases import SecureSum
from wirelessfl.radio.digital_links import Link
from wirelessfl.secagg import RoundAborted, RoundParameters, RoundResult, Stage, complete_neighbourhood, rehearse
from wirelessfl.simulation.uplinks.secure_aggregation import PairwisePrf, SecureUplink
from wirelessfl.trace import EventKind, SecAggStage, Status

# ------------------------------------------------------------------------------------------------ the sum


@pytest.mark.parametrize("hide_weights", [False, True])
@pytest.mark.parametrize("bits", [20, 32, 63])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_mean_is_that_of_the_encoded_inputs_bit_for_bit(protocol: str, bits: int, hide_weights: bool) -> None:
    scenario = secure(protocol, bits=bits, hide_weights=hide_weights, data__partition={"scheme": "sizes"})
    played = play(scenario, links=[FAST] * 6)
    for this, (index, received) in zip(played.rounds, played.learner.received, strict=True):
        assert index == this.index and clients_with(this, Status.PARTICIPATED) == list(range(6))
        np.testing.assert_array_equal(received, exact_mean(played, this, list(range(6))))
    wanted = np.average([played.learner.update_of(k) for k in range(6)], axis=0, weights=played.samples)
    steps = (2 ** (bits - 1) - 1) // 6
    # Every client is off by less than a step of τ(1 + 2^-10)/steps a coordinate, of Δ_i times n_i over a bound on it.
    bound = played.samples.sum() if hide_weights else played.samples.max()
    allowed = 6 * (1 + 2.0**-10) / steps * bound / played.samples.sum()
    allowed += 6 * 2.0**-52  # and both sums are rounded
    np.testing.assert_allclose(played.learner.received[0][1], wanted, rtol=0, atol=allowed)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("algorithm", [{"name": "upcycled"}, {"name": "fedprox", "mu": 0.3}])
def test_the_model_is_that_of_the_ideal_uplink(protocol: str, algorithm: dict[str, Any]) -> None:
    ideal, _, _ = run(small(uplink={"kind": "ideal", "clip": 1.0}, training__algorithm=algorithm))
    masked, _, _ = run(secure(protocol, training__algorithm=algorithm))
    # As for other identities: float32 parameters around 0.1; the fixed-point steps of 3e-9 are far below that.
    np.testing.assert_allclose(masked.state.parameters, ideal.state.parameters, rtol=0, atol=2e-6)


@pytest.mark.parametrize("stages", list(itertools.product(range(NEVER + 1), repeat=3)))
def test_every_dropout_of_three_clients_at_every_stage(
    stages: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_dropouts(stages, 2, monkeypatch)


@pytest.mark.parametrize("seed", range(30))
def test_dropouts_of_six_clients(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(seed)
    stages = np.where(generator.random(6) < 0.4, generator.integers(0, NEVER, 6), NEVER)
    check_dropouts(tuple(stages.tolist()), 4, monkeypatch)


def check_dropouts(stages: tuple[int, ...], threshold: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the protocol without clock: the same survivors in the same sum, or the same reason to give up."""
    vanish(monkeypatch, dict(enumerate(stages)))
    count = len(stages)
    played = play(secure(clients__count=count, rounds=1, threshold=threshold), [0.1] * count, [FAST] * count)
    (this,) = played.rounds
    neighbourhood = complete_neighbourhood(count, threshold)
    uplink = played.simulation.deployment.uplink
    assert isinstance(uplink, SecureUplink)
    parameters = RoundParameters(bytes(16), 10, uplink.encoding.ring, neighbourhood)
    inputs = {client: uplink.encoding.ring.zeros(10) for client in range(count)}
    silent = {client: Stage(stage) for client, stage in enumerate(stages) if stage < NEVER}
    expected = rehearse(parameters, inputs, silent, seed=1)
    masked = [client for client, stage in enumerate(stages) if stage > Stage.MASKED_INPUT]
    sent = [client for client, stage in enumerate(stages) if stage >= Stage.MASKED_INPUT]
    if isinstance(expected, RoundResult):
        assert list(expected.contributors) == masked
        assert clients_with(this, Status.PARTICIPATED) == masked
        np.testing.assert_array_equal(played.learner.received[0][1], exact_mean(played, this, masked))
        assert record_of(this).abort_reason == ""
        assert clients_with(this, Status.CRASHED) == [client for client in range(count) if client not in masked]
    else:
        assert isinstance(expected, RoundAborted)
        assert record_of(this).abort_reason == expected.reason
        assert not played.learner.received and not played.simulation.state.parameters.any()
        assert this.values["participants"] == 0
        assert played.times(EventKind.ABORT)
        reached = [client for client, stage in enumerate(stages) if stage > expected.stage]
        assert clients_with(this, Status.ABORTED) == reached
    # Trained are those whose masked input arrived, charged are those who sent any of it.
    reached_masking = isinstance(expected, RoundResult) or expected.stage >= Stage.MASKED_INPUT
    assert played.learner.trained == ([(1, masked)] if reached_masking and masked else [])
    assert [clients for _, clients, _ in played.learner.charged] == ([sent] if reached_masking and sent else [])


# ------------------------------------------------------------------------------------------------ time and messages


def test_every_message_has_its_size_its_airtime_and_its_arrival() -> None:
    # One client needs 1 ms a bit, the other two 1 µs; computing takes 1, 2 and 4 s; the downlink takes no time.
    links = (Link(1e-6), Link(1e-3), Link(1e-6))
    played = play(secure(clients__count=3, rounds=1, threshold=2), (1.0, 2.0, 4.0), links)
    header = 8 * (1 + 16 + 4 + 4 + 16)  # kind, session, sender, receiver, tag
    share = 9 * 32
    advertise, shares = header + 2 * 256, header + 2 * (32 + 2 * share + 128)
    masked, unmask = header + 32 * 10, header + 3 * (32 + share)
    begins, pace = {0: 1.0, 1: 2.0, 2: 4.0}, {0: 1e-6, 1: 1e-3, 2: 1e-6}
    arrive = {node: begins[node] + advertise * pace[node] for node in range(3)}
    assert played.times(EventKind.ADVERTISE_KEYS) == [(1.0, 0), (2.0, 1), (4.0, 2)]
    arrivals = played.times(EventKind.ARRIVE)
    ends = max(arrive.values())
    assert {node: time for time, node in arrivals[:3]} == pytest.approx(arrive, abs=1e-12)
    for number, (kind, bits) in enumerate(
        [(EventKind.SHARE_KEYS, shares), (EventKind.MASKED_INPUT, masked), (EventKind.UNMASK, unmask)], start=1
    ):
        times, nodes = zip(*played.times(kind), strict=True)
        assert nodes == (0, 1, 2) and times == pytest.approx([ends] * 3, abs=1e-12)
        stage = arrivals[3 * number : 3 * number + 3]
        assert {node: time for time, node in stage} == pytest.approx(
            {node: ends + bits * pace[node] for node in range(3)}, abs=1e-12
        )
        ends += bits * 1e-3
    this = played.rounds[0]
    assert this.values["sim_time"] == pytest.approx(ends, abs=1e-12)
    costs = record_of(this).costs
    np.testing.assert_array_equal(costs["messages_up"], [0, 3, 3, 3, 3])
    np.testing.assert_array_equal(costs["bits_up"], 3 * np.array([0, advertise, shares, masked, unmask]))
    np.testing.assert_array_equal(costs["messages_down"], [0, 0, 3, 3, 3])
    keys, deliveries, requests = 2 * (32 + 512), 2 * (32 + 2 * share + 128), 3 * 32
    down = [0, 0, header + keys, header + deliveries, header + requests]
    np.testing.assert_array_equal(costs["bits_down"], 3 * np.array(down))
    np.testing.assert_allclose(
        costs["seconds"], [0.0, arrive[2] - 1.0, shares * 1e-3, masked * 1e-3, unmask * 1e-3], atol=1e-12
    )


def test_the_server_sends_one_message_after_the_other() -> None:
    scenario = secure(clients__count=3, rounds=1, threshold=2, timing__downlink_bps=1e3, timing__cpu_hz=[1e15, 1e15])
    played = play(scenario, links=[FAST] * 3)
    header, keys = 8 * 41, 2 * (32 + 512)
    times = [time for time, _ in played.times(EventKind.REQUEST)[:3]]
    np.testing.assert_allclose(np.diff(times), (header + keys) / 1e3, rtol=1e-9)
    began = played.times(EventKind.ARRIVE)[2][0]
    assert times[0] - began == pytest.approx((header + keys) / 1e3, rel=1e-9)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_energy_and_airtime_add_up(protocol: str) -> None:
    scenario = secure(protocol, tx_power_dbm=20.0, dropout={"masked_input": 0.3}, rounds=6, stage_timeout_s=2.0)
    simulation, rounds, _ = run(scenario)
    total = 0.0
    for this in rounds:
        costs = record_of(this).costs
        by_client = np.nansum(this.slots["tx_energy_j"]) + costs["energy"][SecAggStage.SET_UP]
        assert costs["energy"].sum() == pytest.approx(by_client, rel=1e-12)
        assert this.values["energy"] == pytest.approx(by_client, rel=1e-12)
        np.testing.assert_allclose(this.slots["tx_energy_j"], 0.1 * this.slots["tx_time"], rtol=1e-12)
        longest = np.nanmax(this.slots["tx_time"])
        assert longest <= this.values["airtime"] <= this.values["sim_time"]
        total += this.values["energy"]
    assert simulation.state.energy_j == pytest.approx(total, rel=1e-12)


# ------------------------------------------------------------------------------------------------ state and privacy


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_run_that_is_resumed_ends_with_the_same_bits(protocol: str, tmp_path: Any) -> None:
    scenario = secure(protocol, rounds=4, dropout={"masked_input": 0.2})
    whole, rest = goes_on_to_the_same_bits(scenario, tmp_path, 2)
    assert rest.state.uplink_memory == whole.state.uplink_memory
    for one, other in zip(whole.rounds[2:], rest.rounds, strict=True):
        for name, column in record_of(one).costs.items():
            np.testing.assert_array_equal(column, record_of(other).costs[name])


@pytest.mark.parametrize(
    ("protocol", "keys", "threshold"),
    [
        ("pairwise_prf", {}, 5),
        ("secagg", {}, 5),
        ("secagg", {"threshold": 4}, 4),
        ("secagg_plus", {"neighbours": 4}, 3),
    ],
)
def test_the_ledger_hears_who_is_in_the_sum_and_who_may_collude(
    protocol: str, keys: dict[str, Any], threshold: int
) -> None:
    played = play(secure(protocol, rounds=1, **keys), [1.0] * 6, [FAST] * 6)
    assert played.learner.charged == [(1, list(range(6)), SecureSum(6, 6, threshold=threshold, arithmetic="integer"))]


def test_zcdp_noise_in_integers_is_accounted_for_each_upload_alone() -> None:
    noise = {"mechanism": "zcdp", "clip": 1.0, "noise_std": 0.5}
    one_step: dict[str, Any] = {"training__steps": 1, "training__epochs": None, "training__privacy": noise}
    masked, rounds, _ = run(secure(rounds=2, **one_step))
    plain, _, _ = run(small(rounds=2, uplink={"kind": "ideal"}, **one_step))
    assert masked.ledger.epsilon_accounted() == pytest.approx(plain.ledger.epsilon_accounted(), rel=1e-12)
    # Theorem 1 divides ρ by the six clients of a round.
    rho = {}
    for name, simulation in (("masked", masked), ("plain", plain)):
        epsilon, log = simulation.ledger.epsilon_published(), math.log(1e5)
        rho[name] = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
    assert rho["masked"] == pytest.approx(rho["plain"] / 6, rel=1e-9)
    assert any("integer arithmetic" in reason for reason in masked.ledger.why_different())
    assert rounds[0].round.releases[0].clients.tolist() == list(range(6))


def test_without_noise_nothing_is_claimed() -> None:
    simulation, _, _ = run(secure(rounds=1))
    assert math.isinf(simulation.ledger.epsilon_accounted())
    assert math.isinf(simulation.ledger.epsilon_published())


def test_pairwise_seeds_are_the_same_in_every_simulation_of_a_seed() -> None:
    one, other = (build_simulation(secure("pairwise_prf"), PLAN).deployment.uplink for _ in range(2))
    assert isinstance(one, PairwisePrf) and isinstance(other, PairwisePrf)
    for client, member in one.membership.clients.items():
        twin = other.membership.clients[client]
        assert member.seeds is not None and twin.seeds is not None
        np.testing.assert_array_equal(member.seeds.seeds, twin.seeds.seeds)
