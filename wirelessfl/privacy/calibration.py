"""Noise for a target epsilon, and the calculators behind ``wirelessfl privacy``."""

import math
from typing import Literal

import numpy as np

from wirelessfl.errors import InfeasibleError, precondition
from wirelessfl.privacy.accountants import Uses, composed_epsilon
from wirelessfl.privacy.costs import (
    Accountant,
    PrivacyFacts,
    SampledGaussian,
    Statement,
    require_non_negative,
    require_positive,
    sampled_spending,
)
from wirelessfl.privacy.gaussian import gaussian_epsilon, gaussian_mu, zcdp_epsilon, zcdp_rho
from wirelessfl.privacy.releases.local import SecureSum, ZcdpRelease
from wirelessfl.radio.jamming import jammer_gain_for_noise, required_noise_std_exact

_NOISE_TOLERANCE = 1e-4  # relative; the answer errs on the side of more noise
_SMALLEST_MULTIPLIER, _LARGEST_MULTIPLIER = 1e-3, 1e7  # between them a run looks for its noise as well
# Of steps, rounds and samples: above it, whole numbers are no longer exact as floating-point ones
_LARGEST_COUNT = 2**53


def _at_least_one(**values: int) -> None:
    for name, value in values.items():
        precondition(
            1 <= value <= _LARGEST_COUNT and value == int(value),
            f"{name} must be a whole number from 1 to 2^53, found {value}",
        )


def _check_sampled_steps(steps: int, delta: float, sample_rate: float) -> None:
    _at_least_one(steps=steps)
    precondition(0 < delta < 1, f"delta must lie strictly between 0 and 1, found {delta}")
    precondition(0 < sample_rate <= 1, f"sample_rate must lie in (0, 1], found {sample_rate}")


def dp_sgd_epsilon(
    noise_multiplier: float, steps: int, delta: float, sample_rate: float = 1.0, accountant: Accountant = "pld"
) -> float:
    """Epsilon of ``steps`` Gaussian mechanisms on Poisson samples, for add/remove of one sample.

    Args:
        noise_multiplier: Noise standard deviation over the clipping norm, positive.
        steps: Number of noised steps.
        delta: In (0, 1).
        sample_rate: q in (0, 1]; 1 for no subsampling.
        accountant: See ``composed_epsilon``.

    Raises:
        ValueError: If an argument is out of range.
    """
    require_positive(noise_multiplier=noise_multiplier)
    _check_sampled_steps(steps, delta, sample_rate)
    spending = sampled_spending(noise_multiplier, sample_rate, steps, exchange=False)
    sampled = spending.sampled
    event = None if sampled is None else SampledGaussian(float(sampled.noise_multiplier[0]), sample_rate)
    uses: Uses = () if event is None else ((event, steps),)
    return composed_epsilon(float(spending.mu_squared[0]), uses, delta, accountant)


def dp_sgd_noise_multiplier(
    epsilon: float, steps: int, delta: float, sample_rate: float = 1.0, accountant: Accountant = "pld"
) -> float:
    """Smallest noise multiplier, up to a relative 1e-4 above, with ``dp_sgd_epsilon`` at most ``epsilon``.

    Sampled so rarely that δ covers it, steps need no noise; 0.001, below which is not searched, is the answer then.

    Raises:
        ValueError: If an argument is out of range.
        InfeasibleError: If no multiplier up to ten million suffices.
    """
    require_positive(epsilon=epsilon)
    _check_sampled_steps(steps, delta, sample_rate)
    unsampled = math.sqrt(steps) / float(gaussian_mu(epsilon, delta))
    if sample_rate == 1 and accountant in ("pld", "gdp"):
        return unsampled

    def excess(log_multiplier: float) -> float:
        return dp_sgd_epsilon(math.exp(log_multiplier), steps, delta, sample_rate, accountant) - epsilon

    high = math.log(unsampled)
    while excess(high) > 0:
        high += math.log(2.0)
        if high > math.log(_LARGEST_MULTIPLIER):
            raise InfeasibleError(f"no noise multiplier up to {_LARGEST_MULTIPLIER:.0e} meets epsilon = {epsilon}")
    from scipy import optimize  # where it is used: it takes a tenth of a second

    low = high - math.log(2.0)
    while excess(low) <= 0:
        if low < math.log(_SMALLEST_MULTIPLIER):
            return _SMALLEST_MULTIPLIER
        low, high = low - math.log(2.0), low
    root: float = optimize.brentq(excess, low, high, xtol=_NOISE_TOLERANCE / 4)
    while excess(root) > 0:
        root += _NOISE_TOLERANCE / 4
    return math.exp(root)


def noise_std_theorem(epsilon: float, delta: float, rounds: int, total_samples: int) -> float:
    """σ_m that Theorems 2 and 4 ask for: √(M L/(2 |D|² a²)) = √(M/(2 ρ))/|D|, in units of y/α_u.

    Raises:
        ValueError: If an argument is out of range.
    """
    require_positive(epsilon=epsilon)
    _at_least_one(rounds=rounds, total_samples=total_samples)
    return math.sqrt(rounds / (2.0 * float(zcdp_rho(epsilon, delta)))) / total_samples


