"""The channel of a scenario as it is built: units, references, warnings, and what a run records of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_build import variants
from tests.statistics import assert_mean
from wirelessfl.assembly import build_simulation
from wirelessfl.assembly.slot import coherence_s
from wirelessfl.errors import ModelWarning, ScenarioError
from wirelessfl.radio import Rayleigh, Rician, free_space_path_loss_db
from wirelessfl.radio.network import Network
from wirelessfl.radio.propagation import DistanceGain, GaussMarkovFading, Moment
from wirelessfl.scenario.geography import PathLoss, Placement

CLIENTS = np.arange(6)
START = Moment(1, 0.0)
POINTS = [[100.0 * (i + 1), 0.0] for i in range(6)]
GIVEN = {"scheme": "positions", "points_m": POINTS}
LOG = {"model": "log_distance", "exponent": 3.0, "reference_distance_m": 100.0}
WATTS = {"kind": "over_the_air", "tx_power_dbm": 20.0}


def network(**overrides: Any) -> Network:
    return build_simulation(small(**overrides), PLAN).deployment.network


def test_with_an_snr_gains_are_relative_to_the_reference_distance() -> None:
    gains = network(channel__placement=GIVEN, channel__pathloss=LOG).slot_links(CLIENTS, START).rows().path_gain
    np.testing.assert_allclose(gains, (np.arange(6) + 1.0) ** -3)


def test_with_watts_gains_are_as_they_are() -> None:
    gains = (
        network(channel__placement=GIVEN, channel__pathloss=LOG, uplink=WATTS)
        .slot_links(CLIENTS, START)
        .rows()
        .path_gain
    )
    free = 10 ** (-free_space_path_loss_db(np.array([100.0]), 3.5e9) / 10)
    np.testing.assert_allclose(gains, free * (np.arange(6) + 1.0) ** -3)


@pytest.mark.parametrize("variant", variants(PathLoss))
@pytest.mark.parametrize("placement", variants(Placement))
def test_every_path_loss_goes_with_every_placement(variant: type[Any], placement: type[Any]) -> None:
    model, scheme = variant().model, placement().scheme
    place = GIVEN if scheme == "positions" else {"scheme": scheme}
    found = network(channel__pathloss={"model": model}, channel__placement=place)
    links = found.slot_links(CLIENTS, START).rows()
    distance = found.last_distances(CLIENTS)
    assert np.all(links.path_gain > 0)
    assert np.isnan(distance).all() if model == "none" else np.all(distance > 0)


def test_the_trace_knows_the_distances() -> None:
    found = network(channel__placement=GIVEN, channel__pathloss=LOG)
    np.testing.assert_allclose(found.last_distances(CLIENTS), [point[0] for point in POINTS])


def test_a_recursion_goes_by_the_clock_or_by_rounds_of_a_given_length() -> None:
    fading = network(channel__correlation={"model": "gauss_markov", "doppler_hz": 7.0}).clients.fading
    assert isinstance(fading, GaussMarkovFading)
    assert fading.interval_s is None and fading.varies
    given = {"model": "gauss_markov", "doppler_hz": 7.0, "interval_s": 0.01}
    fading = network(channel__correlation=given).clients.fading
    assert isinstance(fading, GaussMarkovFading)
    assert fading.interval_s == 0.01 and not fading.varies
    np.testing.assert_array_equal(fading.doppler.shift_hz(CLIENTS, START), 7.0)


@pytest.mark.filterwarnings("ignore::wirelessfl.errors.ModelWarning")  # of uploads that outlast a piece
@pytest.mark.parametrize("model", ["clarke", "gauss_markov"])
@pytest.mark.parametrize("kind", ["over_the_air", "digital"])
def test_without_a_carrier_the_doppler_shift_is_ten_hertz_by_default(model: str, kind: str) -> None:
    uplink = {"kind": kind, "snr_db": 10.0}
    given = {"model": model, "doppler_hz": 10.0}
    _, expected, _ = run(small(channel__correlation=given, uplink=uplink))
    for correlation in ({"model": model}, {"model": model, "doppler_hz": None}):
        scenario = small(channel__correlation=correlation, uplink=uplink)
        assert scenario.channel.correlation.doppler_hz is None  # type: ignore[union-attr]
        assert coherence_s(scenario) == pytest.approx(0.423 / 10, rel=1e-3)
        _, rounds, _ = run(scenario)
        for this, other in zip(rounds, expected, strict=True):
            np.testing.assert_array_equal(this.slots["channel_re"], other.slots["channel_re"])
    located = network(channel__correlation={"model": model}, channel__pathloss=LOG, channel__placement=GIVEN)
    assert located.clients.fading.doppler.shift_hz(CLIENTS, START).tolist() == [0.0] * len(CLIENTS)  # type: ignore[attr-defined]


def test_clarke_runs_on_the_slots_simulated_time() -> None:
    scenario = small(channel__correlation={"model": "clarke", "doppler_hz": 20.0})
    simulation, rounds, _ = run(scenario)
    source = simulation.deployment.network
    for this in rounds:
        opened = this.values["sim_time"] - this.values["airtime"]
        assert this.round.slot_opens == pytest.approx(opened, abs=2e-12)
        again = source.slot_links(CLIENTS, Moment(1, this.round.slot_opens)).rows().channel
        np.testing.assert_array_equal(this.slots["channel_re"], again.real)


@pytest.mark.parametrize("correlation", ["independent", "gauss_markov", "clarke"])
@pytest.mark.parametrize("model", ["rayleigh", "rician"])
def test_line_of_sight_selects_rician_where_the_standard_tells(correlation: str, model: str) -> None:
    fading = {"model": model, **({"k_db": 3.0} if model == "rician" else {})}
    in_time = {"model": correlation, **({} if correlation == "independent" else {"doppler_hz": 10.0})}
    common = {"channel__fading": fading, "channel__correlation": in_time}
    outdoors = network(**common, channel__pathloss={"model": "tr38901"}).clients.fading
    expected = Rician(10**0.3) if model == "rician" else Rician(10**0.9)
    assert outdoors.law_of(True) == expected and outdoors.law_of(False) == Rayleigh()
    anywhere = network(**common, channel__pathloss=LOG).clients.fading
    law = Rician(10**0.3) if model == "rician" else Rayleigh()
    assert anywhere.law_of(True) == anywhere.law_of(False) == law


def test_other_laws_hold_with_and_without_sight() -> None:
    fading = network(channel__fading={"model": "nakagami"}, channel__pathloss={"model": "tr38901"}).clients.fading
    assert fading.law_of(True) == fading.law_of(False)


def test_heights_follow_the_standard() -> None:
    source = network(channel__pathloss={"model": "tr38901", "scenario": "umi"}).clients.large_scale
    assert isinstance(source, DistanceGain)
    assert source.model.h_bs == 10.0  # type: ignore[attr-defined]


def test_the_jammer_has_places_and_shadows_of_its_own() -> None:
    urban = {"channel__pathloss": {**LOG, "shadowing_db": 8.0}, "uplink__jammer": {"epsilon": 1.0}}
    with_one, without = network(**urban), network(**{**urban, "uplink__jammer": None})
    np.testing.assert_array_equal(
        with_one.slot_links(CLIENTS, START).rows().channel, without.slot_links(CLIENTS, START).rows().channel
    )
    first = with_one.jammer_link(START)
    assert first.channel != complex(with_one.slot_links(CLIENTS[:1], START).rows().channel[0])
    fixed = {**urban, "uplink__jammer": {"epsilon": 1.0, "position_m": [0.0, 100.0]}, "channel__pathloss": LOG}
    static = network(**fixed, channel__fading={"model": "static"})
    assert static.jammer_link(START).channel == pytest.approx(1.0)


def test_residual_phases_cost_amplitude_and_keep_the_estimate() -> None:
    turned, straight = network(channel__sync={"phase_std": 0.5}), network()
    one, other = turned.slot_links(CLIENTS, START).rows(), straight.slot_links(CLIENTS, START).rows()
    np.testing.assert_array_equal(one.estimate, other.estimate)
    np.testing.assert_allclose(np.abs(one.channel), np.abs(other.channel))
    assert np.std(np.angle(one.channel / one.estimate)) > 0.1


def test_late_arrivals_smear_the_sum_and_nothing_else() -> None:
    late, prompt = run(small(rounds=1, channel__sync={"max_offset": 0.5})), run(small(rounds=1))
    assert np.abs(late[0].state.parameters - prompt[0].state.parameters).max() > 1e-4
    for name in ("channel_re", "backoff", "tx_energy"):
        np.testing.assert_array_equal(late[1][0].slots[name], prompt[1][0].slots[name])
    assert late[1][0].values["epsilon_accounted"] == prompt[1][0].values["epsilon_accounted"]


OFDM = {"timing__ofdm": {"subcarriers": 32}, "channel__sync": {"max_offset": 0.05, "waveform": "ofdm"}}


def test_with_ofdm_late_arrivals_turn_subcarriers_within_the_cyclic_prefix() -> None:
    """Subcarrier k of client i is turned by e^{−j2πk o_i}; channels, energy and the ledger do not notice."""
    silent = {"uplink__snr_db": 200.0, "training__epochs": 1, "rounds": 1}
    turned, rounds, _ = run(small(**OFDM, **silent))
    straight, plain, _ = run(small(timing__ofdm=OFDM["timing__ofdm"], **silent))
    assert np.abs(turned.state.parameters - straight.state.parameters).max() > 1e-4
    for name in ("channel_re", "csi_re", "backoff", "tx_energy", "tx_energy_j"):
        np.testing.assert_array_equal(rounds[0].slots[name], plain[0].slots[name])
    for name in ("epsilon_accounted", "effective_noise_std", "airtime"):
        assert rounds[0].values[name] == plain[0].values[name]
    late = turned.deployment.network.late_arrival(CLIENTS, 1)
    assert late is not None and late.subcarriers == 32 and late.offset.max() <= 0.05
    np.testing.assert_allclose(late.rotations(610)[:, 31], np.exp(-62j * np.pi * late.offset))


def test_real_jamming_hides_less_of_what_arrives_in_the_other_quadrature() -> None:
    real = {"uplink__jammer": {"epsilon": 1.0, "noise": "real"}, "rounds": 1}
    turned, straight = run(small(**OFDM, **real))[1][0], run(small(timing__ofdm=OFDM["timing__ofdm"], **real))[1][0]
    assert turned.values["epsilon_accounted"] > 1.1 * straight.values["epsilon_accounted"]
    circular = {"uplink__jammer": {"epsilon": 1.0}, "rounds": 1}
    turned, straight = (
        run(small(**OFDM, **circular))[1][0],
        run(small(timing__ofdm=OFDM["timing__ofdm"], **circular))[1][0],
    )
    assert turned.values["epsilon_accounted"] == straight.values["epsilon_accounted"]


def test_a_single_carrier_on_a_grid_of_subcarriers_is_warned_of() -> None:
    with pytest.warns(ModelWarning, match=r"channel\.sync\.waveform: found single_carrier with timing\.ofdm"):
        network(timing__ofdm={}, channel__sync={"max_offset": 0.05})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"channel__fading": {"model": "recorded"}}, r"channel\.fading\.file: found null with the model recorded"),
        (
            {"channel__correlation": {"model": "clarke", "doppler_hz": 1}, "channel__fading": {"model": "nakagami"}},
            r"channel\.correlation\.model: found clarke with nakagami fading",
        ),
        ({"channel__placement": {"scheme": "positions"}}, "found neither points_m nor file"),
        (
            {"channel__placement": {"scheme": "positions", "points_m": [[1, 2]], "file": "x.csv"}},
            "found both points_m and file",
        ),
        ({"channel__placement": {**GIVEN, "points_m": POINTS[:5]}}, "found 5 positions for 6 clients"),
        (
            {"channel__placement": GIVEN, "channel__pathloss": LOG, "uplink__jammer": {"epsilon": 1.0}},
            r"uplink\.jammer\.position_m: found null",
        ),
        ({"channel__placement": {"min_radius_m": 500.0}}, r"min_radius_m: found 500; allowed: less than radius_m"),
        (
            {"channel__placement": {"scheme": "random_waypoint", "min_speed": 20.0}},
            r"min_speed: found 20; allowed: at most max_speed, 15",
        ),
        ({"channel__pathloss": {"model": "tr38901", "h_ut": 0.5}}, r"h_ut: found 0.5 m with uma"),
        ({"channel__pathloss": {"model": "tr38901", "h_bs": 1.0}}, r"h_bs: found 1.0 m with uma"),
        ({"channel__sync": {"max_offset": 1.0}}, "max_offset"),
        ({"channel__sync": {"waveform": "ofdm"}}, r"sync\.waveform: found ofdm without timing\.ofdm"),
        (
            {"channel__sync": {"waveform": "ofdm"}, "timing__ofdm": {}, "uplink": {"kind": "digital"}},
            r"sync\.waveform: found ofdm with uplink\.kind: digital",
        ),
        (
            {"channel__sync": {"waveform": "ofdm", "max_offset": 0.08}, "timing__ofdm": {}},
            r"sync\.max_offset: found 0\.08 symbols .* allowed: at most the cyclic prefix, .* = 0\.0705",
        ),
    ],
)
def test_channels_that_do_not_go_together(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        small(**overrides)


@pytest.mark.parametrize("correlation", ["independent", "gauss_markov", "clarke"])
def test_mmse_knows_the_line_of_sight_of_every_fading_in_time(correlation: str) -> None:
    """K = 9 dB in sight and Rayleigh elsewhere: E[h/ĥ | ĥ] = 1 on both, and E|ĥ|² as the links say."""
    found = network(
        channel__pathloss={"model": "tr38901"},
        channel__correlation={"model": correlation},
        channel__csi={"error_std": 0.3, "estimator": "mmse"},
    )
    channels = found.clients.channels(np.arange(40_000), START)
    seen = found.clients.large_scale.gains(np.arange(40_000), START).line_of_sight
    for sight in (True, False):
        h, known, power = (
            values[seen == sight]
            for values in (*(gains[:, 0] for gains in channels.narrowband), channels.mean_estimate_power)
        )
        strong = np.abs(known) ** 2 > 0.25 * power
        ratio = (h / known).real[strong]
        assert_mean(ratio, 1.0, std=float(ratio.std()))
        relative = np.abs(known) ** 2 / power
        assert_mean(relative, 1.0, std=float(relative.std()))
