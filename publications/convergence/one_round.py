r"""The one-round theorem of two papers: Theorem 3 with wavelets, Lemma 1 of multi-objective clipping.

Both bound E L(θ_{t+1}) − L* by

    (1 − μ η) (E L(θ_t) − L*) + c_t + (η/2) (−1 + λ M η (B_1 + K)/K) S + B_t Σ_j η_j² S

with S the squared norm of the mean *noised* gradient at t, c_t = (η M B_2²/K) (η/2 + M (K + 1)/K Σ_j η_j²),
B_t = λ (K + 1) η M² (B_1 + N)/K², and j over the local steps of the round before t. **It does not hold**, for two
reasons that a line each shows:

1. *Noise.* One client (K = 1, B_1 = B_2 = 0, λ = 1), f = M ‖x‖²/2 in d dimensions, noise of variance σ² an element, at
   the minimum. A step leaves the gap (M/2) η² d σ². The bound is (η/2) (M η − 1) d σ²: less by η d σ²/2, and negative
   for η < 1/M. The proof applies 2⟨a, b⟩ = ‖a‖² + ‖b‖² − ‖a − b‖² to noised gradients and bounds ‖a − b‖² by
   M² ‖θ − θ^k‖², which noise does not obey. So S, which *grows* with σ², stands with a negative factor: more noise
   lowers the bound. With a gradient without noise in S the bound is 0 there; only if B_2², which Assumption 1 has for
   the difference of clients, were d σ² as well, would it hold for one client.
2. *Drift.* Two clients, f_1 = x²/2 and f_2 = 0, no noise: L = x²/4, μ = 1/2, M = 1, B_1 = 2, B_2 = 0, λ = 2. With η = 1
   the first local step takes client 1 to 0 and leaves client 2 at x. Both gradients vanish: nothing moves any more, and
   the bound asks the gap to halve. The proof has the gradients of earlier steps, the theorem those of the last one.

It holds for one client without noise; then it is the descent lemma. `noisy_step_bound` is what noise permits.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Federation:
    """What the theorem asks to know.

    Attributes:
        smoothness: M, Lipschitz constant of the gradient of every L_k.
        growth: μ, of the inequality of Polyak and Łojasiewicz.
        dissimilarity: B_1 of Assumption 1.
        offset: B_2² of Assumption 1.
        diversity: λ, at least the mean squared gradient over the squared mean gradient.
        clients: K.
        local_steps: N.
    """

    smoothness: float = 1.0
    growth: float = 1.0
    dissimilarity: float = 0.0
    offset: float = 0.0
    diversity: float = 1.0
    clients: int = 1
    local_steps: int = 1


def printed_step_bound(one: Federation, step: float, gap: float, squared: float, earlier: int = 0) -> float:
    """Bound on the gap after a step as printed; it does not hold, see the module.

    Args:
        one: What is known.
        step: η, the same in all steps.
        gap: E L(θ_t) − L*.
        squared: S, expectation of the squared mean of the noised gradients.
        earlier: Local steps of this round before t.
    """
    k, m = one.clients, one.smoothness
    sums = earlier * step**2
    constant = step * m * one.offset / k * (step / 2 + m * (k + 1) / k * sums)
    factor = step / 2 * (-1 + one.diversity * m * step * (one.dissimilarity + k) / k)
    drift = one.diversity * (k + 1) * step * m**2 / k**2 * (one.dissimilarity + one.local_steps)
    return (1 - one.growth * step) * gap + constant + (factor + drift * sums) * squared


def noisy_step_bound(smoothness: float, growth: float, step: float, gap: float, noise: float) -> float:
    """Bound on the gap after one step of all clients from one model, with unbiased noise; attained by f = M ‖x‖²/2.

    Args:
        smoothness: M of L.
        growth: μ of L.
        step: η, below 2/M.
        gap: E L(θ_t) − L*.
        noise: Total variance of the mean gradient's noise, d σ² Σ w_k² for independent noise of the clients.

    Raises:
        ValueError: if the step is not between 0 and 2/M.
    """
    if not 0 < step * smoothness < 2:
        raise ValueError(f"step must lie between 0 and {2 / smoothness}, not {step}")
    return (1 - growth * step * (2 - smoothness * step)) * gap + smoothness * step**2 / 2 * noise


def quadratic_step(smoothness: float, step: float, gap: float, noise: float) -> float:
    """Exact gap after a noised step on f = M ‖x‖²/2."""
    return (1 - step * smoothness) ** 2 * gap + smoothness * step**2 / 2 * noise
