r"""Theorem 2 of the zCDP paper (Hu, Guo, Gong 2020): local SGD with noise, r of n devices a round.

The theorem bounds the mean of E‖∇f‖² over the K = T τ iterations. **As printed it does not hold**:

1. *A factor of two.* B_k contains η L (d σ²/r + β²/γ); from there to eq. (23) the term is halved. With
   f(x) = L x²/2, one device and τ = 1, E x² settles at η v/(L (2 − η L)), hence E‖∇f‖² at η L v/(2 − η L), which is
   above the printed η L v/2.
2. *Devices that differ.* Eq. (20) replaces −‖(1/n) Σ ∇f_i‖² by −(1/n) Σ ‖∇f_i‖², against Jensen's inequality: where
   ∇f = 0 but ∇f_i ≠ 0, the left side is 0 and the right side is negative. No constant of the theorem says how much the
   devices differ. With f_1 = (x − 1)²/2, f_2 = (x + 1)²/2, r = 1 of n = 2, no noise and τ = 1, E x² settles at
   η/(2 − η) > 0, whereas the bound falls to 0 with K.
3. *The chosen devices stay the same for τ steps*, so θ̂ depends on Ω for s > 0 and Lemma 7 cannot be applied there.
4. *A factor of four.* Before its squared gradients Lemma 8 has 4 s η² (2 (n − r)² + n²)/n³, and B_k s η² L² times the
   same fraction. As s Σ_{h<s}, summed over s < τ, holds each gradient τ²/2 times at most, the last step needs
   5 η L + 6 τ² η² L² ≤ 1 with the factor in it, and not 5 η L + 3 τ² η² L² ≤ 1.

`local_sgd_bound` is what can be proven, for the models θ^t that devices receive. Let ζ² ≥ (1/n) Σ ‖∇f_i − ∇f‖²,
v = d σ² + β²/γ, and ζ_r² = (n − r)/(r (n − 1)) ζ² the variance of a mean over r of n devices. A round moves x by −η Δ,
and Δ has expectation τ h with h the mean of all local gradients. From smoothness,

    E f(x⁺) ≤ f(x) − η τ ⟨∇f(x), h⟩ + (η² L/2) E‖Δ‖².

With D the mean squared distance of local models from x, ‖∇f(x) − h‖² ≤ L² D, so that for every α > 0
−⟨∇f, h⟩ ≤ −(1 − α/2) ‖∇f‖² + L² D/(2α). Gradients at x and noise are uncorrelated, the rest of Δ is L-Lipschitz in
what models moved: E‖Δ‖² ≤ (1 + α) (τ² (‖∇f‖² + ζ_r²) + τ v/r) + (1 + 1/α) τ² L² D. Unrolling the local steps gives
L² D ≤ a² (‖∇f‖² + W) with a² = η² L² (τ − 1)(2τ − 1)/(3 (1 − η² L² τ (τ − 1))) and W = ζ² + 3 v/(2τ − 1). Hence

    c (1/T) Σ E‖∇f(θ^t)‖² ≤ (f(θ^0) − f*)/(η τ T) + a² W/(2α)
                            + (η L τ/2) ((1 + α) (ζ_r² + v/(r τ)) + (1 + 1/α) a² W),
    c = 1 − α/2 − a²/(2α) − (η L τ/2) ((1 + α) + (1 + 1/α) a²),

for every α with c > 0; the smallest is taken. With τ = 1 (a = 0, α → 0) a one-dimensional quadratic attains it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

_ALPHAS = 65
"""How many α between a and 1 are tried; every one of them gives a valid bound."""


@dataclass(frozen=True)
class Smoothness:
    """What is known of the objective.

    Attributes:
        smoothness: L, Lipschitz constant of the gradient of every f_i (Assumption 2).
        initial_gap: f(θ^0) − f*, or an upper bound on it.
        gradient_variance: β², of one sample's gradient about its device's mean (Assumption 3).
        heterogeneity: ζ² ≥ (1/n) Σ ‖∇f_i − ∇f‖²; the paper has no such constant.

    Raises:
        ValueError: if a value is negative or not finite, or L is zero.
    """

    smoothness: float
    initial_gap: float
    gradient_variance: float = 0.0
    heterogeneity: float = 0.0

    def __post_init__(self) -> None:
        for name in ("smoothness", "initial_gap", "gradient_variance", "heterogeneity"):
            value = getattr(self, name)
            if not 0 <= value < np.inf:
                raise ValueError(f"{name} must be at least 0 and finite, not {value}")
        if self.smoothness == 0:
            raise ValueError("smoothness must be above 0")


@dataclass(frozen=True)
class LocalSgd:
    """Algorithm 1 of the paper.

    Attributes:
        step: η, the local learning rate.
        local_steps: τ.
        devices: n.
        devices_per_round: r.
        batch_size: γ, samples in a mini-batch.
        dimension: d.
        noise_std: σ, of the noise on each coordinate of a mini-batch mean.

    Raises:
        ValueError: if a value is out of range.
    """

    step: float
    local_steps: int
    devices: int
    devices_per_round: int
    batch_size: int
    dimension: int
    noise_std: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.step < np.inf:
            raise ValueError(f"step must be above 0 and finite, not {self.step}")
        if not 0 <= self.noise_std < np.inf:
            raise ValueError(f"noise_std must be at least 0 and finite, not {self.noise_std}")
        if min(self.local_steps, self.batch_size, self.dimension) < 1:
            raise ValueError("local_steps, batch_size and dimension must be at least 1")
        if not 1 <= self.devices_per_round <= self.devices:
            raise ValueError(f"devices_per_round must lie between 1 and {self.devices}, not {self.devices_per_round}")

    def local_variance(self, problem: Smoothness) -> float:
        """V = d σ² + β²/γ of one device's noised mini-batch gradient."""
        return self.dimension * self.noise_std**2 + problem.gradient_variance / self.batch_size


