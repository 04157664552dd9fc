"""The protocol as events: who does what, when, and what the round records of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import DataError, InfeasibleError, ScenarioError
from wirelessfl.radio import superpose
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.medium import TICKS_PER_SECOND, ticks
from wirelessfl.trace import JAMMER_NODE, SERVER_NODE, EventBatch, EventKind, Status


def kinds(batch: EventBatch) -> list[EventKind]:
    """The kinds of a batch in the order of the log."""
    return [EventKind(code) for code in np.asarray(batch.kind)]


def test_the_order_of_a_round() -> None:
    _, rounds, events = run(small(uplink__jammer={"epsilon": 1.0}))
    seen = kinds(events[0])
    assert seen[0] == EventKind.BROADCAST
    assert seen[1:7] == [EventKind.COMPUTE_START] * 6
    assert seen[7:13] == [EventKind.COMPUTE_END] * 6
    assert set(seen[13:20]) == {EventKind.TRANSMIT, EventKind.JAM}
    assert seen[20:] == [EventKind.SUPERPOSE, EventKind.AGGREGATE, EventKind.EVALUATE]
    times = np.asarray(events[0].time)
    assert np.all(np.diff(times) >= 0)
    downlink = 32 * 610 / 1e7
    assert times[1] == pytest.approx(downlink, abs=1e-12)
    slowest = np.nanmax(rounds[0].slots["compute_time"])
    assert times[13] == pytest.approx(downlink + slowest, abs=1e-12)
    assert rounds[0].values["sim_time"] == pytest.approx(downlink + slowest + 610 / 1e6, abs=2e-12)
    assert rounds[0].values["airtime"] == 610 / 1e6
    nodes = dict(zip(seen, np.asarray(events[0].node), strict=True))
    assert nodes[EventKind.BROADCAST] == SERVER_NODE and nodes[EventKind.JAM] == JAMMER_NODE
    assert np.asarray(events[0].bits)[0] == 32 * 610


def test_events_can_be_left_out() -> None:
    _, _, events = run(small(trace__events=False))
    assert all(len(np.asarray(batch.time)) == 0 for batch in events)


def test_what_is_received_is_the_formula() -> None:
    scenario = small(rounds=1, channel__csi={"error_std": 0.3}, uplink__power_control={"server_gain": 300.0})
    simulation = build_simulation(scenario, PLAN)
    before, at_first = simulation.state.parameters, replace(simulation.state)
    rounds: list[FinishedRound] = []
    simulation.run(lambda this, _: rounds.append(this))
    this, parts = rounds[0], simulation.deployment
    blocks = list(parts.learner.train(before, at_first, this.clients, 1))
    updates = np.concatenate([block.updates.numpy() for block in blocks])
    order = np.argsort(np.concatenate([block.positions for block in blocks]))
    noise = parts.network.streams.generator("receiver_noise", 1).standard_normal(updates.shape[1])
    channel = this.slots["channel_re"] + 1j * this.slots["channel_im"]
    estimate = this.slots["csi_re"] + 1j * this.slots["csi_im"]
    weight = parts.network.registry.weight(this.clients)
    received = superpose(updates[order], weight, channel, estimate, this.slots["backoff"], 300.0, 1.0, noise)
    # float32 sums of six updates of norm up to 1.
    np.testing.assert_allclose(simulation.state.parameters - before, received, rtol=0, atol=1e-6)


def test_weights_are_renormalised_over_those_who_sent() -> None:
    scenario = small(
        rounds=1,
        channel__fading={"model": "static"},
        faults__availability={"p": 0.5},
        uplink={"kind": "over_the_air", "snr_db": 250.0, "power_control": {"server_gain": 1e12}},
    )
    simulation = build_simulation(scenario, PLAN)
    before, at_first = simulation.state.parameters, replace(simulation.state)
    rounds: list[FinishedRound] = []
    simulation.run(lambda this, _: rounds.append(this))
    there = rounds[0].round.with_status(Status.PARTICIPATED)
    assert 0 < len(there) < 6
    parts = simulation.deployment
    (block,) = parts.learner.train(before, at_first, rounds[0].clients[there], 1)
    weight = parts.network.registry.weight(rounds[0].clients[there][block.positions])
    mean = weight @ block.updates.numpy() / weight.sum()
    np.testing.assert_allclose(simulation.state.parameters - before, mean, rtol=0, atol=1e-6)


def test_transmit_energy_keeps_the_budget() -> None:
    simulation, rounds, _ = run(small(uplink__snr_db=-20.0, rounds=8))
    budget = simulation.deployment.network.registry.power_budget
    for this in rounds:
        assert np.all(this.slots["tx_energy"] <= budget * (1 + 1e-6))
        assert np.all(this.slots["backoff"] >= 1)
    assert max(this.slots["backoff"].max() for this in rounds) > 1


def test_late_clients_are_left_behind_and_the_slot_starts_with_the_last_one_in_time() -> None:
    _, free, _ = run(small(rounds=1))
    times = free[0].slots["compute_time"]
    deadline = float(np.sort(times)[3]) + 1e-6 + 610 / 1e6
    _, rounds, events = run(small(rounds=1, timing__deadline_s=deadline))
    assert list(rounds[0].round.with_status(Status.LATE)) == sorted(np.argsort(times)[4:])
    assert rounds[0].values["participants"] == 4
    assert kinds(events[0]).count(EventKind.LATE) == 2
    assert np.isnan(rounds[0].slots["channel_re"][rounds[0].round.with_status(Status.LATE)]).all()
    assert rounds[0].values["sim_time"] == pytest.approx(32 * 610 / 1e7 + deadline - 1e-6, abs=2e-12)


@pytest.mark.parametrize("wait_for", [{"fraction": 1.0}, {"count": 3}, {"count": 5}])
def test_a_client_that_ends_at_the_deadline_is_in_time(wait_for: dict[str, float]) -> None:
    _, free, _ = run(small(rounds=1))
    times = free[0].slots["compute_time"]
    third = int(np.argsort(times)[2])
    deadline = (ticks(times[third]) + ticks(610 / 1e6)) / TICKS_PER_SECOND
    _, rounds, events = run(small(rounds=1, timing__deadline_s=deadline, timing__wait_for=wait_for))
    assert rounds[0].round.with_status(Status.PARTICIPATED).tolist() == sorted(np.argsort(times)[:3])
    assert rounds[0].round.with_status(Status.LATE).tolist() == sorted(np.argsort(times)[3:])
    assert [kinds(events[0]).count(kind) for kind in (EventKind.COMPUTE_END, EventKind.LATE)] == [3, 3]
    assert rounds[0].round.worked[third] == ticks(times[third])


def test_clients_that_end_at_one_instant_are_all_in_time_in_the_order_of_their_numbers() -> None:
    alike = {"timing__straggler_scale": 0.0, "timing__cpu_hz": [1e9, 1e9], "timing__wait_for": {"count": 1}}
    _, rounds, events = run(small(rounds=1, **alike))
    assert rounds[0].values["participants"] == 6
    nodes, seen = np.asarray(events[0].node), np.array(kinds(events[0]))
    for kind in (EventKind.COMPUTE_START, EventKind.COMPUTE_END, EventKind.TRANSMIT):
        assert nodes[seen == kind].tolist() == list(range(6))


def test_clients_are_logged_by_themselves_whatever_becomes_of_them() -> None:
    """Each starts once and has one end; who trained to it sends in the order of the ends; work lasts until the end."""
    _, rounds, events = run(small(rounds=12, faults__crash_rate_per_s=30.0, timing__deadline_s=0.018))
    ends = {EventKind.COMPUTE_END: Status.PARTICIPATED, EventKind.CRASH: Status.CRASHED, EventKind.LATE: Status.LATE}
    found = set()
    for this, batch in zip(rounds, events, strict=True):
        seen, nodes, times = np.array(kinds(batch)), np.asarray(batch.node), np.asarray(batch.time)
        assert sorted(nodes[seen == EventKind.COMPUTE_START]) == list(range(6))
        started = times[seen == EventKind.COMPUTE_START][0]
        for kind, status in ends.items():
            assert sorted(nodes[seen == kind]) == this.round.with_status(status).tolist()
            found |= {kind} if kind in seen else set()
            worked = times[seen == kind] - started
            np.testing.assert_allclose(
                this.round.worked[nodes[seen == kind]] / TICKS_PER_SECOND, worked, rtol=0, atol=2e-12
            )
        assert nodes[seen == EventKind.TRANSMIT].tolist() == nodes[seen == EventKind.COMPUTE_END].tolist()
    assert found == set(ends)


def test_the_first_few_are_enough() -> None:
    _, rounds, _ = run(small(timing__wait_for={"count": 2}))
    assert [this.values["participants"] for this in rounds] == [2, 2, 2]


def test_crashed_clients_are_not_waited_for() -> None:
    _, rounds, events = run(small(rounds=6, faults__crash_rate_per_s=40.0))
    crashed = sum(len(this.round.with_status(Status.CRASHED)) for this in rounds)
    assert 0 < crashed < 36
    assert crashed == sum(kinds(batch).count(EventKind.CRASH) for batch in events)


def test_a_round_in_which_nobody_is_there_leaves_the_model() -> None:
    scenario = small(faults__availability={"p": 0.0})
    simulation, rounds, _ = run(scenario)
    initial = build_simulation(scenario, PLAN).state.parameters
    np.testing.assert_array_equal(simulation.state.parameters, initial)
    assert [this.values["participants"] for this in rounds] == [0, 0, 0]
    assert rounds[-1].values["epsilon_accounted"] == 0.0
    assert rounds[-1].values["sim_time"] > 0


def test_deep_fades_stay_silent() -> None:
    _, rounds, _ = run(small(rounds=10, faults__fade_threshold=0.5))
    for this in rounds:
        power = np.hypot(this.slots["channel_re"], this.slots["channel_im"]) ** 2
        np.testing.assert_array_equal(this.status == Status.DEEP_FADE, power < 0.5)
    assert any(len(this.round.with_status(Status.DEEP_FADE)) for this in rounds)


def test_a_rotating_jammer_takes_turns_and_does_not_train() -> None:
    _, rounds, events = run(small(rounds=6, uplink__jammer={"epsilon": 1.0, "role": "rotating"}))
    turns = [int(this.round.with_status(Status.JAMMING)[0]) for this in rounds]
    assert sorted(turns) == list(range(6))
    for this, batch, position in zip(rounds, events, turns, strict=True):
        assert this.values["participants"] == 5
        assert np.isnan(this.slots["tx_energy"][position])
        assert this.values["jammer_channel_re"] == this.slots["channel_re"][position]
        assert kinds(batch).count(EventKind.JAM) == 1


def test_batteries_run_empty() -> None:
    watts = {"kind": "over_the_air", "tx_power_dbm": 20.0}
    _, rounds, _ = run(small(rounds=1, uplink=watts))
    nominal = rounds[0].slots["tx_energy_j"].max()
    _, rounds, _ = run(small(rounds=8, uplink=watts, faults__battery_j=2.5 * nominal))
    assert any(len(this.round.with_status(Status.BATTERY_EMPTY)) for this in rounds)
    assert not len(rounds[0].round.with_status(Status.BATTERY_EMPTY))


def test_energy_adds_up() -> None:
    simulation, rounds, _ = run(small(uplink={"kind": "over_the_air", "tx_power_dbm": 10.0}))
    total = sum(float(np.nansum(this.slots["tx_energy_j"])) for this in rounds)
    assert simulation.state.energy_j == pytest.approx(total, rel=1e-12)
    assert total > 0


def test_published_epsilon_meets_the_jammers_target() -> None:
    _, rounds, _ = run(small(rounds=5, uplink__jammer={"epsilon": 0.7}))
    # Back-off above 1 only lowers a client's own figure, so that the worst client sits at the target.
    assert rounds[-1].values["epsilon_published"] == pytest.approx(0.7, rel=1e-6)


def test_exact_calibration_meets_the_accounted_target() -> None:
    _, rounds, _ = run(small(rounds=5, uplink__jammer={"epsilon": 3.0, "calibration": "exact"}))
    assert rounds[-1].values["epsilon_accounted"] <= 3.0 * (1 + 1e-9)
    assert rounds[-1].values["epsilon_accounted"] > 0.8 * 3.0


def test_a_weak_jammer_is_refused_or_lowers_the_gain() -> None:
    weak = {"epsilon": 0.5, "power_db": -10.0}
    with pytest.raises(InfeasibleError, match="power_db"):
        run(small(uplink__jammer=weak))
    _, recorded, _ = run(small(uplink__jammer={**weak, "max_shortfall": 1.0}))
    assert recorded[-1].values["epsilon_published"] > 0.5 * 1.1
    _, lowered, _ = run(small(uplink__jammer={**weak, "max_shortfall": 1.0, "on_shortfall": "lower_gain"}))
    assert lowered[-1].values["epsilon_published"] == pytest.approx(0.5, rel=1e-6)
    assert lowered[0].values["server_gain"] < recorded[0].values["server_gain"]


def test_more_clients_than_samples_is_refused() -> None:
    with pytest.raises(DataError, match=r"clients\.count"):
        run(small(data__limit=None, clients__count=100_000))


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no_such_package:Policy", "cannot import"),
        ("wirelessfl.radio:NoSuchPolicy", "has no"),
        ("wirelessfl.radio:Rayleigh", "is no PowerControl"),
        ("wirelessfl.radio:CrossLayer", "refuses its options"),
    ],
)
def test_an_extension_that_cannot_be_used(reference: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        run(small(uplink__power_control={"policy": reference}))


def test_an_extension_of_the_users_own() -> None:
    policy = {"policy": "wirelessfl.radio:CrossLayer", "options": {"server_gain": 100.0}}
    _, rounds, _ = run(small(uplink__power_control=policy))
    assert rounds[0].values["server_gain"] == 100.0


@pytest.mark.parametrize(("stop", "rounds"), [({"accuracy": 0.001}, 1), ({"epsilon": 1e-3}, 1), ({}, 3)])
def test_stop_rules(stop: dict[str, float], rounds: int) -> None:
    simulation, done, _ = run(small(stop=stop))
    assert len(done) == rounds
    assert simulation.state.ended_by == (",".join(f"stop.{key}" for key in stop) or "rounds")


def test_the_run_stops_at_a_simulated_time() -> None:
    _, free, _ = run(small())
    _, done, _ = run(small(stop={"sim_time_s": free[1].values["sim_time"]}))
    assert len(done) == 2


def test_a_run_computes_on_one_torch_thread_beside_its_workers() -> None:
    before = torch.get_num_threads()
    seen: list[int] = []
    torch.set_num_threads(3)
    try:
        build_simulation(small(), PLAN).run(lambda this, batch: seen.append(torch.get_num_threads()))
        assert seen == [1] * 3 and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
