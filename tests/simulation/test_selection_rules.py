"""Selection by channel and by age, in runs, against plain computations from what the rounds recorded."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from tests.statistics import assert_mean
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.radio.propagation import Moment
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound
from wirelessfl.trace import Status

DIGITAL, AIR = {"kind": "digital"}, {"kind": "over_the_air"}
RULES: tuple[dict[str, Any], ...] = (
    {"scheme": "best_channel", "count": 2},
    {"scheme": "best_channel", "count": 2, "csi": "last"},
    {"scheme": "proportional_fair", "count": 2, "window": 4.0},
    {"scheme": "proportional_fair", "count": 2, "csi": "last"},
    {"scheme": "channel_threshold", "threshold": 0.7},
    {"scheme": "channel_threshold", "threshold": 0.7, "csi": "last"},
    {"scheme": "age", "count": 2},
)
FAULTY = {"model": "bernoulli", "p": 0.6}


def scenario(selection: dict[str, Any], **changes: Any) -> Scenario:
    """Six clients on which a selection works."""
    return small(**{"clients__selection": selection, "uplink": DIGITAL, "rounds": 6} | changes)


def recorded_gains(this: FinishedRound) -> NDArray[np.float64]:
    """(n,) |ĥ|² of the round's transmissions."""
    return np.asarray(this.slots["csi_re"] ** 2 + this.slots["csi_im"] ** 2)


def gains_of_all(chosen: Scenario, round_index: int, time_s: float) -> NDArray[np.float64]:
    """(K,) |h|² of all clients at an instant, from a network of its own."""
    network = build_simulation(chosen, PLAN).deployment.network
    links = network.slot_links(np.arange(chosen.clients.count), Moment(round_index, time_s))
    return np.asarray(np.abs(links.estimate[:, 0, 0, 0]) ** 2)


@pytest.mark.parametrize("uplink", [DIGITAL, AIR, {"kind": "secure_aggregation", "protocol": "pairwise_prf"}])
def test_the_best_channels_of_the_round_send(uplink: dict[str, Any]) -> None:
    """With one draw a round, the gains of the pilots are those of the transmission, to the last bit."""
    chosen = scenario({"scheme": "best_channel", "count": 2}, uplink=uplink, channel__csi={"error_std": 0.3})
    _, rounds, _ = run(chosen)
    for this in rounds:
        gains = gains_of_all(chosen, this.index, 0.0)
        np.testing.assert_array_equal(this.clients, np.sort(np.argsort(-gains)[:2]))
        np.testing.assert_array_equal(this.slots["selection_score"], gains[this.clients])
        sent = ~np.isnan(this.slots["csi_re"])
        np.testing.assert_allclose(recorded_gains(this)[sent], gains[this.clients][sent], rtol=1e-12)
    assert len({tuple(this.clients.tolist()) for this in rounds}) > 1


@pytest.mark.parametrize("model", ["clarke", "gauss_markov"])
def test_a_channel_that_changes_is_known_as_it_is_when_the_round_begins(model: str) -> None:
    """The rule sees the gains of that instant, and not those at which its clients send."""
    chosen = scenario(
        {"scheme": "best_channel", "count": 2},
        channel__correlation={"model": model, "doppler_hz": 0.5},
        timing__cycles_per_sample=1e8,
        channel__csi={"error_std": 0.1},
    )
    _, rounds, _ = run(chosen)
    moved: list[float] = []
    for before, this in pairwise(rounds):
        score = this.slots["selection_score"]
        if model == "clarke":
            network = build_simulation(chosen, PLAN).deployment.network
            gains, _ = network.pilot_gains(Moment(this.index, before.values["sim_time"]))
            np.testing.assert_array_equal(this.clients, np.sort(np.argsort(-gains)[:2]))
            np.testing.assert_allclose(score, gains[this.clients], rtol=1e-12)
        moved.extend((np.abs(score - recorded_gains(this)) / score).tolist())
    assert np.nanmax(moved) > 0.2


