"""D-DSGD: bits at the capacity against a sum of logarithms, the mean that is sent, whole runs, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import InfeasibleError, ScenarioError
from wirelessfl.learning.compression import SparseMean
from wirelessfl.learning.conformance import check_codec
from wirelessfl.radio import DDsgd
from wirelessfl.scenario import Scenario


def d_dsgd(symbols: float = 1.0, **overrides: Any) -> Scenario:
    chosen: dict[str, Any] = {
        "uplink__modulation": {"scheme": "d_dsgd", "symbols": symbols},
        "uplink__power_control": {"policy": "full_power"},
        "uplink__snr_db": 20.0,
        "channel__fading": {"model": "static"},
        "faults__fade_threshold": 0.0,
    }
    return small(**{**chosen, **overrides})


def most_places(dimension: int, bits: float) -> int:
    """The largest q ≤ d/2 with log₂ C(d, q) + 33 ≤ R, one q after the other, by whole numbers."""
    kept, sets = 0, 1
    while kept < dimension // 2:
        sets = sets * (dimension - kept) // (kept + 1)
        if math.log2(sets) + 33 > bits:
            break
        kept += 1
    return kept


@pytest.mark.parametrize(
    ("dimension", "symbols", "clients", "energy"),
    [
        (7850, 0.5, 25, 500.0 * 3925),  # MNIST in the paper: s = d/2, M = 25, mean power 500 a symbol
        (7850, 0.5, 25, 500.0),  # the same as the energy of a whole slot
        (7850, 0.5, 10, 200.0 * 3925),
        (650, 1.0, 4, 650.0),
        (100, 1.0, 1, 1e9),
        (64, 0.25, 1, 1e40),
    ],
)
def test_the_capacity_and_the_places_that_fit(dimension: int, symbols: float, clients: int, energy: float) -> None:
    code, uses = DDsgd(symbols), math.ceil(symbols * dimension)
    wanted = uses / (2 * clients) * math.log2(1 + clients * energy / uses)
    assert code.capacity_bits(dimension, clients, energy) == pytest.approx(wanted, rel=1e-12)
    assert code.kept(dimension, clients, energy) == most_places(dimension, wanted)


def test_mnist_figures_of_the_paper() -> None:
    """R = 78.5 · log₂(1 + 25 · 500): 1068.4 bits, in which 144 places fit."""
    code, energy = DDsgd(0.5), 500.0 * 3925
    bits = code.capacity_bits(7850, 25, energy)
    assert bits == pytest.approx(78.5 * math.log2(12501), rel=1e-12)
    kept = code.kept(7850, 25, energy)
    assert kept == 144
    assert math.log2(math.comb(7850, kept)) + 33 <= bits < math.log2(math.comb(7850, kept + 1)) + 33


@pytest.mark.parametrize("kept", [1, 3, 10])
def test_the_mean_of_larger_magnitude_is_sent(kept: int) -> None:
    rows = np.random.default_rng(4).standard_normal((50, 20)).astype(np.float32)
    codec = SparseMean(kept)
    arrived = codec.decode(codec.encode(rows, ()))
    for row, found in zip(rows, arrived, strict=True):
        order = sorted(range(20), key=lambda place: row[place])
        low, high = order[:kept], order[-kept:]
        means = (float(np.mean(row[low])), float(np.mean(row[high])))
        places, mean = (high, means[1]) if means[1] >= -means[0] else (low, means[0])
        wanted = np.zeros(20)
        wanted[places] = mean
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert codec.bits(20) == math.ceil(math.log2(math.comb(20, kept))) + 33


def test_it_is_a_codec() -> None:
    check_codec(SparseMean(3))


def test_a_round_is_the_mean_of_what_fits_and_the_rest_waits() -> None:
    scenario = d_dsgd(rounds=1)
    simulation, rounds, _ = run(scenario)
    begin = build_simulation(scenario, PLAN).state.parameters
    columns = rounds[0].slots
    sent = np.flatnonzero(columns["payload_bits"] > 0)
    dimension, clients = len(begin), len(sent)
    energy = 100.0 * dimension
    kept = most_places(dimension, dimension / (2 * clients) * math.log2(1 + clients * 100.0))
    assert np.all(columns["payload_bits"][sent] == SparseMean(kept).bits(dimension))
    np.testing.assert_allclose(columns["tx_energy"][sent], energy)
    assert rounds[0].values["airtime"] == pytest.approx(dimension / scenario.timing.bandwidth_hz)
    exact = run(small(uplink={"kind": "ideal", "clip": 1.0}, rounds=1))[0].state.parameters - begin
    residual, step = simulation.state.memories["error_feedback"], simulation.state.parameters - begin
    registry = simulation.deployment.network.registry
    names = np.array([int(name) for name in residual])
    weight = registry.weight(names) / registry.weight(names).sum()
    waits = sum(share * residual[str(name)] for share, name in zip(weight, names, strict=True))
    np.testing.assert_allclose(step + waits, exact, atol=1e-6)
    assert 0 < np.count_nonzero(step) <= kept * clients


def test_packing_halves_the_airtime_and_changes_nothing_else() -> None:
    (plain, one, _), (packed, two, _) = (run(d_dsgd(rounds=2, uplink__iq_packing=packed)) for packed in (False, True))
    assert two[0].values["airtime"] == pytest.approx(one[0].values["airtime"] / 2, rel=0.01)
    assert plain.state.parameters.tobytes() == packed.state.parameters.tobytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"faults__availability": {"model": "bernoulli", "p": 0.5}},
        {"faults__crash_rate_per_s": 0.3},
        {"training__algorithm": {"name": "upcycled"}},
        {"uplink__snr_db": None, "uplink__tx_power_dbm": 10.0, "timing__bandwidth_hz": 1e6},
        {"clients__roles": [{"role": "sign_flip", "count": 1}]},
    ],
)
def test_a_resumed_run_keeps_its_residuals_to_the_bit(changes: dict[str, Any], tmp_path: Any) -> None:
    whole, _ = goes_on_to_the_same_bits(d_dsgd(rounds=4, **changes), tmp_path)
    assert np.all(np.isfinite(whole.state.parameters)) and whole.state.memories["error_feedback"]
    ledger = whole.simulation.ledger
    assert ledger.epsilon_published() == ledger.epsilon_accounted() == np.inf


def test_noise_before_the_code_protects_as_without_it() -> None:
    noise = {"training__privacy": {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.0}}
    unit: dict[str, Any] = {"privacy": {"unit": "sample", "delta": 1e-5}, "rounds": 2, **noise}
    coded, ideal = run(d_dsgd(**unit))[0].ledger, run(small(uplink={"kind": "ideal", "clip": 1.0}, **unit))[0].ledger
    assert coded.epsilon_accounted() == ideal.epsilon_accounted() < np.inf


def test_too_little_capacity_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match=r"symbols: found 1, with which each of .* bits a round; one coordinate"):
        build_simulation(d_dsgd(uplink__snr_db=-30.0), PLAN)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"channel__fading": {"model": "rayleigh"}}, r"fading\.model: found rayleigh .*allowed: static"),
        ({"uplink__power_control": {"policy": "cross_layer"}}, "policy: found cross_layer .*allowed: full_power"),
        ({"uplink__receiver": {"antennas": 2}}, "antennas: found 2 .*allowed: 1"),
        ({"uplink__jammer": {"epsilon": 2.0}}, "jammer: found a jammer with .*allowed: null"),
        ({"faults__fade_threshold": 0.1}, "fade_threshold: found 0.1 .*allowed: 0"),
        ({"channel__csi": {"error_std": 0.1}}, "error_std: found 0.1"),
        ({"channel__sync": {"max_offset": 0.1}}, "max_offset: found 0.1"),
        ({"channel__pathloss": {"model": "log_distance"}}, r"pathloss\.model: found a path loss"),
        ({"uplink__peak_power_db": 3.0}, "peak_power_db: found 3"),
        ({"clients__roles": [{"role": "power_cheat", "count": 1}]}, "role: found power_cheat"),
        ({"training__robust": {"rule": "median"}}, "robust.rule: found median"),
        ({"training__algorithm": {"name": "feddyn"}}, "algorithm.name: found feddyn .*allowed: fedavg"),
        ({"uplink__modulation": {"scheme": "d_dsgd", "symbols": 0.0}}, r"modulation\.symbols: found 0"),
    ],
)
def test_what_is_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        d_dsgd(**overrides)


@pytest.mark.parametrize("wrong", [lambda: DDsgd(0.0), lambda: DDsgd(1.5), lambda: SparseMean(0)])
def test_numbers_out_of_range(wrong: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        wrong()
