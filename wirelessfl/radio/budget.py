"""The published privacy budget as a number the radio can divide among rounds."""

from __future__ import annotations

import math


def zcdp_budget(epsilon: float, delta: float) -> float:
    """The ρ with ε = ρ + 2 sqrt(ρ L), L = ln(1/δ) (Theorems 1 and 3 of the cross-layer paper).

    In the paper's letters ρ = a²/L with a = −L + sqrt(L² + ε L). Written here as (ε/(sqrt(L + ε) + sqrt(L)))², which
    does not cancel for small ε.

    Raises:
        ValueError: if ε is not positive and finite or δ not in (0, 1).
    """
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be positive and finite, not {epsilon}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, not {delta}")
    log_term = math.log(1.0 / delta)
    return (epsilon / (math.sqrt(log_term + epsilon) + math.sqrt(log_term))) ** 2
