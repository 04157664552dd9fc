"""Slots in which the channel changes: pieces at their own time, fresh estimates, carrier offsets, and the ledger."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_multi_cell import CELLS, cellular
from tests.statistics import assert_mean
from wirelessfl.api import make_plan
from wirelessfl.assembly import build_simulation, jammer_shortfall
from wirelessfl.errors import ScenarioError
from wirelessfl.privacy import gaussian_epsilon
from wirelessfl.radio import jammer_energy, pieces_needed
from wirelessfl.radio.propagation import Moment
from wirelessfl.radio.slot_schedule import Instants
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.trace import Status

CLARKE = {"model": "clarke", "doppler_hz": 200.0}
"""A slot of 610 symbols at 1 MHz has 0.122 Doppler periods: six pieces."""
POLICIES = ["cross_layer", "lower_gain", "full_power", "mmse", "weakest_inversion", "privacy_for_free", "gbma"]


def moving(**overrides: Any) -> Scenario:
    return small(**{"channel__correlation": CLARKE, **overrides})


def channels_of(this: FinishedRound) -> tuple[np.ndarray, np.ndarray]:
    h = this.slots["channel_re"] + 1j * this.slots["channel_im"]
    return h, this.slots["csi_re"] + 1j * this.slots["csi_im"]


@pytest.mark.parametrize("model", ["clarke", "gauss_markov"])
@pytest.mark.parametrize("fading", ["rayleigh", "rician"])
def test_pieces_have_the_channel_of_their_own_time(model: str, fading: str) -> None:
    """Over many links E h(t) h*(0) = J0(2π f_D t) in the slot (with a line of sight of its own shift beside it)."""
    scenario = small(channel__correlation={"model": model, "doppler_hz": 200.0}, channel__fading={"model": fading})
    source = build_simulation(scenario, PLAN).deployment.network.clients
    times = np.array([0.0, 2e-4, 1e-3, 3e-3])
    found = source.channels(np.arange(40_000), Moment(1, 0.5), Instants(np.zeros(1), times))
    channel, estimate = found.narrowband
    product = channel * channel[:, :1].conj()
    expected = special.j0(2 * np.pi * 200.0 * times)
    for t, rho in enumerate(expected):
        assert_mean(product[:, t].real, float(rho), std=float(product[:, t].real.std()))
        assert_mean(np.abs(channel[:, t]) ** 2, 1.0, std=float((np.abs(channel[:, t]) ** 2).std()))
    np.testing.assert_array_equal(estimate[:, 0], channel[:, 0])
    at_once = source.channels(np.arange(40_000), Moment(1, 0.5))
    np.testing.assert_array_equal(at_once.narrowband[0][:, 0], channel[:, 0])


def test_clarke_in_a_slot_is_clarke_at_those_times() -> None:
    source = build_simulation(moving(), PLAN).deployment.network.clients
    times = np.array([0.0, 1e-3, 2e-3])
    found = source.channels(np.arange(6), Moment(1, 0.25), Instants(np.zeros(1), times))
    for t, offset in enumerate(times):
        alone = source.channels(np.arange(6), Moment(1, 0.25 + offset)).channel[:, 0]
        np.testing.assert_allclose(found.channel[:, t], alone, rtol=0, atol=1e-9)


def test_a_slot_is_divided_as_the_self_distortion_asks() -> None:
    simulation, rounds, _ = run(moving())
    uplink = simulation.deployment.uplink
    assert isinstance(uplink, OverTheAir)
    assert uplink.schedule.pieces == pieces_needed(610e-6, 200.0) == 6
    source = simulation.deployment.network.clients
    for this in rounds:
        h, known = channels_of(this)
        assert h.shape == known.shape == (6, 6)
        np.testing.assert_array_equal(known, np.repeat(h[:, :1], 6, axis=1))
        opened = this.round.slot_opens
        last = source.channels(this.clients, Moment(this.index, opened + 5 * 610e-6 / 6)).channel[:, 0, 0, 0]
        np.testing.assert_allclose(h[:, 5], last, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(this.slots["truncated_share"], np.zeros(6))


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("refresh", ["slot", "piece"])
def test_the_received_sum_piece_by_piece(packing: bool, refresh: str) -> None:
    """By hand out of the recorded channels; with fresh estimates it is the mean of the updates."""
    doppler = {"model": "clarke", "doppler_hz": 400.0}
    loud = {
        "rounds": 1,
        "uplink__snr_db": 200.0,
        "uplink__iq_packing": packing,
        "uplink__power_control": {"policy": "cross_layer", "server_gain": 1e7},
        "channel__correlation": doppler,
        "channel__csi": {"refresh": refresh},
    }
    simulation, (this,), _ = run(small(**loud))
    ideal = run(small(rounds=1, uplink={"kind": "ideal", "clip": 1.0}))[0]
    start = build_simulation(small(**loud), PLAN).state.parameters.astype(np.float64)
    step, mean = simulation.state.parameters - start, ideal.state.parameters - start
    h, known = channels_of(this)
    assert np.ptp(np.abs(h), axis=1).max() > 0.05
    if refresh == "piece":
        np.testing.assert_array_equal(h, known)
        np.testing.assert_allclose(step, mean, rtol=0, atol=2e-5)
        return
    assert np.abs(step - mean).max() > 1e-3
    learner = simulation.deployment.learner
    state = build_simulation(small(**loud), PLAN).state
    blocks = list(learner.train(state.parameters, state, this.clients, 1))
    updates = np.concatenate([np.asarray(block.updates, dtype=np.float64) for block in blocks])
    weight = simulation.deployment.network.registry.weight(this.clients)
    ratio = weight[:, None] * h / known
    pieces, each = h.shape[1], 2 if packing else 1
    symbols = updates.reshape(6, -1, each) @ np.array([1, 1j][:each])
    parts = np.array_split(symbols, pieces, axis=1)
    received = np.concatenate([(ratio[:, [t]] * part).sum(axis=0) for t, part in enumerate(parts)])
    expected = np.stack([received.real, received.imag][:each], axis=1).ravel() / weight.sum()
    np.testing.assert_allclose(step, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("refresh", ["slot", "piece"])
@pytest.mark.parametrize("jammer", [None, "complex", "real"])
def test_epsilon_is_that_of_the_worst_piece(policy: str, refresh: str, jammer: str | None) -> None:
    """μ² = Σ max_t (2 τ|h_t α_t|/σ_t)² by hand, σ_t² = (α_CJ |h_CJ,t|)² + 1 under circular jamming."""
    scenario = moving(
        channel__csi={"error_std": 0.2, "refresh": refresh},
        uplink__power_control={"policy": policy},
        uplink__jammer=None if jammer is None else {"epsilon": 1.0, "noise": jammer},
    )
    simulation, rounds, _ = run(scenario)
    uplink = simulation.deployment.uplink
    assert isinstance(uplink, OverTheAir)
    mu_squared = np.zeros(6)
    for this in rounds:
        h, known = channels_of(this)
        alpha = this.slots["tx_gain_abs"][:, None]
        if refresh == "piece" and policy not in ("full_power", "gbma"):  # as loud in all pieces by its own estimate
            alpha = alpha * np.abs(known).min(axis=1, keepdims=True) / np.abs(known)
        h_cj = np.zeros(6, dtype=complex)
        if jammer is not None:
            h_cj = this.blocks["jammer_channel_re"] + 1j * this.blocks["jammer_channel_im"]
        variance = 1.0 + (this.values["jammer_gain"] * np.abs(h_cj)) ** 2
        mu_squared += ((2 * np.abs(h) * alpha) ** 2 / variance).max(axis=1)
    least = gaussian_epsilon(np.sqrt(mu_squared), scenario.privacy.delta)
    found = simulation.ledger.client_epsilons()[1]
    if jammer == "real":
        assert np.all(found >= least * (1 - 1e-9))
    else:
        np.testing.assert_allclose(found, least, rtol=1e-9)


def test_estimates_at_the_start_cost_more_privacy_than_fresh_ones() -> None:
    """A channel that grows after its estimate is heard louder than planned, and the ledger says so."""
    stale, fresh = (run(moving(channel__csi={"refresh": refresh}))[0] for refresh in ("slot", "piece"))
    assert stale.ledger.epsilon_accounted() > fresh.ledger.epsilon_accounted()


def test_pieces_in_a_deep_fade_are_truncated() -> None:
    scenario = moving(
        channel__correlation={"model": "clarke", "doppler_hz": 2000.0},
        channel__csi={"refresh": "piece"},
        faults__fade_threshold=0.3,
        uplink__snr_db=150.0,
        uplink__power_control={"policy": "cross_layer", "server_gain": 1e5},
    )
    _, rounds, _ = run(scenario)
    shares = np.concatenate([this.slots["truncated_share"] for this in rounds])
    status = np.concatenate([this.status for this in rounds])
    assert np.any((shares > 0) & (shares < 1))
    np.testing.assert_array_equal(shares == 1.0, status == Status.DEEP_FADE)
    for this in rounds:
        h, _ = channels_of(this)
        np.testing.assert_allclose(this.slots["truncated_share"], (np.abs(h) ** 2 < 0.3).mean(axis=1))


def test_carrier_offsets_turn_the_channel_within_a_slot() -> None:
    scenario = small(channel__sync={"cfo_hz": 150.0})
    simulation, rounds, _ = run(scenario)
    uplink = simulation.deployment.uplink
    assert isinstance(uplink, OverTheAir) and uplink.schedule.pieces > 1
    pieces = uplink.schedule.pieces
    rates = []
    for this in rounds:
        h, known = channels_of(this)
        np.testing.assert_array_equal(known, np.repeat(h[:, :1], pieces, axis=1))
        turn = np.unwrap(np.angle(h / h[:, :1]), axis=1)
        rate = turn[:, -1] / (2 * np.pi * 610e-6 * (pieces - 1) / pieces)
        np.testing.assert_allclose(turn, rate[:, None] * 2 * np.pi * 610e-6 / pieces * np.arange(pieces), atol=1e-9)
        rates.append(rate)
    np.testing.assert_allclose(rates[0], rates[-1])
    source = simulation.deployment.network.clients
    many = source.channels(np.arange(20_000), Moment(1, 0.0), Instants(np.zeros(1), np.array([1e-4]))).channel[
        :, 0, 0, 0
    ]
    start = source.channels(np.arange(20_000), Moment(1, 0.0)).channel[:, 0, 0, 0]
    drift = np.angle(many / start) / (2 * np.pi * 1e-4)
    assert_mean(drift, 0.0, std=150.0)
    assert_mean(drift**2, 150.0**2, std=np.sqrt(2) * 150.0**2)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"channel__max_pieces": 5}, r"channel\.max_pieces: found 5, but a slot of 0\.00061 s needs 6 pieces"),
        ({"channel__correlation": {"model": "clarke", "doppler_hz": 1e6}, "channel__max_pieces": 10**6}, "610 symbols"),
        ({"channel__correlation": {"model": "clarke", "doppler_hz": 1e12}}, r"needs [\d,]+ pieces"),
        ({"channel__sync": {"cfo_hz": 1e12}}, r"needs [\d,]+ pieces"),
        (
            {
                "timing__ofdm": {"subcarriers": 64, "subcarrier_spacing_hz": 15e3},
                "channel__correlation": {"model": "clarke", "doppler_hz": 400.0},
            },
            r"needs \d+ pieces.*at most 9 pieces \(its 9 full OFDM symbols\)",
        ),
        ({"channel__csi": {"refresh": "piece"}, "uplink": {"kind": "ideal"}}, r"channel\.csi\.refresh"),
        ({"channel__sync": {"cfo_hz": 1.0}, "uplink": {"kind": "digital"}}, r"channel\.sync\.cfo_hz"),
    ],
)
def test_what_cannot_be_divided_is_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        build_simulation(moving(**overrides), PLAN)


@pytest.mark.parametrize("kind", ["multi_cell", "hierarchical"])
@pytest.mark.parametrize("refresh", ["slot", "piece"])
def test_cells_hear_each_other_in_every_piece(kind: str, refresh: str) -> None:
    """ε by hand: all seven base stations hear a client in each piece, and the worst of the pieces counts."""
    scenario = cellular(
        topology={**CELLS, "kind": kind}, channel__correlation=CLARKE, channel__csi={"refresh": refresh}
    )
    simulation, rounds, _ = run(scenario)
    uplink, network = simulation.deployment.uplink, simulation.deployment.network
    assert isinstance(uplink, OverTheAir) and uplink.schedule.pieces == 6
    mu_squared = np.zeros(14)
    for this in rounds:
        links = network.cell_links(this.clients, this.round.moment, uplink.schedule.instants(14))
        alpha = this.slots["tx_gain_abs"][:, None]
        if refresh == "piece":
            known = np.abs(links.own.estimate[:, :, 0, 0])
            alpha = alpha * known.min(axis=1, keepdims=True) / known
        heard = np.linalg.norm(links.channel[:, :, :, 0, 0], axis=1) * alpha
        mu_squared += ((2 * heard) ** 2).max(axis=1)
        assert this.values["interference_std"] > 0
    expected = gaussian_epsilon(np.sqrt(mu_squared), scenario.privacy.delta)
    np.testing.assert_allclose(simulation.ledger.client_epsilons()[1], expected, rtol=1e-9)


def test_one_piece_is_the_slot_of_before() -> None:
    """Below 0.0219 Doppler periods nothing is divided, and the estimate is the channel of the whole slot."""
    _, rounds, _ = run(moving(channel__correlation={"model": "clarke", "doppler_hz": 35.0}))
    for this in rounds:
        h, known = channels_of(this)
        assert h.shape == (6,) and not this.blocks
        np.testing.assert_array_equal(h, known)


def test_validate_tells_pieces_and_coherence_time() -> None:
    plan = make_plan(moving(rounds=1))
    assert plan.pieces == 6 and plan.coherence_s == pytest.approx(0.423 / 200.0, rel=1e-3)
    at_rest = make_plan(small(rounds=1))
    assert at_rest.pieces == 1 and at_rest.coherence_s == np.inf


@pytest.mark.parametrize("correlation", [None, {"model": "clarke"}, {"model": "gauss_markov"}])
@pytest.mark.parametrize("policy", ["cross_layer", "truncated_inversion", "weakest_inversion", "full_power", "mmse"])
@pytest.mark.parametrize("refresh", [None, "slot", "piece"])
def test_a_round_in_which_nobody_is_there_passes(
    correlation: dict[str, object] | None, policy: str, refresh: str | None
) -> None:
    keys: dict[str, object] = {"faults__availability": {"p": 0.0}, "uplink__power_control": {"policy": policy}}
    if policy == "truncated_inversion":
        keys["faults__fade_threshold"] = 0.1
    if correlation is not None:
        keys["channel__correlation"] = {**correlation, "doppler_hz": 10.0}
    if refresh is not None:
        keys.update(channel__csi__pilot_symbols=4, channel__csi__refresh=refresh)
        keys["timing__bandwidth_hz"] = 1e5 if correlation is not None else 1e6
    _, rounds, _ = run(small(rounds=2, **keys))
    assert [this.values["participants"] for this in rounds] == [0, 0]


@pytest.mark.parametrize("role", ["external", "rotating"])
def test_a_jammer_falls_short_where_its_weakest_estimate_does(role: str) -> None:
    """Refreshed estimates: Pr(short) is that of the least of them, drawn here from other links and at other times."""
    scenario = moving(
        channel__correlation={"model": "clarke", "doppler_hz": 2000.0},
        channel__csi={"refresh": "piece"},
        uplink__jammer={"epsilon": 1.0, "role": role, "power_db": 26.0, "max_shortfall": 1.0},
    )
    simulation = build_simulation(scenario, PLAN)
    parts = simulation.deployment
    uplink = parts.uplink
    assert isinstance(uplink, OverTheAir) and uplink.jamming is not None and uplink.schedule.pieces > 40
    found, energy = jammer_shortfall(uplink, parts.selection)
    source = parts.network.clients if role == "rotating" else parts.network.jammer
    others = source.channels(np.arange(10_000, 13_000), Moment(1, 7.0), uplink.schedule.instants(7))
    budget = jammer_energy(uplink.jamming.gain_limit, uplink.num_symbols, uplink.jamming.noise)
    short = np.abs(others.estimate).min(axis=(1, 2, 3)) ** 2 < energy / budget
    assert 0.3 < found < 0.99
    assert_mean(short.astype(float), found, std=0.5 * np.sqrt(1 + 3000 / 2000))  # both sides are drawn
