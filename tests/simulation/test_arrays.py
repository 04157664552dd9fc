"""Antenna arrays in whole runs: what is received, what the ledger counts, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_multi_cell import cellular
from wirelessfl.analysis.audit.audit import audit_simulation
from wirelessfl.api import simulate
from wirelessfl.assembly import build_simulation
from wirelessfl.cli import main
from wirelessfl.errors import InfeasibleError, ScenarioError
from wirelessfl.privacy import AirRelease, gaussian_mu
from wirelessfl.radio import Moment
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.simulation.uplinks.air.plan import AirPlan
from wirelessfl.trace import open_trace

GAIN = {"policy": "cross_layer", "server_gain": 60.0}
EXACT_GAIN = {"policy": "lower_gain", "calibration": "exact"}
JAMMED = {"epsilon": 2.0, "calibration": "theorem", "margin": 3.0}


def released(this: FinishedRound) -> AirRelease:
    """The record of a round's slot."""
    (release,) = (each for each in this.round.releases if isinstance(each, AirRelease))
    return release


def amplitude(channel: NDArray[np.complex128], jamming: NDArray[np.complex128]) -> NDArray[np.float64]:
    """‖Σ^{−1/2} h‖ (k,) by the real form of the covariance, unit noise at each antenna, of one block."""
    covariance = np.eye(len(jamming)) + np.outer(jamming, jamming.conj())
    real = np.block([[covariance.real, -covariance.imag], [covariance.imag, covariance.real]])
    stacked = np.concatenate([channel.real, channel.imag], axis=1)
    return np.asarray(np.sqrt(np.einsum("ka,ab,kb->k", stacked, np.linalg.inv(real), stacked)))


@pytest.mark.parametrize("combiner", ["sum", "random", "max_min"])
@pytest.mark.parametrize("jammer", [None, JAMMED])
@pytest.mark.parametrize("csi", [0.0, 0.3])
def test_the_ledger_counts_all_antennas(combiner: str, jammer: dict[str, Any] | None, csi: float) -> None:
    """X/σ of every client and round is 2 τ|α| ‖Σ^{−1/2} h‖, from the recorded gains and channels."""
    scenario = small(
        uplink__receiver={"antennas": 3, "combiner": combiner},
        uplink__jammer=jammer,
        uplink__power_control=GAIN,
        channel__csi={"error_std": csi},
    )
    simulation, rounds, _ = run(scenario)
    facts, statement = simulation.ledger.facts, simulation.ledger.statement
    why = simulation.ledger.why_different()
    assert any("both quadratures of all antennas" in reason for reason in why)
    for this in rounds:
        release, columns = released(this), this.slots
        channel = columns["channel_re"] + 1j * columns["channel_im"]
        jamming: NDArray[np.complex128] = np.zeros(3, dtype=np.complex128)
        if jammer is not None:
            values = this.values
            arriving = this.blocks["jammer_channel_re"] + 1j * this.blocks["jammer_channel_im"]
            jamming = np.asarray(values["jammer_gain"] * arriving, dtype=np.complex128)
            assert values["jammer_gain"] > 0
        expected = 2 * columns["tx_gain_abs"] * amplitude(channel, jamming)
        found = release.sensitivity(facts, statement) / release.accounted_noise_std
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_one_antenna_is_what_it_was() -> None:
    """A receiver of one antenna, in words: the same bits."""
    plain, first, _ = run(small())
    named, second, _ = run(small(uplink__receiver={"antennas": 1, "correlation": {"model": "exponential"}}))
    np.testing.assert_array_equal(plain.state.parameters, named.state.parameters)
    assert plain.ledger.client_epsilons()[1].tolist() == named.ledger.client_epsilons()[1].tolist()
    beam, third, _ = run(small(uplink__receiver={"combiner": "max_min"}))
    np.testing.assert_allclose(beam.ledger.client_epsilons()[1], plain.ledger.client_epsilons()[1], rtol=1e-9)
    assert len(first) == len(second) == len(third)


def test_what_is_received_is_the_sum_behind_the_combiner() -> None:
    """Without noise worth the name the server reads Σ p_i Δ_i, whatever the beam."""
    loud = {"uplink__snr_db": 250.0, "uplink__power_control": {"server_gain": 1e9}}
    ideal, _, _ = run(small(rounds=1, uplink__kind="ideal", uplink__clip=1.0))
    for combiner in ("sum", "random", "max_min"):
        found, _, _ = run(small(rounds=1, **loud, uplink__receiver={"antennas": 4, "combiner": combiner}))
        np.testing.assert_allclose(found.state.parameters, ideal.state.parameters, rtol=0, atol=2e-6)


