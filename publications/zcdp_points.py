"""Where the numbers of the zCDP paper's studies stand: points, and the noise that they follow from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from publications.studies import Point
from publications.tables import value_of
from wirelessfl.privacy import zcdp_rho

NOISE, STEPS, UPLINK = "training.privacy.noise_std", "training.steps", "uplink.kind"
PRIVACY, EPSILON = "training.privacy", "training.privacy.epsilon"

KINDS: Mapping[str, str] = {"logistic": "logistic regression", "network": "network of three layers"}
EPSILONS = (0.1, 1, 10)
"""ε of the trade-off; the paper draws curves without naming values."""

DELTA, DEVICES, CHOSEN = 1e-4, 16, 10


def theorem_1_noise(epsilon: float, rounds: int, steps: int, batch: int, samples: int, hidden_by: int) -> float:
    """σ at which Theorem 1 gives ε for C = T r/n participations, to five digits: σ² = 2 C τ/(hidden_by · m γ ρ)."""
    spent = 2 * rounds * CHOSEN / DEVICES * steps / (hidden_by * samples * batch)
    return float(f"{np.sqrt(spent / float(zcdp_rho(epsilon, DELTA))):.5g}")


def charged_noise(epsilon: float, rounds: int, batch: int) -> float:
    """σ that the paper's baseline gets: ρ = 2 C/(n γ² σ²) with n = 16 devices (VII-C)."""
    spent = 2 * rounds * CHOSEN / DEVICES / (DEVICES * batch**2)
    return float(f"{np.sqrt(spent / float(zcdp_rho(epsilon, DELTA))):.5g}")


SIZES_OF: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("small", "logistic"): {"samples": 500, "rounds": 20, "batch": 50, "steps": 10, "few": 2, "large": 250},
    ("small", "network"): {"samples": 500, "rounds": 16, "batch": 100, "steps": 5, "few": 5, "large": 100},
    ("full", "logistic"): {"samples": 2442, "rounds": 20, "batch": 245, "steps": 10, "few": 2, "large": 1221},
    ("full", "network"): {"samples": 2442, "rounds": 50, "batch": 489, "steps": 5, "few": 5, "large": 489},
}
"""Samples of a device, rounds, and batch with steps of Figures 5 and 6, then of Figures 7 and 8."""

CALIBRATED = ("full",)
"""Sizes of the paper's own division, devices in turn: a published ε is set, and the library finds the noise for it.

Elsewhere devices are drawn, and the library would set the noise for one of all rounds: the files hold that of
C = T r/n.
"""

METHODS = (
    "paper's scheme",
    "DP-SGD, noise as charged in the paper",
    "DP-SGD, noise by Theorem 1",
    "paper's scheme, accounted ε",
    "DP-SGD shuffled, accounted ε",
    "DP-SGD Poisson, accounted ε",
)
"""What stands in ``against-dp-sgd-*``, in that order."""


def method_point(size: str, kind: str, method: int) -> Point:
    """The point of a method of `METHODS`."""
    one = SIZES_OF[size, kind]
    rounds, steps, batch, samples = (one[name] for name in ("rounds", "steps", "batch", "samples"))
    noise: dict[str, Any] = {"mechanism": "zcdp", "clip": 1.0}
    accounted = {"epsilon": 10.0, "target": "accounted"}
    published = {"epsilon": 10.0, "target": "published"}

    def by_theorem_1(taken: int) -> dict[str, Any]:
        if size in CALIBRATED:
            return {**noise, **published}
        return {**noise, "noise_std": theorem_1_noise(10, rounds, taken, batch, samples, CHOSEN)}

    spent: tuple[dict[str, Any], ...] = (
        by_theorem_1(steps),
        {**noise, "noise_std": charged_noise(10, rounds, batch)},
        by_theorem_1(1),
        {**noise, **accounted},
        {**noise, **accounted},
        {"mechanism": "gaussian", "sampling": "poisson", "clip": 1.0, **accounted},
    )
    return {STEPS: steps if method in (0, 3) else 1, PRIVACY: spent[method]}


def trade_off_point(size: str, kind: str, epsilon: float, uplink: str) -> Point:
    """The point of ``trade-off-*`` at a published ε, with (secure_aggregation) or without (ideal) masks."""
    if size in CALIBRATED:
        return {UPLINK: uplink, EPSILON: epsilon}
    one = SIZES_OF[size, kind]
    hidden_by = CHOSEN if uplink == "secure_aggregation" else 1
    noise = theorem_1_noise(epsilon, one["rounds"], one["few"], one["large"], one["samples"], hidden_by)
    return {UPLINK: uplink, NOISE: noise}


def _words() -> dict[str, str]:
    words = {STEPS: "τ", NOISE: "σ", UPLINK: "uploads", PRIVACY: "noise", EPSILON: "target ε"}
    words |= {"secure_aggregation": "masked", "ideal": "plain"}
    for size, kind in SIZES_OF:
        for method in (0, 1, 2, 3, 5):
            points = method_point(size, kind, method)[PRIVACY]
            charged = "as the paper charges DP-SGD" if method == 1 else "by Theorem 1"
            stated = f"{points.get('target')} ε = 10"
            words[value_of(points)] = f"{charged}, σ = {points['noise_std']}" if "noise_std" in points else stated
    words[value_of(method_point("small", "logistic", 5)[PRIVACY])] = "Poisson, accounted ε = 10"
    return words


WORDS = _words()

LEVELS: Mapping[str, tuple[tuple[float, ...], tuple[int, ...]]] = {
    "logistic": ((0.001, 0.1, 0.5), (1, 40)),
    "network": ((0.001, 0.03, 0.1), (1, 20)),
}
"""σ and τ of ``convergence-*`` that both sizes have: the largest σ is larger than any of the paper's."""

PAPER_LEVELS: Mapping[str, tuple[tuple[float, float], tuple[int, ...]]] = {
    "logistic": ((1e-5, 1e-3), (1, 5, 10, 40)),
    "network": ((1e-4, 1e-2), (1, 5, 10, 20)),
}
"""The paper's own least and largest σ, and its τ."""

PAPER_NOISES: Mapping[tuple[str, str], tuple[float, ...]] = {
    ("small", "logistic"): (1e-3,),
    ("small", "network"): (1e-3,),
    ("full", "logistic"): (1e-5, 1e-4, 5e-4, 1e-3),
    ("full", "network"): (1e-4, 1e-3, 5e-3, 1e-2),
}
"""Those of the paper's σ that a size has."""


def convergence_point(kind: str, noise: float, steps: int) -> tuple[str, Point]:
    """Study and point."""
    return f"convergence-{kind}", {NOISE: noise, STEPS: steps}
