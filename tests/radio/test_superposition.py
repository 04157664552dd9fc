"""Superposition against the naive K × d formulas, in NumPy and torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.radio.strategies import CLIP, example_links
from wirelessfl import short_sums
from wirelessfl.radio import AirInterface, CrossLayer, LateArrival, Superposition, clamped_inversion, superpose

CLIENTS = 13
GENERATOR = np.random.default_rng(5)


def naive_packed(updates: np.ndarray, coefficients: NDArray[np.complex128]) -> np.ndarray:
    """Every client's symbols a + jb written out, multiplied, summed and taken apart again."""
    clients, dimension = updates.shape
    padded = np.concatenate([updates, np.zeros((clients, dimension % 2))], axis=1)
    symbols = padded[:, 0::2] + 1j * padded[:, 1::2]
    received = (coefficients[:, None] * symbols).sum(axis=0)
    return np.stack([received.real, received.imag], axis=1).ravel()[:dimension]


@pytest.fixture(params=[1, 2, 7, 10])
def updates(request: pytest.FixtureRequest) -> np.ndarray:
    return GENERATOR.standard_normal((CLIENTS, request.param))


@pytest.fixture
def coefficients() -> NDArray[np.complex128]:
    return GENERATOR.standard_normal(CLIENTS) + 1j * GENERATOR.standard_normal(CLIENTS)


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("size", [1, 4, CLIENTS])
def test_blocks_sum_to_the_naive_formula(
    updates: np.ndarray, coefficients: NDArray[np.complex128], packing: bool, size: int
) -> None:
    air = Superposition(updates.shape[1], packing)
    for start in range(0, CLIENTS, size):
        air.add(updates[start : start + size], coefficients[start : start + size])
    naive = naive_packed(updates, coefficients) if packing else (coefficients[:, None] * updates).real.sum(axis=0)
    np.testing.assert_allclose(air.received(), naive, rtol=1e-13, atol=1e-13)


def rounded_sums(weights: NDArray[np.float32], updates: NDArray[np.float32]) -> NDArray[np.float32]:
    """Σ w_i Δ_i as rows, a product after the other, each added with one rounding to single precision."""
    total = np.zeros((len(weights), updates.shape[1]), dtype=np.float32)
    for column, row in zip(weights.T.astype(np.float64), updates.astype(np.float64), strict=True):
        total = (column[:, None] * row + total).astype(np.float32)
    return total


