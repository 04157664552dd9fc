"""The fast normals: their law, and what a row depends on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from tests.statistics import assert_follows, assert_probability, assert_uncorrelated, assert_variance_gaussian, shifted
from wirelessfl.normals import add_compiled, add_normal, kernel, portable
from wirelessfl.streams import Streams


def draw(
    rows: int, dimension: int, *, seed: int = 1, purpose: str = "noise", round_index: int = 2, step: int = 3
) -> Tensor:
    out = torch.zeros(rows, dimension)
    return add_normal(out, torch.ones(rows), Streams(seed), purpose, round_index, np.arange(rows), step)


def test_the_law_is_standard_normal_in_every_part_of_a_row() -> None:
    values = draw(40, 50_001, seed=shifted(1)).double().numpy()
    for part in (values[:, :25_000], values[:, 25_001:]):
        assert_follows(part[:, ::5], stats.norm.cdf)
        assert_variance_gaussian(part, 1.0)
    for bound in (3.0, 4.0, 5.0):
        assert_probability(int((np.abs(values) > bound).sum()), values.size, 2 * stats.norm.sf(bound))
    assert np.isfinite(values).all()


def test_numbers_are_uncorrelated_within_and_between_rows() -> None:
    values = draw(2, 1_000_000, seed=shifted(2)).double().numpy()
    first, second = values
    assert_uncorrelated(first, second)
    pairs = first[: 3906 * 256].reshape(-1, 2, 128)  # Box-Muller pairs
    cosines, sines = pairs[:, 0].ravel(), pairs[:, 1].ravel()
    assert_uncorrelated(cosines, sines)
    assert_uncorrelated(cosines**2, sines**2)
    assert_uncorrelated(first[:-1], first[1:])
    assert_uncorrelated(first[:-16], first[16:])  # the next word of the same block of the cipher


def test_the_extreme_words_give_finite_numbers() -> None:
    extremes = np.array([0, 1, 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1], dtype=np.uint32)
    radius = portable.radii(extremes)
    assert np.isfinite(radius).all()
    assert radius[0] == pytest.approx(np.sqrt(2 * np.log(2.0**32)), rel=1e-6) == radius.max()
    assert radius.min() == 0


def test_polynomials_are_those_of_the_functions() -> None:
    generator = np.random.default_rng(5)
    words = np.concatenate([generator.integers(2**32, size=10**6), 2.0 ** np.arange(32)]).astype(np.uint32)
    u = ((words >> 1).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-31)
    # A result is a sum of a few rounded terms, of which none is more than twice as large as the logarithm (for u = 0.7
    # it is ln 1.4 − ln 2) and none of sine and cosine larger than 1; a rounding is half of this.
    rounding = float(np.finfo(np.float32).eps)
    np.testing.assert_allclose(portable.logarithm(u), np.log(u.astype(np.float64)), rtol=4 * rounding)
    cosine, sine = portable.cosine_and_sine(words)
    angle = words * (2 * np.pi * 2.0**-32)
    np.testing.assert_allclose(cosine, np.cos(angle), atol=2 * rounding)
    np.testing.assert_allclose(sine, np.sin(angle), atol=2 * rounding)


@pytest.mark.parametrize("columns", [1, 255, 256, 257, 70_001])
def test_the_kernel_gives_the_portable_numbers_bit_for_bit(columns: int) -> None:
    library = kernel()
    if library is None:
        pytest.skip("the kernel was not compiled")
    generator = np.random.default_rng(6)
    key, nonces = generator.bytes(32), generator.integers(2**32, size=(3, 3), dtype=np.uint32)
    std = np.array([0.7, 0.0, 3.0], dtype=np.float32)
    base = generator.standard_normal((3, columns + 9), dtype=np.float32)
    found, expected = base.copy(), base.copy()
    add_compiled(library, found[:, 4:-5], std, key, nonces)
    portable.add_portably(expected[:, 4:-5], std, key, nonces)
    np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(found, base)


def test_the_kernel_refuses_what_it_would_misread() -> None:
    library = kernel()
    if library is None:
        pytest.skip("the kernel was not compiled")
    std, key, nonces = np.ones(2, np.float32), bytes(32), np.zeros((2, 3), np.uint32)
    with pytest.raises(ValueError, match="side by side"):
        add_compiled(library, np.zeros((2, 8), np.float32)[:, ::2], std, key, nonces)
    with pytest.raises(ValueError, match=r"found .* deviations"):
        add_compiled(library, np.zeros((2, 8), np.float32), std[:1], key, nonces)
    with pytest.raises(ValueError, match="key of 16"):
        add_compiled(library, np.zeros((2, 8), np.float32), std, key[:16], nonces)


@pytest.mark.parametrize("dimension", [1, 2, 7, 1000, 70_000, 200_001])
def test_a_row_does_not_depend_on_the_others(dimension: int) -> None:
    streams = Streams(4)
    clients = np.array([7, 2**40 + 1, 3])

    def noise(out: Tensor, members: NDArray[np.int64]) -> Tensor:
        return add_normal(out, torch.ones(len(members)), streams, "noise", 5, members, 1)

    together = noise(torch.zeros(3, dimension), clients)
    for row, client in zip(together, clients, strict=True):
        assert torch.equal(row, noise(torch.zeros(1, dimension), np.array([client]))[0])
    wide = torch.zeros(3, dimension + 5, dtype=torch.float64)
    assert torch.equal(noise(wide[:, 2:-3], clients).float(), together)
    assert not wide[:, :2].any() and not wide[:, -3:].any()


def test_noise_is_scaled_by_row_and_added() -> None:
    clients, std = np.arange(3), torch.tensor([0.0, 2.0, 0.5])
    base = torch.randn(3, 1000)
    noise = add_normal(torch.zeros(3, 1000), torch.ones(3), Streams(1), "noise", 1, clients, 0)
    found = add_normal(base.clone(), std, Streams(1), "noise", 1, clients, 0)
    torch.testing.assert_close(found, base + std[:, None] * noise)
    assert torch.equal(found[0], base[0])


def test_rows_differ_by_seed_purpose_round_client_and_step() -> None:
    rows = [
        draw(2, 50)[0],
        draw(2, 50)[1],
        draw(1, 50, seed=2)[0],
        draw(1, 50, purpose="other")[0],
        draw(1, 50, round_index=3)[0],
        draw(1, 50, step=4)[0],
    ]
    assert len({tuple(row.tolist()) for row in rows}) == len(rows)


def test_a_kernel_that_gives_other_numbers_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if kernel() is None:
        pytest.skip("the kernel was not compiled")
    logarithm = portable.logarithm
    monkeypatch.setattr(portable, "logarithm", lambda u: np.nextafter(logarithm(u), np.float32(-99)))
    kernel.cache_clear()
    assert kernel() is None
    kernel.cache_clear()


def test_fewer_columns_are_the_beginning_of_more() -> None:
    assert torch.equal(draw(2, 1000)[:, :300], draw(2, 300))


def test_without_the_kernel_the_numbers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = draw(2, 1000)
    monkeypatch.setattr("wirelessfl.normals.kernel", lambda: None)
    assert torch.equal(draw(2, 1000), compiled)
