"""Convergence bounds of the papers, as printed and as they can be proven, on problems whose constants are known."""

from __future__ import annotations

from publications.convergence.local_sgd import (
    LocalSgd,
    Smoothness,
    largest_printed_step,
    local_sgd_bound,
    printed_local_sgd_bound,
)
from publications.convergence.quadratics import Quadratics, expected_gaps
from publications.convergence.softmax import SoftmaxRegression
from publications.convergence.strongly_convex import optimality_bound, printed_optimality_bound
from publications.convergence.upcycled import (
    Coefficients,
    Heterogeneity,
    UpcycledRounds,
    printed_coefficients,
    proven_coefficients,
    upcycled_bound,
    upcycled_movement,
)

__all__ = [
    "Coefficients",
    "Heterogeneity",
    "LocalSgd",
    "Quadratics",
    "Smoothness",
    "SoftmaxRegression",
    "UpcycledRounds",
    "expected_gaps",
    "largest_printed_step",
    "local_sgd_bound",
    "optimality_bound",
    "printed_coefficients",
    "printed_local_sgd_bound",
    "printed_optimality_bound",
    "proven_coefficients",
    "upcycled_bound",
    "upcycled_movement",
]
