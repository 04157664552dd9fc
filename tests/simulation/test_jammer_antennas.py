"""Jammers with several antennas: what the ledger, the calibration, the audit and the trace make of them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainc

from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_likelihood_of_arrays import DELTA, TRIALS, delta_of, real
from wirelessfl import open_trace, simulate
from wirelessfl.analysis.audit.audit import audit_simulation
from wirelessfl.assembly import build_simulation, jammer_shortfall
from wirelessfl.cli import main
from wirelessfl.errors import InfeasibleError, ScenarioError
from wirelessfl.privacy import AirRelease, gaussian_epsilon
from wirelessfl.radio import whitened_amplitude
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound

CLARKE = {"model": "clarke", "doppler_hz": 20.0}
WALK = {"scheme": "random_waypoint", "radius_m": 100}
PACKED = pytest.param(3, 2, {"uplink__iq_packing": True}, marks=pytest.mark.slow)
NO_FAILURE = {"faults__jammer_failure": 0.0}
TDL = {"model": "tdl", "groups": 3, "delay_spread_s": 1e-7}


def jammed(
    antennas: int, streams: int, combiner: str = "sum", jammer: dict[str, Any] | None = None, **more: Any
) -> Scenario:
    """A jammer of N antennas, louder than the noise, against A of the server."""
    return small(
        **{
            "uplink__receiver": {"antennas": antennas, "combiner": combiner},
            "uplink__jammer": {"epsilon": 0.015, "antennas": streams, **(jammer or {})},
            "uplink__power_control": {"policy": "cross_layer", "server_gain": 2.0},
            **more,
        }
    )


def axes(values: ArrayLike, *sizes: int) -> NDArray[np.float64]:
    """Recorded gains over all of their axes."""
    return np.asarray(values).reshape(sizes)


def jammer_channel(this: FinishedRound, *shape: int) -> NDArray[np.complex128]:
    """G (F, A, N) of a round."""
    found = this.blocks if math.prod(shape) > 1 else this.values
    parts = (axes(found[f"jammer_channel_{part}"], *shape) for part in ("re", "im"))
    return np.asarray(np.stack(list(parts), axis=-1) @ np.array([1.0, 1.0j]), dtype=np.complex128)


def covariance_of(this: FinishedRound, groups: int, antennas: int, streams: int) -> NDArray[np.complex128]:
    """Σ (F, A, A) per real dimension from the trace's variables: unit noise, N streams of equal parts of the power."""
    power = this.values["jammer_gain"] ** 2 / streams
    channel = jammer_channel(this, groups, antennas, streams).transpose(2, 0, 1)
    each = [power * np.einsum("fa,fb->fab", g, g.conj()) for g in channel]
    return np.asarray(np.eye(antennas) + sum(each), dtype=np.complex128)


def arriving_at(this: FinishedRound, groups: int, antennas: int) -> NDArray[np.complex128]:
    """|α_i| h_i (k, F, A) of the clients of a round."""
    columns, count = this.slots, len(this.clients)
    shape = (count, groups, antennas)
    channel = axes(columns["channel_re"], *shape) + 1j * axes(columns["channel_im"], *shape)
    return np.asarray(channel * columns["tx_gain_abs"][:, None, None])


def stacked(law: NDArray[np.complex128]) -> NDArray[np.float64]:
    return np.block([[law.real, -law.imag], [law.imag, law.real]])


