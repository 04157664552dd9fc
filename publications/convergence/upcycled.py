r"""Theorem 5 of the over-the-air paper (Mao et al. 2024): Upcycled-FL with back-off, receiver noise and a jammer.

The theorem bounds min_m E‖∇f(w̄^{2m−1})‖² over M rounds by

    (f(w̄^0) − f*)/(M C_1) + C_6/C_1 + (1/(M C_1)) Σ_m (C_2^m + C_3^m + C_4^m + C_5^m).

**As printed it does not hold.** What is wrong, step by step of Appendix C:

1. Eq. (36) bounds ‖∇F_i(x) − ∇F_i(y)‖² by L ‖x − y‖²; an L-Lipschitz gradient gives L². So C_1, C_2, C_3 carry one L
   too few (their units do not agree as printed), and are too small for L > 1.
2. C_1 has B where Definition 2 (E‖∇F_i‖² ≤ B² ‖∇f‖²) gives B².
3. C_4 has (2L − μ) μ in its numerator where (36) and (37) together give 2L − μ: too small for μ < 1 (where 2L > μ).
4. Eq. (37) multiplies Jensen's inequality by L/μ² − 1/(2μ), which is negative for μ > 2L. C_4 then falls with G², of
   which the theorem asks only that it bounds ‖∇f‖: with G large enough the printed bound is *below zero*.
5. The sum telescopes to f(w̄^1) − f*, not to f(w̄^0) − f*: what the first round may add is missing.
6. Assumption 4 asks ‖w̄^{2m−1} − w̄^{2m−2}‖ ≤ q, but that movement contains Gaussian noise. Second moments suffice in
   the proof, so q² ≥ E‖·‖² is meant here.
7. Lemma 2 is wrong: bounded ‖∇F_i − ∇f‖ ≤ κ_i gives no B. F_1 = (w − 1)²/2 and F_2 = (w + 1)²/2 have κ = 1, and at
   w = 0 the left side of Definition 2 is 1, the right side 0. A finite B needs a stationary point that all share.

`proven_coefficients` has all seven mended; with them the theorem holds, and `tests/convergence` compares it with runs.
Where it says something at all is another matter: C_2/C_1 ≥ 2 μ q G μ/(μ + λ), and q is about G/μ, so that with λ ≤ μ
the bound is no better than ‖∇f‖² ≤ G², which needs no theorem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Heterogeneity:
    """What is known of the clients' objectives.

    Attributes:
        smoothness: L, Lipschitz constant of the gradient of every F_i (Assumption 2).
        convexity: ρ, strong convexity of F_i + (μ/2)‖w − w̄‖² (Assumption 3); at least μ for convex F_i.
        gradient_bound: G ≥ ‖∇f‖ (Assumption 4).
        dissimilarity: B with Σ p_i ‖∇F_i‖² ≤ B² ‖∇f‖² (Definition 2).
        deviation: (n,) κ_i ≥ ‖∇F_i − ∇f‖ (Lemma 2).
        weight: (n,) p_i, which add up to 1.

    Raises:
        ValueError: if a value is out of range.
    """

    smoothness: float
    convexity: float
    gradient_bound: float
    dissimilarity: float
    deviation: Array
    weight: Array

    def __post_init__(self) -> None:
        for name in ("smoothness", "convexity", "gradient_bound"):
            value = getattr(self, name)
            if not 0 < value < np.inf:
                raise ValueError(f"{name} must be above 0 and finite, not {value}")
        if not self.dissimilarity >= 1:
            raise ValueError(f"dissimilarity must be at least 1, not {self.dissimilarity}: the mean of squares")
        if self.deviation.shape != self.weight.shape or self.weight.ndim != 1:
            raise ValueError(f"deviation {self.deviation.shape} and weight {self.weight.shape} must both be (n,)")
        if np.any(self.deviation < 0) or np.any(self.weight < 0) or not np.isclose(self.weight.sum(), 1):
            raise ValueError("deviations and weights must be at least 0, and weights must add up to 1")


@dataclass(frozen=True, eq=False)
class UpcycledRounds:
    """M rounds and the one after them, from whose training the descent at w̄^{2M−1} is known: M + 1 trainings.

    Attributes:
        prox_mu: μ, above 0.
        lam: (M,) λ_m after rounds 1 … M; infinity is FedProx.
        scaled_backoff: (M + 1, n) τ s_i, of the published form; with ``rescale: clip_norm`` s_i alone.
        jammer_noise_std: (M + 1,) |h_CJ α_CJ/α_u|, on each coordinate.
        receiver_noise_std: σ_c/α_u.
        dimension: d.
        movement: q ≥ (E‖w̄^{2m−1} − w̄^{2m−2}‖²)^½; see `upcycled_movement`.

    Raises:
        ValueError: if a value is out of range or the shapes do not fit.
    """

    prox_mu: float
    lam: Array
    scaled_backoff: Array
    jammer_noise_std: Array
    receiver_noise_std: float
    dimension: int
    movement: float

    def __post_init__(self) -> None:
        if not 0 < self.prox_mu < np.inf:
            raise ValueError(f"prox_mu must be above 0 and finite, not {self.prox_mu}")
        trainings = len(self.lam) + 1
        if len(self.lam) < 1 or len(self.scaled_backoff) != trainings or len(self.jammer_noise_std) != trainings:
            raise ValueError("M rounds need M values of lambda, and M + 1 of back-off and jammer noise")
        if np.any(~(self.lam >= 0)) or np.any(~(self.scaled_backoff > 0)) or np.any(~(self.jammer_noise_std >= 0)):
            raise ValueError("lambda and noise must be at least 0, and back-off above 0")
        if min(self.receiver_noise_std, self.movement) < 0 or self.dimension < 1:
            raise ValueError("noise and movement must be at least 0, and dimension at least 1")

    @property
    def repeated(self) -> Array:
        """(M,) μ/(μ + λ_m), the share of its last step that the server repeats."""
        return self.prox_mu / (self.prox_mu + self.lam)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """C_1 … C_6.

    Attributes:
        c1: Factor of ‖∇f‖², in the unit of 1/μ; at most 0 says nothing.
        c2: (M,) cost of repeating the last step, first order; as all further ones in the unit of f.
        c3: (M,) the same, second order.
        c4: (M,) cost of back-off and of the clients' difference.
        c5: (M,) cost of the jammer.
        c6: Cost of the receiver's noise.
        first: What the first training may add to f; the printed theorem leaves it out.
    """

    c1: float
    c2: Array
    c3: Array
    c4: Array
    c5: Array
    c6: float
    first: float = 0.0


def printed_coefficients(rounds: UpcycledRounds, clients: Heterogeneity) -> Coefficients:
    """Eqs. (29)-(34) as printed; see the module for what is wrong with them."""
    mu, rho, smooth = rounds.prox_mu, clients.convexity, clients.smoothness
    scaled = rounds.scaled_backoff[1:]
    backoff = (2 * mu * (scaled - 1) ** 2 + (2 * smooth - mu) * mu) / (2 * mu**2 * scaled**2)
    reach = smooth * clients.dissimilarity / (mu * rho**2)
    again, q = rounds.repeated, rounds.movement
    return Coefficients(
        c1=1 / (2 * mu) - reach,
        c2=again * (1 + 2 * reach * (smooth + rho)) * q * clients.gradient_bound,
        c3=again**2 * smooth * (1 + (smooth + rho) ** 2 / (mu * rho**2)) * q**2,
        c4=_over_clients(backoff, clients),
        c5=_noise(rounds.jammer_noise_std[1:], rounds, smooth),
        c6=float(_noise(np.array(rounds.receiver_noise_std), rounds, smooth)),
    )


def proven_coefficients(rounds: UpcycledRounds, clients: Heterogeneity) -> Coefficients:
    """The coefficients with which the theorem holds; the module says what was mended."""
    mu, rho, smooth, alike = rounds.prox_mu, clients.convexity, clients.smoothness, clients.dissimilarity
    scaled = rounds.scaled_backoff
    backoff = (1 - 1 / scaled) ** 2 / mu + max(smooth / mu**2 - 1 / (2 * mu), 0.0) / scaled**2
    c4 = _over_clients(backoff, clients)
    c5 = _noise(rounds.jammer_noise_std, rounds, smooth)
    c6 = float(_noise(np.array(rounds.receiver_noise_std), rounds, smooth))
    again, q = rounds.repeated, rounds.movement
    reach = smooth**2 / (mu * rho**2)
    return Coefficients(
        c1=1 / (2 * mu) - reach * alike**2,
        c2=again * (1 + 2 * reach * alike * (smooth + rho)) * q * clients.gradient_bound,
        c3=again**2 * (smooth + reach * (smooth + rho) ** 2) * q**2,
        c4=c4[1:],
        c5=c5[1:],
        c6=c6,
        first=float(c4[0] + c5[0] + c6),
    )


def upcycled_bound(coefficients: Coefficients, initial_gap: float) -> Array:
    """Bounds (M,) on min_{m ≤ M'} E‖∇f(w̄^{2m−1})‖² (and on the mean over m ≤ M') after M' = 1 … M rounds.

    Args:
        coefficients: Printed or proven ones.
        initial_gap: f(w̄^0) − f*, or more.

    Returns:
        Infinite where C_1 is not above 0, for which the theorem says nothing.

    Raises:
        ValueError: if the gap is negative or not finite.
    """
    if not 0 <= initial_gap < np.inf:
        raise ValueError(f"initial_gap must be at least 0 and finite, not {initial_gap}")
    one = coefficients
    each = one.c2 + one.c3 + one.c4 + one.c5
    if one.c1 <= 0:
        return np.full(len(each), np.inf)
    count = np.arange(1, len(each) + 1)
    return ((initial_gap + one.first + np.cumsum(each)) / count + one.c6) / one.c1


def upcycled_movement(
    local_gradient_bound: Array, weight: Array, scaled_backoff: Array, prox_mu: float, noise_std: Array, dimension: int
) -> float:
    """A q with E‖w̄^{2m−1} − w̄^{2m−2}‖² ≤ q²: a local solution moves by ‖∇F_i(w_i)‖/μ, and the noise adds d σ_m².

    Args:
        local_gradient_bound: (n,) bounds on ‖∇F_i‖.
        weight: (n,) p_i.
        scaled_backoff: (rounds, n) τ s_i.
        prox_mu: μ.
        noise_std: (rounds,) σ_m, of jammer and receiver together.
        dimension: d.
    """
    signal = (local_gradient_bound * weight / scaled_backoff).sum(axis=-1) / prox_mu
    return float(np.sqrt(signal**2 + dimension * noise_std**2).max())


def _over_clients(factor: Array, clients: Heterogeneity) -> Array:
    """(rounds,) E_i[factor_i (κ_i + G)²]."""
    return np.asarray((clients.weight * factor * (clients.deviation + clients.gradient_bound) ** 2).sum(axis=-1))


def _noise(std: Array, rounds: UpcycledRounds, smoothness: float) -> Array:
    """(L d/2) std²."""
    return np.asarray(smoothness * rounds.dimension / 2 * std**2)