def printed_local_sgd_bound(rounds: ArrayLike, run: LocalSgd, problem: Smoothness) -> NDArray[np.float64]:
    """The right side of eq. (14) as printed, for T rounds (K = T τ); it does not hold, see the module.

    Args:
        rounds: T, any shape, at least 1.
        run: The algorithm's settings.
        problem: The objective's constants; ζ² plays no part.

    Returns:
        Bounds on (1/K) Σ_{k<K} E‖∇f(θ̂^k)‖², in the shape of ``rounds``; infinite where 5 η L + 3 τ² η² L² > 1, for
        which the theorem says nothing.
    """
    counted = _rounds(rounds)
    scaled = run.step * problem.smoothness
    if 5 * scaled + 3 * (run.local_steps * scaled) ** 2 > 1:
        return np.full_like(counted, np.inf)
    sampling = problem.gradient_variance / run.batch_size
    noise = run.dimension * run.noise_std**2
    chosen = run.devices_per_round
    drift = (run.local_steps - 1) * (2 * run.local_steps - 1) * scaled**2
    floor = scaled * (sampling + noise / chosen) / 2
    floor += drift * (2 * sampling / 3 + noise * (chosen + 1) / (3 * chosen))
    return 2 * problem.initial_gap / (run.step * counted * run.local_steps) + floor


def largest_printed_step(smoothness: float, local_steps: int) -> float:
    """The largest η with 5 η L + 3 τ² η² L² ≤ 1, the condition of Theorem 2."""
    square = 3.0 * local_steps**2
    return float(2 / (5 + np.sqrt(25 + 4 * square)) / smoothness)


def local_sgd_bound(rounds: ArrayLike, run: LocalSgd, problem: Smoothness) -> NDArray[np.float64]:
    """A bound on (1/T) Σ_{t<T} E‖∇f(θ^t)‖² that holds for devices that differ; the proof is in the module.

    Args:
        rounds: T, any shape, at least 1.
        run: The algorithm's settings; devices weigh the same, batches are drawn without bias.
        problem: The objective's constants.

    Returns:
        In the shape of ``rounds``; infinite where the step is too large for any α.
    """
    counted = _rounds(rounds)
    scaled = run.step * problem.smoothness
    shrink = 1 - scaled**2 * run.local_steps * (run.local_steps - 1)
    if shrink <= 0:
        return np.full_like(counted, np.inf)
    a = scaled * float(np.sqrt((run.local_steps - 1) * (2 * run.local_steps - 1) / (3 * shrink)))
    alpha = np.geomspace(a, max(a, 1.0), _ALPHAS) if a > 0 else np.zeros(1)
    ratio = np.divide(a**2, alpha, out=np.zeros_like(alpha), where=alpha > 0)
    local, half = run.local_variance(problem), scaled * run.local_steps / 2
    spread = problem.heterogeneity + 3 * local / (2 * run.local_steps - 1)
    sampled = _mean_of_chosen(run) * problem.heterogeneity + local / (run.devices_per_round * run.local_steps)
    kept = 1 - alpha / 2 - ratio / 2 - half * ((1 + alpha) + a**2 + ratio)
    floor = ratio * spread / 2 + half * ((1 + alpha) * sampled + (a**2 + ratio) * spread)
    start = problem.initial_gap / (run.step * run.local_steps * counted[..., None])
    return np.asarray(np.where(kept > 0, (start + floor) / np.where(kept > 0, kept, 1.0), np.inf).min(axis=-1))


def _mean_of_chosen(run: LocalSgd) -> float:
    """(n − r)/(r (n − 1)): how much of a variance over devices is left in the mean of r, drawn without replacement."""
    if run.devices == 1:
        return 0.0
    return (run.devices - run.devices_per_round) / (run.devices_per_round * (run.devices - 1))


def _rounds(rounds: ArrayLike) -> NDArray[np.float64]:
    counted = np.asarray(rounds, dtype=np.float64)
    if np.any(~(counted >= 1)):
        raise ValueError("rounds must be at least 1")
    return counted
