"""The numbers that the wavelet paper gives, and the ε that its setting really has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from wirelessfl.privacy import SampledGaussian, composed_epsilon, zcdp_epsilon, zcdp_rho

SIGMAS = ("1", "1.5", "3")
DATA = ("mnist", "fashion_mnist", "cifar10")


def _by_level(*points: tuple[float, float, float]) -> dict[str, dict[str, float]]:
    return {data: dict(zip(SIGMAS, three, strict=True)) for data, three in zip(DATA, points, strict=True)}


GAINS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "DP-SGD": _by_level((4.9, 7.03, 9.16), (9.93, 12.7, 14.6), (6.38, 7.2, 9.1)),
    "Dyn-DP-SGD": _by_level((2.87, 4.2, 4.82), (5.64, 5.53, 5.35), (1.871, 1.88, 2.05)),
    "DP-Adam": _by_level((3.56, 4.9, 6.12), (8.22, 10.23, 12.97), (6.01, 6.83, 7.93)),
    "DP-AdaGrad": _by_level((2.31, 3.29, 4.97), (6.61, 8.19, 10.88), (4.25, 5.53, 7.03)),
    "DP-FedAvg": _by_level((3.64, 6.14, 12.97), (13.2, 14.82, 27.3), (5.96, 6.67, 16.33)),
    "Dyn-DP-FedAvg": _by_level((1.21, 1.82, 4.93), (2.4, 3.08, 4.39), (1.987, 4.02, 5.94)),
}
"""Gain of the wavelet form in points of accuracy, by method, data set and σ: sections 6.3 and 6.4, and Table 3."""

EPSILONS = _by_level((6.38, 3.61, 1.64), (6.38, 3.61, 1.64), (24.5, 7.94, 4.75))
"""ε of Table 3 by data set and σ."""
ROUNDS = 300
"""Rounds of a training, section 6.1."""


def least_epsilon(
    noise_multiplier: float, samples: int = 600, batch: int = 1, share: float = 1.0, delta: float = 1e-5
) -> float:
    """ε by the RDP accountant of DP-SGD in `ROUNDS` rounds of 50 passes over a client's samples.

    It grows with the batch at a fixed number of passes, so that it is least for batches of one sample.

    Args:
        noise_multiplier: σ.
        samples: Of a client.
        batch: Samples expected in a batch.
        share: Of the rounds in which the client takes part.
        delta: δ.
    """
    event = SampledGaussian(noise_multiplier, batch / samples)
    return composed_epsilon(0.0, ((event, round(share * ROUNDS * 50 * samples / batch)),), delta, "rdp")


def most_affordable_rounds(stated: Mapping[str, float], samples: int = 600) -> int:
    """How many of `ROUNDS` rounds a client can take part in, with batches of one sample, at the stated ε or less.

    Args:
        stated: ε by σ, none of which may be exceeded.
        samples: Of a client.
    """
    for rounds in range(1, ROUNDS + 1):
        cost = {sigma: least_epsilon(float(sigma), samples, share=rounds / ROUNDS) for sigma in stated}
        if any(cost[sigma] > one for sigma, one in stated.items()):
            return rounds - 1
    return ROUNDS


# --- ε of one training at three σ, whatever its batches are ----------------------------------------------------------

DELTA = 1e-5

STEP_COUNTS = (ROUNDS, ROUNDS * 50, ROUNDS * 50 * 600)
"""One step a round, one a local epoch, and one a sample: nothing that the setting can mean has fewer or more."""


@lru_cache
def fitted_epsilons(stated: float, steps: int) -> tuple[float, dict[str, float]]:
    """The sampling rate q at which so many steps cost a stated ε at σ = 1, and the ε of all σ at that q (RDP).

    Args:
        stated: ε at σ = 1.
        steps: T.
    """
    from scipy.optimize import brentq

    def cost(sigma: float, rate: float) -> float:
        return composed_epsilon(0.0, ((SampledGaussian(sigma, rate), steps),), DELTA, "rdp")

    near = math.sqrt(2 * float(zcdp_rho(stated, DELTA)) / steps / math.expm1(1))
    log_rate = brentq(
        lambda one: cost(1.0, math.exp(one)) - stated, math.log(near / 2), math.log(min(2 * near, 1.0)), xtol=1e-4
    )
    rate = math.exp(float(log_rate))
    return rate, {sigma: cost(float(sigma), rate) for sigma in SIGMAS}


def limit_epsilons(stated: float) -> dict[str, float]:
    """The same for many small batches and the classical conversion ε = ρ + 2√(ρ ln 1/δ), in closed form.

    The privacy loss of T steps at a small rate q has ρ = T q² (e^(1/σ²) − 1)/2, so that T and q matter by T q² alone.
    """
    at_one = float(zcdp_rho(stated, DELTA)) / math.expm1(1)
    return {sigma: float(zcdp_epsilon(at_one * math.expm1(1 / float(sigma) ** 2), DELTA)) for sigma in SIGMAS}


def all_fits(data: str) -> list[tuple[str, dict[str, float]]]:
    """ε at every σ of trainings that cost what is stated at σ = 1, with words for each."""
    stated = EPSILONS[data]["1"]
    fits = []
    for steps in STEP_COUNTS:
        rate, found = fitted_epsilons(stated, steps)
        fits.append((f"{steps:,} steps, q = {rate:.2g}", found))
    return [*fits, ("many small batches, classical conversion", limit_epsilons(stated))]


def stated_epsilon_rows() -> list[dict[str, Any]]:
    """``stated-epsilons.csv``: what the paper states, and what trainings cost that are fitted to it at σ = 1."""
    rows = []
    for data, name in (("mnist", "MNIST, Fashion-MNIST"), ("cifar10", "CIFAR-10")):
        told = [("as stated", EPSILONS[data]), *all_fits(data)]
        rows += [
            {"data": name, "training": words, **{f"σ = {sigma}": f"{found[sigma]:.4g}" for sigma in SIGMAS}}
            for words, found in told
        ]
    return rows