@pytest.mark.parametrize(
    ("antennas", "streams", "more"),
    [
        *((antennas, streams, {}) for antennas, streams in ((1, 2), (2, 1), (2, 2), (3, 2), (3, 4))),
        *((antennas, streams, {"channel__fading": TDL}) for antennas, streams in ((1, 1), (1, 2), (3, 2))),
        (2, 2, {"channel__csi": {"error_std": 0.3}}),
    ],
    ids=str,
)
def test_the_ledger_counts_the_joint_covariance(antennas: int, streams: int, more: dict[str, Any]) -> None:
    """X/σ of every client and round, the largest over groups of subcarriers, from what the trace holds."""
    if "channel__fading" in more:  # the gains of all groups are those of a client without back-off
        more = {**more, "uplink__snr_db": 200.0}
    simulation, rounds, _ = run(jammed(antennas, streams, "random" if antennas > 1 else "sum", **more))
    groups = 3 if "channel__fading" in more else 1
    facts, statement = simulation.ledger.facts, simulation.ledger.statement
    for this in rounds:
        (release,) = (each for each in this.round.releases if isinstance(each, AirRelease))
        assert this.values["jammer_gain"] > 1
        laws = np.linalg.inv(covariance_of(this, groups, antennas, streams))
        columns, scale = this.slots, np.ones((len(this.clients), groups))
        heard = arriving_at(this, groups, antennas)
        if (
            groups > 1
        ):  # the trace has the largest gain of a client: it inverts each group's estimate behind the combiner
            plan_gain = each_gain(this, simulation)
            scale = plan_gain / columns["tx_gain_abs"][:, None]
        amplitude = np.sqrt(np.einsum("kfa,fab,kfb->kf", heard.conj(), laws, heard).real) * scale
        expected = 2 * amplitude.max(axis=1)
        found = release.sensitivity(facts, statement) / release.accounted_noise_std
        np.testing.assert_allclose(found, expected, rtol=1e-8)


def each_gain(this: FinishedRound, simulation: Any) -> NDArray[np.float64]:
    """|α_i| (k, F) of a policy without back-off, α_u p_i/(|fᴴĥ_i| τ), by the recorded gain of the weakest group."""
    uplink = simulation.deployment.uplink
    moment, count = this.round.moment, len(this.clients)
    slot = uplink.announce(this.clients, moment, uplink.schedule.instants(count + 1))
    inverse = 1 / np.abs(slot.links.own.estimate[:, 0, :, 0])
    return np.asarray(this.slots["tx_gain_abs"][:, None] * inverse / inverse.max(axis=1, keepdims=True))


@pytest.mark.parametrize(("antennas", "streams"), [(1, 2), (2, 1), (2, 2), (3, 2)])
def test_the_accounted_epsilon_is_that_of_sampled_likelihood_ratios(antennas: int, streams: int) -> None:
    """100,000 runs of all antennas: at the accounted ε opposite updates at the clip cost δ to 4 %."""
    scenario = jammed(antennas, streams, rounds=2, privacy__delta=DELTA)
    simulation, rounds, _ = run(scenario)
    epsilons = simulation.ledger.client_epsilons()[1]
    worst, random = int(np.argmax(epsilons)), np.random.default_rng([antennas, streams])
    assert 0.01 < epsilons[worst] < 30 and scenario.uplink.clip is not None
    total = np.zeros(TRIALS)
    for this in rounds:
        (row,) = np.flatnonzero(this.round.clients == worst)
        heard = arriving_at(this, 1, antennas)[row, 0]
        found = this.blocks
        channel = axes(found["jammer_channel_re"], antennas, streams) + 1j * axes(
            found["jammer_channel_im"], antennas, streams
        )
        jamming, law = (
            this.values["jammer_gain"] / math.sqrt(streams) * channel,
            covariance_of(this, 1, antennas, streams),
        )
        inverse = np.linalg.inv(stacked(law[0]))
        for coordinate in scenario.uplink.clip * np.array([0.6, -0.8]):
            thermal, own = random.standard_normal((2, TRIALS, antennas)), random.standard_normal((2, TRIALS, streams))
            noise = real(thermal[0] + 1j * thermal[1] + (own[0] + 1j * own[1]) @ jamming.T)
            apart = real(2 * coordinate * heard)
            total += noise @ inverse @ apart + 0.5 * apart @ inverse @ apart
    assert delta_of(total, float(epsilons[worst])) == pytest.approx(DELTA, rel=0.04)


def floor_of(simulation: Any, rounds: list[FinishedRound], antennas: int, streams: int) -> float:
    """μ of the worst client if jamming were infinite: a combiner orthogonal to the jammer hears noise alone."""
    mu = np.zeros(len(rounds[0].clients))
    for this in rounds:
        jammer = jammer_channel(this, 1, antennas, streams)[0]
        projector = np.eye(antennas) - jammer @ np.linalg.pinv(jammer)
        heard = arriving_at(this, 1, antennas)[:, 0]
        mu += (2 * np.linalg.norm(heard @ projector.T, axis=1)) ** 2
    return float(np.sqrt(mu.max()))


