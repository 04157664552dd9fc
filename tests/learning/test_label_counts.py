"""Samples of each class at each client, and their picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, small
from wirelessfl.api import plot_labels
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import OutputError
from wirelessfl.learning.label_counts import LabelCounts, label_counts
from wirelessfl.summary.labels import draw_labels


def test_counts_are_those_of_the_samples_one_by_one() -> None:
    population = build_simulation(small(clients__count=7, data__limit=150), PLAN).deployment.learner.population
    for most in (3, 7, 100):
        counts = label_counts(population, most)
        assert counts.clients.tolist() == ([0, 3, 6] if most == 3 else list(range(7)))
        assert counts.registered == 7
        for client, row in zip(counts.clients.tolist(), counts.samples.tolist(), strict=True):
            shard = population.shards(np.array([client]))
            held = [int(shard.targets[place]) for place in shard.index[0, : int(shard.sizes[0])].tolist()]
            assert row == [held.count(label) for label in range(population.num_classes)]


def test_of_a_million_clients_a_hundred_are_asked() -> None:
    natural = {"dataset": {"name": "synthetic"}, "partition": {"scheme": "natural"}}
    scenario = small(data=natural, clients__count=1_000_000, clients__selection={"scheme": "uniform", "count": 5})
    counts = label_counts(build_simulation(scenario, PLAN).deployment.learner.population, 100)
    assert len(counts.clients) == 100 and counts.clients[[0, -1]].tolist() == [0, 999_999]


@pytest.mark.parametrize("shown", [1, 2, 100])
def test_pictures_have_any_number_of_rows(shown: int, tmp_path: Path) -> None:
    samples = np.arange(shown * 3).reshape(shown, 3)
    draw_labels(LabelCounts(1000, np.arange(shown), samples), "some", tmp_path / "labels.png", 3.5)
    assert (tmp_path / "labels.png").read_bytes().startswith(b"\x89PNG")


def test_a_place_that_cannot_be_written() -> None:
    with pytest.raises(OutputError):
        plot_labels(small(), "/nowhere/labels.png")
