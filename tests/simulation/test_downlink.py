"""Broadcasts over fading downlinks: who misses them, what they take, and what follows for every uplink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.uplinks.cells import play
from tests.statistics import assert_probability
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ModelWarning, ScenarioError
from wirelessfl.simulation import FinishedRound
from wirelessfl.trace import EventKind, Status

FIXED = {"model": "fixed", "rate_bps": 1e6, "snr_db": 3.0103}
"""Mean SNR 1 and threshold 1: 1 - exp(-1) of all clients miss it."""
MULTICAST = {"model": "multicast", "min_rate_bps": 5e5, "snr_db": 10.0}
BITS = 32 * 10
MANY = {"rounds": 20, "clients__count": 200, "data__limit": 200, "evaluate__every": 100}
IDEAL = {"kind": "ideal"}
UPLINKS: dict[str, dict[str, Any]] = {
    "over the air": {},
    "ideal": {"uplink": IDEAL},
    "digital": {"uplink": {"kind": "digital"}},
    "retransmissions": {"uplink": {"kind": "digital", "harq": {"max": 3}, "rate": {"model": "fixed"}}},
    "schemes": {"uplink": {"kind": "digital", "rate": {"model": "mcs"}}},
    "secure aggregation": {"uplink": {"kind": "secure_aggregation", "protocol": "secagg"}},
    "asynchronous": {
        "uplink": {"kind": "digital"},
        "aggregation": {"mode": "asynchronous"},
        "training__algorithm": {"name": "fedavg"},
    },
}


def missing(this: FinishedRound) -> list[int]:
    return [int(client) for client in this.clients[this.round.with_status(Status.NO_MODEL)]]


@pytest.mark.parametrize("fading", [{"model": "rayleigh"}, {"model": "rician", "k_db": -60.0}])
@pytest.mark.parametrize("duplex", ["fdd", "tdd"])
def test_a_fixed_rate_is_missed_as_often_as_the_closed_form_says(duplex: str, fading: dict[str, Any]) -> None:
    played = play(small(uplink=IDEAL, downlink={**FIXED, "duplex": duplex}, channel__fading=fading, **MANY))
    missed = sum(len(missing(this)) for this in played.rounds)
    assert_probability(missed, 20 * 200, 1 - np.exp(-1))
    assert all(this.round.broadcast_s == BITS / 1e6 for this in played.rounds)


def test_the_rate_of_an_outage_is_missed_as_often_by_clients_at_all_distances() -> None:
    located = {"channel__pathloss": {"model": "log_distance"}, "channel__placement": {"scheme": "uniform_disc"}}
    played = play(small(uplink=IDEAL, downlink={"model": "fixed", "outage": 0.2}, **located, **MANY))
    assert_probability(sum(len(missing(this)) for this in played.rounds), 20 * 200, 0.2)
    often = np.bincount([client for this in played.rounds for client in missing(this)], minlength=200)
    assert often.std() > 1.3 * np.sqrt(20 * 0.2 * 0.8)  # those far away miss most, unlike equal binomials


@pytest.mark.parametrize("duplex", ["fdd", "tdd"])
def test_by_reciprocity_the_uplinks_of_those_who_missed_are_the_weakest(duplex: str) -> None:
    uplink = {"kind": "digital", "rate": {"min_rate_bps": 1e-3}}
    played = play(small(uplink=uplink, downlink={**FIXED, "duplex": duplex}, **{**MANY, "rounds": 5}))
    network, wrong = played.simulation.deployment.network, 0
    for this in played.rounds:
        power = np.abs(network.slot_links(this.clients, this.round.moment).channel.ravel()) ** 2
        wrong += int(np.count_nonzero((power < 1) != (this.status == Status.NO_MODEL)))
    assert wrong == 0 if duplex == "tdd" else wrong > 250


def test_multicast_takes_the_time_of_the_weakest_client_above_the_floor() -> None:
    simulation, rounds, _ = run(small(rounds=10, uplink=IDEAL, downlink=MULTICAST))
    downlink, bits = simulation.deployment.network.downlink, 32 * simulation.deployment.learner.broadcast_dimension
    assert downlink is not None
    times = set()
    for this in rounds:
        carried = downlink.carried(this.clients, this.round.moment)
        weakest = carried[carried >= 5e5].min()
        assert this.round.broadcast_s == bits / weakest
        assert missing(this) == np.flatnonzero(carried < 5e5).tolist()
        times.add(this.round.broadcast_s)
    assert len(times) == 10


@pytest.mark.parametrize("name", UPLINKS)
def test_over_no_uplink_do_those_without_the_model_take_part(name: str) -> None:
    scenario = small(rounds=4, clients__count=12, downlink={**FIXED, "snr_db": 6.0}, **UPLINKS[name])
    _, rounds, events = run(scenario)
    missed = 0
    for this, batch in zip(rounds, events, strict=True):
        nodes, kinds = np.asarray(batch.node), np.asarray(batch.kind)
        without = missing(this)
        missed += len(without)
        assert sorted(nodes[kinds == EventKind.NO_MODEL].tolist()) == without
        assert set(nodes[np.isin(nodes, without)].tolist()) <= set(without)
        assert set(kinds[np.isin(nodes, without)].tolist()) <= {EventKind.NO_MODEL, EventKind.REQUEST}
        silent = this.round.with_status(Status.NO_MODEL)
        assert not this.round.worked[silent].any()
        assert not np.isin(this.clients[silent], [one for r in this.round.releases for one in r.clients.tolist()]).any()
    assert missed > 0
    assert rounds[-1].values["participants"] + len(missing(rounds[-1])) <= 12


def test_weights_are_renormalised_over_those_who_have_the_model() -> None:
    played = play(small(rounds=2, uplink=IDEAL, downlink=FIXED))
    weight = played.samples / played.samples.sum()
    for this, (_, received) in zip(played.rounds, played.learner.received, strict=True):
        heard = np.setdiff1d(this.clients, missing(this))
        expected = sum(weight[i] * played.learner.update_of(i) for i in heard) / weight[heard].sum()
        np.testing.assert_allclose(received, expected, rtol=1e-6)
        assert 0 < len(heard) < 6


def test_weakest_inversion_looks_at_those_who_have_the_model_only() -> None:
    keys = {"rounds": 6, "uplink__power_control": {"policy": "weakest_inversion"}}
    simulation, rounds, _ = run(small(**keys, downlink=FIXED))
    for this in rounds:
        present = np.setdiff1d(np.arange(6), missing(this))
        if not len(present):
            continue
        links = simulation.deployment.network.slot_links(present, this.round.moment)
        scale = min(links.power_budget * np.abs(links.channel.ravel()) ** 2 / links.weight**2)
        assert this.values["server_gain"] == pytest.approx(np.sqrt(scale), rel=1e-9)


@pytest.mark.parametrize("name", UPLINKS)
def test_a_broadcast_that_everybody_receives_changes_nothing(name: str) -> None:
    without, everybody = (
        run(small(**UPLINKS[name], **keys))
        for keys in ({}, {"downlink": {"model": "fixed", "snr_db": 200.0, "rate_bps": 1e7}})
    )
    np.testing.assert_array_equal(without[0].state.parameters, everybody[0].state.parameters)
    assert [this.values["sim_time"] for this in without[1]] == [this.values["sim_time"] for this in everybody[1]]


def test_nobody_receives_and_the_model_stays() -> None:
    for name, keys in UPLINKS.items():
        with pytest.warns(ModelWarning, match="6 of 6 clients cannot receive"):
            simulation, rounds, _ = run(small(rounds=2, downlink={**FIXED, "snr_db": -100.0}, **keys))
        assert all(len(missing(this)) == 6 for this in rounds), name
        assert simulation.state.model_version == 0
        bits = 32 * simulation.deployment.learner.broadcast_dimension
        assert rounds[-1].values["sim_time"] == pytest.approx(2 * bits / 1e6), name


@pytest.mark.parametrize(
    "keys",
    [
        {"channel__correlation": {"model": "gauss_markov", "doppler_hz": 3.0}},
        {"channel__correlation": {"model": "clarke", "doppler_hz": 3.0}, "downlink__duplex": "tdd"},
        {"channel__fading": {"model": "tdl"}, "uplink": {"kind": "digital"}},
        {**UPLINKS["asynchronous"]},
    ],
    ids=["gauss_markov", "clarke", "tdl", "asynchronous"],
)
@pytest.mark.filterwarnings("ignore::wirelessfl.errors.ModelWarning")
def test_a_resumed_run_misses_the_same_broadcasts(keys: dict[str, Any], tmp_path: Path) -> None:
    scenario = small(rounds=4, **{f"downlink__{name}": value for name, value in FIXED.items()}, **keys)
    whole, _ = goes_on_to_the_same_bits(scenario, tmp_path)
    assert any(missing(this) for this in whole.rounds[2:])


def central_epsilon(**keys: Any) -> float:
    mechanism = {"mechanism": "gaussian", "unit": "client", "noise_multiplier": 1.0, "clip": 0.5}
    trusted = {"uplink": IDEAL, "privacy": {"unit": "client", "adversary": "observer"}}
    sampled = {"clients__count": 40, "clients__selection": {"scheme": "poisson", "rate": 0.1}}
    _, rounds, _ = run(small(rounds=1, training__privacy=mechanism, **trusted, **sampled, **keys))
    return float(rounds[-1].values["epsilon_accounted"])


def test_channels_amplify_no_privacy_and_a_broadcast_to_the_weakest_tells_who_was_selected() -> None:
    plain, fixed, weakest = (central_epsilon(**keys) for keys in ({}, {"downlink": FIXED}, {"downlink": MULTICAST}))
    everybody = central_epsilon(timing__wait_for={"fraction": 0.5})  # not amplified either
    assert plain == fixed < weakest == everybody


REFUSED: dict[str, dict[str, Any]] = {
    "downlink.snr_db: found 20.0 with uplink.tx_power_dbm": {"uplink__tx_power_dbm": 23.0, "downlink__model": "fixed"},
    "downlink.tx_power_dbm: found 43.0 without": {"downlink": {"model": "fixed", "tx_power_dbm": 43.0}},
    "downlink.outage: found 0.1 with rate_bps": {"downlink": {**FIXED, "outage": 0.1}},
    "downlink.outage: found 0.1 with nakagami": {
        "downlink": {"model": "fixed", "outage": 0.1},
        "channel__fading": {"model": "nakagami"},
    },
    "downlink.duplex: found fdd with recorded": {
        "downlink": FIXED,
        "channel__fading": {"model": "recorded", "file": "gains.csv"},
    },
    "downlink.model: found fixed with topology.kind: multi_cell": {
        "downlink": FIXED,
        "topology": {"kind": "multi_cell"},
        "channel__pathloss": {"model": "log_distance"},
    },
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_does_not_go_together_is_refused(words: str) -> None:
    with pytest.raises(ScenarioError, match=words.replace(".", r"\.")):
        small(**REFUSED[words])


@pytest.mark.parametrize(
    ("downlink", "key"),
    [
        ({"model": "fixed", "snr_db": 10}, "timing.downlink_bps"),
        ({"model": "fixed", "snr_db": 10, "rate_bps": 3e6}, "downlink.rate_bps"),
        ({"model": "multicast", "snr_db": 10, "min_rate_bps": 3e6}, "downlink.min_rate_bps"),
    ],
)
def test_a_rate_that_most_clients_miss_is_warned_of(downlink: dict[str, Any], key: str) -> None:
    """At 10 dB, γ = 5, of 1 MHz log2 6 = 2.585 Mbit/s."""
    with pytest.warns(ModelWarning, match=rf"{key}: .* 10 of 10 clients cannot .* carry 2\.585e\+06"):
        build_simulation(small(uplink=IDEAL, downlink=downlink, clients__count=10, data__limit=100), PLAN)


@pytest.mark.parametrize("rate", [{"rate_bps": 2.5e6}, {"outage": 0.9}])
def test_a_rate_within_reach_or_an_outage_that_is_asked_for_is_no_warning(rate: dict[str, float]) -> None:
    build_simulation(small(uplink=IDEAL, downlink={"model": "fixed", "snr_db": 10, **rate}), PLAN)
