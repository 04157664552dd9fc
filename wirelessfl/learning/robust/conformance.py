"""Checks of a robust rule: what the simulator relies on.

Call it from a test: it returns nothing where all is well and raises `wirelessfl.errors.CheckFailed` with the first
broken promise.
"""

import numpy as np

from wirelessfl.conformance import check_array
from wirelessfl.errors import require
from wirelessfl.learning.robust.base import Combined, RobustRule, RowRule


def check_robust_rule(rule: RobustRule, dimension: int = 7, clients: int = 11, seed: int = 0) -> None:
    """Checks shapes and ranges, that arguments are left as they are, and that equal updates give that update.

    Args:
        rule: the rule to check.
        dimension: d.
        clients: n, if the rule asks for no more.
        seed: seed of the updates.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(rule, RobustRule), "lacks least or combine")
    least = rule.least()
    require(isinstance(least, int) and least >= 1, f"least gives {least!r}; allowed: 1, 2, ...")
    generator = np.random.default_rng(seed)
    for count in sorted({least, max(least, clients)}):
        weights = generator.uniform(0.5, 1.5, count) / count
        rows = generator.standard_normal((count, dimension)).astype(np.float32)
        given = rows.copy(), weights.copy()
        found = rule.combine(rows, weights)
        require(isinstance(found, Combined), f"combine gives a {type(found).__name__}, not a Combined")
        check_array("combine (value)", found.value, (dimension,))
        check_array("combine (kept)", found.kept, (count,))
        again, equal = rule.combine(rows, weights), rule.combine(np.repeat(rows[:1] / 100, count, axis=0), weights)
        same = isinstance(rule, RowRule) or bool(np.allclose(equal.value, rows[0] / 100, rtol=1e-5))
        for holds, words in (
            (bool(np.all((found.kept >= 0) & (found.kept <= 1))), f"kept is {found.kept}; allowed: from 0 to 1"),
            (np.array_equal(rows, given[0]) and np.array_equal(weights, given[1]), "changes its arguments in place"),
            (
                np.array_equal(found.value, again.value),
                "the same updates give another aggregate",
            ),
            (same, "equal updates give another than that update"),
        ):
            require(holds, words)