def test_two_antennas_null_one_and_not_two() -> None:
    """With A = 2, N = 1 strong jamming leaves the noise-only subspace, in closed form; with N = 2 it leaves nothing."""
    simulation, rounds, _ = run(jammed(2, 1, jammer={"margin": 1e5}))
    floor = floor_of(simulation, rounds, 2, 1)
    mu = (
        math.sqrt(simulation.ledger.client_mu_squared().max())
        if hasattr(simulation.ledger, "client_mu_squared")
        else None
    )

    accounted = simulation.ledger.epsilon_accounted()
    assert mu is None or mu == pytest.approx(floor, rel=1e-6)
    assert accounted == pytest.approx(float(gaussian_epsilon(floor, simulation.ledger.statement.delta)), rel=1e-4)
    hidden = run(jammed(2, 2, jammer={"margin": 1e5}))[0].ledger.epsilon_accounted()
    assert hidden < 1e-2 * accounted


def test_more_streams_hide_more() -> None:
    """The mean of ln ε over six seeds at four antennas falls with N at equal power."""
    found = []
    for streams in (1, 2, 4):
        each = [
            run(jammed(4, streams, "random", jammer={"margin": 100.0}, seed=seed, rounds=1))[
                0
            ].ledger.epsilon_accounted()
            for seed in range(10)
        ]
        found.append(float(np.mean(np.log(each))))
    assert found[0] > found[1] + 0.1 and found[1] > found[2] + 0.5


def test_the_power_is_divided() -> None:
    """α_CJ and its energy are those of all antennas; behind a combiner their mean power counts."""
    simulation, rounds, _ = run(jammed(1, 4))
    single, before, _ = run(jammed(1, 1))
    for this, other in zip(rounds, before, strict=True):
        channel, first = jammer_channel(this, 1, 1, 4)[0, 0], jammer_channel(other, 1, 1, 1)[0, 0]
        gain, heard = this.values["jammer_gain"], np.linalg.norm(channel) / 2.0
        assert this.values["jammer_energy"] == pytest.approx(2 * simulation.deployment.learner.dimension * gain**2)
        # Theorem 2 asks for the same noise, whatever brings it
        alone = other.values["jammer_gain"] * abs(
            other.values["jammer_channel_re"] + 1j * other.values["jammer_channel_im"]
        )
        assert gain * heard == pytest.approx(alone, rel=1e-9)
        assert this.values["effective_noise_std"] == pytest.approx(other.values["effective_noise_std"], rel=1e-9)
        assert channel[0] == first[0]
        np.testing.assert_array_equal(this.slots["channel_re"], other.slots["channel_re"])
    assert single.ledger.epsilon_accounted() == pytest.approx(simulation.ledger.epsilon_accounted(), rel=1e-9)


def test_one_antenna_in_words_is_none() -> None:
    plain, first, _ = run(small(uplink__jammer={"epsilon": 1.0}))
    named, second, _ = run(small(uplink__jammer={"epsilon": 1.0, "antennas": 1}))
    np.testing.assert_array_equal(plain.state.parameters, named.state.parameters)
    assert [one.values["jammer_gain"] for one in first] == [one.values["jammer_gain"] for one in second]


@pytest.mark.parametrize(
    "changes",
    [
        {"channel__fading": {"model": "nakagami", "m": 2.0}},
        {
            "channel__fading": {"model": "rician", "k_db": 3.0},
            "channel__correlation": {"model": "clarke", "doppler_hz": 20.0},
        },
        {"channel__correlation": {"model": "gauss_markov", "doppler_hz": 20.0}},
        {"uplink__iq_packing": True, "clients__selection": {"scheme": "uniform", "count": 3}},
        {"faults__availability": {"model": "bernoulli", "p": 0.6}, "faults__jammer_failure": 0.5},
        {"uplink__power_control": {"policy": "truncated_inversion"}, "faults__fade_threshold": 0.2},
        {
            "channel__pathloss": {"model": "log_distance"},
            "channel__placement": {"scheme": "uniform_disc", "radius_m": 100},
        },
        {
            "training__privacy": {
                "mechanism": "wavelet",
                "clip_domain": "weighted",
                "sampling": "poisson",
                "clip": 1.0,
                "noise_multiplier": 1.0,
            }
        },
        {
            "training__privacy": {
                "mechanism": "gaussian",
                "sampling": "poisson",
                "clip": 1.0,
                "noise_multiplier": 1.0,
                "clipping": {"name": "moo", "feedback": "private"},
            }
        },
        {"uplink__receiver": {"antennas": 3, "combiner": "max_min", "correlation": {"model": "one_ring"}}},
    ],
    ids=lambda changes: ",".join(changes),
)
def test_beside_other_features(changes: dict[str, Any]) -> None:
    """Runs end with a finite ε that is no larger than without the jammer, except where its noise is lost."""
    simulation, rounds, _ = run(jammed(**{"antennas": 2, "streams": 3, **changes}))
    without, _, _ = run(jammed(**{"antennas": 2, "streams": 3, **changes, "uplink__jammer": None, **NO_FAILURE}))
    assert len(rounds) == 3
    assert 0 < simulation.ledger.epsilon_accounted() <= without.ledger.epsilon_accounted() * (1 + 1e-9)


