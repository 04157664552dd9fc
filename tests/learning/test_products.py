"""Matrix products by either library, and by the kernel for short sums, against those in double precision.

oneDNN is taken on few processors only: here it is asked for wherever torch has it, for products of any size.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from wirelessfl import short_sums
from wirelessfl.learning.cohort import products as module
from wirelessfl.learning.cohort.products import add_product, product, takes_onednn

SHAPES = [
    *((1, 1, 1, 1), (3, 20, 784, 10), (2, 5, 1, 300), (4, 7, 513, 1), (2, 20, 0, 5)),
    (1, 300, 20, 3000),  # of more rows than are added at once
    (2, 37, 53, 6),  # neither number of samples has four significant bits
]


@pytest.fixture(params=["MKL", "oneDNN"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name = str(request.param)
    monkeypatch.setattr(short_sums, "kernel", lambda: None)
    if name == "oneDNN" and not module._onednn_agrees():
        pytest.skip("torch has no oneDNN here")
    monkeypatch.setattr(module, "_onednn_is_faster", lambda: name == "oneDNN")
    monkeypatch.setattr(module, "FEWEST", 1)
    monkeypatch.setattr(module, "FEWEST_ADDED", 1)
    return name


def operands(clients: int, rows: int, shared: int, columns: int, *, transposed: bool) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    if transposed:
        left = torch.randn(clients, shared, rows, generator=generator).mT
        return left, torch.randn(clients, columns, shared, generator=generator).mT
    left = torch.randn(clients, rows, shared, generator=generator)
    return left, torch.randn(clients, shared, columns, generator=generator)


def error(found: Tensor, left: Tensor, right: Tensor, summand: Tensor | float = 0.0) -> float:
    """Largest error in relation to the sum of the magnitudes of what is added up, whose rounding it is."""
    exact = left.double() @ right.double() + summand
    magnitudes = left.double().abs() @ right.double().abs() + 1
    return float(((found.double() - exact).abs() / magnitudes).max())


TOLERANCE = 2.0**-18
"""Sums of 784 products in single precision, one after the other, are about 2⁻²⁰ off; a lost product is 2⁻¹⁰."""


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_are_those_of_double_precision(library: str, shape: tuple[int, ...], transposed: bool) -> None:
    left, right = operands(*shape, transposed=transposed)
    assert takes_onednn(left, right) == (library == "oneDNN" and left.numel() > 0)
    assert error(product(left[0], right[0]), left[0], right[0]) < TOLERANCE


@pytest.mark.parametrize("decay", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_are_accumulated_in_a_slice_of_a_wider_matrix(
    library: str, shape: tuple[int, ...], decay: float
) -> None:
    clients, rows, _, columns = shape
    left, right = operands(*shape, transposed=True)
    wide = torch.full((clients, 3 + rows * columns + 2), torch.nan)
    into = wide[:, 3:-2].view(clients, rows, columns)
    held = torch.linspace(-1, 3, into.numel()).view(into.shape)
    if decay:  # else what is there does not matter, not even NaN
        into.copy_(held)
    add_product(into, left, right, decay)
    assert error(into, left, right, decay * held.double()) < TOLERANCE
    assert wide[:, :3].isnan().all()
    assert wide[:, -2:].isnan().all()


@pytest.mark.parametrize("library", ["oneDNN"], indirect=True)
def test_only_single_precision_on_the_host_is_multiplied_by_onednn(library: str) -> None:
    left, right = operands(1, 20, 30, 40, transposed=False)
    assert not takes_onednn(left.double(), right.double())
    assert not takes_onednn(left.to("meta"), right.to("meta"))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not takes_onednn(left, right)
        assert product(left[0], right[0]).dtype == torch.bfloat16
    assert not takes_onednn(left.clone().requires_grad_(), right)
    assert takes_onednn(left, right)


def test_small_products_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_onednn_is_faster", lambda: True)
    assert not takes_onednn(torch.zeros(20, 1024), torch.zeros(1024, 102))  # of 2²² operations lacks a hundredth
    assert takes_onednn(torch.zeros(20, 1024), torch.zeros(1024, 103))


def test_products_of_many_sizes_ask_for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled for each size is kept."""
    sizes = set()

    def by_onednn(left: Tensor, right: Tensor) -> Tensor:
        sizes.add((left.shape, right.shape))
        return left @ right

    monkeypatch.setattr(module, "_by_onednn", by_onednn)
    monkeypatch.setattr(module, "_onednn_is_faster", lambda: True)
    monkeypatch.setattr(short_sums, "kernel", lambda: None)
    monkeypatch.setattr(module, "FEWEST", 32 * 4 * 3 * 2)  # of 32 rows: fewer are left over
    monkeypatch.setattr(module, "FEWEST_ADDED", 1)
    for samples in range(256, 512):
        product(torch.zeros(samples, 4), torch.zeros(4, 3))
        add_product(torch.zeros(1, 5, 3), torch.zeros(1, 5, samples), torch.zeros(1, samples, 3), 0.0)
    assert len(sizes) == 8 + 9  # rows are rounded down, samples of a sum up, to multiples of 32


def test_a_torch_without_the_operator_multiplies_by_mkl(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(left: Tensor, right: Tensor) -> Tensor:
        raise AttributeError("'_OpNamespace' 'mkldnn' object has no attribute '_linear_pointwise'")

    monkeypatch.setattr(module, "_by_onednn", missing)
    assert not module._onednn_agrees()
    monkeypatch.setattr(module, "_by_onednn", lambda left, right: left @ right + 1)
    assert not module._onednn_agrees()