@pytest.mark.skipif(short_sums.kernel() is None, reason="the kernel was not compiled, or not for this processor")
@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy], ids=["NumPy", "torch"])
def test_blocks_of_few_clients_are_added_product_by_product(packing: bool, kind: Callable[..., Any]) -> None:
    """Bit for bit; 70,003 coordinates are no multiple of what a register holds."""
    numbers = np.random.default_rng(9)
    updates = numbers.standard_normal((11, 70_003), dtype=np.float32)
    coefficients = numbers.standard_normal((11, 2)) @ np.array([1.0, 1j])
    parts = np.stack([coefficients.real, coefficients.imag] if packing else [coefficients.real]).astype(np.float32)
    air, expected = Superposition(70_003, packing), np.zeros((len(parts), 70_003), dtype=np.float32)
    for mine in (slice(0, 1), slice(1, 8), slice(8, 11)):
        air.add(kind(updates[mine]), coefficients[mine])
        expected += rounded_sums(parts[:, mine], updates[mine])
    if packing:
        expected[0, 0:70_002:2] -= expected[1, 1:70_002:2]
        expected[0, 1:70_002:2] += expected[1, 0:70_002:2]
    assert type(air.received()) is type(kind(updates))
    np.testing.assert_array_equal(air.received(), expected[0])


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("sizes", [(7, 8), (8, 7), (1, 14), (15, 0), (0, 15)], ids=str)
@pytest.mark.parametrize("compiled", [True, False])
def test_few_and_many_clients_make_one_sum(
    packing: bool, sizes: tuple[int, int], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks up to and beyond what the kernel for short sums takes, in both orders, and late clients in all."""
    monkeypatch.setattr("wirelessfl.radio.superposition._LONG", 0)
    if not compiled:
        monkeypatch.setattr(short_sums, "kernel", lambda: None)
    numbers = np.random.default_rng(10)
    updates = numbers.standard_normal((15, 37))
    coefficients, late = numbers.standard_normal((15, 2)) @ np.array([1.0, 1j]), numbers.random(15)
    single, double = Superposition(37, packing), Superposition(37, packing)
    for mine in (slice(0, sizes[0]), slice(sizes[0], 15)):
        single.add(torch.tensor(updates[mine], dtype=torch.float32), coefficients[mine], LateArrival(late[mine]))
    double.add(updates, coefficients, LateArrival(late))
    size = float((np.abs(coefficients) @ np.abs(updates)).max())  # a rounding for each addition, and of each factor
    np.testing.assert_allclose(
        single.received(), double.received(), atol=(15 + 2) * np.finfo(np.float32).eps.item() * size
    )


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_blocks_give_the_same(
    updates: np.ndarray, coefficients: NDArray[np.complex128], packing: bool, dtype: torch.dtype
) -> None:
    expected, air = Superposition(updates.shape[1], packing), Superposition(updates.shape[1], packing)
    expected.add(updates, coefficients)
    block = torch.tensor(updates, dtype=dtype)
    air.add(block[:6], coefficients[:6])
    air.add(block[6:], coefficients[6:])
    received = air.received()
    assert received.dtype == dtype
    rounding = CLIENTS * torch.finfo(dtype).eps * 20
    np.testing.assert_allclose(received.numpy(), expected.received(), rtol=rounding, atol=rounding)


def test_single_precision_stays_single() -> None:
    air = Superposition(4)
    air.add(np.ones((2, 4), dtype=np.float32), np.array([1.0 + 0j, 2.0]))
    assert air.received().dtype == np.float32


def test_reading_does_not_disturb_the_sum(coefficients: NDArray[np.complex128]) -> None:
    air = Superposition(4, iq_packing=True)
    air.add(np.ones((CLIENTS, 4)), coefficients)
    first = air.received()
    np.testing.assert_array_equal(air.received(), first)


def test_packing_under_perfect_csi_has_no_crosstalk(updates: np.ndarray) -> None:
    links = example_links(CLIENTS, error=0.0)
    gain = clamped_inversion(CrossLayer(1.0).plan(links, 0, AirInterface(CLIP, 1.0, 1)), links).tx_gain
    plain, packed = Superposition(updates.shape[1]), Superposition(updates.shape[1], iq_packing=True)
    for air in (plain, packed):
        air.add(updates, links.channel * gain)
    np.testing.assert_allclose(packed.received(), plain.received(), rtol=1e-12, atol=1e-14)


def test_a_quarter_turn_swaps_the_pair() -> None:
    air = Superposition(5, iq_packing=True)
    air.add(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]), np.array([1j]))
    np.testing.assert_allclose(air.received(), [-2.0, 1.0, -4.0, 3.0, 0.0])


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 7, 8])
def test_late_clients_spill_into_the_next_symbol(
    packing: bool, dimension: int, coefficients: NDArray[np.complex128]
) -> None:
    """A late client is a prompt one of less amplitude and a second one, a symbol later, of the rest.

    With packing an odd dimension is padded first: what spills into the padding comes back by cross-talk.
    """
    updates, late = GENERATOR.standard_normal((CLIENTS, dimension)), GENERATOR.uniform(0, 0.9, CLIENTS)
    width = 2 if packing else 1
    padded = np.pad(updates, ((0, 0), (0, -dimension % width)))
    one_later = np.pad(padded, ((0, 0), (width, 0)))[:, : padded.shape[1]]
    expected, air = Superposition(padded.shape[1], packing), Superposition(dimension, packing)
    expected.add(padded, coefficients - coefficients * late)
    expected.add(one_later, coefficients * late)
    air.add(updates[:5], coefficients[:5], LateArrival(late)[:5])
    air.add(updates[5:], coefficients[5:], LateArrival(late)[5:])
    np.testing.assert_allclose(air.received(), expected.received()[:dimension], rtol=1e-12, atol=1e-12)


def test_late_ofdm_over_groups_of_subcarriers_is_refused() -> None:
    late = LateArrival(np.array([0.25]), subcarriers=4)
    Superposition(8, pieces=2).add(np.ones((1, 8)), np.ones((1, 2, 1), dtype=np.complex128), late)
    with pytest.raises(ValueError, match="F must be 1"):
        Superposition(8, pieces=2).add(np.ones((1, 8)), np.ones((1, 1, 2), dtype=np.complex128), late)


def test_a_late_client_arrives_with_no_more_energy() -> None:
    for late in (0.0, 0.2, 0.5, 0.99):
        air = Superposition(50)
        update = GENERATOR.standard_normal((1, 50))
        air.add(update, np.array([1.0 + 0j]), LateArrival(np.array([late])))
        assert np.linalg.norm(air.received()) <= np.linalg.norm(update) * (1 + 1e-12)


def test_silence_is_zero() -> None:
    np.testing.assert_array_equal(Superposition(3).received(), np.zeros(3))


def test_wrong_shapes_are_refused() -> None:
    air = Superposition(3)
    with pytest.raises(ValueError, match="shape"):
        air.add(np.ones((2, 4)), np.ones(2, dtype=complex))
    with pytest.raises(ValueError, match="shape"):
        air.add(np.ones((2, 3)), np.ones(1, dtype=complex))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_superpose_is_the_formula_of_the_over_the_air_round(kind: str) -> None:
    """y/α_u = Σ Re(h_i/ĥ_i) p_i Δ_i/(τ s_i) + noise/α_u, client by client."""
    links = example_links(CLIENTS)
    updates, noise = GENERATOR.standard_normal((CLIENTS, 6)), GENERATOR.standard_normal(6)
    backoff = 1 + GENERATOR.random(CLIENTS)
    expected = noise / 5.0
    for i in range(CLIENTS):
        turned = (links.channel[i] / links.estimate[i]).real
        expected = expected + turned * links.weight[i] * updates[i] / (CLIP * backoff[i])
    convert = torch.tensor if kind == "torch" else np.array
    found = superpose(convert(updates), links.weight, links.channel, links.estimate, backoff, 5.0, CLIP, convert(noise))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


def test_no_noise_unit_channel_and_no_backoff_is_federated_averaging() -> None:
    updates, ones = GENERATOR.standard_normal((CLIENTS, 6)), np.ones(CLIENTS)
    weight = example_links(CLIENTS).weight
    channel = np.ones(CLIENTS, dtype=np.complex128)
    found = superpose(updates, weight, channel, channel, ones, 676.0, 1.0, 0.0)
    np.testing.assert_allclose(found, np.average(updates, axis=0, weights=weight), rtol=1e-13, atol=1e-15)


class OnDevice(torch.Tensor):
    """Like a tensor on a GPU: NumPy cannot see it before it is brought to the host."""

    def cpu(self) -> torch.Tensor:  # type: ignore[override]
        return self.as_subclass(torch.Tensor)

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise TypeError("not in the memory of the host")


@pytest.mark.parametrize("packing", [False, True])
def test_what_is_received_lies_in_the_memory_of_the_host(packing: bool) -> None:
    updates, coefficients = torch.arange(24.0).view(8, 3), np.arange(1.0, 9.0).astype(np.complex128)
    with pytest.raises(TypeError):
        np.asarray(updates.as_subclass(OnDevice))
    air = Superposition(3, packing)
    air.add(updates.as_subclass(OnDevice), coefficients, LateArrival(np.arange(8) / 16))
    expected = Superposition(3, packing)
    expected.add(updates, coefficients, LateArrival(np.arange(8) / 16))
    np.testing.assert_array_equal(np.asarray(air.received()), np.asarray(expected.received()))


@pytest.mark.parametrize("dimension", [9, 65_536])
def test_updates_that_lie_in_a_structured_array(dimension: int) -> None:
    """Rows that lie apart by no whole number of floats, which no kernel steps through."""
    updates = np.random.default_rng(1).standard_normal((5, dimension), dtype=np.float32)
    held = np.zeros(5, dtype=[("tag", "u1"), ("values", "f4", (dimension,))])
    held["values"] = updates
    air = Superposition(dimension)
    air.add(held["values"], np.ones(5, dtype=complex))
    rounding = (5 + 2) * np.finfo(np.float32).eps.item()  # one for each addition, and of each factor
    exact = updates.astype(float)
    np.testing.assert_allclose(
        air.received(), exact.sum(axis=0), atol=rounding * float(np.abs(exact).sum(axis=0).max())
    )