EXACT = {"epsilon": 2.0, "calibration": "exact", "max_shortfall": 0.0}


def test_an_exact_calibration_meets_its_target_where_the_jammer_has_as_many_antennas() -> None:
    for antennas, streams in ((1, 3), (2, 2), (2, 4)):
        simulation, rounds, _ = run(jammed(antennas, streams, jammer=EXACT))
        assert simulation.ledger.epsilon_accounted() <= 2.0 * (1 + 1e-9)
        assert any(this.values["jammer_gain"] > 0 for this in rounds)


def test_a_target_below_the_floor_is_refused_with_the_least_that_is_met() -> None:
    scenario = jammed(3, 2, jammer={**EXACT, "epsilon": 0.5})
    with pytest.raises(
        InfeasibleError, match=r"nulls the jammer of 2 antennas: .* holds from epsilon \S+ on"
    ) as caught:
        build_simulation(scenario, PLAN)
    found = re.search(r"epsilon (\S+) on", str(caught.value))
    assert found is not None
    least = float(found[1])
    build_simulation(jammed(3, 2, jammer={**EXACT, "epsilon": least}), PLAN)
    with pytest.raises(InfeasibleError, match="nulls the jammer"):
        build_simulation(jammed(3, 2, jammer={**EXACT, "epsilon": 0.98 * least}), PLAN)
    build_simulation(jammed(3, 3, jammer={**EXACT, "epsilon": 0.5}), PLAN)


def test_the_shortfall_of_several_antennas_has_the_law_of_their_mean_power() -> None:
    """Gamma with N degrees for Rayleigh fading; a draw of it for another law."""
    for streams in (1, 4):
        simulation = build_simulation(jammed(1, streams, jammer={"power_db": 40.0, "max_shortfall": 1.0}), PLAN)
        parts = simulation.deployment
        probability, energy = jammer_shortfall(parts.uplink, parts.selection)
        limit = parts.uplink.jamming.gain_limit  # type: ignore[attr-defined]
        needed = energy / (2 * parts.learner.dimension * limit**2)
        assert 0.01 < needed < 10
        assert probability == pytest.approx(float(gammainc(streams, streams * needed)), rel=1e-9)
        drawn = jammed(
            1, streams, jammer={"power_db": 40.0, "max_shortfall": 1.0}, channel__fading={"model": "nakagami", "m": 1.0}
        )
        other = build_simulation(drawn, PLAN).deployment
        assert jammer_shortfall(other.uplink, other.selection)[0] == pytest.approx(probability, abs=0.005)


@pytest.mark.parametrize(
    ("antennas", "streams", "changes"),
    [(2, 2, {}), pytest.param(3, 2, {"uplink__iq_packing": True}, marks=pytest.mark.slow)],
)
def test_the_audit_attacks_all_antennas_under_all_streams(antennas: int, streams: int, changes: dict[str, Any]) -> None:
    """The matched filter behind the joint whitening finds the accounted μ of 300 trials within 20 %."""
    scenario = jammed(antennas, streams, "random", jammer={"epsilon": 50.0, "margin": 2.0}, **changes)
    found = audit_simulation(build_simulation(scenario, PLAN), "arrays", trials=300)
    assert not found.contradicts_ledger, found.contradiction
    assert found.evidence.gaussian is not None
    assert found.evidence.gaussian.estimate == pytest.approx(found.mu_accounted, rel=0.2)


