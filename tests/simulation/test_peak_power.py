"""A peak limit in a run: distortion before the channel, energy, ledger, and several cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_multi_cell import cellular, network_of, played, tx_gains, updates_of
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.uplinks import OverTheAir

ROUNDING = 2e-6


def limited(peak_power_db: float | None, iq_packing: bool = False, **overrides: Any) -> Scenario:
    """One round at full power, so that a limit of a few decibels bites."""
    uplink = {
        "kind": "over_the_air",
        "snr_db": 5.0,
        "clip": 0.01,
        "peak_power_db": peak_power_db,
        "iq_packing": iq_packing,
        "power_control": {"policy": "full_power"},
    }
    return small(**{"uplink": uplink, "rounds": 1, "channel__csi": {"error_std": 0.3}, **overrides})


def symbols(updates: np.ndarray, iq_packing: bool) -> np.ndarray:
    if not iq_packing:
        return updates + 0j
    padded = np.pad(updates, ((0, 0), (0, updates.shape[1] % 2)))
    return np.asarray(padded[:, 0::2] + 1j * padded[:, 1::2])


def passed(sent: np.ndarray, largest: float) -> np.ndarray:
    """The symbols after the amplifier."""
    return np.asarray(sent * np.minimum(1.0, largest / np.maximum(np.abs(sent), 1e-300)))


def clipped_updates(
    scenario: Scenario, this: FinishedRound, budget: float, num_symbols: int, peak_db: float, iq_packing: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(n, num_symbols) what is sent, x_i, and its energy, from the updates and the gains of the trace."""
    simulation = build_simulation(scenario, PLAN)
    updates = updates_of(simulation, simulation.state.parameters, this.clients, 1)
    largest = np.sqrt(10 ** (peak_db / 10) * budget / num_symbols)
    sent = passed(tx_gains(this)[:, None] * symbols(updates, iq_packing), largest)
    return sent, np.sum(np.abs(sent) ** 2, axis=1)


@pytest.mark.parametrize("iq_packing", [False, True])
@pytest.mark.parametrize("peak_db", [-3.0, 4.0])
def test_what_is_received_is_the_clipped_signal(peak_db: float, iq_packing: bool) -> None:
    """Y = Σ h_i x_i + z with every |x_ik|² <= 10^(peak/10) P_i/num_symbols, the phase of α_i included."""
    scenario = limited(peak_db, iq_packing)
    simulation, (this,), change = played(scenario)
    network, dimension = simulation.deployment.network, len(change)
    num_symbols = (dimension + 1) // 2 if iq_packing else dimension
    budget = network.registry.power_budget
    sent, energy = clipped_updates(scenario, this, budget, num_symbols, peak_db, iq_packing)
    channel = this.slots["channel_re"] + 1j * this.slots["channel_im"]
    received = channel @ sent
    heard = np.stack([received.real, received.imag], axis=1).ravel()[:dimension] if iq_packing else received.real
    noise = network.streams.generator("receiver_noise", 1).standard_normal(dimension)
    expected = (heard + noise) / (this.values["server_gain"] / 0.01)
    np.testing.assert_allclose(change, expected, rtol=0, atol=ROUNDING * max(1.0, np.abs(expected).max()))
    np.testing.assert_allclose(this.slots["tx_energy"], energy, rtol=1e-5)
    assert np.all(energy < 0.98 * (this.slots["tx_gain_abs"] * this.slots["update_norm"]) ** 2)


