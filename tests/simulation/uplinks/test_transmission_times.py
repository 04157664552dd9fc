"""Digital channels in time: each transmission has the channel of its own beginning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.uplinks.cells import Play, play
from tests.statistics import assert_mean
from wirelessfl.assembly import build_simulation
from wirelessfl.radio import clarke_gains
from wirelessfl.radio.channel_source import ChannelSource
from wirelessfl.radio.propagation import Moment, Walking
from wirelessfl.streams import Streams
from wirelessfl.trace import EventKind, Status

DOPPLER = 5.0
CLARKE = {"model": "clarke", "doppler_hz": DOPPLER}
MARKOV = {"model": "gauss_markov", "doppler_hz": DOPPLER}
MOVING: dict[str, Any] = {
    "channel__placement": {"scheme": "random_waypoint", "radius_m": 200.0, "min_speed": 10.0, "max_speed": 30.0},
    "channel__pathloss": {"model": "log_distance", "shadowing_db": 6.0, "decorrelation_m": 20.0},
}
COMPUTE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
FIXED = {"model": "fixed", "rate_bps": 320.0}
"""One second an upload of ten numbers of 32 bits."""


def digital(correlation: dict[str, Any], access: str = "tdma", **keys: Any) -> Any:
    uplink = {"kind": "digital", "access": access, "rate": keys.pop("rate", FIXED), "snr_db": 20.0}
    base = {"rounds": 2, "channel__correlation": correlation, "channel__max_pieces": 10**5}
    return small(**{**base, "uplink": uplink, **keys})


def gains(played: Play, number: int) -> np.ndarray:
    this = played.rounds[number - 1]
    return np.asarray(this.slots["channel_re"] + 1j * this.slots["channel_im"])


def closed_form(times: list[float], nodes: list[int], seed: int = 11) -> np.ndarray:
    """Clarke's gains at the times, by the function of the core that has no state."""
    stream = Streams(seed).nodes("fading", 0, np.array(nodes))
    return np.asarray(clarke_gains(DOPPLER * np.array(times), stream))


@pytest.mark.parametrize("access", ["tdma", "ofdma"])
def test_the_gain_is_that_of_the_uploads_beginning(access: str) -> None:
    """Uploads of a second each, one after the other: the last begins five seconds after the first."""
    played = play(digital(CLARKE, access), COMPUTE)
    for number in (1, 2):
        times, nodes = zip(*played.times(EventKind.TRANSMIT, number), strict=True)
        if access == "tdma":
            np.testing.assert_allclose(np.diff(times), 1.0, rtol=1e-9)
        np.testing.assert_allclose(gains(played, number)[list(nodes)], closed_form(list(times), list(nodes)), atol=1e-9)


@pytest.mark.parametrize("correlation", [CLARKE, MARKOV], ids=lambda value: value["model"])
def test_uploads_are_correlated_as_the_time_between_them(correlation: dict[str, Any]) -> None:
    """Two rounds of 1,200 clients, whose upload takes the same short while: J0(2π f_D Δt), Δt of each client's own."""
    count = 1200
    compute = tuple(np.random.default_rng(3).uniform(0.001, 0.012, count).tolist())
    rate = {"model": "fixed", "rate_bps": 3.2e7}
    keys = {"clients__count": count, "data__limit": count, "rate": rate, "timing__bandwidth_hz": 1e12}
    played = play(digital(correlation, "ofdma", **keys), compute)
    begun = [{node: time for time, node in played.times(EventKind.TRANSMIT, m)} for m in (1, 2)]
    lag = np.array([begun[1][node] - begun[0][node] for node in range(count)])
    expected = special.j0(2 * np.pi * DOPPLER * lag)
    assert np.all((lag > 0.01) & (lag < 0.02)) and np.all(expected > 0.85)
    product = (gains(played, 1).conj() * gains(played, 2)).real
    assert_mean(product - expected, 0.0, 1.0)


def test_a_draw_is_made_where_the_client_gets_the_channel_and_a_fade_frees_it() -> None:
    """Half of the clients find themselves in a deep fade when their turn comes, and take no time."""
    played = play(digital(CLARKE, faults__fade_threshold=0.7), COMPUTE)
    (this, *_) = played.rounds
    sent = played.times(EventKind.TRANSMIT)
    faded = played.times(EventKind.DEEP_FADE)
    assert sent and faded
    assert sorted(node for _, node in sent + faded) == list(range(6))
    for time, node in sent + faded:
        gain = closed_form([time], [node])[0]
        assert (abs(gain) ** 2 < 0.7) == (this.status[node] == Status.DEEP_FADE)
    assert this.values["airtime"] == pytest.approx(len(sent))


@pytest.mark.filterwarnings("ignore:timing.deadline_s:wirelessfl.errors.ModelWarning")
def test_who_never_transmits_has_no_channel() -> None:
    played = play(digital(CLARKE, timing__deadline_s=2.5), COMPUTE)
    (this, *_) = played.rounds
    never = np.setdiff1d(np.arange(6), [node for _, node in played.times(EventKind.TRANSMIT)])
    assert len(never) == 3 and np.all(this.status[never] == Status.LATE)
    assert np.isnan(this.slots["channel_re"][never]).all()