def test_a_beam_lets_clients_send_with_less_back_off() -> None:
    """The weakest client behind the max–min beam of eight antennas is louder than behind one antenna."""
    backoff = {}
    for antennas in (1, 8):
        receiver = {"antennas": antennas, "combiner": "max_min"}
        loud = {"uplink__snr_db": -20.0, "uplink__power_control": {"server_gain": 50.0}}
        _, rounds, _ = run(small(uplink__receiver=receiver, **loud))
        backoff[antennas] = max(float(this.slots["backoff"].max()) for this in rounds)
    assert backoff[8] < 0.8 * backoff[1]


def test_a_server_of_two_antennas_nulls_a_jammer_of_one() -> None:
    """The stronger the jamming, the less one antenna learns; two learn what is orthogonal to it."""
    accounted: dict[int, list[float]] = {1: [], 2: []}
    for antennas, found in accounted.items():
        for margin in (1.0, 1e3):
            receiver = {"antennas": antennas, "combiner": "max_min"}
            jammer = {**JAMMED, "margin": margin}
            scenario = small(uplink__receiver=receiver, uplink__jammer=jammer, uplink__power_control=GAIN)
            found.append(float(run(scenario)[0].ledger.epsilon_accounted()))
    assert accounted[1][1] < 0.01 * accounted[1][0]
    assert accounted[2][1] > 0.1 * accounted[2][0]


def test_an_exact_calibration_meets_its_target_against_all_antennas() -> None:
    """The jammer's power is set by what all antennas hear: the accounted μ of the worst client is the budget's.

    All clients lie near the jammer's direction, so that it can hide them.
    """
    places = [[100.0, float(y)] for y in range(6)]
    scenario = small(
        uplink__receiver={"antennas": 2, "combiner": "max_min"},
        uplink__jammer={"epsilon": 60.0, "calibration": "exact", "position_m": [100.0, 2.0]},
        uplink__power_control=GAIN,
        channel__fading={"model": "static"},
        channel__placement={"scheme": "positions", "points_m": places},
        channel__pathloss={"model": "log_distance"},
    )
    simulation, rounds, _ = run(scenario)
    limit = float(gaussian_mu(60.0, scenario.privacy.delta)) / np.sqrt(scenario.rounds)
    facts, statement = simulation.ledger.facts, simulation.ledger.statement
    for this in rounds:
        release = released(this)
        worst = float((release.sensitivity(facts, statement) / release.accounted_noise_std).max())
        assert worst <= limit * (1 + 1e-9)
        if this.values["jammer_gain"] > 0:
            assert worst == pytest.approx(limit, rel=1e-6)
    assert any(this.values["jammer_gain"] > 0 for this in rounds)
    assert simulation.ledger.epsilon_accounted() <= 60.0 * (1 + 1e-9)


def test_a_target_below_the_floor_cannot_be_met() -> None:
    receiver = {"antennas": 4, "combiner": "max_min"}
    jammer = {"epsilon": 1.0, "calibration": "exact"}
    scenario = small(uplink__receiver=receiver, uplink__jammer=jammer, uplink__power_control=GAIN)
    with pytest.raises(InfeasibleError, match=r"epsilon: found 1 with 4 antennas, whose receiver nulls the jammer"):
        build_simulation(scenario, PLAN)


def test_a_lower_gain_meets_a_target_that_jamming_cannot() -> None:
    jammer = {"epsilon": 1.0, "calibration": "exact", "max_shortfall": 1.0, "on_shortfall": "lower_gain"}
    scenario = small(uplink__receiver={"antennas": 3, "combiner": "max_min"}, uplink__jammer=jammer)
    simulation, _, _ = run(scenario)
    assert 0 < simulation.ledger.epsilon_accounted() <= 1.0 * (1 + 1e-9)


def test_base_stations_with_arrays_add_up() -> None:
    """Adversaries behind all base stations hear ‖h‖ over the antennas of all of them."""
    scenario = cellular(rounds=2, uplink__receiver={"antennas": 2, "combiner": "max_min"})
    simulation = build_simulation(scenario, PLAN)
    uplink, plans = simulation.deployment.uplink, list[AirPlan]()
    assert isinstance(uplink, OverTheAir)
    announce = OverTheAir.plan_later

    def keep(self: Any, *arguments: Any) -> Any:
        plans.append(announce(self, *arguments))
        return plans[-1]

    rounds: list[FinishedRound] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OverTheAir, "plan_later", keep)
        simulation.run(lambda this, _: rounds.append(this))
    for this, plan in zip(rounds, plans, strict=True):
        release = released(this)
        heard = np.linalg.norm(plan.heard.reshape(len(plan.heard), -1), axis=1)
        gain = this.slots["tx_gain_abs"][plan.senders]
        found = release.sensitivity(simulation.ledger.facts, simulation.ledger.statement) / release.accounted_noise_std
        np.testing.assert_allclose(found, 2 * uplink.air.clip * gain * heard, rtol=1e-9)


