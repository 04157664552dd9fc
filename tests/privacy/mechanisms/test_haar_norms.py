"""Haar norms of outer products, beside those of the vectors formed."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from wirelessfl.privacy.mechanisms.haar import haar_squared_norms, haar_squared_norms_of_products

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
    found = haar_squared_norms_of_products(products, clip_domain)  # type: ignore[arg-type]
    expected = haar_squared_norms(formed(products), clip_domain)  # type: ignore[arg-type]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


def test_a_network_in_slices_that_fit_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers with biases, whose offsets and rows share some powers of two and not others."""
    products = random_products([(20, 784), (20, 1), (10, 20), (10, 1)])
    expected = haar_squared_norms(formed(products), "weighted")
    monkeypatch.setattr("wirelessfl.privacy.mechanisms.haar._FORMED_BYTES", 1)
    torch.testing.assert_close(haar_squared_norms_of_products(products, "weighted"), expected, rtol=1e-12, atol=0)


def test_norms_of_bfloat16_are_summed_in_single_precision() -> None:
    products = random_products([(7, 32), (7, 1)], torch.bfloat16)
    found = haar_squared_norms_of_products(products, "coefficients")
    exact = haar_squared_norms(formed([(left.double(), right.double()) for left, right in products]), "coefficients")
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=0)
