"""Numbers in the page are those of the trace, to the stated precision."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.analysis.unpack import PageData
from wirelessfl.analysis.report.packing import COARSE, FINE, Blobs, Extent, Planes, Scale, pack_doubles, pack_whole


def page_of(blobs: Blobs) -> PageData:
    elements = "".join(
        f'<script type="application/octet-stream" id="{name}">{text}</script>' for name, text in blobs.texts.items()
    )
    return PageData(f'<script type="application/json" id="s0-data">{{}}</script>{elements}')


def through(values: NDArray[np.float64], precision: float = FINE) -> tuple[NDArray[np.float64], Scale]:
    """What the browser has of values that were written in two parts."""
    extent, blobs, planes = Extent(), Blobs("s0"), Planes(2)
    extent.see(values[:3])
    extent.see(values[3:])
    scale = Scale.of(extent, precision)
    planes.write(scale.codes(values[:5]))
    planes.write(scale.codes(values[5:]))
    packed = {"scale": scale.as_json(), "planes": planes.close(blobs)}
    return page_of(blobs).column(packed), scale


@pytest.mark.parametrize("precision", [FINE, COARSE])
def test_positive_numbers_keep_their_precision(precision: float) -> None:
    values = np.random.default_rng(1).lognormal(-20.0, 3.0, 5000)
    found, scale = through(values, precision)
    assert scale.kind == "log"
    assert np.abs(found / values - 1).max() <= precision * (1 + 1e-9)


def test_no_number_no_end_and_nothing_are_kept() -> None:
    values = np.array([np.nan, 0.0, 1.5, np.inf, 2.5, np.nan, 1e-9, 0.0])
    found, _ = through(values)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(values))
    np.testing.assert_array_equal(found[[1, 3, 7]], [0.0, np.inf, 0.0])


def test_whole_numbers_are_exact() -> None:
    values = np.random.default_rng(2).integers(-20, 60_000, 500).astype(np.float64)
    found, scale = through(values)
    assert scale.kind == "linear"
    np.testing.assert_array_equal(found, values)


def test_numbers_below_zero_lie_on_even_steps() -> None:
    values = np.random.default_rng(3).normal(size=500)
    found, _ = through(values)
    assert np.abs(found - values).max() <= (values.max() - values.min()) / 65_000


@pytest.mark.parametrize("value", [0.0, 3.0, 0.1, -2.5])
def test_a_column_of_one_value(value: float) -> None:
    found, _ = through(np.full(9, value))
    np.testing.assert_allclose(found, value, rtol=FINE)


def test_a_range_wider_than_the_codes_is_coarser_but_whole() -> None:
    values = np.geomspace(1e-300, 1e300, 1000)
    found, scale = through(values)
    assert np.abs(np.log(found / values)).max() <= scale.step / 2 * (1 + 1e-6)


@pytest.mark.parametrize(
    "values",
    [
        [1e35, np.nan],
        [1e19, np.inf],
        [-1e30, -1e30, np.nan],
        [1e29, np.nan, 2e29, np.inf],
        [-1e30, np.nan, 1e30],
        [5e-324, np.nan],
        [-1e-300, 0.0],
    ],
)
def test_numbers_of_any_size_stand_beside_no_number(values: list[float]) -> None:
    """As a model that diverges leaves them; arithmetic that leaves the numbers would be taken for damage."""
    column = np.array(values)
    with np.errstate(all="raise", under="ignore"):
        found, _ = through(np.tile(column, 5))
    found, finite = found[: len(column)], np.isfinite(column)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(column))
    np.testing.assert_array_equal(found == np.inf, column == np.inf)
    known = column[finite]
    assert np.all(np.abs(found[finite] - known) <= np.maximum(2 * FINE * np.abs(known), np.ptp(known) / 65_000))


@pytest.mark.parametrize("largest", [0, 255, 256, 70_000, 2**40])
def test_planes_are_as_many_as_needed(largest: int) -> None:
    blobs = Blobs("s0")
    values = np.array([0, largest // 2, largest])
    ids = pack_whole(values, blobs)
    assert len(ids) == max(1, -(-largest.bit_length() // 8))
    np.testing.assert_array_equal(page_of(blobs).whole(ids), values)


def test_doubles_are_kept_as_they_are() -> None:
    blobs, values = Blobs("s0"), np.array([np.nan, np.inf, 1 / 3, -0.0])
    name = pack_doubles(values, blobs)
    np.testing.assert_array_equal(page_of(blobs).doubles(name), values)
