"""Failing jammers, restarting servers, energy of every part, batteries, and OFDM slots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import run, small
from wirelessfl.errors import ScenarioError
from wirelessfl.simulation import FinishedRound
from wirelessfl.trace import JAMMER_NODE, SERVER_NODE, EventBatch, EventKind, Status

WATTS = {"kind": "over_the_air", "tx_power_dbm": 10.0}
KAPPA = 1e-28
JAMMED = {"epsilon": 1.0}


def nodes(batch: EventBatch, kind: EventKind) -> list[int]:
    """Whom events of a kind happened to."""
    return [int(node) for node in np.asarray(batch.node)[np.asarray(batch.kind) == kind]]


def test_a_jammer_that_fails_leaves_less_noise_and_the_ledger_sees_it() -> None:
    _, whole, _ = run(small(rounds=8, uplink__jammer=JAMMED))
    _, rounds, events = run(small(rounds=8, uplink__jammer=JAMMED, faults__jammer_failure=0.4))
    failed = [nodes(batch, EventKind.JAMMER_FAILURE) == [JAMMER_NODE] for batch in events]
    assert 0 < sum(failed) < 8
    for this, batch, no_noise in zip(rounds, events, failed, strict=True):
        unjammed = this.values["channel_noise_std"] / this.values["server_gain"]
        assert (this.values["jammer_gain"] == 0.0) is no_noise
        assert (this.values["effective_noise_std"] == pytest.approx(unjammed)) is no_noise
        assert (this.values["jammer_energy"] == 0.0) is no_noise
        assert nodes(batch, EventKind.JAM) == ([] if no_noise else [JAMMER_NODE])
    assert whole[-1].values["epsilon_published"] == pytest.approx(1.0, rel=1e-6)
    for column in ("epsilon_published", "epsilon_accounted"):
        assert rounds[-1].values[column] > 1.2 * whole[-1].values[column]


def test_a_failing_jammer_changes_no_other_draw() -> None:
    _, whole, _ = run(small(uplink__jammer=JAMMED))
    _, failing, _ = run(small(uplink__jammer=JAMMED, faults__jammer_failure=1.0))
    for name in ("channel_re", "compute_time", "backoff"):
        np.testing.assert_array_equal(whole[2].slots[name], failing[2].slots[name])


def test_a_rotating_jammer_that_fails_is_named() -> None:
    jammer = {**JAMMED, "role": "rotating"}
    _, rounds, events = run(small(uplink__jammer=jammer, faults__jammer_failure=1.0))
    for this, batch in zip(rounds, events, strict=True):
        assert nodes(batch, EventKind.JAMMER_FAILURE) == this.clients[this.round.with_status(Status.JAMMING)].tolist()


def test_a_failing_jammer_needs_a_jammer() -> None:
    with pytest.raises(ScenarioError, match=r"faults\.jammer_failure: found 0\.5 without a jammer"):
        small(faults__jammer_failure=0.5)


@pytest.mark.parametrize("uplink", [WATTS, {"kind": "ideal"}, {"kind": "digital"}], ids=lambda uplink: uplink["kind"])
def test_a_server_that_restarts_loses_the_round_but_not_the_privacy(uplink: dict[str, Any]) -> None:
    restart = {"p": 1.0, "downtime_s": 20.0}
    simulation, rounds, events = run(small(uplink=uplink, faults__server_restart=restart))
    untouched, free, _ = run(small(uplink=uplink))
    start = small(uplink=uplink, rounds=1)
    np.testing.assert_array_equal(simulation.state.parameters, initial_parameters(start))
    for index, (this, other, batch) in enumerate(zip(rounds, free, events, strict=True), start=1):
        assert this.values["participants"] == 0
        lost = this.round.with_status(Status.LOST)
        np.testing.assert_array_equal(lost, other.round.with_status(Status.PARTICIPATED))
        assert len(lost) > 0
        assert nodes(batch, EventKind.SERVER_RESTART) == [SERVER_NODE]
        assert nodes(batch, EventKind.AGGREGATE) == []
        assert this.values["sim_time"] == pytest.approx(other.values["sim_time"] + 20.0 * index)
        assert this.values["airtime"] == other.values["airtime"]
    assert simulation.ledger.epsilon_accounted() == untouched.ledger.epsilon_accounted()


def initial_parameters(scenario: Any) -> np.ndarray:
    from tests.simulation.scenarios import PLAN
    from wirelessfl.assembly import build_simulation

    return build_simulation(scenario, PLAN).state.parameters


def test_restarts_are_as_frequent_as_stated() -> None:
    from tests.statistics import assert_probability
    from wirelessfl.learning.faults import BernoulliAvailability, Faults
    from wirelessfl.streams import Streams

    faults = Faults(BernoulliAvailability(1.0), 0.0, None, restart_probability=0.2)
    hits = sum(faults.server_restarts(index, Streams(4)) for index in range(1, 5001))
    assert_probability(hits, 5000, 0.2)


def parts(this: FinishedRound, joules_per_unit: float) -> float:
    """What the parts of a round cost together, from the columns of the trace."""
    transmitted = np.nansum(this.slots.get("tx_energy_j", 0.0))
    computed = np.nansum(this.slots.get("compute_energy_j", 0.0))
    return float(transmitted + computed + this.values.get("jammer_energy", 0.0) * joules_per_unit)


@pytest.mark.parametrize(
    "overrides",
    [
        {"uplink": WATTS},
        {"uplink": {**WATTS, "jammer": JAMMED}},
        {"uplink": {**WATTS, "jammer": {**JAMMED, "role": "rotating"}}, "faults__jammer_failure": 0.5},
        {"uplink": {"kind": "digital", "tx_power_dbm": 20.0}, "timing__deadline_s": 0.06},
        {"uplink": WATTS, "timing__deadline_s": 0.02, "faults__crash_rate_per_s": 10.0},
        {"uplink": WATTS, "faults__fade_threshold": 1e9},
        {"uplink": WATTS, "faults__availability": {"p": 0.0}},
        {"uplink": WATTS, "timing__ofdm": {}, "channel__profile": "urban-macro"},
    ],
    ids=str,
)
def test_energy_is_the_sum_of_its_parts(overrides: dict[str, Any]) -> None:
    scenario = small(rounds=5, timing__switched_capacitance=KAPPA, **overrides)
    simulation, rounds, _ = run(scenario)
    joules_per_unit = getattr(simulation.deployment.uplink, "joules_per_unit", 0.0)
    for this in rounds:
        assert this.values["energy"] == pytest.approx(parts(this, joules_per_unit), rel=1e-12, abs=1e-300)
    assert simulation.state.energy_j == pytest.approx(sum(this.values["energy"] for this in rounds), rel=1e-12)


def test_computing_costs_kappa_f_squared_a_cycle_as_far_as_it_came() -> None:
    """One speed for all: 20 samples of 1e6 cycles at 1.5 GHz; delays take time and no energy."""
    speed = [1.5e9, 1.5e9]
    scenario = small(
        rounds=4,
        uplink=WATTS,
        timing__cpu_hz=speed,
        timing__switched_capacitance=KAPPA,
        timing__deadline_s=0.016,
        faults__crash_rate_per_s=20.0,
    )
    simulation, rounds, _ = run(scenario)
    whole = KAPPA * 1.5e9**2 * 20 * 1e6
    latest = 0.016 - simulation.deployment.uplink.airtime  # type: ignore[attr-defined]
    seen = set()
    for this in rounds:
        energy, time = this.slots["compute_energy_j"], this.slots["compute_time"]
        done = this.round.with_status(Status.PARTICIPATED)
        np.testing.assert_allclose(energy[done], whole, rtol=1e-9)
        late = this.round.with_status(Status.LATE)
        ended = np.where(time <= latest, energy / whole * time, 0.0)  # by itself or by a crash, of those in time
        np.testing.assert_allclose(energy[late], whole * ended.max() / time[late], rtol=1e-9)
        crashed = this.round.with_status(Status.CRASHED)
        assert np.all((energy[crashed] > 0) & (energy[crashed] < whole))
        seen |= {int(status) for status in this.status}
    assert {Status.PARTICIPATED, Status.LATE, Status.CRASHED} <= seen


def test_computing_drains_batteries() -> None:
    whole = KAPPA * 1.5e9**2 * 20 * 1e6
    scenario = small(
        rounds=4,
        uplink={"kind": "over_the_air", "tx_power_dbm": -200.0, "power_control": {"policy": "full_power"}},
        timing__cpu_hz=[1.5e9, 1.5e9],
        timing__switched_capacitance=KAPPA,
        faults__battery_j=2.5 * whole,
    )
    _, rounds, _ = run(scenario)
    assert [len(this.round.with_status(Status.BATTERY_EMPTY)) for this in rounds] == [0, 0, 0, 6]


def test_nothing_is_counted_by_default() -> None:
    _, rounds, _ = run(small(uplink=WATTS))
    assert "compute_energy_j" not in rounds[0].slots


def test_an_ofdm_slot_is_as_long_as_its_symbols_with_their_prefixes() -> None:
    """610 coordinates on 66 subcarriers (15 kHz in 1 MHz): 10 symbols of 1/15000 s + 4.7 µs."""
    _, rounds, _ = run(small(rounds=1, timing__ofdm={}))
    assert rounds[0].values["airtime"] == pytest.approx(10 * (1 / 15e3 + 4.7e-6), rel=1e-12)
    _, rounds, _ = run(small(rounds=1, timing__ofdm={"subcarriers": 64}, uplink__iq_packing=True))
    assert rounds[0].values["airtime"] == pytest.approx(5 * (1 / 15e3 + 4.7e-6), rel=1e-12)


def test_a_prefix_costs_time_and_energy() -> None:
    """A prefix as long as a symbol: twice the airtime, and of a transmitted joule half arrives in the sum."""
    full = {"policy": "full_power"}
    uplink = {**WATTS, "power_control": full}
    ofdm = {"subcarrier_spacing_hz": 1e4, "subcarriers": 61}
    energy, budget, airtime = [], [], []
    for prefix in (0.0, 1e-4):
        simulation, rounds, _ = run(small(rounds=1, uplink=uplink, timing__ofdm={**ofdm, "cyclic_prefix_s": prefix}))
        budget.append(simulation.deployment.network.registry.power_budget)
        airtime.append(rounds[0].values["airtime"])
        energy.append(0.01 * airtime[-1])
        at_the_clip = budget[-1] * simulation.deployment.uplink.joules_per_unit  # type: ignore[attr-defined]
        assert at_the_clip == pytest.approx(energy[-1], rel=1e-12)
    assert airtime[1] == pytest.approx(2 * airtime[0]) and budget[1] == pytest.approx(budget[0])


def test_subcarriers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"timing\.ofdm: found 1\.005e\+06 Hz of subcarriers"):
        small(timing__ofdm={"subcarriers": 67})
    with pytest.raises(ScenarioError, match=r"timing\.ofdm: found 2e\+06 Hz"):
        small(timing__ofdm={"subcarrier_spacing_hz": 2e6})
