"""Placement: uniform over the area, and hexagons that tile the plane."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.statistics import assert_counts, assert_follows, assert_uncorrelated, shifted
from wirelessfl.radio.placement import UniformDisc, hexagonal_sites, site_distances, uniform_hexagon
from wirelessfl.streams import NodeStream, Streams

COUNT = 100_000


def stream() -> NodeStream:
    return Streams(shifted(61)).nodes("placement", 0, np.arange(COUNT))


@pytest.mark.parametrize("min_radius", [0.0, 35.0])
def test_the_disc_is_filled_evenly(min_radius: float) -> None:
    """Area fractions are uniform: r² between its limits, and the angle."""
    position = UniformDisc(250.0, min_radius).place(stream())
    squared = np.sum(position**2, axis=1)
    assert_follows(squared, stats.uniform(min_radius**2, 250.0**2 - min_radius**2).cdf)
    assert_follows(np.arctan2(position[:, 1], position[:, 0]), stats.uniform(-np.pi, 2 * np.pi).cdf)
    assert_uncorrelated(squared, np.arctan2(position[:, 1], position[:, 0]))


@pytest.mark.parametrize("rings", [0, 1, 2, 4])
def test_the_grid_has_its_number_of_sites_at_their_distance(rings: int) -> None:
    sites = hexagonal_sites(rings, 500.0)
    assert sites.shape == (1 + 3 * rings * (rings + 1), 2)
    np.testing.assert_array_equal(sites[0], [0.0, 0.0])
    between = site_distances(sites, sites) + np.diag(np.full(len(sites), np.inf))
    if rings:
        np.testing.assert_allclose(between.min(axis=1), 500.0)
        assert np.sum(np.isclose(between[0], 500.0)) == 6
    axial = np.round(sites @ np.linalg.inv([[500.0, 0.0], [250.0, 250.0 * np.sqrt(3)]])).astype(int)
    ring = np.max(np.abs([axial[:, 0], axial[:, 1], axial.sum(axis=1)]), axis=0)
    np.testing.assert_array_equal(ring, np.repeat(np.arange(rings + 1), [1] + [6 * r for r in range(1, rings + 1)]))


def test_cells_are_where_their_site_is_closest() -> None:
    sites = hexagonal_sites(1, 200.0)
    home = np.arange(COUNT) % 7
    position = uniform_hexagon(sites[home], 200.0, stream())
    np.testing.assert_array_equal(site_distances(position, sites).argmin(axis=1), home)


def test_a_cell_is_filled_evenly() -> None:
    """Squares of side D/10 that lie wholly in the cell hold equal counts; all the rest is one bin."""
    spacing = 200.0
    position = uniform_hexagon(np.zeros(2), spacing, stream())
    index = np.floor(position / 20.0).astype(int) + 6
    counts = np.zeros((12, 12))
    np.add.at(counts, (index[:, 0], index[:, 1]), 1)
    corner = np.array(
        [[(i - 6 + a) * 20.0, (j - 6 + b) * 20.0] for i in range(12) for j in range(12) for a in (0, 1) for b in (0, 1)]
    )
    sites = hexagonal_sites(1, spacing)
    near = site_distances(corner, sites)
    whole = np.all((near[:, 0] <= near[:, 1:].min(axis=1) + 1e-9).reshape(12, 12, 4), axis=2)
    share = 20.0**2 / (spacing**2 * np.sqrt(3) / 2)
    observed = np.append(counts[whole], counts[~whole].sum())
    assert whole.sum() > 60
    assert_counts(observed, np.append(np.full(whole.sum(), share), 1 - share * whole.sum()))


def test_distances_by_pythagoras() -> None:
    found = site_distances(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [3.0, 0.0]]))
    np.testing.assert_allclose(found, [[5.0, 4.0], [0.0, 3.0]])


@pytest.mark.parametrize(("radius", "min_radius"), [(0.0, 0.0), (1.0, 1.0), (1.0, -0.1), (np.nan, 0.0), (np.inf, 0.0)])
def test_bad_discs_are_refused(radius: float, min_radius: float) -> None:
    with pytest.raises(ValueError, match="radius"):
        UniformDisc(radius, min_radius).place(stream())


@pytest.mark.parametrize(("rings", "spacing"), [(-1, 100.0), (1, 0.0), (1, np.nan)])
def test_bad_grids_are_refused(rings: int, spacing: float) -> None:
    with pytest.raises(ValueError, match="grid"):
        hexagonal_sites(rings, spacing)
