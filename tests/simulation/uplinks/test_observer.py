"""An observer with a place of its own: its joint view against explicit covariances, and what it changes in runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.radio import Moment, joint_amplitude
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.study.content import content_id


def explicit(
    signal: NDArray[np.complex128], jamming: NDArray[np.complex128] | None, packed: bool, released: int = 1
) -> float:
    """√(vᵀΣ⁻¹v) with Σ written out over the real parts of all readings, and the imaginary ones that are seen."""
    rows = [(value, "re") for value in range(len(signal))]
    rows += [(value, "im") for value in range(0 if packed else released, len(signal))]
    part = {"re": np.real, "im": np.imag}
    v = np.array([part[kind](signal[at]) for at, kind in rows])
    sigma = np.eye(len(rows))
    if jamming is not None:
        for stream in np.atleast_2d(jamming.T):  # of each the two independent parts, each of variance 1
            for quadrature in (1.0, 1.0j):
                arriving = np.array([part[kind](quadrature * stream[at]) for at, kind in rows])
                sigma += np.outer(arriving, arriving)
    return float(np.sqrt(v @ np.linalg.solve(sigma, v)))


def complex_numbers(generator: np.random.Generator, *shape: int) -> NDArray[np.complex128]:
    return generator.standard_normal(shape) + 1j * generator.standard_normal(shape)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("jammed", [False, True])
@pytest.mark.parametrize("antennas", [1, 2, 5])
def test_the_joint_view_is_that_of_the_explicit_covariance(antennas: int, jammed: bool, packed: bool) -> None:
    generator = np.random.default_rng(antennas)
    signal = complex_numbers(generator, 7, 3, 2, 1 + antennas)
    jamming = 4 * complex_numbers(generator, 3, 2, 1 + antennas) if jammed else None
    found = joint_amplitude(signal, None if jamming is None else jamming[..., None], 1, packed)
    for client, block, group in np.ndindex(7, 3, 2):
        noise = None if jamming is None else jamming[block, group]
        wanted = explicit(signal[client, block, group], noise, packed)
        assert found[client, block, group] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("streams", [2, 3, 6])
def test_streams_of_a_jammer_are_common_to_both(streams: int, packed: bool) -> None:
    """Σ of the server's reading and three antennas: a column for each quadrature of each stream."""
    generator = np.random.default_rng(streams)
    signal, jamming = complex_numbers(generator, 5, 4), 3 * complex_numbers(generator, 4, streams)
    vector = np.concatenate([signal.real, signal.imag if packed else signal.imag[:, 1:]], axis=1)
    columns = np.concatenate([jamming, 1j * jamming], axis=1)
    common = np.concatenate([columns.real, columns.imag if packed else columns.imag[1:]])
    precision = np.linalg.inv(np.eye(len(common)) + common @ common.T)
    wanted = np.sqrt(np.einsum("na,ab,nb->n", vector, precision, vector))
    np.testing.assert_allclose(joint_amplitude(signal, jamming, 1, packed), wanted, rtol=1e-9)


def test_a_likelihood_ratio_has_the_distance_that_is_counted() -> None:
    """Ln p/q of 200,000 draws of all readings has the mean μ²/2 within 4.9 standard errors: false alarm 1e-6."""
    generator, draws = np.random.default_rng(3), 200_000
    signal, jamming = complex_numbers(generator, 3), 2 * complex_numbers(generator, 3)
    v = np.concatenate([signal.real, signal.imag[1:]])
    b = np.stack([np.concatenate([(q * jamming).real, (q * jamming).imag[1:]]) for q in (1.0, 1.0j)], axis=1)
    noise = generator.standard_normal((draws, len(v))) + generator.standard_normal((draws, 2)) @ b.T
    precision = np.linalg.inv(np.eye(len(v)) + b @ b.T)
    ratio = (noise + v) @ precision @ v - 0.5 * v @ precision @ v
    mu = float(joint_amplitude(signal, jamming[:, None], 1, False))
    assert abs(ratio.mean() - mu**2 / 2) <= 4.9 * ratio.std() / math.sqrt(draws)
    assert ratio.std() == pytest.approx(mu, rel=0.01)


