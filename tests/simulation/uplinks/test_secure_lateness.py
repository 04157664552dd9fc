"""Secure aggregation: clients that are late, lost or refused, and the attempts of pairwise masks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulation.uplinks.cells import play
from tests.simulation.uplinks.secure import FAST, PROTOCOLS, clients_with, exact_mean, record_of, secure, vanish
from wirelessfl.radio.digital_links import Link
from wirelessfl.trace import EventKind, SecAggStage, Status

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