def test_errors_of_pilots_and_of_the_transmission_are_independent_where_channels_change() -> None:
    chosen = small(
        clients__count=2000,
        data={"dataset": {"name": "synthetic"}, "partition": {"scheme": "natural"}},
        uplink=DIGITAL,
        channel__correlation={"model": "clarke", "doppler_hz": 1e-9},
        channel__csi={"error_std": 1.0},
    )
    network, now = build_simulation(chosen, PLAN).deployment.network, Moment(1, 0.0)
    gains, mean = network.pilot_gains(now)
    everyone = np.arange(2000)
    links = network.slot_links(everyone, now)
    np.testing.assert_allclose(mean, 2.0)
    assert_mean(gains, 2.0, 2.0)
    later = np.abs(links.estimate[:, 0, 0, 0]) ** 2
    # Common is only h: the correlation of |h + e|² and |h + e'|² is (1/2)² of their powers.
    assert abs(np.corrcoef(gains, later)[0, 1] - 0.25) < 5 / np.sqrt(2000)


def test_proportional_fairness_step_by_step() -> None:
    """Against a loop over clients and rounds that knows only pilots and who was heard."""
    window = 4.0
    chosen = scenario(
        {"scheme": "proportional_fair", "count": 2, "window": window},
        rounds=12,
        uplink={"kind": "digital", "snr_db": 10.0},
        faults__availability=FAULTY,
    )
    _, rounds, _ = run(chosen)
    average = [0.0] * 6
    for this in rounds:
        rates = [float(np.log2(1 + 10.0 * gain / 2)) for gain in gains_of_all(chosen, this.index, 0.0)]
        scores = [rate / max(mean, 1e-6) for rate, mean in zip(rates, average, strict=True)]
        wanted = sorted(sorted(range(6), key=lambda client: -scores[client])[:2])
        assert this.clients.tolist() == wanted
        np.testing.assert_allclose(this.slots["selection_score"], [scores[client] for client in wanted])
        heard = set(this.clients[this.status == Status.PARTICIPATED].tolist())
        average = [
            (1 - 1 / window) * mean + (rates[client] / window if client in heard else 0.0)
            for client, mean in enumerate(average)
        ]
    assert any(len(this.clients) > this.values["participants"] for this in rounds)


@pytest.mark.slow
def test_proportional_fairness_serves_all_equally_often_where_the_best_channel_does_not() -> None:
    """Two groups far apart: fairness gives each half of the turns, the best channel nearly all to the near ones."""
    near = {"scheme": "positions", "points_m": [[100.0, 0.0]] * 3 + [[400.0, 0.0]] * 3}
    placed = {
        "rounds": 120,
        "channel__pathloss": {"model": "log_distance"},
        "channel__placement": near,
        "evaluate__every": 120,
        "training": {"steps": 1, "batch_size": 1, "algorithm": {"name": "fedavg"}},
    }
    share = {}
    for scheme in ("best_channel", "proportional_fair"):
        _, rounds, _ = run(scenario({"scheme": scheme, "count": 1}, **placed))
        share[scheme] = np.mean([this.clients[0] < 3 for this in rounds])
    assert share["best_channel"] > 0.9 and abs(share["proportional_fair"] - 0.5) < 0.15


def test_above_a_threshold_each_client_is_selected_with_its_probability() -> None:
    """Rayleigh fading: e^{−g} whatever the path loss, and nobody below it; a round may be empty."""
    threshold, rounds_played = 2.0, 150
    chosen = scenario(
        {"scheme": "channel_threshold", "threshold": threshold},
        rounds=rounds_played,
        channel__pathloss={"model": "log_distance"},
        evaluate__every=rounds_played,
        training={"steps": 1, "batch_size": 1, "algorithm": {"name": "fedavg"}},
    )
    _, rounds, _ = run(chosen)
    hits = np.zeros((rounds_played, 6))
    for this in rounds:
        hits[this.index - 1, this.clients] = 1
        assert np.all(this.slots["selection_score"] >= threshold)
    share = np.exp(-threshold)
    assert_mean(hits.ravel(), share, np.sqrt(share * (1 - share)))
    assert min(len(this.clients) for this in rounds) == 0