def test_closed_forms() -> None:
    one = np.array([0.6 + 0.8j, 0.0])
    assert joint_amplitude(one, None, 1, False) == pytest.approx(0.6)  # the server keeps the real part
    assert joint_amplitude(one, None, 1, True) == pytest.approx(1.0)
    assert joint_amplitude(np.array([1.0 + 0j, 1.0]), None, 1, False) == pytest.approx(math.sqrt(2))


def test_two_antennas_null_a_jammer_and_one_does_not() -> None:
    generator = np.random.default_rng(8)
    signal, jamming = complex_numbers(generator, 1, 3), complex_numbers(generator, 3)
    for antennas, floor in ((1, False), (2, True)):
        own, noise = signal[:, 1 : 1 + antennas], jamming[1 : 1 + antennas]
        nothing = np.zeros((1, 1))
        loud = [
            float(
                joint_amplitude(
                    np.concatenate([nothing, own], axis=1), np.concatenate([[0.0], gain * noise])[:, None], 1, False
                )[0]
            )
            for gain in (1e4, 1e8)
        ]
        assert (loud[1] > 0.05) == floor and (loud[1] > 0.5 * loud[0]) == floor


# --- in a run -----------------------------------------------------------------------------------------------------


def observed(place: Any = None, colluding: int = 0, **changes: Any) -> Scenario:
    """Clients on a disc, weak enough for a finite ε."""
    setting: dict[str, Any] = {
        "rounds": 3,
        "channel__pathloss": {"model": "log_distance", "exponent": 3.5},
        "channel__placement": {"scheme": "uniform_disc", "radius_m": 200},
        "uplink": {"kind": "over_the_air", "snr_db": -10.0},
    }
    privacy = {"adversary": "observer"} if place is None else {"observer": place}
    return small(**setting | changes, privacy={**privacy, "colluding": colluding})


def epsilon_of(scenario: Scenario) -> float:
    return float(run(scenario)[1][-1].values["epsilon_accounted"])


