"""Accuracies of single clients and their spread, beside plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wirelessfl.learning.fairness import ClientAccuracies


def plain(correct: np.ndarray, owners: np.ndarray) -> dict[int, float]:
    found: dict[int, list[bool]] = {}
    for right, owner in zip(correct.tolist(), owners.tolist(), strict=True):
        found.setdefault(owner, []).append(right)
    return {owner: sum(rights) / len(rights) for owner, rights in sorted(found.items())}


@pytest.mark.parametrize("clients", [1, 2, 9, 10, 11, 95])
def test_they_are_those_of_a_plain_loop(clients: int) -> None:
    generator = np.random.default_rng(clients)
    owners = np.repeat(np.sort(generator.choice(300, clients, replace=False)), generator.integers(1, 9, clients))
    correct = generator.random(len(owners)) < 0.6
    found, wanted = ClientAccuracies.of(correct, owners), plain(correct, owners)
    accuracy = list(wanted.values())
    assert found.clients.tolist() == list(wanted) and found.accuracy.tolist() == accuracy
    worst = sorted(accuracy)[: math.ceil(clients / 10)]
    assert found.worst_tenth == pytest.approx(sum(worst) / len(worst), abs=1e-15)
    assert found.mean == pytest.approx(sum(accuracy) / clients, abs=1e-15)
    if any(accuracy):
        jain = sum(accuracy) ** 2 / clients / sum(one**2 for one in accuracy)
        assert found.jain_index == pytest.approx(jain, rel=1e-14)
    asked = np.array([0, 7, 299, owners[0], owners[-1]])
    assert np.array_equal(found.at(asked), [wanted.get(one, math.nan) for one in asked.tolist()], equal_nan=True)


def test_jain_index_at_its_ends() -> None:
    owners = np.arange(5)
    assert ClientAccuracies.of(np.array([True] * 5), owners).jain_index == 1.0
    assert ClientAccuracies.of(np.array([False] * 5), owners).jain_index == 1.0
    assert ClientAccuracies.of(np.array([False] * 4 + [True]), owners).jain_index == pytest.approx(1 / 5)


def test_samples_and_owners_are_equally_many() -> None:
    with pytest.raises(ValueError, match="3 samples have 2 owners"):
        ClientAccuracies.of(np.ones(3, dtype=bool), np.zeros(2, dtype=np.int64))
