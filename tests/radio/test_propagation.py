"""Path-loss models as objects, and laws of placement."""

from __future__ import annotations

import numpy as np
import pytest

from wirelessfl.radio import (
    GivenPositions,
    LogDistance,
    PathLossModel,
    Tr38901,
    UniformDisc,
    UniformHexagons,
    free_space_path_loss_db,
    hexagonal_sites,
    tr38901_path_loss_db,
)
from wirelessfl.radio.placement import PlacementLaw
from wirelessfl.streams import NodeStream, Streams

DISTANCE = np.array([1.0, 20.0, 400.0])
SEEN = np.array([True, False, True])


def stream(nodes: np.ndarray) -> NodeStream:
    return Streams(5).nodes("position", 0, nodes)


def test_free_space_is_the_exponent_two() -> None:
    law = LogDistance(2e9, 2.0, 100.0)
    np.testing.assert_allclose(law.loss_db(DISTANCE, SEEN), free_space_path_loss_db(DISTANCE, 2e9))


def test_closer_than_a_metre_counts_as_a_metre() -> None:
    law = LogDistance(2e9, 3.0, 10.0)
    near = law.loss_db(np.array([0.0, 0.3, 1.0]), SEEN)
    assert near[0] == near[1] == near[2]


def test_a_law_of_distance_alone_says_nothing_of_the_line_of_sight() -> None:
    law = LogDistance(2e9, 3.0, 10.0, shadowing=4.0, decorrelation=30.0)
    np.testing.assert_array_equal(law.shadowing_std_db(SEEN), [4.0, 4.0, 4.0])
    np.testing.assert_array_equal(law.decorrelation_distance(SEEN), [30.0, 30.0, 30.0])
    np.testing.assert_array_equal(law.ray_length(DISTANCE), DISTANCE)
    assert law.wavelength == pytest.approx(0.149896, rel=1e-5)
    assert law.rician_k is None and law.in_range(DISTANCE).all()


def test_the_standard_tells_links_with_and_without_sight_apart() -> None:
    law = Tr38901("umi", 3.5e9, 10.0, 1.5)
    np.testing.assert_array_equal(law.shadowing_std_db(SEEN), [4.0, 7.82, 4.0])
    np.testing.assert_array_equal(law.decorrelation_distance(SEEN), [10.0, 13.0, 10.0])
    assert [law.sight_decorrelation, Tr38901("inh", 3.5e9, 3.0, 1.0).sight_decorrelation] == [50.0, 10.0]
    np.testing.assert_allclose(law.ray_length(DISTANCE) ** 2, DISTANCE**2 + 8.5**2)
    assert law.wavelength == pytest.approx(0.0856550, rel=1e-5)
    np.testing.assert_array_equal(law.in_range(DISTANCE), [False, True, True])
    np.testing.assert_array_equal(
        law.loss_db(DISTANCE, SEEN), tr38901_path_loss_db("umi", DISTANCE, SEEN, 3.5e9, 10.0, 1.5)
    )
    assert law.rician_k == pytest.approx(10**0.9)
    np.testing.assert_array_equal(Tr38901("umi", 3.5e9, 10.0, 1.5, 3.0).shadowing_std_db(SEEN), [3.0, 3.0, 3.0])


@pytest.mark.parametrize("law", [LogDistance(1e9, 3.0, 10.0), Tr38901("uma", 1e9, 25.0, 1.5)])
def test_models_satisfy_the_protocol(law: object) -> None:
    assert isinstance(law, PathLossModel)


@pytest.mark.parametrize(
    "law",
    [UniformDisc(50.0, 5.0), UniformHexagons(100.0, 1), GivenPositions(tuple((float(i), -1.0) for i in range(9)))],
)
def test_a_node_stands_where_it_stands_whoever_else_is_asked(law: PlacementLaw) -> None:
    everyone = law.place(stream(np.arange(9)))
    some = np.array([7, 2])
    np.testing.assert_array_equal(law.place(stream(some)), everyone[some])


def test_discs_and_points() -> None:
    nodes = np.arange(4)
    uniform = stream(nodes).uniform(2)
    radius, angle = np.sqrt(4.0 + uniform[:, 0] * (81.0 - 4.0)), 2 * np.pi * uniform[:, 1]
    expected = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    np.testing.assert_allclose(UniformDisc(9.0, 2.0).place(stream(nodes)), expected)
    np.testing.assert_array_equal(GivenPositions(((1.0, 2.0), (3.0, 4.0))).place(stream(nodes[1:2])), [[3.0, 4.0]])
    with pytest.raises(ValueError, match="2 positions, and node 3"):
        GivenPositions(((1.0, 2.0), (3.0, 4.0))).place(stream(nodes))


def test_hexagonal_cells_hold_equally_many() -> None:
    nodes = np.arange(70)
    position = UniformHexagons(100.0, 1).place(stream(nodes))
    distance = np.linalg.norm(position[:, None] - hexagonal_sites(1, 100.0), axis=2)
    np.testing.assert_array_equal(distance.argmin(axis=1), nodes % 7)