CELLS = {"kind": "multi_cell", "rings": 1, "inter_site_distance_m": 150.0}
JAMMED = {"kind": "over_the_air", "snr_db": -10.0, "jammer": {"epsilon": 2.0, "position_m": [30.0, 0.0]}}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"uplink": JAMMED},
        {"uplink": {**JAMMED, "iq_packing": True}},
        {"uplink": {**JAMMED, "jammer": {"epsilon": 2.0, "position_m": [30.0, 0.0], "antennas": 2}}},
        {"uplink": {**JAMMED, "jammer": {"epsilon": 2.0, "role": "rotating"}}},
        {"channel__csi": {"error_std": 0.2}},
        {"channel__correlation": {"model": "clarke", "doppler_hz": 300.0}},
        {"channel__fading": {"model": "tdl", "groups": 8, "delay_spread_s": 3e-7}},
        {"uplink": {**JAMMED, "receiver": {"antennas": 3, "combiner": "max_min"}}},
        {"clients__selection": {"scheme": "uniform", "count": 3}, "faults__fade_threshold": 0.3},
        {"topology": CELLS},
        {"topology": CELLS, "uplink": {"kind": "over_the_air", "snr_db": -10.0, "iq_packing": True}},
        {
            "topology": {**CELLS, "kind": "hierarchical"},
            "uplink": {"kind": "over_the_air", "receiver": {"antennas": 2, "combiner": "random"}},
            "channel__fading": {"model": "tdl", "groups": 8, "delay_spread_s": 3e-7},
        },
    ],
    ids=str,
)
def test_the_ledger_counts_the_explicit_covariance(changes: dict[str, Any]) -> None:
    """The worst block of each client, from channels and gains of the plan alone."""
    place = {"position_m": [60.0, 20.0], "antennas": 2, "noise_figure_db": 7.0}
    simulation = build_simulation(observed(place, **changes), PLAN)
    uplink = simulation.deployment.uplink
    assert isinstance(uplink, OverTheAir)
    this = Round(1, np.arange(uplink.network.registry.count))
    ready = np.arange(1, len(this.clients))
    plan = uplink.plan_later(this, ready, 0 if uplink.rotating_jammer else None, 0.0)
    if uplink.edges is not None:
        uplink.edges.begin(np.zeros(uplink.dimension, dtype=np.float32))
    release = uplink.receive(this, plan, []).releases[0]
    assert plan.overheard is not None and len(plan.senders)
    noise_e = 10 ** ((7.0 - 5.0) / 20)
    gains = uplink._transmitters(plan).at_the_clip.tx_gain
    blocks, groups = plan.heard.shape[2:4]
    mu, alone = np.zeros(len(plan.senders)), np.zeros(len(plan.senders))
    for client, block, group in np.ndindex(len(plan.senders), blocks, groups):
        at = min(block, gains.shape[1] - 1)
        gain, overheard = gains[client, at, group], plan.overheard.channel[client, block, group]
        cells = sorted(plan.transmit)
        noise_s = plan.noise_std[cells, min(block, plan.noise_std.shape[1] - 1), group]
        heard = np.concatenate([plan.links.channel[client, cells, block, group, 0] / noise_s, overheard / noise_e])
        jamming = None
        if plan.jammer_behind is not None and plan.overheard.jammer is not None:
            behind = plan.jammer_behind.channel[block, group] / math.sqrt(plan.jammer_behind.channel.shape[3])
            there = plan.overheard.jammer[block, group]
            jamming = plan.jammer_gain * np.concatenate([behind / noise_s, there / noise_e]).astype(np.complex128)
        turned = heard * gain  # which receivers read the real part of
        distance = explicit(turned, jamming, uplink.iq_packing, len(cells)) * uplink.air.clip
        mu[client] = max(float(mu[client]), distance)
        unjammed = explicit(turned, None, uplink.iq_packing, len(cells)) * uplink.air.clip
        alone[client] = max(float(alone[client]), unjammed)
    found = release.received_bound / release.accounted_noise_std  # type: ignore[attr-defined]
    np.testing.assert_allclose(found, mu, rtol=1e-9)
    found = release.received_bound / release.unjammed_noise_std  # type: ignore[attr-defined]
    np.testing.assert_allclose(found, alone, rtol=1e-9)  # of colluders who know the jamming


def test_far_away_the_models_alone_tell() -> None:
    alone, far = epsilon_of(observed()), epsilon_of(observed({"position_m": [9.0e4, 0.0]}))
    assert far == pytest.approx(alone, rel=1e-6)


def test_nearer_and_with_more_antennas_it_learns_more() -> None:
    places = [{"position_m": [900.0, 0.0]}, {"position_m": [60.0, 0.0]}, {"position_m": [60.0, 0.0], "antennas": 4}]
    found = [epsilon_of(observed(place)) for place in (None, *places)]
    assert found == sorted(found) and found[-1] > 1.5 * found[0]


def test_a_jammer_beside_the_observer_helps() -> None:
    place = {"position_m": [150.0, 150.0]}
    found = [
        epsilon_of(observed(place, uplink={**JAMMED, "jammer": {"epsilon": 2.0, "margin": 10, "position_m": where}}))
        for where in ([150.0, 140.0], [-150.0, -140.0])
    ]
    assert found[0] < found[1]


@pytest.mark.parametrize("observer", [None, {"position_m": [60.0, 20.0], "antennas": 2}])
@pytest.mark.parametrize("kind", ["single_cell", "multi_cell", "hierarchical"])
def test_colluders_without_a_jammer_know_no_noise(kind: str, observer: Any) -> None:
    """Each client's ε stays what it is: nobody but receivers adds noise."""
    topology = {"kind": kind} if kind == "single_cell" else {**CELLS, "kind": kind}
    found = [
        run(observed(observer, colluding, rounds=1, topology=topology))[0].ledger.client_epsilons()[1]
        for colluding in (0, 1)
    ]
    assert len(np.unique(found[0])) > 2
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)


