"""The updates of a round as they come in, block by block, until a rule combines them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.conformance import given, returned
from wirelessfl.learning.robust.base import Combined, RobustRule, RowRule


class CollectedRows:
    """Updates of n clients for one rule.

    Updates that are not finite are left out, as no rule could compute with them. A rule that scales each update by
    itself keeps a sum alone; any other keeps all of them in single precision. Of a rehearsal, in which nobody computes
    updates, the rule is not asked.

    Args:
        rule: combines them.
        weights: (n,) p_i.
        dimension: d.

    Attributes:
        finite: (n,) whose update has come in and is finite.
    """

    def __init__(self, rule: RobustRule, weights: NDArray[np.float64], dimension: int) -> None:
        self._rule, self._weights, self._dimension = rule, weights, dimension
        self._kept = np.zeros(len(weights))
        self.finite = np.zeros(len(weights), dtype=np.bool_)
        self._rehearsed = False
        self._rows: NDArray[np.float32] | None = None
        self._sum = np.zeros(dimension)

    def add(self, updates: Any, positions: NDArray[np.int64]) -> None:
        """Updates (k, d), NumPy or torch, of the clients at ``positions`` (k,)."""
        if hasattr(updates, "stride") and updates.stride(0) == 0 and not updates[0].any():
            self._add_zeros(positions)
            return
        rows = np.asarray(updates.cpu() if hasattr(updates, "cpu") else updates, dtype=np.float32)
        finite = np.isfinite(rows).all(axis=1)
        rows, positions = (rows, positions) if finite.all() else (rows[finite], positions[finite])
        self.finite[positions] = True
        if isinstance(self._rule, RowRule):
            self._add_scaled(self._rule, rows, positions)
            return
        if self._rows is None:
            self._rows = np.zeros((len(self._weights), self._dimension), dtype=np.float32)
        self._rows[positions] = rows

    def rehearse(self, positions: NDArray[np.int64]) -> None:
        """Clients at ``positions`` (k,) whose updates are finite, and nothing else is known of them."""
        self.finite[positions], self._kept[positions], self._rehearsed = True, 1.0, True

    def _add_zeros(self, positions: NDArray[np.int64]) -> None:
        # Updates of clients that did not train: rows are zeros from the start
        self.finite[positions] = True
        if isinstance(self._rule, RowRule):
            self._kept[positions] = _factors(self._rule, np.zeros(len(positions)))

    def _add_scaled(self, rule: RowRule, rows: NDArray[np.float32], positions: NDArray[np.int64]) -> None:
        norms = np.linalg.norm(rows.astype(np.float64), axis=1)
        factors = _factors(rule, norms)
        self._kept[positions] = factors
        self._sum += (self._weights[positions] * factors) @ rows.astype(np.float64)

    def combined(self) -> Combined | None:
        """The aggregate, with the parts kept of all n updates; None of fewer finite ones than the rule needs.

        Raises:
            ScenarioError: a rule from outside gives something else.
        """
        rule, finite = self._rule, self.finite
        if np.count_nonzero(finite) < max(1, rule.least()):
            return None
        weights = self._weights[finite]
        if isinstance(rule, RowRule) or self._rehearsed:
            return Combined(self._sum / weights.sum(), self._kept)
        rows = np.zeros((len(finite), self._dimension), dtype=np.float32) if self._rows is None else self._rows
        rows = rows if finite.all() else rows[finite]
        found = given("robust", rule, "combine", rule.combine(rows, weights), Combined)
        value = returned("robust", rule, "combine (value)", found.value, (self._dimension,), finite=True)
        kept = np.zeros(len(finite))
        kept[finite] = returned("robust", rule, "combine (kept)", found.kept, weights.shape, 0.0, 1.0)
        return Combined(np.asarray(value, dtype=np.float64), kept)


def _factors(rule: RowRule, norms: NDArray[np.float64]) -> NDArray[np.float64]:
    return returned("robust", rule, "factors", rule.factors(norms), norms.shape, 0.0, 1.0)