def test_a_short_run_of_a_policy_with_a_norm_for_each_round_is_rehearsed() -> None:
    """The rehearsal draws more rounds than the run has."""
    simulation, _, _ = run(
        small(
            rounds=2,
            uplink__receiver={"antennas": 2},
            uplink__jammer={"epsilon": 50.0, "calibration": "exact", "max_shortfall": 1.0},
            uplink__power_control={"policy": "cotaf", "expected_norms": [0.5, 0.5]},
            faults__fade_threshold=0.1,
        )
    )
    assert simulation.ledger.epsilon_accounted() > 0


def test_correlations_that_no_memory_holds_are_refused() -> None:
    receiver = {"antennas": 1024, "correlation": {"model": "one_ring"}}
    with pytest.raises(ScenarioError, match=r"1024 antennas and 1000 clients in a round, whose .* take 15\.6"):
        small(uplink__receiver=receiver, clients__count=1000)


def test_gains_that_no_memory_holds_are_refused_before_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirelessfl.assembly.plan.available_memory", lambda: float(2**30))
    fading = {"model": "tdl", "groups": 512}
    scenario = small(
        uplink__receiver={"antennas": 1024}, clients__count=100, channel__fading=fading, model__hidden=[64]
    )
    with pytest.raises(
        InfeasibleError, match=r"1024 with 512 groups .* of 100 clients take about 6 GiB; allowed: .* 1 GiB"
    ):
        build_simulation(scenario, PLAN)


AVERAGE = {"policy": "truncated_inversion", "power_limit": "average"}
ONE_RING = {"antennas": 2, "combiner": "sum", "correlation": {"model": "one_ring"}}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"uplink__receiver": {"antennas": 2}, "uplink__power_control": EXACT_GAIN},
            r"calibration: found exact with 2 antennas, at all of which an adversary learns more",
        ),
        (
            {
                "uplink__power_control": EXACT_GAIN,
                "topology": {"kind": "multi_cell"},
                "channel__pathloss": {"model": "log_distance"},
            },
            r"calibration: found exact with topology\.kind: multi_cell, whose base stations together learn more",
        ),
        ({"uplink__receiver": {"antennas": 2, "combiner": "max_min"}}, r"power_limit: found average with 2 antennas"),
        ({"uplink__receiver": ONE_RING}, r"power_limit: found average with 2 antennas"),
        (
            {"uplink__receiver": {"antennas": 2}, "channel__fading": {"model": "rician"}},
            r"power_limit: found average with 2 antennas",
        ),
        (
            {"uplink__receiver": {"antennas": 2}, "channel__fading": {"model": "tdl", "profile": "D"}},
            r"power_limit: found average with 2 antennas",
        ),
    ],
)
def test_a_policy_that_knows_one_reading_is_refused_behind_several(overrides: dict[str, Any], message: str) -> None:
    """Its target would be missed, or its budget: both follow from what the server reads at one antenna."""
    with pytest.raises(ScenarioError, match=message):
        small(**{"faults__fade_threshold": 0.1, "uplink__power_control": AVERAGE, **overrides})


