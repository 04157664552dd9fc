"""Haar norms of outer products, beside those of the vectors formed, and those of the kernel beside those of torch."""

from __future__ import annotations

import ctypes

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from wirelessfl.privacy.mechanisms.haar_norms import _compiled as compiled
from wirelessfl.privacy.mechanisms.haar_norms import (
    haar_squared_norms,
    haar_squared_norms_of_pieces,
    kernel,
)
from wirelessfl.privacy.mechanisms.haar_norms.pieces import Piece, squared_norms

SHAPES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 48)), min_size=1, max_size=5)


def random_products(shapes: list[tuple[int, int]], dtype: torch.dtype = torch.float64) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(3)
    return [
        (
            torch.randn(2, 3, rows, generator=generator, dtype=torch.float64).to(dtype),
            torch.randn(2, 3, columns, generator=generator, dtype=torch.float64).to(dtype),
        )
        for rows, columns in shapes
    ]


def formed(products: list[tuple[Tensor, Tensor]]) -> Tensor:
    return torch.cat([torch.einsum("kbm,kbn->kbmn", *pair).flatten(2) for pair in products], dim=2)


@pytest.mark.parametrize("clip_domain", ["coefficients", "weighted"])
@given(shapes=SHAPES)
def test_norms_are_those_of_the_vectors_formed(clip_domain: str, shapes: list[tuple[int, int]]) -> None:
    products = random_products(shapes)
    found = haar_squared_norms_of_pieces(products, clip_domain)  # type: ignore[arg-type]
    expected = haar_squared_norms(formed(products), clip_domain)  # type: ignore[arg-type]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("clip_domain", ["coefficients", "weighted"])
@given(shapes=SHAPES, formed_ones=st.sets(st.integers(0, 4)))
def test_some_pieces_may_be_formed(clip_domain: str, shapes: list[tuple[int, int]], formed_ones: set[int]) -> None:
    products = random_products(shapes)
    pieces = [(formed([pair]), None) if at in formed_ones else pair for at, pair in enumerate(products)]
    found = haar_squared_norms_of_pieces(pieces, clip_domain)  # type: ignore[arg-type]
    expected = haar_squared_norms(formed(products), clip_domain)  # type: ignore[arg-type]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


def test_a_network_in_slices_that_fit_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers with biases, whose offsets and rows share some powers of two and not others."""
    products = random_products([(20, 784), (20, 1), (10, 20), (10, 1)])
    expected = haar_squared_norms(formed(products), "weighted")
    monkeypatch.setattr("wirelessfl.privacy.mechanisms.haar_norms.pieces._FORMED_BYTES", 1)
    torch.testing.assert_close(haar_squared_norms_of_pieces(products, "weighted"), expected, rtol=1e-12, atol=0)


def test_norms_of_bfloat16_are_summed_in_single_precision() -> None:
    products = random_products([(7, 32), (7, 1)], torch.bfloat16)
    found = haar_squared_norms_of_pieces(products, "coefficients")
    exact = haar_squared_norms(formed([(left.double(), right.double()) for left, right in products]), "coefficients")
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=0)


def library() -> ctypes.CDLL:
    found = kernel()
    if found is None:
        pytest.skip("the kernel was not compiled")
    return found


@pytest.mark.parametrize("level_factor", [0.25, 1.0])
@given(shapes=SHAPES, formed_ones=st.sets(st.integers(0, 4)))
def test_the_kernel_gives_the_bits_of_torch(
    level_factor: float, shapes: list[tuple[int, int]], formed_ones: set[int]
) -> None:
    """Also of pieces that are formed from the start."""
    pairs = enumerate(random_products(shapes, torch.float32))
    pieces = [Piece(left, None if at in formed_ones else right) for at, (left, right) in pairs]
    assert torch.equal(compiled(library(), pieces, level_factor), squared_norms(pieces, level_factor))


@pytest.mark.parametrize("dimension", [1, 2, 3, 16, 33, 1024, 4099])
def test_the_kernel_of_formed_vectors_is_that_of_torch_and_of_double_precision(dimension: int) -> None:
    vectors = torch.randn(5, dimension, generator=torch.Generator().manual_seed(dimension))
    found = compiled(library(), [Piece(vectors, None)], 1.0)
    assert torch.equal(found, squared_norms([Piece(vectors, None)], 1.0))
    torch.testing.assert_close(found.double(), haar_squared_norms(vectors.double(), "weighted"), rtol=1e-6, atol=0)


def test_vectors_that_lie_apart_in_memory_have_the_norms_of_their_copies() -> None:
    apart = torch.randn(50, 7, 2, generator=torch.Generator().manual_seed(1)).permute(1, 2, 0)[:, :, ::2]
    assert torch.equal(haar_squared_norms(apart, "weighted"), haar_squared_norms(apart.contiguous(), "weighted"))


@pytest.mark.parametrize("compiled_ones", [True, False])
def test_of_nobody_there_is_no_norm(compiled_ones: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled_ones:
        monkeypatch.setattr("wirelessfl.privacy.mechanisms.haar_norms.kernel", lambda: None)
    assert haar_squared_norms(torch.zeros(0, 9), "weighted").shape == (0,)
    for clients, samples in ((0, 3), (3, 0)):
        products = [(torch.zeros(clients, samples, 5), torch.zeros(clients, samples, 2))]
        assert haar_squared_norms_of_pieces(products, "weighted").shape == (clients, samples)


@pytest.mark.parametrize("compiled_ones", [True, False])
@pytest.mark.parametrize(
    "shapes",
    [[((2, 3, 4), (2, 1, 4))], [((2, 3, 4), (2, 3, 0)), ((2, 3, 1), (2, 3, 3))], [((2, 3, 0), (2, 3, 4))]],
    ids=["other samples", "no columns", "no rows"],
)
def test_pieces_that_do_not_fit_are_refused(
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]], compiled_ones: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled_ones:
        monkeypatch.setattr("wirelessfl.privacy.mechanisms.haar_norms.kernel", lambda: None)
    with pytest.raises(ValueError, match="found pieces"):
        haar_squared_norms_of_pieces([(torch.ones(left), torch.ones(right)) for left, right in shapes], "weighted")
    with pytest.raises(ValueError, match="found pieces"):
        haar_squared_norms(torch.zeros(2, 0), "weighted")


def test_gradients_are_not_lost_without_a_word() -> None:
    vectors = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(ValueError, match="detached"):
        haar_squared_norms(vectors, "weighted")
    with torch.no_grad():
        assert torch.equal(haar_squared_norms(vectors, "weighted"), haar_squared_norms(vectors.detach(), "weighted"))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_vector_that_is_not_finite_has_no_finite_norm(value: float) -> None:
    vectors = torch.ones(2, 40)
    vectors[1, 33] = value
    assert haar_squared_norms(vectors, "coefficients").isfinite().tolist() == [True, False]


def test_a_library_that_gives_other_numbers_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    library()
    kernel.cache_clear()
    monkeypatch.setattr("wirelessfl.privacy.mechanisms.haar_norms._compiled", lambda *_: torch.zeros(2, 3))
    assert kernel() is None
    kernel.cache_clear()


def test_without_a_library_torch_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> ctypes.CDLL:
        raise OSError

    products = random_products([(20, 48), (20, 1), (10, 20)], torch.float32)
    expected = haar_squared_norms_of_pieces(products, "coefficients")
    kernel.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert kernel() is None
    assert torch.equal(haar_squared_norms_of_pieces(products, "coefficients"), expected)
    kernel.cache_clear()
