"""Secure aggregation message by message: exact sums, dropouts, time-outs, refusals, costs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.uplinks.cells import Play, play
from wirelessfl.assembly import build_simulation
from wirelessfl.privacy.releases import SecureSum
from wirelessfl.radio.digital_links import Link
from wirelessfl.scenario import Scenario
from wirelessfl.secagg import RoundAborted, RoundParameters, RoundResult, Stage, complete_neighbourhood, rehearse
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.records import Round, SecAggRecord
from wirelessfl.simulation.uplinks.secure_aggregation import PairwisePrf, SecureUplink
from wirelessfl.streams import Streams
from wirelessfl.trace import EventKind, SecAggStage, Status

PROTOCOLS = ("pairwise_prf", "secagg", "secagg_plus")
FAST = Link(1e-9)
NEVER = 4


def secure(protocol: str = "secagg", **overrides: Any) -> Scenario:
    """The small scenario under secure aggregation; keys of the uplink without prefix."""
    others = {key: overrides.pop(key) for key in list(overrides) if "__" in key or key in ("rounds", "seed", "stop")}
    return small(uplink={"kind": "secure_aggregation", "protocol": protocol, **overrides}, **others)


def record_of(this: FinishedRound) -> SecAggRecord:
    """What the round says of secure aggregation."""
    assert this.round.secagg is not None
    return this.round.secagg


def clients_with(this: FinishedRound, status: Status) -> list[int]:
    """The clients in a status."""
    found: list[int] = this.clients[this.round.with_status(status)].tolist()
    return found


def vanish(monkeypatch: pytest.MonkeyPatch, stages: dict[int, int], messages: int = 4) -> None:
    """Let each client in ``stages`` vanish in the middle of its message of that number."""

    def vanishing(self: SecureUplink, this: Round, streams: Streams) -> NDArray[np.float64]:
        share = np.full((len(this.clients), messages), np.nan)
        for row, client in enumerate(this.clients.tolist()):
            if stages.get(client, NEVER) < messages:
                share[row, stages[client]] = 0.5
        return share

    monkeypatch.setattr(SecureUplink, "vanishing", vanishing)


def exact_mean(played: Play, this: FinishedRound, clients: list[int]) -> NDArray[np.float64]:
    """The mean decoded from the sum of the encoded inputs of ``clients``, which no mask has touched."""
    uplink = played.simulation.deployment.uplink
    assert isinstance(uplink, SecureUplink)
    encoding, total = uplink.encoding, uplink.encoding.ring.zeros(uplink.encoding.length)
    for client in clients:
        generator = Streams(11).generator("fixed_point", this.index, client)
        total += encoding.encode(played.learner.update_of(client), int(played.samples[client]), generator)
    encoding.ring.reduce(total)
    return encoding.decode(total, played.samples[clients])


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


# ------------------------------------------------------------------------------------------------ late and lost


def test_a_late_masked_input_is_refused_and_charged_and_never_computed() -> None:
    # Client 1 sends at 10 ms a bit: its shares, the longest message but the masked input, take 25.36 s.
    links = (FAST, Link(1e-2), FAST, FAST)
    scenario = secure(clients__count=4, rounds=2, threshold=3, stage_timeout_s=26.0)
    played = play(scenario, [1.0] * 4, links, dimension=60)  # 328 + 60·32 bits: 22.48 s
    for this in played.rounds:
        assert clients_with(this, Status.PARTICIPATED) == [0, 1, 2, 3]
    played = play(scenario, [1.0] * 4, links, dimension=100)  # 35.28 s
    for this in played.rounds:
        assert clients_with(this, Status.PARTICIPATED) == [0, 2, 3]
        assert clients_with(this, Status.LATE) == [1]
        costs = record_of(this).costs
        assert costs["dropouts"].tolist() == [0, 0, 0, 1, 0]
    assert played.learner.trained == [(1, [0, 2, 3]), (2, [0, 2, 3])]
    assert [clients for _, clients, _ in played.learner.charged] == [[0, 1, 2, 3]] * 2


def test_a_message_that_comes_in_a_later_stage_is_refused() -> None:
    # The shares of client 1 take 11.6 s: beyond the time-out of its stage, within the masked inputs of the others.
    links = (Link(1e-2), Link(1.6e-2), Link(1e-2), Link(1e-2))
    scenario = secure(clients__count=4, rounds=1, threshold=3, stage_timeout_s=30.0)
    played = play(scenario, [1.0] * 4, links, dimension=40)
    shares = 8 * 41 + 3 * (32 + 2 * 288 + 128)
    assert 1e-2 * shares < 30.0 < 1.6e-2 * shares
    assert [node for _, node in played.times(EventKind.REFUSE)] == [1]
    (this,) = played.rounds
    assert record_of(this).costs["refused"].tolist() == [0, 0, 1, 0, 0]
    assert clients_with(this, Status.LATE) == [1]
    assert clients_with(this, Status.PARTICIPATED) == [0, 2, 3]
    assert played.learner.charged[0][1] == [0, 2, 3]  # the masked input of client 1 was never asked for


def test_a_lost_client_is_noticed_at_once_or_waited_for_until_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    vanish(monkeypatch, {1: 2})
    noticed = play(secure(clients__count=4, rounds=1, threshold=3), [1.0] * 4, [FAST] * 4)
    silent = play(secure(clients__count=4, rounds=1, threshold=3, stage_timeout_s=5.0), [1.0] * 4, [FAST] * 4)
    assert not noticed.times(EventKind.TIME_OUT) and len(silent.times(EventKind.TIME_OUT)) == 1
    assert noticed.rounds[0].values["sim_time"] < 1.01
    assert 6.0 < silent.rounds[0].values["sim_time"] < 6.01
    for played in (noticed, silent):
        (time, node), *others = played.times(EventKind.VANISH)
        assert node == 1 and not others
        began = next(at for at, who in played.times(EventKind.MASKED_INPUT) if who == 1)
        assert time - began == pytest.approx(0.5 * (328 + 320) * 1e-9, abs=1e-12)
        assert clients_with(played.rounds[0], Status.CRASHED) == [1]
        assert clients_with(played.rounds[0], Status.PARTICIPATED) == [0, 2, 3]


def test_who_trains_too_long_is_late_and_who_crashes_is_not_waited_for() -> None:
    played = play(
        secure(clients__count=5, rounds=1, threshold=3, timing__wait_for={"count": 4}),
        (1.0, 2.0, 3.0, 4.0, 50.0),
        [FAST] * 5,
    )
    (this,) = played.rounds
    assert clients_with(this, Status.LATE) == [4]
    assert this.values["sim_time"] < 4.01 and this.values["participants"] == 4
    played = play(secure(rounds=6, faults__crash_rate_per_s=40.0, threshold=4), [0.02] * 6, [FAST] * 6)
    crashed = [clients_with(this, Status.CRASHED) for this in played.rounds]
    assert any(crashed) and not all(len(each) == 6 for each in crashed)
    for this, gone in zip(played.rounds, crashed, strict=True):
        assert record_of(this).costs["dropouts"][SecAggStage.ADVERTISE_KEYS] == len(gone)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_client_in_an_outage_takes_no_part(protocol: str) -> None:
    links = (FAST, Link(1e-9, sends=False, delivers=False), FAST, FAST)
    played = play(secure(protocol, clients__count=4, rounds=1), [1.0] * 4, links)
    (this,) = played.rounds
    assert clients_with(this, Status.DEEP_FADE) == [1]
    assert clients_with(this, Status.PARTICIPATED) == [0, 2, 3]
    assert played.learner.charged[0][1] == [0, 2, 3]
    np.testing.assert_array_equal(played.learner.received[0][1], exact_mean(played, this, [0, 2, 3]))


def test_a_client_whose_messages_get_lost_is_dropped() -> None:
    links = (FAST, Link(1e-9, delivers=False), FAST, FAST)
    played = play(secure(clients__count=4, rounds=1), [1.0] * 4, links)
    (this,) = played.rounds
    assert clients_with(this, Status.OUTAGE) == [1]
    assert clients_with(this, Status.PARTICIPATED) == [0, 2, 3]
    assert this.slots["tx_time"][1] > 0


def test_too_few_clients_for_any_sum_let_the_round_be() -> None:
    scenario = secure(rounds=30, clients__selection={"scheme": "poisson", "rate": 0.2}, evaluate__every=100)
    played = play(scenario, links=[FAST] * 6)
    for this in played.rounds:
        reason = record_of(this).abort_reason
        if len(this.clients) < 2:
            assert "at least two clients" in reason
            assert not this.round.with_status(Status.PARTICIPATED).size
        else:
            assert not reason and this.values["participants"] == len(this.clients)
    assert {len(this.clients) < 2 for this in played.rounds} == {True, False}


# ------------------------------------------------------------------------------------------------ pairwise_prf


def test_seeds_are_agreed_once_and_that_costs_apart() -> None:
    played = play(secure("pairwise_prf", clients__count=4), [1.0] * 4, [Link(1e-3)] * 4)
    advertise, header = 8 * 41 + 256, 8 * 41
    keys = header + 3 * (32 + 256)
    first, *later = [record_of(this).costs for this in played.rounds]
    assert first["messages_up"][SecAggStage.SET_UP] == first["messages_down"][SecAggStage.SET_UP] == 4
    assert first["bits_up"][SecAggStage.SET_UP] == 4 * advertise
    assert first["bits_down"][SecAggStage.SET_UP] == 4 * keys
    assert first["seconds"][SecAggStage.SET_UP] == pytest.approx(advertise * 1e-3, abs=1e-12)
    for costs in later:
        assert all(not column[SecAggStage.SET_UP] for name, column in costs.items() if name != "energy")
    for costs in (first, *later):
        assert costs["bits_up"][SecAggStage.MASKED_INPUT] == 4 * (header + 320)
        assert costs["bits_down"][SecAggStage.MASKED_INPUT] == 4 * (header + 4 * 32)
    took = np.diff([0.0, *(this.values["sim_time"] for this in played.rounds)])
    masked = (header + 320) * 1e-3
    np.testing.assert_allclose(took, [1 + masked + advertise * 1e-3, 1 + masked, 1 + masked], atol=1e-11)


def test_a_missing_client_fails_the_attempt_and_the_next_has_a_fresh_nonce(monkeypatch: pytest.MonkeyPatch) -> None:
    vanish(monkeypatch, {2: 0}, messages=2)
    played = play(secure("pairwise_prf", clients__count=4, rounds=2), [1.0] * 4, [FAST] * 4)
    for this in played.rounds:
        assert record_of(this).attempts == 2 and record_of(this).abort_reason == ""
        assert clients_with(this, Status.PARTICIPATED) == [0, 1, 3]
        assert clients_with(this, Status.CRASHED) == [2]
        costs = record_of(this).costs
        assert costs["messages_up"][SecAggStage.MASKED_INPUT] == 4 + 3
        assert costs["dropouts"][SecAggStage.MASKED_INPUT] == 1
    assert played.simulation.state.uplink_memory == {"pairwise_prf_nonce": 4}
    # Computed are the inputs of the attempt that succeeded, charged is everybody who sent one in any attempt.
    assert played.learner.trained == [(1, [0, 1, 3]), (2, [0, 1, 3])]
    assert [clients for _, clients, _ in played.learner.charged] == [[0, 1, 2, 3]] * 2
    for this, (_, received) in zip(played.rounds, played.learner.received, strict=True):
        np.testing.assert_array_equal(received, exact_mean(played, this, [0, 1, 3]))


def test_without_retries_a_missing_client_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    vanish(monkeypatch, {2: 0}, messages=1)
    played = play(secure("pairwise_prf", clients__count=4, rounds=1, retries=0), [1.0] * 4, [FAST] * 4)
    (this,) = played.rounds
    assert record_of(this).abort_reason.startswith("pairwise_prf needs every participant; missing: 2;")
    assert clients_with(this, Status.ABORTED) == [0, 1, 3]
    assert not played.learner.received and not played.learner.trained
    assert played.learner.charged[0][1] == [0, 1, 2, 3]


def test_a_single_client_left_is_not_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    vanish(monkeypatch, {0: 0, 1: 0}, messages=2)
    played = play(secure("pairwise_prf", clients__count=3, rounds=1), [1.0] * 3, [FAST] * 3)
    assert "1 clients are left, 2 are needed" in record_of(played.rounds[0]).abort_reason
    assert not played.learner.received


def test_a_masked_input_of_a_failed_attempt_is_refused_in_the_next() -> None:
    # Client 2 needs 6.48 s, the time-out is 5 s; the others take 4 s a time: it arrives within the second attempt.
    bits = 8 * 41 + 320
    links = (Link(4.0 / bits), Link(4.0 / bits), Link(6.48 / bits), Link(4.0 / bits))
    played = play(secure("pairwise_prf", clients__count=4, rounds=1, stage_timeout_s=5.0), [1.0] * 4, links)
    (this,) = played.rounds
    assert [node for _, node in played.times(EventKind.REFUSE)] == [2]
    assert clients_with(this, Status.PARTICIPATED) == [0, 1, 3] and clients_with(this, Status.LATE) == [2]
    np.testing.assert_array_equal(played.learner.received[0][1], exact_mean(played, this, [0, 1, 3]))


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