def test_positions_are_those_of_the_uploads_beginning() -> None:
    scenario = digital({"model": "independent"}, **MOVING)
    played = play(scenario, COMPUTE)
    other = build_simulation(scenario, PLAN).deployment.network.clients
    assert isinstance(other.large_scale.placement, Walking)  # type: ignore[attr-defined]
    for number in (1, 2):
        for time, node in played.times(EventKind.TRANSMIT, number):
            found = other.channels(np.array([node]), Moment(number, time))
            assert played.rounds[number - 1].slots["path_gain"][node] == found.path_gain[0]
            assert gains(played, number)[node] == found.narrowband[0][0, 0]


def test_asynchronous_uploads_have_the_channel_of_their_own_beginning() -> None:
    scenario = digital(
        CLARKE,
        "ofdma",
        aggregation={"mode": "asynchronous", "buffer": 1},
        training__algorithm={"name": "fedavg"},
        rounds=8,
    )
    played = play(scenario, COMPUTE)
    set_out: dict[int, complex] = {}
    seen = 0
    for number, this in enumerate(played.rounds, start=1):
        fresh = ~np.isnan(this.slots.get("channel_re", np.full(6, np.nan)))
        set_out.update({node: gains(played, number)[node] for node in np.flatnonzero(fresh).tolist()})
        for time, node in played.times(EventKind.TRANSMIT, number):
            assert closed_form([time], [node])[0] == pytest.approx(set_out[node], abs=1e-9)
            seen += 1
    assert seen >= 8


@pytest.mark.filterwarnings("ignore:at the median path gain:wirelessfl.errors.ModelWarning")
@pytest.mark.parametrize("protocol", ["pairwise_prf", "secagg", "secagg_plus"])
def test_every_message_of_secure_aggregation_has_a_channel_of_its_own(protocol: str) -> None:
    """At the rates of their gains: the last one's is in the trace, and the times on the air are the sum over all."""
    uplink = {"kind": "secure_aggregation", "protocol": protocol, "snr_db": 20.0, "rate": {"min_rate_bps": 1.0}}
    played = play(small(uplink=uplink, channel__correlation=CLARKE, rounds=1), COMPUTE)
    (this,) = played.rounds
    kinds = (EventKind.ADVERTISE_KEYS, EventKind.SHARE_KEYS, EventKind.MASKED_INPUT, EventKind.UNMASK)
    batch = played.events[0]
    columns = (batch.time, batch.node, batch.kind, batch.bits)
    sent = [
        (time, node, bits)
        for time, node, kind, bits in zip(*(np.asarray(c).tolist() for c in columns), strict=True)
        if kind in kinds and time >= this.round.slot_opens
    ]
    assert len({node for _, node, _ in sent}) == 6
    for client in range(6):
        own = [(float(time), float(bits)) for time, node, bits in sent if node == client]
        power = np.abs(closed_form([time for time, _ in own], [client] * len(own))) ** 2
        rates = 1e6 / 6 * np.log2(1 + 50 * power * 6)
        spent = sum(bits / rate for (_, bits), rate in zip(own, rates, strict=True))
        assert this.slots["tx_time"][client] == pytest.approx(spent, rel=1e-8)
        assert abs(gains(played, 1)[client]) ** 2 == pytest.approx(power[-1], rel=1e-9)


def test_independent_fading_is_drawn_once_a_client_and_round() -> None:
    uplink = {"kind": "secure_aggregation", "protocol": "secagg", "snr_db": 20.0, "rate": {"min_rate_bps": 1.0}}
    played = play(small(uplink=uplink, rounds=2, channel__csi={"error_std": 0.0}), COMPUTE)
    for number, this in enumerate(played.rounds, start=1):
        rate = 1e6 / 6 * np.log2(1 + 50 * 6 * np.abs(gains(played, number)) ** 2)
        batch = played.events[number - 1]
        kinds = (EventKind.ADVERTISE_KEYS, EventKind.SHARE_KEYS, EventKind.MASKED_INPUT, EventKind.UNMASK)
        for client in range(6):
            chosen = (np.asarray(batch.node) == client) & np.isin(batch.kind, kinds)
            assert this.slots["tx_time"][client] == pytest.approx(np.asarray(batch.bits)[chosen].sum() / rate[client])


def test_estimates_of_one_round_err_anew_with_each_transmission() -> None:
    scenario = small(channel__correlation=CLARKE, channel__csi={"error_std": 0.3}, clients__count=60, data__limit=60)
    simulation = build_simulation(scenario, PLAN)
    source, nodes = simulation.deployment.network.clients, np.arange(60)
    first, again, second = (
        source.channels(nodes, Moment(1, time, count)) for time, count in ((0.1, 0), (0.1, 0), (0.2, 1))
    )
    np.testing.assert_array_equal(first.estimate, again.estimate)
    errors = [found.estimate - found.channel for found in (first, second)]
    assert_mean((errors[0].conj() * errors[1]).real / 0.09, 0.0, np.sqrt(0.5))


def test_channels_that_stay_through_a_round_are_drawn_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    plain = ChannelSource.channels

    def counted(self: ChannelSource, nodes: np.ndarray, moment: Moment, **named: Any) -> Any:
        sizes.append(len(nodes))
        return plain(self, nodes, moment, **named)

    monkeypatch.setattr(ChannelSource, "channels", counted)
    run(small(uplink={"kind": "digital"}, rounds=2))
    assert sizes == [6, 6]
