"""Weights of a client's gradients in its update."""

import numpy as np
from numpy.typing import NDArray


def summed_weights(steps: NDArray[np.int64], momentum: float, pull: float = 0.0) -> NDArray[np.float64]:
    """(k,) ‖a_i‖₁ after (k,) local steps, a_i the weights of a client's gradients in Δ_i = −η Σ_k a_ik g_ik.

    ρ alone gives [τ − ρ(1 − ρ^τ)/(1 − ρ)]/(1 − ρ) and μ alone [1 − (1 − ημ)^τ]/(ημ). In general it is the sum of
    |x_m| over m = 1 ... τ, x the response of v ← ρv + μx, x ← x − ηv to one gradient, over −η.

    Args:
        steps: (k,) τ_i.
        momentum: ρ, momentum of the local steps.
        pull: ημ, learning rate times the weight of a proximal term.

    Source: Wang et al., "Tackling the objective inconsistency problem", NeurIPS 2020, section 4.
    """
    sums, velocity, moved = [0.0], 1.0, 1.0
    for _ in range(int(steps.max(initial=0))):
        sums.append(sums[-1] + abs(moved))
        velocity = momentum * velocity - pull * moved
        moved += velocity
    return np.array(sums)[steps]