@pytest.mark.parametrize("iq_packing", [False, True])
def test_each_piece_is_clipped_at_its_own_gain(iq_packing: bool) -> None:
    """Fresh estimates: α_t is in proportion to 1/ĥ_t, and the limit in watts is that of the whole slot."""
    scenario = limited(
        1.0,
        iq_packing,
        channel__correlation={"model": "clarke", "doppler_hz": 1000.0},
        channel__csi={"refresh": "piece"},
        uplink__power_control={"policy": "cross_layer", "server_gain": 300.0},
    )
    simulation, (this,), change = played(scenario)
    network, uplink, dimension = simulation.deployment.network, simulation.deployment.uplink, len(change)
    assert isinstance(uplink, OverTheAir) and uplink.schedule.pieces > 10
    h = this.slots["csi_re"] + 1j * this.slots["csi_im"]
    start = build_simulation(scenario, PLAN)
    coordinates = symbols(updates_of(start, start.state.parameters, this.clients, 1), iq_packing)
    piece = np.repeat(
        np.arange(h.shape[1]), [len(part) for part in np.array_split(np.arange(coordinates.shape[1]), h.shape[1])]
    )
    gains = (this.slots["tx_gain_abs"] * np.abs(h).min(axis=1))[:, None] / h
    largest = np.sqrt(10**0.1 * network.registry.power_budget / coordinates.shape[1])
    wanted = gains[:, piece] * coordinates
    sent = passed(wanted, largest)
    assert np.count_nonzero(np.abs(wanted) > 1.001 * largest) > 10
    np.testing.assert_allclose(this.slots["tx_energy"], np.sum(np.abs(sent) ** 2, axis=1), rtol=1e-5)
    received = (h[:, piece] * sent).sum(axis=0)
    heard = np.stack([received.real, received.imag], axis=1).ravel()[:dimension] if iq_packing else received.real
    noise = network.streams.generator("receiver_noise", 1).standard_normal(dimension)
    expected = (heard + noise) / (300.0 / 0.01)
    np.testing.assert_allclose(change, expected, rtol=0, atol=ROUNDING * max(1.0, np.abs(expected).max()))


def test_every_cell_hears_the_clipped_signal() -> None:
    air: dict[str, Any] = {
        "uplink__power_control": {"policy": "full_power"},
        "uplink__peak_power_db": 2.0,
        "uplink__clip": 0.01,
    }
    scenario = cellular(rounds=1, channel__csi={"error_std": 0.2}, **air)
    simulation, (this,), change = played(scenario)
    network, uplink = network_of(simulation), simulation.deployment.uplink
    assert isinstance(uplink, OverTheAir)
    links = network.cell_links(this.clients, this.round.moment)
    sent, energy = clipped_updates(scenario, this, network.registry.power_budget, 610, 2.0, iq_packing=False)
    total = np.zeros(610)
    for station in np.unique(links.serving).tolist():
        mine = np.flatnonzero(links.serving == station)
        noise = network.streams.generator("receiver_noise", 1, station).standard_normal(610)
        gain = uplink.policies[station].plan(links.own.take(mine).rows(), 1, uplink.air).server_gain
        total += (np.real(links.channel[:, station, 0, 0, 0] @ sent) + noise) / (gain / 0.01)
    expected = total / network.registry.weight(this.clients).sum()
    np.testing.assert_allclose(change, expected, rtol=0, atol=ROUNDING * max(1.0, np.abs(expected).max()))
    np.testing.assert_allclose(this.slots["tx_energy"], energy, rtol=1e-5)
    assert np.all(energy < 0.98 * network.registry.power_budget)


@pytest.mark.parametrize("iq_packing", [False, True])
def test_a_limit_that_is_never_reached_changes_nothing(iq_packing: bool) -> None:
    one, (this,), _ = run(limited(None, iq_packing))
    other, (again,), _ = run(limited(100.0, iq_packing))
    np.testing.assert_array_equal(one.state.parameters, other.state.parameters)
    np.testing.assert_allclose(this.slots["tx_energy"], again.slots["tx_energy"], rtol=1e-5)


def test_the_ledger_counts_as_without_a_limit() -> None:
    """Clipping moves no two updates apart: the bound at the clip stays."""
    bounds = [run(limited(peak))[0].ledger.client_epsilons()[1] for peak in (None, -3.0)]
    np.testing.assert_array_equal(bounds[0], bounds[1])


def test_an_amplifier_needs_an_analogue_uplink() -> None:
    with pytest.raises(ScenarioError, match=r"peak_power_db: found an unknown key"):
        small(uplink={"kind": "digital", "peak_power_db": 6.0})


def test_a_limit_does_not_go_with_norms_that_are_measured() -> None:
    control = {"policy": "gbma", "expected_norms": "measured"}
    with pytest.raises(ScenarioError, match=r"uplink\.peak_power_db: found 6 with expected_norms: measured"):
        small(uplink={"kind": "over_the_air", "peak_power_db": 6.0, "power_control": control})
