"""Receivers and modulations: combiners before the sum, axes of gains, and what their checks refuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wirelessfl.errors import CheckFailed
from wirelessfl.radio import (
    AirInterface,
    CellLinks,
    CrossLayer,
    SlotLinks,
    Superposition,
    TransmitPlan,
    received_amplitude,
    transmit_over_pieces,
)
from wirelessfl.radio.modulation import Analog
from wirelessfl.radio.modulation.conformance import check_modulation
from wirelessfl.radio.reception import SumReceiver
from wirelessfl.radio.reception.conformance import check_receiver

AIR = AirInterface(clip=0.7, channel_noise_std=1.3, dimension=23)


@dataclass(frozen=True)
class BestAntenna(SumReceiver):
    """Listens to the antenna on which the clients arrive loudest together."""

    antennas: int = 3

    def combine(self, links: SlotLinks, round_index: int, air: AirInterface) -> NDArray[np.complex128]:
        power = (np.abs(links.estimate) ** 2).sum(axis=0)
        return np.asarray(np.arange(self.antennas) == power.argmax(axis=2)[..., None], dtype=np.complex128)


@dataclass(frozen=True)
class Signs:
    """One bit a coordinate, as loud as the update."""

    def encode(self, updates: Any, norms: NDArray[np.float64], clip: float) -> tuple[Any, NDArray[np.float64]]:
        amplitude = norms / np.sqrt(updates.shape[1])
        return updates.sign() * updates.new_tensor(amplitude[:, None]), norms

    def decode(self, received: NDArray[np.float64], plan: TransmitPlan) -> NDArray[np.float64]:
        return np.sign(received)


def slot(clients: int, blocks: int, subcarriers: int, antennas: int) -> SlotLinks:
    generator = np.random.default_rng(5)
    drawn = generator.standard_normal((2, clients, blocks, subcarriers, antennas, 2)) @ np.array([1.0, 1j])
    ones = np.ones(clients)
    budget = generator.uniform(5.0, 20.0, clients)
    return SlotLinks(drawn[0], drawn[0] + 0.2 * drawn[1], ones / clients, budget, ones, 1.04 * ones)


@pytest.mark.parametrize("receiver", [SumReceiver(), SumReceiver(4), BestAntenna()])
def test_receivers_keep_their_promises(receiver: SumReceiver) -> None:
    check_receiver(receiver)


@pytest.mark.parametrize("modulation", [Analog(), Signs()])
def test_modulations_keep_their_promises(modulation: Any) -> None:
    check_modulation(modulation)


def test_what_a_receiver_may_not_do() -> None:
    class Zero(SumReceiver):
        def combine(self, links: SlotLinks, round_index: int, air: AirInterface) -> NDArray[np.complex128]:
            return np.asarray(0 * super().combine(links, round_index, air))

    class OneForAll(SumReceiver):
        def combine(self, links: SlotLinks, round_index: int, air: AirInterface) -> NDArray[np.complex128]:
            return np.ones((1, 1, 1), dtype=np.complex128)

    class FirstClient(SumReceiver):
        def combine(self, links: SlotLinks, round_index: int, air: AirInterface) -> NDArray[np.complex128]:
            return np.asarray(links.estimate[0])

    class QuietNoise(SumReceiver):
        def noise_std(self, weights: NDArray[np.complex128], air: AirInterface) -> NDArray[np.float64]:
            return np.ones(weights.shape[:2])

    wrong = {Zero: "is zero", OneForAll: "shape", FirstClient: "order of the clients", QuietNoise: "in proportion"}
    for kind, words in wrong.items():
        with pytest.raises(CheckFailed, match=words):
            check_receiver(kind())


def test_what_a_modulation_may_not_do() -> None:
    class Loud(Analog):
        def encode(self, updates: Any, norms: NDArray[np.float64], clip: float) -> tuple[Any, NDArray[np.float64]]:
            return 2 * updates, 2 * norms

    class Secretive(Analog):
        def encode(self, updates: Any, norms: NDArray[np.float64], clip: float) -> tuple[Any, NDArray[np.float64]]:
            return 0.5 * updates, norms

    class Centred(Analog):
        def encode(self, updates: Any, norms: NDArray[np.float64], clip: float) -> tuple[Any, NDArray[np.float64]]:
            symbols = (updates - updates.mean(0)) / 3
            return symbols, symbols.double().norm(dim=1).numpy()

    class Half(Analog):
        def decode(self, received: NDArray[np.float64], plan: TransmitPlan) -> NDArray[np.float64]:
            return received[::2]

    for kind, words in {
        Loud: "exceed",
        Secretive: "misstates",
        Centred: "its block",
        Half: "decode returns has",
    }.items():
        with pytest.raises(CheckFailed, match=words):
            check_modulation(kind())


@pytest.mark.parametrize("packing", [False, True])
def test_antennas_are_combined_and_every_range_has_its_block_and_subcarrier(packing: bool) -> None:
    """Symbol by symbol: y_s = Σ_i Σ_a conj(f_a) h_{i,t,f,a} α_{i,t,f} x_{i,s} with s in range t·F + f."""
    clients, blocks, groups, antennas = 5, 3, 2, 4
    links = slot(clients, blocks, groups, antennas)
    generator = np.random.default_rng(6)
    weights = generator.standard_normal((blocks, groups, antennas, 2)) @ np.array([1.0, 1j])
    combined = links.combined(np.broadcast_to(weights, links.channel.shape))
    assert combined.channel.shape == combined.estimate.shape == (clients, blocks, groups, 1)
    with pytest.raises(ValueError, match="axis"):
        links.rows()
    policy, sends = CrossLayer(3.0), np.ones((clients, blocks, groups), dtype=np.bool_)
    plan = policy.plan(combined.rows(), 1, AIR)
    sent = transmit_over_pieces(policy.transmit, plan, combined, sends, np.full(clients, AIR.clip))
    updates = generator.standard_normal((clients, AIR.dimension))
    air = Superposition(AIR.dimension, packing, blocks * groups)
    air.add(updates, combined.channel[..., 0] * sent.tx_gain)
    each = 2 if packing else 1
    symbols = np.pad(updates, ((0, 0), (0, AIR.dimension % each))).reshape(clients, -1, each) @ np.array([1, 1j][:each])
    expected = np.zeros(symbols.shape[1], dtype=np.complex128)
    for number, part in enumerate(np.array_split(np.arange(symbols.shape[1]), blocks * groups)):
        t, f = divmod(number, groups)
        for i in range(clients):
            gain = sum(weights[t, f, a].conjugate() * links.channel[i, t, f, a] for a in range(antennas))
            expected[part] += gain * sent.tx_gain[i, t, f] * symbols[i, part]
    real = np.stack([expected.real, expected.imag][:each], axis=1).ravel()[: AIR.dimension]
    np.testing.assert_allclose(np.asarray(air.received()), real, rtol=1e-10, atol=1e-10)


def test_no_update_arrives_louder_than_the_bound_over_all_axes() -> None:
    """Brute force over updates that lie in one coordinate, and the back-off that is common to block and subcarrier."""
    links = slot(4, 2, 3, 1)
    policy, sends = CrossLayer(40.0), np.ones((4, 2, 3), dtype=np.bool_)
    plan = policy.plan(links.rows(), 1, AIR)
    sent = transmit_over_pieces(policy.transmit, plan, links, sends, np.full(4, AIR.clip))
    amplitude = np.abs(links.channel[..., 0] * sent.tx_gain) * AIR.clip / plan.server_gain
    np.testing.assert_allclose(received_amplitude(links, sent, plan), amplitude, rtol=1e-12)
    assert np.all((np.abs(sent.tx_gain) * AIR.clip) ** 2 <= links.power_budget[:, None, None] * (1 + 1e-12))
    wanted = (
        40.0 * links.weight[:, None, None] / np.abs(links.estimate[..., 0]) / np.sqrt(links.power_budget)[:, None, None]
    )
    np.testing.assert_allclose(sent.backoff, np.maximum(1.0, wanted.max(axis=(1, 2))), rtol=1e-12)


def test_cells_are_receivers_with_antennas_of_their_own() -> None:
    links = slot(3, 2, 1, 2)
    generator = np.random.default_rng(8)
    everywhere = generator.standard_normal((3, 2, 2, 1, 2, 2)) @ np.array([1.0, 1j])
    serving = np.array([0, 1, 0])
    weights = generator.standard_normal((2, 2, 1, 2, 2)) @ np.array([1.0, 1j])
    found = CellLinks(serving, links, everywhere).combined(weights)
    for i, station in enumerate(serving.tolist()):
        own = np.einsum("tfa,tfa->tf", weights[station].conj(), links.channel[i])
        np.testing.assert_allclose(found.own.channel[i, ..., 0], own, rtol=1e-12)
        for c in range(2):
            heard = np.einsum("tfa,tfa->tf", weights[c].conj(), everywhere[i, c])
            np.testing.assert_allclose(found.channel[i, c, ..., 0], heard, rtol=1e-12)


def test_the_noise_behind_a_combiner_is_its_length() -> None:
    weights = np.random.default_rng(1).standard_normal((2, 3, 4, 2)) @ np.array([1.0, 1j])
    expected = 1.3 * np.sqrt((np.abs(weights) ** 2).sum(axis=2))
    np.testing.assert_allclose(SumReceiver(4).noise_std(weights, AIR), expected, rtol=1e-12)
