"""The studies of the over-the-air paper, and where their numbers stand."""

from __future__ import annotations

from typing import Literal

from publications.studies import Point

ALONE, DRIFT, JAMMED = "without-jammer", "twenty-epochs", "with-jammer"
IID, EQUAL, STEP, SWEEP = "iid-synthetic", "equal-epsilon", "gradient-step", "clip-sweep"
NOISELESS = "noiseless"

ALGORITHM, POLICY = "training.algorithm.name", "uplink.power_control.policy"
EPSILON, DELTA, UNIT = "uplink.power_control.epsilon", "privacy.delta", "privacy.unit"
CLIP = "uplink.clip"
JAMMER, JAMMER_EPSILON, CALIBRATION = "uplink.jammer", "uplink.jammer.epsilon", "uplink.jammer.calibration"

Place = tuple[str, Point]
"""Name of a study and a point in it."""

ALGORITHMS = {"upcycled": "Upcycled-FL", "fedprox": "FedProx", "fedavg": "FedAvg"}
PAIRS = ((6.52, 1e-5), (4.4, 0.01))
JAMMED_EPSILONS = (1, 0.5, 0.1)
AFTER = (5, 16, 36)
"""Rounds after which accuracies are listed; chosen where the order had changed in a first seed at the paper's size."""
CLIPS = (0.5, 1.0, 2.0, 4.0)
EPSILONS = (6.52, *JAMMED_EPSILONS)

Policy = Literal["cross_layer", "privacy_for_free"]


def alone(algorithm: str, pair: tuple[float, float], policy: Policy = "cross_layer") -> Place:
    """On receiver noise alone."""
    return ALONE, {ALGORITHM: algorithm, POLICY: policy, EPSILON: pair[0], DELTA: pair[1]}


def drift(algorithm: str, policy: Policy = "cross_layer") -> Place:
    """With 20 local epochs."""
    return DRIFT, {ALGORITHM: algorithm, POLICY: policy}


def noiseless(algorithm: str) -> Place:
    """Without noise and without privacy, updates clipped as over the air."""
    return NOISELESS, {ALGORITHM: algorithm}


def jammed(algorithm: str, epsilon: float) -> Place:
    """With the jammer as published."""
    return JAMMED, {ALGORITHM: algorithm, JAMMER_EPSILON: epsilon}


def equal(algorithm: str, epsilon: float, unit: Literal["sample", "client"] = "sample") -> Place:
    """With the noise that whole updates need."""
    return EQUAL, {ALGORITHM: algorithm, JAMMER_EPSILON: epsilon, UNIT: unit}


def step(epsilon: float, calibration: Literal["theorem", "exact"]) -> Place:
    """One step of clipped gradients a round."""
    return STEP, {JAMMER_EPSILON: epsilon, CALIBRATION: calibration}


def iid(policy: Policy) -> Place:
    """On iid data, without a jammer."""
    return IID, {POLICY: policy, JAMMER: None}


def clipped(algorithm: str, norm: float) -> Place:
    """On receiver noise alone, with another clip norm; that of 1 is in the study without a jammer."""
    return alone(algorithm, PAIRS[0]) if norm == 1.0 else (SWEEP, {ALGORITHM: algorithm, CLIP: norm})