@pytest.mark.slow
def test_a_ledger_that_takes_the_streams_for_as_many_jammers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the whole power from each antenna the ledger would count more noise than there is."""
    monkeypatch.setattr(
        "wirelessfl.simulation.uplinks.air.slot_noise.whitened_amplitude",
        lambda channel, noise_std, jamming: whitened_amplitude(channel, noise_std, math.sqrt(4) * jamming),
    )
    scenario = jammed(2, 4, "random", {"epsilon": 1.0}, uplink__power_control={"server_gain": 50.0})
    assert audit_simulation(build_simulation(scenario, PLAN), "arrays", trials=300).contradicts_ledger


@pytest.mark.slow
@pytest.mark.parametrize("antennas", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_the_trace_has_an_axis_of_the_jammer_and_is_verified(antennas: int, tmp_path: Path) -> None:
    scenario = jammed(antennas, 2, rounds=2, channel__correlation={"model": "gauss_markov", "doppler_hz": 2.0})
    simulate(scenario, out=tmp_path / "run", figures="none")
    with open_trace(tmp_path / "run" / "trace.h5") as trace:
        further = ("antenna",) if antennas > 1 else ()
        assert trace["jammer_channel_re"].dims == trace["jammer_csi_im"].dims == ("round", *further, "jammer_antenna")
        assert trace["channel_re"].dims == ("round", "slot", *further)
        assert trace.sizes["jammer_antenna"] == 2
        assert np.isfinite(trace["jammer_channel_re"].values).all()
    for arguments in (
        ["replay", str(tmp_path / "run"), "--verify"],
        ["replay", str(tmp_path / "run"), "--export", "csv", "--out", str(tmp_path / "csv")],
        ["replay", str(tmp_path / "run"), "--set", "uplink.jammer.epsilon=9", "--out", str(tmp_path / "new")],
        ["report", str(tmp_path / "run"), "--out", str(tmp_path / "page.html")],
    ):
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, done.output
    rows = (tmp_path / "csv" / "jammer.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + scenario.rounds * antennas * 2
    with open_trace(tmp_path / "run" / "trace.h5") as trace, open_trace(tmp_path / "new" / "trace.h5") as replayed:
        np.testing.assert_array_equal(trace["jammer_channel_re"], replayed["jammer_channel_re"])
    other = ["replay", str(tmp_path / "run"), "--set", "uplink.jammer.antennas=3", "--out", str(tmp_path / "other")]
    done = CliRunner().invoke(main, other)
    assert done.exit_code == 3 and "has 3 antennas under the changed policy" in done.output


def test_a_run_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    scenario = jammed(2, 2, rounds=4, channel__correlation={"model": "gauss_markov", "doppler_hz": 2.0})
    whole, _, checkpoints = run(scenario)
    assert whole.state is not None and checkpoints is not None
    names = set(whole.deployment.network.memories())
    assert {"jammer_fading", "jammer_element1_fading"} <= names


@pytest.mark.parametrize(
    ("jammer", "changes", "message"),
    [
        ({"noise": "real"}, {}, r"uplink\.jammer\.noise: found real with jammer\.antennas: 2; allowed: complex"),
        ({"role": "rotating"}, {}, r"uplink\.jammer\.antennas: found 2 with jammer\.role: rotating; allowed: 1"),
        (
            {},
            {"channel__fading": {"model": "recorded", "file": "gains.npz"}},
            r"uplink\.jammer\.antennas: found 2 with recorded fading",
        ),
        ({"antennas": 65}, {}, r"uplink\.jammer\.antennas: found 65; allowed: a whole number from 1 to 64"),
        (
            {},
            {"topology": {"kind": "multi_cell"}, "channel__pathloss": {"model": "log_distance"}},
            r"uplink\.jammer: found",
        ),
        ({}, {"uplink__modulation": {"scheme": "obda"}}, r"uplink\.jammer: found a jammer"),
        ({}, {"uplink__modulation": {"scheme": "fsk_vote"}}, r"uplink"),
        ({}, {"uplink__modulation": {"scheme": "blind"}, "uplink__receiver": {"antennas": 4}}, r"uplink"),
    ],
)
def test_what_is_refused(jammer: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        build_simulation(jammed(1, 2, jammer=jammer, **changes), PLAN)
