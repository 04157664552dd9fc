"""Convergence bounds of the papers, as printed and as they can be proven, on problems whose constants are known."""

from __future__ import annotations

from publications.convergence.clipping_norm import (
    descend,
    norm_bound,
    printed_derivative,
    printed_norm_bound,
    quadratic_gap,
    true_derivative,
    wavy_loss,
    wavy_slope,
)
from publications.convergence.local_sgd import (
    LocalSgd,
    Smoothness,
    largest_printed_step,
    local_sgd_bound,
    printed_local_sgd_bound,
)
from publications.convergence.one_round import Federation, noisy_step_bound, printed_step_bound, quadratic_step
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
    "Federation",
    "Heterogeneity",
    "LocalSgd",
    "Quadratics",
    "Smoothness",
    "SoftmaxRegression",
    "UpcycledRounds",
    "descend",
    "expected_gaps",
    "largest_printed_step",
    "local_sgd_bound",
    "noisy_step_bound",
    "norm_bound",
    "optimality_bound",
    "printed_coefficients",
    "printed_derivative",
    "printed_local_sgd_bound",
    "printed_norm_bound",
    "printed_optimality_bound",
    "printed_step_bound",
    "proven_coefficients",
    "quadratic_gap",
    "quadratic_step",
    "true_derivative",
    "upcycled_bound",
    "upcycled_movement",
    "wavy_loss",
    "wavy_slope",
]
