"""Robust rules against plain loops over clients and coordinates, and against a general minimiser."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from wirelessfl.errors import CheckFailed
from wirelessfl.learning.robust import (
    Bulyan,
    CollectedRows,
    Combined,
    GeometricMedian,
    Krum,
    Mean,
    Median,
    MultiKrum,
    NormClip,
    RobustRule,
    TrimmedMean,
)
from wirelessfl.learning.robust import base as base_module
from wirelessfl.learning.robust.conformance import check_robust_rule
from wirelessfl.learning.robust.krum import krum_scores

Rows = list[list[float]]
RULES: dict[str, RobustRule] = {
    "mean": Mean(),
    "norm_clip": NormClip(1.5),
    "krum": Krum(2),
    "multi_krum": MultiKrum(2),
    "multi_krum, m": MultiKrum(2, 3),
    "bulyan": Bulyan(2),
    "trimmed_mean": TrimmedMean(0.2),
    "median": Median(),
    "median, weighted": Median(weighted=True),
    "geometric_median": GeometricMedian(iterations=2000, tolerance=1e-12),
}


def drawn(count: int, dimension: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Updates (n, d), two of them far away, and weights."""
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((count, dimension)).astype(np.float32)
    rows[generator.choice(count, 2, replace=False)] *= 50
    return rows, generator.uniform(0.2, 2.0, count)


# ------------------------------------------------------------------------------------------------ plain loops


def squared(one: list[float], other: list[float]) -> float:
    return math.fsum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def krum_order(rows: Rows, faulty: int) -> list[int]:
    """Krum's ranking: sums of squared distances to the n - f - 2 nearest others, to one at least."""
    scores = []
    for i, row in enumerate(rows):
        near = sorted(squared(row, other) for j, other in enumerate(rows) if j != i)
        scores.append(math.fsum(near[: max(1, len(rows) - faulty - 2)]))
    return sorted(range(len(rows)), key=lambda i: scores[i])


def plain_mean(rows: Rows) -> list[float]:
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]


def plain_krum(rows: Rows, weights: list[float]) -> list[float]:
    return rows[krum_order(rows, 2)[0]]


def plain_multi_krum(rows: Rows, weights: list[float], m: int | None = None) -> list[float]:
    return plain_mean([rows[i] for i in krum_order(rows, 2)[: m or len(rows) - 4]])


def plain_bulyan(rows: Rows, weights: list[float], faulty: int = 2) -> list[float]:
    left, chosen = list(range(len(rows))), list[int]()
    while len(chosen) < len(rows) - 2 * faulty:
        chosen.append(left.pop(krum_order([rows[i] for i in left], faulty)[0]))
    result = []
    for column in zip(*(rows[i] for i in sorted(chosen)), strict=True):
        ordered = sorted(column)
        half = len(ordered) // 2
        median = ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
        closest = sorted(column, key=lambda value: abs(value - median))[: len(column) - 2 * faulty]
        result.append(math.fsum(closest) / len(closest))
    return result


def plain_trimmed_mean(rows: Rows, weights: list[float]) -> list[float]:
    cut = len(rows) * 2 // 10
    return plain_mean(
        [list(row) for row in zip(*(sorted(c)[cut : len(c) - cut] for c in zip(*rows, strict=True)), strict=True)]
    )


def plain_median(rows: Rows, weights: list[float]) -> list[float]:
    return [float(np.median(column)) for column in zip(*rows, strict=True)]


def plain_weighted_median(rows: Rows, weights: list[float]) -> list[float]:
    """The point with the least weighted sum of absolute differences, among the values of a coordinate."""
    result = []
    for column in zip(*rows, strict=True):
        costs = [math.fsum(w * abs(v - x) for w, x in zip(weights, column, strict=True)) for v in column]
        result.append(column[costs.index(min(costs))])
    return result


def plain_clipped(rows: Rows, weights: list[float], norm: float = 1.5) -> list[float]:
    scale = [
        w * min(1.0, norm / math.sqrt(math.fsum(x * x for x in row))) for w, row in zip(weights, rows, strict=True)
    ]
    columns = zip(*rows, strict=True)
    return [math.fsum(s * x for s, x in zip(scale, c, strict=True)) / math.fsum(weights) for c in columns]


def plain_weighted_mean(rows: Rows, weights: list[float]) -> list[float]:
    columns = zip(*rows, strict=True)
    return [math.fsum(w * x for w, x in zip(weights, c, strict=True)) / math.fsum(weights) for c in columns]


PLAIN: dict[str, Callable[[Rows, list[float]], list[float]]] = {
    "mean": plain_weighted_mean,
    "norm_clip": plain_clipped,
    "krum": plain_krum,
    "multi_krum": plain_multi_krum,
    "multi_krum, m": lambda rows, weights: plain_multi_krum(rows, weights, 3),
    "bulyan": plain_bulyan,
    "trimmed_mean": plain_trimmed_mean,
    "median": plain_median,
    "median, weighted": plain_weighted_median,
}