def test_a_place_changes_neither_model_nor_channels() -> None:
    """Its links have draws of their own; ε alone is another."""
    with_place, without = run(observed({"position_m": [60.0, 0.0]}))[0], run(observed())[0]
    assert with_place.state.parameters.tobytes() == without.state.parameters.tobytes()


CORRELATIONS = {
    "independent": ({}, False),
    "clarke": ({"channel__correlation": {"model": "clarke", "doppler_hz": 5.0}}, False),
    "gauss_markov": ({"channel__correlation": {"model": "gauss_markov", "doppler_hz": 5.0}}, True),
    "walking": (
        {"channel__placement": {"scheme": "random_waypoint", "radius_m": 200, "min_speed": 1.0, "max_speed": 20.0}},
        True,
    ),
}


@pytest.mark.parametrize(("changes", "remembers"), CORRELATIONS.values(), ids=CORRELATIONS.keys())
def test_who_is_silent_changes_no_channel(changes: dict[str, Any], remembers: bool) -> None:
    """Channels of silent clients are drawn where later ones follow from them, and nowhere else."""
    everybody = np.arange(6)
    found = []
    for silent in (False, True):
        observer = build_simulation(observed({"position_m": [60.0, 20.0]}, **changes), PLAN).deployment.network.observer
        assert observer is not None and observer.clients.remembers == remembers
        heard = []
        for round_index in range(1, 5):
            sending = everybody[round_index % 2 :: 2] if silent else everybody
            one = observer.hears(everybody, sending, None, Moment(round_index, 3.0 * round_index)).channel
            heard.append(one if silent else one[round_index % 2 :: 2])
        found.append(np.stack(heard))
    assert found[0].tobytes() == found[1].tobytes()


def test_the_adversary_is_the_observer() -> None:
    assert observed({"position_m": [1.0, 2.0]}).privacy.adversary == "observer"
    assert content_id(small()) == content_id(small(privacy={"observer": None}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"privacy": {"adversary": "server", "observer": {"position_m": [0, 0]}}}, r"privacy\.adversary: found server"),
        ({"privacy": {"observer": {"position_m": [0, 0, 0]}}}, r"privacy\.observer\.position_m"),
        (
            {"privacy": {"observer": {"position_m": [math.nan, 0]}}},
            r"privacy\.observer\.position_m\.0: found nan; allowed: a finite",
        ),
        ({"privacy": {"observer": {"position_m": [2e5, 0]}}}, r"observer\.position_m: found .*200000 m.*100000 m"),
        ({"privacy": {"observer": {"position_m": [0, 0], "antennas": 0}}}, r"observer\.antennas: found 0"),
        ({"uplink": {"kind": "digital"}}, r"privacy\.observer: found a place with uplink\.kind: digital"),
        (
            {"channel__pathloss": {"model": "none"}, "channel__placement": None},
            r"a place with channel\.pathloss\.model: none",
        ),
        (
            {"uplink": {**JAMMED, "jammer": {"noise": "real"}}},
            r"uplink\.jammer\.noise: found real with privacy\.observer",
        ),
        (
            {"uplink": {**JAMMED, "jammer": {"calibration": "exact"}}},
            r"jammer\.calibration: found exact with privacy\.observer",
        ),
        ({"channel__sync": {"max_offset": 0.1}}, r"a place with channel\.sync\.max_offset"),
    ],
)
def test_what_does_not_go_together(changes: dict[str, Any], message: str) -> None:
    setting: dict[str, Any] = {
        "channel__pathloss": {"model": "log_distance"},
        "privacy": {"observer": {"position_m": [10, 0]}},
        **changes,
    }
    if setting.get("channel__placement", 0) is None:
        del setting["channel__placement"]
    with pytest.raises(ScenarioError, match=message):
        small(**setting)
