"""Asynchronous aggregation: when the model steps, from what, how strongly; what it costs and what it releases."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from tests.simulation.scenarios import PLAN, SMALL, run, small
from tests.simulation.uplinks.cells import Play, play
from tests.statistics import FALSE_ALARM
from wirelessfl import api
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.assembly import build_simulation
from wirelessfl.cli import main
from wirelessfl.learning.selection import SelectUniform
from wirelessfl.privacy.calibration import dp_sgd_epsilon
from wirelessfl.radio.digital_links import Link
from wirelessfl.radio.propagation import Moment
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.jobs import Job, JobsInFlight
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.medium import ticks
from wirelessfl.simulation.selection import KeepAtWork
from wirelessfl.streams import Streams
from wirelessfl.summary.timeline import activities
from wirelessfl.trace import EventKind, Status, read_group

EQUAL = {"cpu_hz": [1e9, 1e9], "straggler_scale": 0.0}
CONSTANT = {"name": "constant"}


def asynchronous(**overrides: Any) -> dict[str, Any]:
    """The section of a scenario."""
    return {"mode": "asynchronous", **overrides}


@pytest.mark.parametrize("uplink", [{"kind": "ideal"}, {"kind": "digital", "bits": 4}])
@pytest.mark.parametrize("mixes", ["models", "updates"])
def test_with_equal_delays_it_is_the_synchronous_rule(uplink: dict[str, Any], mixes: str) -> None:
    """All arrive at one instant, from the newest model: with mixing 1 the same bits, whatever the discount."""
    keys = {"uplink": uplink, "timing": EQUAL, "channel__fading": {"model": "static"}}
    (one, rounds, _), (other, theirs, _) = (
        run(small(**keys, **more)) for more in ({}, {"aggregation": asynchronous(mixing=1.0, mixes=mixes)})
    )
    assert one.state.parameters.tobytes() == other.state.parameters.tobytes()
    assert np.any(one.state.parameters != 0)
    for this, that in zip(rounds, theirs, strict=True):
        assert this.values["sim_time"] == that.values["sim_time"]
        assert this.values["airtime"] == that.values["airtime"]
        assert np.array_equal(this.status, that.status)
        assert np.all(that.slots["staleness"] == 0)


def test_a_buffer_for_all_is_the_synchronous_rule_at_any_delays() -> None:
    (one, rounds, _), (other, theirs, _) = (
        run(small(uplink={"kind": "ideal"}, **more))
        for more in ({}, {"aggregation": asynchronous(mixing=1.0, buffer=6)})
    )
    assert one.state.parameters.tobytes() == other.state.parameters.tobytes()
    assert [this.values["sim_time"] for this in rounds] == [this.values["sim_time"] for this in theirs]


def two_clients(rounds: int, **section: Any) -> Play:
    """Clients that take 2 and 3 seconds, without a network in between."""
    scenario = small(rounds=rounds, clients__count=2, uplink={"kind": "ideal"}, aggregation=asynchronous(**section))
    return play(scenario, compute=(2.0, 3.0))


def test_steps_and_staleness_of_two_clients_by_hand() -> None:
    """Steps at 2 (client 0), 3 (1, from the first model), 4 (0, from that of time 2), 6 (both)."""
    found = two_clients(4)
    assert [this.values["sim_time"] for this in found.rounds] == [2.0, 3.0, 4.0, 6.0]
    assert [this.values["model_version"] for this in found.rounds] == [1, 2, 3, 4]
    nan = math.nan
    staleness = [this.slots["staleness"].tolist() for this in found.rounds]
    np.testing.assert_equal(staleness, [[0, nan], [nan, 1], [1, nan], [0, 1]])
    statuses = [this.status.tolist() for this in found.rounds]
    heard, underway = Status.PARTICIPATED, Status.UNDERWAY
    assert statuses == [[heard, underway], [underway, heard], [heard, underway], [heard, heard]]
    assert found.learner.trained == [(1, [0]), (1, [1]), (2, [0]), (3, [1]), (4, [0])]


@pytest.mark.parametrize("mixes", ["models", "updates"])
def test_the_model_against_the_formulas_of_the_papers(mixes: str) -> None:
    """FedAsync mixes models, w ← (1 − α s) w + α s w_i; FedBuff adds updates, w ← w + α s Δ_i."""
    alpha, found = 0.6, two_clients(4, mixes=mixes, mixing=0.6, staleness={"name": "polynomial", "exponent": 0.5})
    weight = found.samples / found.samples.sum()
    updates = [found.learner.update_of(client).astype(np.float64) for client in (0, 1)]
    versions = [np.zeros(10)]
    for arrivals in ([(0, 0)], [(1, 0)], [(0, 1)], [(0, 3), (1, 2)]):  # clients, and the version they started from
        now, step = versions[-1], np.zeros(10)
        share = sum(weight[client] for client, _ in arrivals)
        for client, version in arrivals:
            s = (1 + len(versions) - 1 - version) ** -0.5
            own_model = versions[version] + updates[client]
            towards = own_model - now if mixes == "models" else updates[client]
            step += alpha * s * weight[client] / share * towards
        versions.append(now + step)
    # The model is kept in single precision: four roundings of numbers below 1.
    np.testing.assert_allclose(found.simulation.state.parameters, versions[-1], rtol=0, atol=5 * 2.0**-24)


def test_the_arrivals_of_the_timing_case_of_the_radio_page() -> None:
    """Compute 1, 2, 3, 9 s and 8, 4, 2, 1 s of upload: arrivals at 9, 6, 5, 10 s; nobody waits for anybody."""
    bits = 32 * 250_000
    links = [Link(1 / (rate * 1e6)) for rate in (1, 2, 4, 8)]
    scenario = small(rounds=4, clients__count=4, uplink={"kind": "digital"}, aggregation=asynchronous())
    found = play(scenario, compute=(1.0, 2.0, 3.0, 9.0), links=links, dimension=250_000)
    arrivals = [(time, node) for number in range(1, 5) for time, node in found.times(EventKind.ARRIVE, number)]
    assert arrivals == [(5.0, 2), (6.0, 1), (9.0, 0), (10.0, 3), (10.0, 2)]
    assert [this.values["sim_time"] for this in found.rounds] == [5.0, 6.0, 9.0, 10.0]
    # On the air: 0 from 1 s, 1 from 2 s, 2 from 3 s: the union is 1 to 10 s, cut by the rounds.
    assert [this.values["airtime"] for this in found.rounds] == [4.0, 1.0, 3.0, 1.0]
    assert np.nansum([this.slots["tx_time"] for this in found.rounds]) == pytest.approx(
        8 + 4 + 2 + 1 + 2 + 2, rel=1e-12
    )
    assert ticks(links[0].duration(bits)) == 8 * 10**12


FAULTY = {
    "rounds": 12,
    "uplink": {"kind": "digital", "tx_power_dbm": 10.0},
    "timing": {"straggler_scale": 3.0, "cycles_per_sample": 1e7, "switched_capacitance": 1e-28},
    "faults": {"crash_rate_per_s": 1.0, "availability": {"p": 0.7}, "fade_threshold": 0.3},
    "aggregation": asynchronous(buffer=2),
}


def test_energy_adds_up_and_nothing_is_booked_twice() -> None:
    simulation, rounds, _ = run(small(**FAULTY))
    total = 0.0
    for this in rounds:
        parts = np.nansum(this.slots["tx_energy_j"]) + np.nansum(this.slots["compute_energy_j"])
        assert this.values["energy"] == pytest.approx(parts, rel=1e-12)
        total += parts
    assert simulation.state.energy_j == pytest.approx(total, rel=1e-12)
    statuses = {Status(code) for this in rounds for code in this.status.tolist()}
    assert {Status.PARTICIPATED, Status.UNDERWAY, Status.CRASHED, Status.UNAVAILABLE, Status.DEEP_FADE} <= statuses


@pytest.mark.parametrize("faults", [{}, {"server_restart": {"p": 0.5, "downtime_s": 0.7}}])
def test_a_finished_training_has_cost_what_it_costs(faults: dict[str, Any]) -> None:
    """Booked round by round as far as it came, in all κ f² for each of its cycles; also what a server loses."""
    keys = {**FAULTY, "faults": faults, "timing__cpu_hz": [1e9, 1e9]}
    simulation, rounds, _ = run(small(**keys))
    parts = simulation.deployment
    samples = parts.learner.samples_processed(parts.network.registry.samples)
    whole = 1e-28 * 1e9**2 * 1e7 * samples
    spent = np.zeros(6)
    for this in rounds:
        spent += np.nan_to_num(this.slots["compute_energy_j"])
        back = np.isin(this.status, [Status.PARTICIPATED, Status.LOST])
        np.testing.assert_allclose(spent[back], whole[back], rtol=1e-9)
        spent[back] = 0.0
    assert np.all(spent <= whole * (1 + 1e-9))


@pytest.mark.parametrize("restart", [{}, {"p": 1.0, "downtime_s": 4.0}, {"p": 0.5, "downtime_s": 0.7}])
def test_every_upload_is_released_once_when_it_begins(restart: dict[str, float]) -> None:
    """Who is still sending when the run ends has released its update, too, and who begins while the server is down."""
    slow = {"kind": "digital", "rate": {"model": "fixed", "rate_bps": 2e4}, "snr_db": 30.0}
    scenario = small(**{**FAULTY, "uplink": slow}, faults__server_restart=restart)
    _, rounds, events = run(scenario)
    for this, batch in zip(rounds, events, strict=True):
        (release,) = this.round.releases or (None,)
        began = np.asarray(batch.node)[np.asarray(batch.kind) == EventKind.TRANSMIT]
        released = [] if release is None else release.clients.tolist()
        assert released == sorted(began.tolist())
    if restart:
        return
    sending = [rounds[-1].status[np.searchsorted(rounds[-1].clients, c)] for c in rounds[-1].round.releases[0].clients]
    assert Status.UNDERWAY in sending, "the last round has somebody who still sends"


def test_local_noise_is_accounted_for_every_upload() -> None:
    """ε of a client is that of all the steps it took for updates that it began to send."""
    noise = {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.2, "sampling": "poisson"}
    scenario = small(
        rounds=9,
        uplink={"kind": "ideal"},
        training__privacy=noise,
        timing={"straggler_scale": 3.0},
        aggregation=asynchronous(),
        clients__count=3,
    )
    simulation, rounds, _ = run(scenario)
    uploads = np.zeros(3, dtype=int)
    for this in rounds:
        uploads[this.round.releases[0].clients] += 1
    assert uploads.sum() >= 9 and len(set(uploads.tolist())) > 1
    _, accounted = simulation.ledger.client_epsilons()
    samples = simulation.deployment.network.registry.samples
    for client in range(3):
        steps = math.ceil(samples[client] / 20) * int(uploads[client])
        expected = dp_sgd_epsilon(1.2, steps, 1e-5, 20 / samples[client])
        assert accounted[client] == pytest.approx(expected, rel=1e-3)


def test_a_restarting_server_loses_what_came_in_and_takes_what_comes_meanwhile() -> None:
    """The server is down from 2 s to 3.5 s with what client 0 sent; what client 1 sent at 3 s counts afterwards."""
    scenario = small(
        rounds=2,
        clients__count=2,
        uplink={"kind": "ideal"},
        aggregation=asynchronous(),
        faults__server_restart={"p": 1.0, "downtime_s": 1.5},
    )
    found = play(scenario, compute=(2.0, 3.0))
    assert [this.values["sim_time"] for this in found.rounds] == [3.5, 5.0]
    assert found.rounds[0].status.tolist() == [Status.LOST, Status.UNDERWAY]
    assert found.rounds[1].status.tolist() == [Status.UNDERWAY, Status.LOST]
    assert found.simulation.state.model_version == 0 and found.learner.received == []


def test_nobody_there_is_a_round_all_the_same() -> None:
    _, rounds, _ = run(small(uplink={"kind": "ideal"}, faults__availability={"p": 0.0}, aggregation=asynchronous()))
    assert [this.values["participants"] for this in rounds] == [0, 0, 0]
    assert rounds[-1].values["sim_time"] > 0 and rounds[-1].values["model_version"] == 0


def job(client: int) -> Job:
    return Job(client, 1, 0, 0, 1, 1, 1e-12, 32, True, int(Status.PARTICIPATED), Link(0.0))


def test_those_who_are_back_are_replaced_uniformly_from_the_others() -> None:
    """Of 8 clients 3 work; 2 of them stay. The third is each of the 6 others with probability 1/6."""
    jobs = JobsInFlight()
    for client in (2, 5):
        jobs.start(job(client), np.zeros(1, dtype=np.float32))
    eight = small(clients__count=8, clients__selection={"scheme": "uniform", "count": 3})
    keep = KeepAtWork(SelectUniform(), 3, build_simulation(eight, PLAN).deployment.network, jobs=jobs)
    streams, draws = Streams(5), 6000
    counts = np.zeros(8)
    for round_index in range(1, draws + 1):
        chosen = keep.select(Moment(round_index, 0.0), streams)
        assert len(chosen) == 3 and {2, 5} <= set(chosen.tolist()) and np.all(np.diff(chosen) > 0)
        counts[chosen] += 1
    others = counts[[0, 1, 3, 4, 6, 7]]
    # Six binomial counts; Hoeffding's bound at a false-alarm rate shared among them.
    allowed = math.sqrt(draws * math.log(2 * 6 / FALSE_ALARM) / 2)
    assert np.all(np.abs(others - draws / 6) < allowed) and others.sum() == draws


def test_as_many_clients_work_at_any_time_as_are_selected() -> None:
    scenario = small(rounds=15, uplink={"kind": "ideal"}, aggregation=asynchronous(), clients__count=12)
    scenario = scenario.model_copy(
        update={"clients": small(clients__count=12, clients__selection={"scheme": "uniform", "count": 4}).clients}
    )
    _, rounds, _ = run(scenario)
    assert all(len(this.clients) == 4 for this in rounds)
    assert len({client for this in rounds for client in this.clients.tolist()}) > 4


class Killed(BaseException):
    """Nothing that the program would catch."""


def test_a_killed_run_resumes_to_the_same_bits_and_is_verified(tmp_path: Path) -> None:
    scenario = small(**FAULTY)
    api.simulate(scenario, tmp_path / "whole")

    def kill(this: FinishedRound) -> None:
        if this.index == 5:
            raise Killed

    with pytest.raises(Killed):
        api.simulate(scenario, tmp_path / "killed", on_round=kill)
    api.simulate(scenario, tmp_path / "killed", resume=True)
    whole, resumed = (open_recording(tmp_path / name / "trace.h5").dataset for name in ("whole", "killed"))
    for name in whole.data_vars:
        if name != "wall_time":
            assert whole[name].values.tobytes() == resumed[name].values.tobytes(), name
    events = [read_group(tmp_path / name / "trace.h5", "events") for name in ("whole", "killed")]
    for name in events[0].data_vars:
        assert events[0][name].values.tobytes() == events[1][name].values.tobytes(), name
    verify(open_recording(tmp_path / "killed" / "trace.h5"))


@pytest.mark.slow
def test_the_timeline_shows_work_that_outlasts_a_round(tmp_path: Path) -> None:
    scenario = small(rounds=8, uplink={"kind": "ideal"}, aggregation=asynchronous(), timing={"straggler_scale": 3.0})
    result = api.simulate(scenario, tmp_path / "run")
    assert (tmp_path / "run" / "timeline.png").stat().st_size > 0
    recording, events = open_recording(result.trace).dataset, read_group(result.trace, "events")
    ends = recording["sim_time"].values
    stretches, _ = activities(events)
    across = [s for s in stretches if s.doing == "trains" and np.any((s.begin < ends) & (ends < s.end))]
    assert across, "nobody trains across the end of a round"
    heard = recording["status"].values == Status.PARTICIPATED
    durations = recording["compute_time"].values[heard]
    trained = np.sort([s.end - s.begin for s in stretches if s.doing == "trains"])
    assert np.all([np.min(np.abs(trained - duration)) < 1e-9 for duration in durations])


REFUSED = {
    "uplink.kind: found over_the_air": {"uplink.kind": "over_the_air"},
    "uplink.kind: found secure_aggregation": {"uplink.kind": "secure_aggregation"},
    "uplink.access: found tdma": {"uplink": "{kind: digital, access: tdma}"},
    "training.algorithm.name: found upcycled": {"training.algorithm.name": "upcycled"},
    "timing.deadline_s: found 2.0": {"timing.deadline_s": "2.0"},
    "timing.wait_for: found a part of the clients": {"timing.wait_for": "{count: 2}"},
    "clients.selection.scheme: found poisson": {"clients.selection.scheme": "poisson"},
    "aggregation.buffer: found 7; allowed: at most 6": {"aggregation.buffer": "7"},
    "training.privacy.unit: found client": {
        "training.privacy": "{mechanism: gaussian, unit: client, clip: 1.0, noise_multiplier: 1.0}"
    },
    "training.privacy.clipping.name: found dynamic": {
        "training.privacy": "{mechanism: gaussian, clipping: {name: dynamic}, noise_multiplier: 1.0}"
    },
    "aggregation.mixing: found 0": {"aggregation.mixing": "0"},
    "aggregation.mixing: found 1.5": {"aggregation.mixing": "1.5"},
    "aggregation.buffer: found 0": {"aggregation.buffer": "0"},
    "aggregation.mixes: found gradients": {"aggregation.mixes": "gradients"},
    "aggregation.staleness.exponent: found -1": {"aggregation.staleness.exponent": "-1"},
    "aggregation.staleness.name: found linear": {"aggregation.staleness.name": "linear"},
    "aggregation.mode: found async": {"aggregation.mode": "async"},
    "topology.kind": {"topology.kind": "multi_cell"},
}


@pytest.mark.parametrize(("message", "keys"), REFUSED.items())
def test_what_is_refused(message: str, keys: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL + "uplink: {kind: ideal}\naggregation: {mode: asynchronous}\n")
    overrides = [part for key, value in keys.items() for part in ("--set", f"{key}={value}")]
    found = CliRunner().invoke(main, ["simulate", str(file), "--out", str(tmp_path / "out"), *overrides])
    assert found.exit_code == 2, found.output
    assert message in found.output and "Traceback" not in found.output
    assert not (tmp_path / "out").exists()


def test_fresh_and_late_updates_are_trained_from_their_own_models() -> None:
    """A single late client: its update is that of a client which starts from the model it was sent."""
    scenario = small(rounds=2, clients__count=2, uplink={"kind": "ideal"}, aggregation=asynchronous(mixes="updates"))
    simulation, rounds, _ = run(scenario)
    first = rounds[0].clients[rounds[0].status == Status.PARTICIPATED]
    late = rounds[1].clients[(rounds[1].status == Status.PARTICIPATED) & (rounds[1].slots["staleness"] == 1)]
    assert len(first) == 1 and len(late) == 1 and first != late
    fresh, _, _ = run(scenario.model_copy(update={"rounds": 1}))
    learner = fresh.deployment.learner
    assert isinstance(learner, Learner)
    state = learner.initial_state(0)
    (block,) = learner.train(state.parameters, state, late, 1)
    step = torch.as_tensor(0.6 / math.sqrt(2) * block.updates.double()[0])
    expected = fresh.state.parameters + step.numpy().astype(np.float32)
    # Rounding to single precision, of numbers below 1.
    np.testing.assert_allclose(simulation.state.parameters, expected, rtol=0, atol=2.0**-24)
