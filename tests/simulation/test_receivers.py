"""Receivers and modulations in whole runs: those of a user's own, and what the ledger makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulation.outside import OwnRecord
from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_multi_cell import cellular
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.privacy import Caveat, Release
from wirelessfl.privacy.releases import DpSgdRelease
from wirelessfl.radio import AirInterface, SlotLinks
from wirelessfl.radio.modulation import Analog
from wirelessfl.radio.reception import SumReceiver
from wirelessfl.simulation.recorder import routed

HERE = "tests.simulation.test_receivers"
TWICE = {"combiner": f"{HERE}:Twice", "options": {"factor": 2.0}}


@dataclass(frozen=True)
class Twice(SumReceiver):
    """One antenna, turned and amplified: signal and noise alike."""

    factor: float = 2.0

    def combine(self, links: SlotLinks, round_index: int, air: AirInterface) -> NDArray[np.complex128]:
        return self.factor * 1j * super().combine(links, round_index, air)


class Vouched(Twice):
    """The same with the record of the slot: what both grow by cancels."""

    def release(self, slot: Release) -> Release:
        return slot


class OfItsOwnKind(Twice):
    """The same with a record of a kind of its own."""

    def release(self, slot: Release) -> Release:
        return OwnRecord(slot.round_index, slot.clients, 2.0, np.ones(len(slot.clients), dtype=np.int64))


class NoRecord(Twice):
    """The same with something else."""

    def release(self, slot: Release) -> Release:
        return "nothing"  # type: ignore[return-value]


class NoJson(Twice):
    """The same with a field that no trace can hold."""

    def release(self, slot: Release) -> Release:
        return OwnRecord(slot.round_index, slot.clients, {2.0}, np.ones(len(slot.clients), dtype=np.int64))  # type: ignore[arg-type]


@dataclass(frozen=True)
class FourAntennas(SumReceiver):
    antennas: int = 4


class Halved(Analog):
    """Symbols of half the length, doubled by the server."""

    def encode(self, updates: Any, norms: NDArray[np.float64], clip: float) -> tuple[Any, NDArray[np.float64]]:
        return 0.5 * updates, 0.5 * norms

    def decode(self, received: NDArray[np.float64], plan: Any) -> NDArray[np.float64]:
        return 2.0 * super().decode(received, plan)


@pytest.mark.parametrize("scenario", [small, cellular], ids=["one cell", "several cells"])
def test_a_combiner_that_scales_signal_and_noise_alike_changes_nothing(scenario: Any) -> None:
    """Without back-off channel inversion delivers the same sum; the noise is that of a channel of half its gain."""
    loud = {"uplink__snr_db": 60.0, "uplink__power_control": {"policy": "cross_layer", "server_gain": 60.0}}
    one, first, _ = run(scenario(rounds=1, **loud))
    two, second, _ = run(scenario(rounds=1, **loud, uplink__receiver=TWICE))
    three, _, _ = run(scenario(rounds=1, **{**loud, "uplink__power_control": {"server_gain": 30.0}}))
    (this,), (other,) = first, second
    np.testing.assert_allclose(this.slots["tx_gain_abs"], 2 * other.slots["tx_gain_abs"], rtol=1e-12)
    np.testing.assert_array_equal(this.slots["channel_re"], other.slots["channel_re"])
    assert other.values["channel_noise_std"] == 2.0 * this.values["channel_noise_std"]
    if scenario is small:
        np.testing.assert_allclose(two.state.parameters, three.state.parameters, rtol=0, atol=2e-6)
    assert not np.array_equal(one.state.parameters, two.state.parameters)


def test_without_a_release_of_its_own_nothing_is_guaranteed() -> None:
    for key, part in (("receiver", TWICE), ("modulation", {"scheme": f"{HERE}:Halved"})):
        simulation, rounds, _ = run(small(rounds=2, **{f"uplink__{key}": part}))
        assert len(rounds) == 2
        for epsilon in simulation.ledger.client_epsilons():
            assert np.all(np.isinf(epsilon))
        assert any(Caveat.OUTSIDE_WAVEFORM.value in reason for reason in simulation.ledger.why_different())


def test_a_release_of_its_own_counts() -> None:
    plain, _, _ = run(small(rounds=2, uplink__power_control={"server_gain": 30.0}))
    vouched, _, _ = run(small(rounds=2, uplink__receiver={"combiner": f"{HERE}:Vouched"}))
    (counted, expected) = (simulation.ledger.client_epsilons()[1] for simulation in (vouched, plain))
    assert np.all(np.isfinite(counted)) and np.all(np.isfinite(expected))


def test_records_of_clients_and_of_a_receiver_of_ones_own_are_kept_apart() -> None:
    """A route of the trace holds one record a round: who leaves it decides the route, not its class."""
    noise = {"privacy": {"mechanism": "gaussian"}, "batch_size": 8, "steps": 1}
    parts = {"uplink__receiver": {"combiner": f"{HERE}:OfItsOwnKind"}, "training": noise}
    _, rounds, _ = run(small(rounds=2, **parts))
    for this in rounds:
        assert {route: type(release) for route, release in routed(this.round)} == {
            "local": DpSgdRelease,
            "air": OwnRecord,
        }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NoRecord", "NoRecord gives a str; allowed: a Release"),
        ("NoJson", "NoJson leaves no record: .*set is not JSON"),
    ],
)
def test_something_else_than_a_release_is_refused(name: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        run(small(rounds=1, uplink__receiver={"combiner": f"{HERE}:{name}"}))


def test_a_receiver_of_ones_own_has_as_many_antennas_as_it_says() -> None:
    simulation, rounds, _ = run(small(rounds=1, uplink__receiver={"combiner": f"{HERE}:FourAntennas"}))
    assert rounds[0].slots["channel_re"].shape == (6, 4)
    assert np.all(np.isinf(simulation.ledger.client_epsilons()[1]))


def test_a_modulation_of_ones_own_encodes_and_decodes() -> None:
    """Half the symbols, twice the estimate: the sum is the same, the noise on it twice as large."""
    loud = {"uplink__snr_db": 200.0, "uplink__power_control": {"server_gain": 1e7}}
    one, (this,), _ = run(small(rounds=1, **loud))
    two, (other,), _ = run(small(rounds=1, **loud, uplink__modulation={"scheme": f"{HERE}:Halved"}))
    np.testing.assert_allclose(one.state.parameters, two.state.parameters, rtol=0, atol=2e-6)
    np.testing.assert_allclose(other.slots["tx_energy"], this.slots["tx_energy"] / 4, rtol=1e-6)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"uplink__receiver": {"combiner": "zf"}}, r"uplink\.receiver\.combiner: found zf; allowed"),
        ({"uplink__modulation": {"scheme": "ook"}}, r"uplink\.modulation\.scheme: found ook; allowed"),
        (
            {"uplink__receiver": TWICE, "uplink__jammer": {"epsilon": 1.0}},
            r"uplink\.jammer: found a jammer with comb",
        ),
        ({"uplink__receiver": {"combiner": "builtins:dict"}}, r"uplink\.receiver\.combiner"),
    ],
)
def test_what_is_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        build_simulation(small(**overrides), PLAN)
