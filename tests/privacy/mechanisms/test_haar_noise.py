"""Haar noise: the transform against double precision, and the kernel against normals that torch transforms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning import StepContext
from wirelessfl.normals import add_normal
from wirelessfl.privacy import inverse_haar, padded_length
from wirelessfl.privacy.mechanisms.haar_noise import add_haar_noise, kernel
from wirelessfl.privacy.mechanisms.haar_noise.portable import add_inverse_haar, coefficients_needed
from wirelessfl.privacy.wavelet import haar_weights
from wirelessfl.streams import Streams

ROUNDING = float(np.finfo(np.float32).eps)
PACKAGE = "wirelessfl.privacy.mechanisms.haar_noise"
CLIENTS = np.array([4, 2**40 + 1, 7])
STD = torch.tensor([0.7, 0.0, 3.0])


def a_step(clients: NDArray[np.int64] = CLIENTS) -> StepContext:
    return StepContext(Streams(3), 2, 1, clients, torch.zeros(1), 0.1)


def coefficients_of(dimension: int) -> Tensor:
    """(3, n) normals of the streams, times their deviations, of coefficients in their order."""
    step, drawn = a_step(), torch.zeros(3, coefficients_needed(dimension))
    return add_normal(drawn, STD, step.streams, "noise", step.round_index, step.clients, step.step)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 63, 64, 65, 77, 1000, 5001])
def test_the_inverse_transform_of_weighted_coefficients(dimension: int) -> None:
    generator = torch.Generator().manual_seed(4)
    length, needed = padded_length(dimension), coefficients_needed(dimension)
    coefficients = torch.randn(3, needed, generator=generator)
    before = torch.randn(3, dimension + 2, generator=generator)
    whole = np.zeros((3, length))
    whole[:, :needed] = coefficients
    exact = before.numpy()[:, 1:-1] + inverse_haar(whole / haar_weights(length))[:, :dimension]
    found = before.clone()
    add_inverse_haar(found[:, 1:-1], coefficients)
    np.testing.assert_allclose(found[:, 1:-1], exact, atol=16 * ROUNDING)
    assert torch.equal(found[:, [0, -1]], before[:, [0, -1]])


@pytest.mark.parametrize(
    "dimension", [1, 2, 3, 5, 127, 128, 129, 255, 256, 257, 511, 512, 513, 769, 1024, 1025, 1535, 70_001]
)
def test_noise_is_the_transform_of_a_stream_of_normals_bit_for_bit(dimension: int) -> None:
    """Whatever part of the last tile of a level is needed; as the kernel gives it where it was compiled."""
    before = torch.randn(3, dimension + 2, generator=torch.Generator().manual_seed(5))
    expected, found = before.clone(), before.clone()
    add_inverse_haar(expected[:, 1:-1], coefficients_of(dimension))
    add_haar_noise(found[:, 1:-1], STD, "noise", a_step())
    assert torch.equal(found, expected)
    assert torch.equal(found[1], before[1]) and not torch.equal(found[2], before[2])


@pytest.mark.parametrize("dimension", [1, 9, 1025])
def test_without_the_kernel_the_noise_is_the_same(dimension: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found, slowly, in_pieces = (torch.zeros(3, dimension) for _ in range(3))
    add_haar_noise(found, STD, "noise", a_step())
    monkeypatch.setattr(f"{PACKAGE}.kernel", lambda: None)
    add_haar_noise(slowly, STD, "noise", a_step())
    monkeypatch.setattr(f"{PACKAGE}.portable._DRAWN_BYTES", 2 * 4 * padded_length(dimension))
    add_haar_noise(in_pieces, STD, "noise", a_step())
    assert torch.equal(slowly, found) and torch.equal(in_pieces, found)


def test_noise_of_a_client_does_not_depend_on_the_others() -> None:
    found, alone = torch.zeros(3, 1025), torch.zeros(1, 1025)
    add_haar_noise(found, STD, "noise", a_step())
    add_haar_noise(alone, STD[2:], "noise", a_step(CLIENTS[2:]))
    assert torch.equal(alone[0], found[2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("std", [torch.ones(1), torch.ones(4), torch.ones(3, 1), torch.ones(())], ids=str)
def test_another_number_of_deviations_is_refused(std: Tensor, dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match=r"found .* deviations"):
        add_haar_noise(torch.zeros(3, 9, dtype=dtype), std.to(dtype), "noise", a_step())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("clients", [CLIENTS[:2], np.arange(4)], ids=str)
def test_another_number_of_clients_is_refused(clients: NDArray[np.int64], dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match=f"{len(clients)} clients for 3 rows"):
        add_haar_noise(torch.zeros(3, 9, dtype=dtype), STD.to(dtype), "noise", a_step(clients))


def test_deviations_without_values_are_refused() -> None:
    with pytest.raises(TypeError):
        add_haar_noise(torch.zeros(3, 9), STD.to("meta"), "noise", a_step())
    with pytest.raises(RuntimeError):
        add_haar_noise(torch.zeros(3, 9), STD.clone().requires_grad_(), "noise", a_step())


def test_double_precision_and_columns_apart_are_added_by_torch() -> None:
    found, apart, double = torch.zeros(3, 9), torch.zeros(9, 3).T, torch.zeros(3, 9, dtype=torch.float64)
    for out in (found, apart, double):
        add_haar_noise(out, STD.to(out.dtype), "noise", a_step())
    assert torch.equal(apart, found)
    torch.testing.assert_close(double.float(), found)


@pytest.mark.parametrize("dimension", [1, 2, 3, 31, 33, 100])
def test_coefficients_behind_those_needed_reach_no_element(dimension: int) -> None:
    """And the last of those needed reaches one."""
    length, needed = padded_length(dimension), coefficients_needed(dimension)
    of_each = inverse_haar(np.eye(length))[:, :dimension]
    assert not of_each[needed:].any() and of_each[needed - 1].any()


def test_another_number_of_coefficients_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not \(2, 13\)"):
        add_inverse_haar(torch.zeros(2, 9), torch.zeros(2, 16))


def test_a_kernel_that_gives_other_numbers_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if kernel() is None:
        pytest.skip("the kernel was not compiled")
    kernel.cache_clear()
    monkeypatch.setattr(f"{PACKAGE}._add_compiled", lambda *_: None)
    assert kernel() is None
    kernel.cache_clear()