@pytest.mark.parametrize("combiner", ["sum", "random"])
def test_the_average_power_is_kept_behind_a_beam_that_knows_no_channel(combiner: str) -> None:
    """E‖x‖² = P at ‖Δ‖ = τ over 719 clients of two samples each and 10 beams."""
    scenario = small(
        clients__count=719,
        data__limit=None,
        faults__fade_threshold=0.1,
        uplink__receiver={"antennas": 4, "combiner": combiner},
        uplink__power_control=AVERAGE,
    )
    parts = build_simulation(scenario, PLAN).deployment
    assert isinstance(parts.uplink, OverTheAir)
    budget, energy = parts.network.registry.power_budget, []
    for index in range(1, 11):
        clients = np.arange(719)
        slot = parts.uplink.announce(clients, Moment(index, 0.0), parts.uplink.schedule.instants(719))
        links, plan = slot.rows, slot.transmit[0]
        sent = parts.uplink.policies[0].transmit(plan, links, None)
        energy.append(float(np.sum((np.abs(sent.tx_gain) * plan.clip) ** 2)) / 719)
    assert np.mean(energy) == pytest.approx(budget, rel=0.05)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"uplink__jammer": {"epsilon": 50.0, "margin": 2.0}},
        {"uplink__iq_packing": True, "uplink__jammer": {"epsilon": 50.0, "margin": 2.0}},
        {"privacy__colluding": 1, "uplink__jammer": {"epsilon": 50.0, "margin": 2.0}},
        {"channel__csi": {"error_std": 0.3}, "privacy__unit": "client"},
    ],
    ids=["plain", "jammed", "packed", "colluding", "csi"],
)
def test_the_audit_attacks_all_antennas(overrides: dict[str, Any]) -> None:
    """The matched filter at all antennas finds the accounted μ; its estimate of 300 trials errs by 8 % at most."""
    scenario = small(
        uplink__receiver={"antennas": 2, "combiner": "random"}, uplink__power_control={"server_gain": 2.0}, **overrides
    )
    found = audit_simulation(build_simulation(scenario, PLAN), "arrays", trials=300)
    assert not found.contradicts_ledger, found.contradiction
    assert found.evidence.gaussian is not None
    assert found.evidence.gaussian.estimate == pytest.approx(found.mu_accounted, rel=0.2)


def test_a_ledger_that_forgot_the_further_antennas_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "wirelessfl.simulation.uplinks.air.slot_noise.whitened_amplitude",
        lambda channel, noise_std, jamming: np.abs(channel[..., 0]) / noise_std,
    )
    scenario = small(uplink__receiver={"antennas": 4, "combiner": "random"}, uplink__power_control={"server_gain": 2.0})
    found = audit_simulation(build_simulation(scenario, PLAN), "arrays", trials=300)
    assert found.contradicts_ledger


def test_the_trace_has_an_antenna_axis_and_is_verified(tmp_path: Path) -> None:
    receiver = {"antennas": 3, "combiner": "max_min", "correlation": {"model": "one_ring"}}
    scenario = small(uplink__receiver=receiver, channel__correlation={"model": "gauss_markov", "doppler_hz": 2.0})
    simulate(scenario, out=tmp_path / "run", figures="none")
    with open_trace(tmp_path / "run" / "trace.h5") as trace:
        assert trace["channel_re"].dims == ("round", "slot", "antenna")
        assert trace.sizes["antenna"] == 3
        assert np.isfinite(trace["channel_re"].values).all()
    done = CliRunner().invoke(main, ["replay", str(tmp_path / "run"), "--verify"])
    assert done.exit_code == 0, done.output


@pytest.mark.slow
def test_a_changed_policy_meets_the_recorded_array(tmp_path: Path) -> None:
    scenario = small(uplink__receiver={"antennas": 2, "combiner": "max_min"})
    simulate(scenario, out=tmp_path / "run", figures="none")
    changed = [
        "replay",
        str(tmp_path / "run"),
        "--set",
        "uplink.power_control.policy=full_power",
        "--out",
        str(tmp_path / "new"),
    ]
    done = CliRunner().invoke(main, changed)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"uplink__receiver": {"combiner": "zf"}}, r"uplink\.receiver\.combiner: found zf; allowed: sum \| random"),
        ({"uplink__receiver": {"antennas": 0}}, r"uplink\.receiver\.antennas: found 0; allowed: a whole number from 1"),
        (
            {"uplink__receiver": {"antennas": 6, "array": {"geometry": "upa", "rows": 4}}},
            r"uplink\.receiver\.array\.rows: found 4 with 6 antennas; allowed: a divisor",
        ),
        (
            {"uplink__receiver": {"antennas": 2}, "uplink__jammer": {"noise": "real"}},
            r"uplink\.jammer\.noise: found real with 2 antennas; allowed: complex",
        ),
        (
            {
                "uplink__receiver": {"antennas": 2, "correlation": {"model": "one_ring"}},
                "channel__fading": {"model": "nakagami", "m": 2.0},
            },
            r"uplink\.receiver\.correlation\.model: found one_ring with nakagami fading; allowed: none",
        ),
        (
            {"clients__count": 300, "uplink__receiver": {"antennas": 129, "combiner": "max_min"}},
            r"uplink\.receiver\.antennas: found 129 with combiner: max_min and 300 clients in a round, of whom up to "
            r"258 hold a beam back: it takes minutes to find; allowed: at most 128 antennas, 256 clients",
        ),
        (
            {"uplink__receiver": {"antennas": 2}, "channel__fading": {"model": "recorded", "file": "gains.npz"}},
            r"uplink\.receiver\.antennas: found 2 with recorded fading",
        ),
    ],
)
def test_what_is_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        build_simulation(small(**overrides), PLAN)