def test_the_oldest_are_selected_again_until_they_are_heard() -> None:
    chosen = scenario({"scheme": "age", "count": 2}, rounds=14, faults__availability=FAULTY)
    _, rounds, _ = run(chosen)
    last = [0] * 6
    for this in rounds:
        ages = [this.index - heard_in for heard_in in last]
        edge = sorted(ages)[-2]
        found = [ages[client] for client in this.clients.tolist()]
        assert sorted(found) == sorted(ages)[-2:] and min(found) >= edge
        np.testing.assert_array_equal(this.slots["selection_score"], found)
        for client in this.clients[this.status == Status.PARTICIPATED].tolist():
            last[client] = this.index
    assert any(this.values["participants"] < 2 for this in rounds)


@pytest.mark.parametrize("selection", RULES)
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(selection: dict[str, Any], tmp_path: Path) -> None:
    moving = {"model": "gauss_markov", "doppler_hz": 0.2}
    chosen = scenario(selection, faults__availability=FAULTY, channel__correlation=moving)
    goes_on_to_the_same_bits(chosen, tmp_path)


def test_last_known_gains_are_those_of_the_last_transmission() -> None:
    chosen = scenario({"scheme": "best_channel", "count": 2, "csi": "last"}, rounds=8)
    _, rounds, _ = run(chosen)
    known = np.full(6, np.inf)
    for this in rounds:
        assert sorted(known[this.clients].tolist()) == sorted(known.tolist())[-2:]
        known[this.clients] = recorded_gains(this)


def test_pilots_of_all_clients_take_time_and_energy() -> None:
    """K n symbols before the clients are selected, beside those of the slot itself."""
    keys = {
        "uplink": {"kind": "over_the_air", "tx_power_dbm": 10.0, "snr_db": None},
        "channel__csi": {"pilot_symbols": 4},
        "channel__pathloss": {"model": "log_distance"},
    }
    _, asked, _ = run(scenario({"scheme": "best_channel", "count": 2}, **keys))
    _, drawn, _ = run(scenario({"scheme": "uniform", "count": 2}, **keys))
    seconds, joules = 6 * 4 / 1e6, 6 * 4 * 0.01 / 1e6
    for ours, theirs in zip(asked, drawn, strict=True):
        assert ours.values["airtime"] - theirs.values["airtime"] == pytest.approx(seconds, rel=1e-6)
        data = [np.nansum(this.slots["tx_energy_j"]) for this in (ours, theirs)]
        assert (ours.values["energy"] - data[0]) - (theirs.values["energy"] - data[1]) == pytest.approx(
            joules, rel=1e-6
        )


@pytest.mark.parametrize(
    ("selection", "changes", "words"),
    [
        ({"scheme": "best_channel", "count": 7}, {}, r"clients\.selection\.count: found 7; allowed: at most 6"),
        ({"scheme": "age", "count": 0}, {}, r"clients\.selection\.count: found 0"),
        ({"scheme": "channel_threshold", "threshold": -1}, {}, r"clients\.selection\.threshold: found -1"),
        ({"scheme": "proportional_fair", "window": 0.5, "count": 2}, {}, r"clients\.selection\.window: found 0\.5"),
        ({"scheme": "best_channel", "count": 2, "csi": "future"}, {}, r"clients\.selection\.csi: found future"),
        (
            {"scheme": "best_channel", "count": 2},
            {"uplink": {"kind": "ideal"}},
            r"scheme: found best_channel with uplink",
        ),
        ({"scheme": "age", "count": 2}, {"aggregation__mode": "asynchronous"}, r"allowed: all \| uniform"),
        (
            {"scheme": "age", "count": 2},
            {
                "uplink": {"kind": "ideal"},
                "training__privacy": {"mechanism": "gaussian", "unit": "client", "noise_multiplier": 1.0, "clip": 1.0},
            },
            r"training\.privacy\.unit: found client with the selection age",
        ),
    ],
)
def test_bad_input_is_refused(selection: dict[str, Any], changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        scenario(selection, **changes)
