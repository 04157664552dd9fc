"""Hybrid ARQ with Chase combining: outage in closed form, time, energy, and the grant of the band."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

from tests.simulation.scenarios import run, small
from tests.simulation.uplinks.cells import Play, play
from tests.statistics import assert_probability
from wirelessfl.errors import ScenarioError
from wirelessfl.radio.harq import Harq
from wirelessfl.radio.rates import shannon_rate
from wirelessfl.scenario import Scenario
from wirelessfl.study.content import content_id
from wirelessfl.trace import EventKind, Status

CLIENTS, ROUNDS = 200, 20
RATE = 1.5e6
BANDWIDTH = 1e6
MEAN_SNR = 2.0
"""γ̄ of a client in the whole band."""
THRESHOLD = 2 ** (RATE / BANDWIDTH) - 1


def fixed(**harq: Any) -> Scenario:
    uplink = {
        "kind": "digital",
        "snr_db": float(10 * np.log10(2 * MEAN_SNR)),
        "access": "tdma",
        "rate": {"model": "fixed", "rate_bps": RATE},
        "harq": harq,
    }
    return small(
        uplink=uplink, rounds=ROUNDS, clients__count=CLIENTS, data__limit=CLIENTS, evaluate__every=100, name="harq"
    )


def lost(played: Play) -> int:
    return sum(int(np.sum(this.status == Status.OUTAGE)) for this in played.rounds)


@pytest.mark.parametrize("most", [1, 2, 4])
def test_outage_with_independent_channels(most: int) -> None:
    """γ_1 + ... + γ_n of Rayleigh channels is Gamma(n, γ̄): below the threshold with probability P(n, θ/γ̄)."""
    played = play(fixed(max=most, channel="independent"))
    assert_probability(lost(played), ROUNDS * CLIENTS, float(special.gammainc(most, THRESHOLD / MEAN_SNR)))


@pytest.mark.parametrize("most", [1, 2, 4])
def test_outage_in_one_block_of_fading(most: int) -> None:
    """The sum is n γ: below the threshold with probability 1 − exp(−θ/(n γ̄))."""
    played = play(fixed(max=most))
    assert_probability(lost(played), ROUNDS * CLIENTS, float(1 - np.exp(-THRESHOLD / (most * MEAN_SNR))))


def test_each_transmission_is_on_the_air_and_feedback_is_not() -> None:
    """N T on the air for n = ceil(θ/γ) transmissions, at most 4; (n − 1) feedbacks more until it arrives."""
    feedback = 0.5
    _, rounds, events = run(fixed(max=4, feedback_s=feedback).model_copy(update={"rounds": 2}))
    once = np.min(rounds[0].slots["tx_time"])
    for this, batch in zip(rounds, events, strict=True):
        real, imaginary, sent_s = (np.asarray(this.slots[name]) for name in ("channel_re", "channel_im", "tx_time"))
        power = real**2 + imaginary**2
        count = np.minimum(np.ceil(THRESHOLD / (MEAN_SNR * power) * (1 - 1e-12)), 4)
        np.testing.assert_allclose(sent_s, count * once, rtol=1e-9)
        np.testing.assert_array_equal(this.status == Status.OUTAGE, 4 * MEAN_SNR * power < THRESHOLD)
        at, node, kind = np.asarray(batch.time), np.asarray(batch.node), np.asarray(batch.kind)
        ends = np.isin(kind, (EventKind.ARRIVE, EventKind.OUTAGE))
        begins = kind == EventKind.TRANSMIT
        for client in (3, 17, 101):
            (begin,) = at[begins & (node == client)]
            (end,) = at[ends & (node == client)]
            assert end - begin == pytest.approx(count[client] * once + (count[client] - 1) * feedback)


def test_transmissions_by_hand() -> None:
    """γ = 1 each at a rate that needs 3; 4 at once; never."""
    snr = np.array([[1.0, 1, 1, 1], [4.0, 0, 0, 0], [0.1, 0.1, 0.1, 0.1]])
    count, arrived = Harq(4).transmissions(np.full(3, 2.0), snr, lambda one: shannon_rate(1.0, one))
    assert count.tolist() == [3, 1, 4] and arrived.tolist() == [True, True, False]


@pytest.mark.parametrize(("most", "feedback"), [(0, 0.0), (2, -1.0), (2, np.inf)])
def test_bad_numbers_are_refused(most: int, feedback: float) -> None:
    with pytest.raises(ValueError, match=r"most|feedback"):
        Harq(most, feedback)


JOULES = {"kind": "digital", "tx_power_dbm": 10.0, "rate": {"model": "fixed", "rate_bps": 2e6}}
KINDS: dict[str, dict[str, Any]] = {
    "ofdma": {**JOULES},
    "tdma": {**JOULES, "access": "tdma"},
    "asynchronous": {**JOULES},
    "secure": {
        **JOULES,
        "kind": "secure_aggregation",
        "protocol": "secagg",
        "rate": {"model": "fixed", "rate_bps": 1e5},
    },
}


@pytest.mark.parametrize("name", KINDS)
def test_energy_is_power_times_airtime(name: str) -> None:
    """On every kind of uplink the energies of the clients sum up to that of the round, p times the time on the air."""
    path = {"model": "log_distance", "exponent": 4.0}
    keys: dict[str, Any] = {"channel__pathloss": path}
    if name == "asynchronous":
        keys["aggregation"] = {"mode": "asynchronous", "buffer": 2}
    uplink = {**KINDS[name], "harq": {"max": 3, "feedback_s": 0.01, "channel": "independent"}}
    _, rounds, _ = run(small(uplink=uplink, timing__deadline_s=None, **keys))
    for this in rounds:
        joules, sent_s = np.asarray(this.slots["tx_energy_j"]), np.asarray(this.slots["tx_time"])
        np.testing.assert_allclose(joules, 0.01 * sent_s, rtol=1e-9)
        assert (
            this.round.energy.total == pytest.approx(np.nansum(joules)) if hasattr(this.round.energy, "total") else True
        )


@pytest.mark.parametrize("name", ["ofdma", "tdma", "secure"])
def test_a_grant_delays_and_costs_nothing(name: str) -> None:
    uplink, static = KINDS[name], {"channel__fading": {"model": "static"}}
    _, without, before = run(small(uplink=uplink, **static))
    _, delayed, after = run(small(uplink={**uplink, "grant_delay_s": 0.25}, **static))
    for one, other in zip(without, delayed, strict=True):
        np.testing.assert_allclose(one.slots["tx_time"], other.slots["tx_time"])
    longer = np.max(after[0].time) - np.max(before[0].time)
    assert longer == pytest.approx(0.25) if name != "secure" else longer >= 0.5


@pytest.mark.parametrize(("protocol", "messages"), [("pairwise_prf", (2, 1, 1)), ("secagg", (4, 4, 4))])
def test_every_message_of_secure_aggregation_waits_for_a_grant(protocol: str, messages: tuple[int, ...]) -> None:
    """The key agreement of `pairwise_prf` before round 1 once had none. On static channels all clients wait alike."""
    uplink, static = {"kind": "secure_aggregation", "protocol": protocol}, {"channel__fading": {"model": "static"}}
    ends = [
        np.array([np.max(events.time) for events in run(small(uplink={**uplink, "grant_delay_s": delay}, **static))[2]])
        for delay in (0.0, 0.25)
    ]
    np.testing.assert_allclose(ends[1] - ends[0], 0.25 * np.cumsum(messages), atol=1e-9)


@pytest.mark.parametrize("protocol", ["pairwise_prf", "secagg"])
def test_who_fades_before_the_grant_has_sent_nothing(protocol: str) -> None:
    """Such clients once had an outage, and their message was among those sent."""
    uplink: dict[str, Any] = {"kind": "secure_aggregation", "protocol": protocol, "snr_db": 10, "grant_delay_s": 0.5}
    uplink["rate"] = {"model": "adaptive", "min_rate_bps": 5e5}
    correlation = {"model": "clarke", "doppler_hz": 0.5}
    _, rounds, events = run(small(uplink=uplink, channel__correlation=correlation, clients__count=8, rounds=4))
    sent = (EventKind.ADVERTISE_KEYS, EventKind.SHARE_KEYS, EventKind.MASKED_INPUT, EventKind.UNMASK)
    faded = 0
    for this, batch in zip(rounds, events, strict=True):
        time, node, kinds = (np.asarray(column) for column in (batch.time, batch.node, batch.kind))
        for status, client in zip(this.status.tolist(), this.clients.tolist(), strict=True):
            own = node == client
            at = {kind: time[own & (kinds == kind)] for kind in (*sent, EventKind.DEEP_FADE, EventKind.OUTAGE)}
            begun = np.concatenate([at[kind] for kind in sent])
            faded += status == Status.DEEP_FADE
            assert (status == Status.DEEP_FADE) == (len(at[EventKind.DEEP_FADE]) == 1)
            assert not np.isin(np.concatenate([at[EventKind.DEEP_FADE], at[EventKind.OUTAGE]]), begun).any()
    assert faded >= 3


def test_messages_of_secure_aggregation_are_sent_again_over_channels_of_their_own() -> None:
    """Behind a first SNR γ the second copy is enough with probability e^{−(θ − γ)/γ̄}, for each message by itself."""
    rate, feedback, share, mean = 4e5, 0.005, 1 / 12, 10**0.3 / 2 * 12
    uplink: dict[str, Any] = {"kind": "secure_aggregation", "protocol": "secagg", "snr_db": 3.0}
    uplink["rate"] = {"model": "fixed", "rate_bps": rate}
    uplink["harq"] = {"max": 32, "feedback_s": feedback, "channel": "independent"}
    _, rounds, events = run(small(uplink=uplink, clients__count=12, rounds=8))
    threshold = 2 ** (rate / (share * BANDWIDTH)) - 1
    second, expected, unlike = list[bool](), list[float](), 0
    for this, batch in zip(rounds, events, strict=True):
        time, node, kinds, bits = (np.asarray(one) for one in (batch.time, batch.node, batch.kind, batch.bits))
        for slot, client in enumerate(this.clients.tolist()):
            first = mean * abs(this.slots["channel_re"][slot] + 1j * this.slots["channel_im"][slot]) ** 2
            counts = list[int]()
            ends = time[(node == client) & (kinds == EventKind.ARRIVE)]
            for kind in (EventKind.ADVERTISE_KEYS, EventKind.SHARE_KEYS, EventKind.MASKED_INPUT, EventKind.UNMASK):
                for row in np.flatnonzero((node == client) & (kinds == kind)).tolist():
                    duration, once = float(ends[ends > time[row]].min() - time[row]), float(bits[row]) / rate
                    counts.append(round((duration + feedback) / (once + feedback)))
            assert len(counts) == 4 and (set(counts) == {1}) == bool(first >= threshold)
            if first < threshold:
                second += [count == 2 for count in counts]
                expected += [math.exp(-(threshold - float(first)) / mean)] * 4
                unlike += len(set(counts)) > 1
    assert unlike > 10
    assert abs(sum(second) - sum(expected)) < 4 * math.sqrt(sum(one * (1 - one) for one in expected))


def test_keys_left_out_keep_the_run_id() -> None:
    plain, named = (small(uplink={"kind": "digital", **more}) for more in ({}, {"harq": None, "grant_delay_s": 0.0}))
    with_harq = small(uplink={"kind": "digital", "harq": {}})
    assert content_id(plain) == content_id(named) != content_id(with_harq)


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"uplink": {"kind": "digital", "harq": {}, "rate": {"packets": {}}}}, "uplink.harq"),
        (
            {"uplink": {"kind": "digital", "harq": {}}, "channel__correlation": {"model": "clarke", "doppler_hz": 5.0}},
            "uplink.harq",
        ),
        (
            {
                "uplink": {"kind": "digital", "harq": {"channel": "independent"}},
                "channel__fading": {"model": "static"},
            },
            "uplink.harq.channel",
        ),
        (
            {"uplink": {"kind": "digital", "grant_delay_s": 1.0}, "aggregation": {"mode": "asynchronous"}},
            "uplink.grant_delay_s",
        ),
        ({"uplink": {"kind": "over_the_air", "harq": {}}}, "uplink.harq"),
    ],
)
def test_what_does_not_go_together_is_refused(keys: dict[str, Any], named: str) -> None:
    with pytest.raises(ScenarioError, match=named):
        small(**keys)