@pytest.mark.parametrize("count", [11, 12, 20])
@pytest.mark.parametrize("name", PLAIN)
def test_a_rule_is_the_loop_over_clients_and_coordinates(name: str, count: int) -> None:
    for seed in range(5):
        rows, weights = drawn(count, 6, seed)
        found = RULES[name].combine(rows, weights)
        expected = PLAIN[name](rows.astype(np.float64).tolist(), weights.tolist())
        np.testing.assert_allclose(found.value, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("count", [7, 101, 150])
def test_equal_distances_have_equal_scores_to_the_last_bit(count: int) -> None:
    """Clients on a ring: each has the same distances to the others, in an order of its own."""
    steps = np.arange(count)
    apart = np.random.default_rng(count).uniform(0.1, 3.0, count)
    ring = apart[np.minimum(steps, count - steps)]
    distances = np.array([[ring[(i - j) % count] for j in range(count)] for i in range(count)])
    np.fill_diagonal(distances, 0.0)
    scores = krum_scores(distances, 1)
    assert set(scores.tolist()) == {scores[0]}
    near = sorted(ring[1:].tolist())[: count - 3]
    assert scores[0] == pytest.approx(math.fsum(near), rel=1e-14)


@pytest.mark.parametrize("name", RULES)
def test_blocks_of_coordinates_do_not_show(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, weights = drawn(11, 37, 3)
    whole = RULES[name].combine(rows, weights)
    monkeypatch.setattr(base_module, "_BLOCK", 40)
    parts = RULES[name].combine(rows, weights)
    np.testing.assert_allclose(parts.value, whole.value, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(parts.kept, whole.kept, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_geometric_median_has_the_least_sum_of_distances(seed: int) -> None:
    rows, weights = drawn(13, 4, seed)

    def cost(point: np.ndarray) -> float:
        return float(weights @ np.linalg.norm(rows - point, axis=1))

    found = RULES["geometric_median"].combine(rows, weights).value
    start = np.median(rows.astype(np.float64), axis=0)
    best = minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000}).fun
    assert cost(found) <= best * (1 + 1e-9)
    # Of few iterations with the defaults, as RFA has it
    assert cost(GeometricMedian().combine(rows, weights).value) <= best * (1 + 1e-6)


def test_the_geometric_median_of_a_heavy_update_is_that_update() -> None:
    """More than half of the weight in one place: the minimum is there, where distances have no derivative."""
    rows, weights = drawn(7, 5, 1)
    weights[4] = weights.sum()
    found = GeometricMedian(iterations=500, tolerance=0.0).combine(rows, weights)
    np.testing.assert_allclose(found.value, rows[4], atol=1e-4)
    assert found.kept.argmax() == 4


def test_scales_beyond_single_precision_do_not_overflow() -> None:
    rows, weights = drawn(11, 5, 2)
    rows[3] = np.finfo(np.float32).max
    for name, rule in RULES.items():
        if name in ("mean", "norm_clip"):
            continue
        found = rule.combine(rows, weights).value
        assert np.all(np.abs(found) < 200), name


@pytest.mark.parametrize("faulty", [0, 1, 2])
def test_a_minority_moves_none_of_them_far(faulty: int) -> None:
    """Whatever f updates are, the result stays near the honest ones, of which the mean does not."""
    generator = np.random.default_rng(4)
    honest = 1.0 + 0.1 * generator.standard_normal((4 * faulty + 3, 8))
    lies = {"far": np.full((faulty, 8), -1e6), "same": np.repeat(honest[:1] - 5, faulty, axis=0)}
    rules = (Krum(faulty), MultiKrum(faulty), Bulyan(faulty), Median(), TrimmedMean(0.34), GeometricMedian())
    for lie, rule in itertools.product(lies.values(), rules):
        rows = np.concatenate([lie, honest]).astype(np.float32)
        value = rule.combine(rows, np.ones(len(rows))).value
        assert np.linalg.norm(value - 1.0) < 0.5 * math.sqrt(8), type(rule).__name__


# ------------------------------------------------------------------------------------------------ parts kept


def test_parts_that_are_kept() -> None:
    rows, weights = drawn(12, 50, 6)
    kept = {name: rule.combine(rows, weights).kept for name, rule in RULES.items()}
    assert kept["krum"].sum() == 1 and kept["multi_krum"].sum() == 8 and kept["multi_krum, m"].sum() == 3
    assert kept["trimmed_mean"].sum() == pytest.approx(12 - 2 * 2)
    assert kept["bulyan"].sum() == pytest.approx(12 - 4 * 2) and np.count_nonzero(kept["bulyan"] == 0) >= 4
    assert kept["median"].sum() == pytest.approx(2.0)  # the two in the middle
    assert np.all(kept["mean"] == 1.0)
    norms = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(kept["norm_clip"], np.minimum(1.0, 1.5 / norms), rtol=1e-6)
    apart = np.linalg.norm(rows - RULES["geometric_median"].combine(rows, weights).value, axis=1)
    np.testing.assert_allclose(kept["geometric_median"], (weights / apart) / (weights / apart).max(), rtol=1e-6)
    # Each coordinate of the trimmed mean again, from who is inside
    inside = np.sort(rows, axis=0)
    counted = ((rows >= inside[2]) & (rows <= inside[9])).mean(axis=1)
    np.testing.assert_allclose(kept["trimmed_mean"], counted)


def test_equal_weights_make_the_weighted_median_the_median() -> None:
    for count in (1, 2, 7, 10):
        rows, _ = drawn(max(2, count), 9, count)
        rows = rows[:count]
        found = Median(weighted=True).combine(rows, np.full(count, 0.37))
        np.testing.assert_allclose(found.value, np.median(rows.astype(np.float64), axis=0), rtol=1e-12)
        np.testing.assert_array_equal(found.kept, Median().combine(rows, np.ones(count)).kept)


@pytest.mark.parametrize(("trim", "count", "cut"), [(0.1, 30, 3), (0.1, 29, 2), (0.0, 5, 0), (0.49, 2, 0), (0.4, 5, 2)])
def test_how_many_values_are_cut(trim: float, count: int, cut: int) -> None:
    assert TrimmedMean(trim).cut(count) == cut


@pytest.mark.parametrize(
    "make",
    [
        lambda: Krum(-1),
        lambda: MultiKrum(1, 0),
        lambda: Bulyan(-1),
        lambda: TrimmedMean(0.5),
        lambda: TrimmedMean(-0.1),
        lambda: NormClip(0.0),
        lambda: NormClip(math.inf),
        lambda: GeometricMedian(iterations=0),
        lambda: GeometricMedian(smoothing=0.0),
    ],
)
def test_what_is_out_of_range(make: Callable[[], RobustRule]) -> None:
    with pytest.raises(ValueError):
        make()


def test_the_fewest_updates_of_each_rule() -> None:
    assert [RULES[name].least() for name in ("krum", "multi_krum", "bulyan", "median", "norm_clip")] == [7, 7, 11, 1, 1]
    for name, rule in RULES.items():  # defined there, whatever is asked of it
        rows, weights = drawn(max(2, rule.least()), 3, 1)
        found = rule.combine(rows[: rule.least()], weights[: rule.least()])
        assert np.all(np.isfinite(found.value)), name


# ------------------------------------------------------------------------------------------------ blocks of updates


@pytest.mark.parametrize("name", RULES)
def test_updates_come_in_blocks(name: str) -> None:
    rows, weights = drawn(14, 6, 8)
    rows[5], finite = np.nan, np.arange(14) != 5
    rows[2] = 0.0
    collected = CollectedRows(RULES[name], weights, 6)
    collected.add(torch.from_numpy(rows[8:].copy()), np.arange(8, 14))
    collected.add(rows[[0, 1, 3, 4, 5, 6, 7]], np.array([0, 1, 3, 4, 5, 6, 7]))
    collected.add(torch.zeros(1, 6).expand(1, -1), np.array([2]))
    found, whole = collected.combined(), RULES[name].combine(rows[finite], weights[finite])
    assert found is not None
    np.testing.assert_allclose(found.value, whole.value, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.kept[finite], whole.kept, rtol=1e-9)
    assert found.kept[5] == 0.0


def test_too_few_finite_updates_give_nothing() -> None:
    rows, weights = drawn(7, 3, 1)
    for broken, expected in ((0, Combined), (1, type(None))):
        collected = CollectedRows(Krum(2), weights, 3)
        rows[:broken, 1] = np.inf
        collected.add(rows, np.arange(7))
        assert isinstance(collected.combined(), expected)
    nobody = CollectedRows(Median(), weights, 3)
    nobody.add(np.full((7, 3), np.nan, dtype=np.float32), np.arange(7))
    assert nobody.combined() is None
    idle = CollectedRows(Krum(2), weights, 3)
    idle.add(torch.zeros(1, 3).expand(7, -1), np.arange(7))
    found = idle.combined()
    assert found is not None and not found.value.any()


# ------------------------------------------------------------------------------------------------ conformance


@pytest.mark.parametrize("name", RULES)
def test_the_rules_conform(name: str) -> None:
    check_robust_rule(RULES[name])


class Writing(Median):
    def combine(self, rows: np.ndarray, weights: np.ndarray) -> Combined:
        rows *= 0.5
        return super().combine(rows, weights)


class Constant(Median):
    def combine(self, rows: np.ndarray, weights: np.ndarray) -> Combined:
        return Combined(np.ones(rows.shape[1]), np.ones(len(rows)))


class Double(Median):
    def combine(self, rows: np.ndarray, weights: np.ndarray) -> Combined:
        found = super().combine(rows, weights)
        return Combined(found.value, 2 + found.kept)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Writing(), "changes its arguments in place"),
        (Constant(), "equal updates give another"),
        (Double(), "allowed: from 0 to 1"),
        (object(), "lacks least or combine"),
    ],
)
def test_what_does_not_conform(rule: RobustRule, words: str) -> None:
    with pytest.raises(CheckFailed, match=words):
        check_robust_rule(rule)