def noise_std_exact(epsilon: float, delta: float, rounds: int, sensitivity: float) -> float:
    """σ_m whose exact Gaussian composition over M rounds meets (epsilon, delta): X √M/μ*.

    Raises:
        ValueError: If an argument is out of range.
    """
    require_positive(epsilon=epsilon, sensitivity=sensitivity)
    _at_least_one(rounds=rounds)
    return required_noise_std_exact(sensitivity, rounds, float(gaussian_mu(epsilon, delta)))


def jammer_calculator(
    *,
    epsilon: float,
    delta: float,
    rounds: int,
    samples: int,
    server_gain: float,
    channel_noise_std: float,
    jammer_channel: float = 1.0,
    margin: float = 1.0,
    calibration: Literal["theorem", "exact"] = "theorem",
    sensitivity: float | None = None,
) -> dict[str, float | bool]:
    """``privacy jammer``: {"jammer_gain", "needed"}; α_CJ = margin (α_u/|h_CJ|) √(σ_m² − σ_c²/α_u²).

    ``theorem`` takes σ_m from Theorems 2 and 4; ``exact`` the smallest whose exact Gaussian composition over the
    rounds meets the target at ``sensitivity`` per round, 1/|D| by default.

    Raises:
        ValueError: If an argument is out of range.
    """
    require_positive(server_gain=server_gain, jammer_channel=jammer_channel, margin=margin)
    _at_least_one(samples=samples)
    require_non_negative(channel_noise_std=channel_noise_std)
    if calibration == "theorem":
        precondition(sensitivity is None, "sensitivity belongs to calibration exact; the theorem has 1/|D|")
        noise_std = noise_std_theorem(epsilon, delta, rounds, samples)
    elif calibration == "exact":
        noise_std = noise_std_exact(epsilon, delta, rounds, 1.0 / samples if sensitivity is None else sensitivity)
    else:
        raise ValueError(f"calibration must be theorem or exact, found {calibration!r}")
    gain = jammer_gain_for_noise(noise_std, server_gain, channel_noise_std, jammer_channel, margin)
    found = f"{gain:g} with server_gain {server_gain:g}, margin {margin:g} and jammer_channel {jammer_channel:g}"
    precondition(math.isfinite(gain), f"the gain must be a finite number, found {found}")
    return {"jammer_gain": gain, "needed": gain > 0}


def zcdp_calculator(
    *,
    clip: float,
    noise_std: float,
    batch_size: int,
    samples: int,
    local_steps: int,
    participations: int,
    clients_per_round: int,
    delta: float,
) -> dict[str, float]:
    """``privacy zcdp``: {"rho_published", "epsilon_published", "rho_accounted", "epsilon_accounted"}.

    Both are those of the simulator's own record of a round (``ZcdpRelease``), with equally many steps in each of the
    C_i rounds: published is Theorem 1 of the zCDP paper. Accounted exchanges one sample, as the theorem does, and
    costs 2 G²/(γ² σ²) for each pass over the data that is begun: γ is the smallest batch of a whole pass, a full one in
    a part of a pass, of which every round has one at most, for it shuffles afresh. The secure sum, of rounded noise in
    integers, earns nothing. The epsilon is that of the exact Gaussian curve.

    Args:
        clip: G.
        noise_std: Standard deviation σ of the noise on a mini-batch mean.
        batch_size: γ; a client with fewer samples takes them all.
        samples: n_i.
        local_steps: τ per participation.
        participations: C_i.
        clients_per_round: r.
        delta: In (0, 1).

    Raises:
        ValueError: If an argument is out of range.
    """
    exchange = Statement(delta, adjacency="replace")
    _at_least_one(samples=samples, participations=participations)
    facts = PrivacyFacts(np.array([samples], dtype=np.int64), np.ones(1), samples)
    release = _zcdp_round(facts, clip, noise_std, batch_size, local_steps, clients_per_round)
    published, accounted = (
        participations * 0.5 * float(spending.mu_squared[0])
        for spending in (release.published(facts), release.accounted(facts, exchange))
    )
    return {
        "rho_published": published,
        "epsilon_published": float(zcdp_epsilon(published, delta)),
        "rho_accounted": accounted,
        "epsilon_accounted": float(gaussian_epsilon(math.sqrt(2 * accounted), delta)),
    }


def _zcdp_round(
    facts: PrivacyFacts, clip: float, noise_std: float, batch_size: int, local_steps: int, clients_per_round: int
) -> ZcdpRelease:
    # The record of one round in which the one client of ``facts`` takes part, its upload in a secure sum
    require_positive(clip=clip, noise_std=noise_std)
    _at_least_one(batch_size=batch_size, local_steps=local_steps, clients_per_round=clients_per_round)
    return ZcdpRelease(
        round_index=1,
        clients=np.zeros(1, dtype=np.int64),
        clip=clip,
        noise_std=noise_std,
        batch_size=np.minimum(batch_size, facts.samples),
        steps=np.array([local_steps], dtype=np.int64),
        secure_sum=SecureSum(clients_per_round, clients_per_round, arithmetic="integer"),
    )
