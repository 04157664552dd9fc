"""Power control over the air, and how much noise its privacy needs."""

from __future__ import annotations

import math
from typing import Literal, assert_never

import numpy as np

from wirelessfl.assembly.objects import make_object
from wirelessfl.assembly.recordings import load_norms
from wirelessfl.errors import CheckFailed, InfeasibleError, ScenarioError
from wirelessfl.privacy import Statement, gaussian_mu, noise_std_theorem, tail_bound_cost
from wirelessfl.radio import (
    Calibration,
    Cotaf,
    CrossLayer,
    ExactCalibration,
    ExactStepCalibration,
    ExpectedNorms,
    FullPower,
    Gbma,
    LowerGain,
    MeasuredNorms,
    MinimumMse,
    PowerControl,
    PrivacyBudget,
    PrivacyForFree,
    StaticPrivacyForFree,
    TheoremCalibration,
    TruncatedInversion,
    WeakestInversion,
    check_power_control,
    is_non_expansive,
    mean_inverse_power,
    server_gain_for_noise,
)
from wirelessfl.scenario import Scenario, config
from wirelessfl.scenario.power_control import MEASURED
from wirelessfl.simulation.network import Network, Registry

CHANNEL_NOISE_STD = 1.0
"""σ_c: the receiver normalises its noise to variance 1 per real symbol (RADIO.md)."""


def build_power_control(
    scenario: Scenario, control: config.PowerControl, network: Network, statement: Statement
) -> PowerControl:
    """The power control.

    Raises:
        DataError: a file of expected norms is missing, damaged or too short.
        InfeasibleError: a threshold that no channel reaches.
        ScenarioError: a policy of the user's own cannot be used.
    """
    registry, threshold = network.registry, scenario.faults.fade_threshold
    match control:
        case config.CrossLayer():
            return CrossLayer(_server_gain(scenario, control, registry), control.backoff, control.rescale)
        case config.LowerGain():
            calibration = build_calibration(control.calibration, control.epsilon, scenario, registry, statement, True)
            return LowerGain(calibration, control.rescale)
        case config.PrivacyForFree():
            cost = float(tail_bound_cost(control.epsilon, scenario.privacy.delta))
            budget = PrivacyBudget(cost, scenario.rounds, registry.total_samples)
            if control.schedule == "static":
                return StaticPrivacyForFree(budget)
            return PrivacyForFree(budget, control.contraction)
        case config.FullPower():
            return FullPower()
        case config.TruncatedInversion():
            average = control.power_limit == "average"
            return TruncatedInversion(threshold, _mean_inverse_power(network, threshold) if average else None)
        case config.WeakestInversion():
            return WeakestInversion(threshold)
        case config.Cotaf():
            cotaf = Cotaf(_expected_norms(control.expected_norms, scenario.rounds), control.h_min, threshold)
            return MeasuredNorms(cotaf) if control.expected_norms == MEASURED else cotaf
        case config.Gbma():
            gbma = Gbma(_expected_norms(control.expected_norms, scenario.rounds))
            return MeasuredNorms(gbma) if control.expected_norms == MEASURED else gbma
        case config.MinimumMse():
            return MinimumMse()
        case config.ExternalPowerControl():
            return _external(control)
        case _:
            assert_never(control)


def _external(control: config.ExternalPowerControl) -> PowerControl:
    """A policy of the user's own; what it promises beyond the protocol, the ledger counts on, is tried out."""
    policy: PowerControl = make_object("uplink.power_control.policy", control)
    if policy.needs_norms and is_non_expansive(policy):
        try:
            check_power_control(policy)
        except CheckFailed as broken:
            raise ScenarioError(
                f"uplink.power_control.policy: {control.policy} says non_expansive, and breaks a promise: {broken}"
            ) from broken
    return policy


def own_threshold(control: config.PowerControl, threshold: float) -> float:
    """The deep-fade threshold that is left to the uplink: 0 where the policy itself says who is silent."""
    silences = config.TruncatedInversion | config.WeakestInversion | config.Cotaf
    return 0.0 if isinstance(control, silences) else threshold


def _expected_norms(given: tuple[float, ...] | str | None, rounds: int) -> ExpectedNorms:
    """By which norms a precoder scales; where they are measured, the clip stands for them until they are known."""
    if given is None or given == MEASURED:
        return ExpectedNorms()
    return ExpectedNorms(load_norms(given, rounds) if isinstance(given, str) else given)


def _mean_inverse_power(network: Network, threshold: float) -> float:
    """E[1/X; X >= g] of the clients' estimates, the larger one where lines of sight make a difference.

    Raises:
        InfeasibleError: no channel ever reaches the threshold.
    """
    clients = network.clients
    # At β = 1: with pilots and a path loss the error is another on each link, and only Rayleigh fading gets here, whose
    # estimate has the same law whatever the error (`precoder_consistency`).
    error_std, estimator = float(clients.receiver.error_std(np.ones(1))[0]), clients.receiver.csi_estimator
    laws = [clients.fading.law_of(in_sight) for in_sight in (False, True)]
    cost = max(mean_inverse_power(law, threshold, error_std, estimator) for law in laws)
    if cost == 0:
        raise InfeasibleError(
            f"faults.fade_threshold: found {threshold:g}, which no channel reaches; nobody would send"
        )
    return cost


def _server_gain(scenario: Scenario, control: config.CrossLayer, registry: Registry) -> float:
    if control.server_gain != "auto":
        return control.server_gain
    needed = noise_std_theorem(control.epsilon, scenario.privacy.delta, scenario.rounds, registry.total_samples)
    return server_gain_for_noise(needed, CHANNEL_NOISE_STD)


def gradient_step(scenario: Scenario, clip: float, non_expansive: bool) -> int | None:
    """The batch size of one step of per-sample-clipped gradients with τ = η·clip; None for any other training.

    None also where the power control is not known to be ``non_expansive``: what bounds one sample's share of the update
    then bounds nothing of what is sent. The optimizer starts anew in every round, so that the momentum of plain SGD has
    no part in a single step; noise that a client adds and the clip of its update, which only contracts, take nothing
    away from the bound.
    """
    training = scenario.training
    mechanism, optimizer = training.privacy, training.optimizer
    if not non_expansive:
        return None
    per_sample = isinstance(mechanism, config.GaussianNoise) and isinstance(mechanism.clipping, config.FlatClip)
    one_step = training.steps == 1 and isinstance(optimizer, config.Sgd) and training.lr_schedule is None
    if not (per_sample and one_step and isinstance(mechanism, config.GaussianNoise) and mechanism.clip is not None):
        return None
    return training.batch_size if math.isclose(clip, optimizer.lr * mechanism.clip, rel_tol=1e-9) else None


def build_calibration(
    calibration: Literal["theorem", "exact"],
    epsilon: float,
    scenario: Scenario,
    registry: Registry,
    statement: Statement,
    non_expansive: bool,
) -> Calibration:
    """How much noise a round needs for an ε of the whole run, under a power control that may be ``non_expansive``."""
    delta, rounds = scenario.privacy.delta, scenario.rounds
    if calibration == "theorem":
        return TheoremCalibration(noise_std_theorem(epsilon, delta, rounds, registry.total_samples))
    mu = float(gaussian_mu(epsilon, delta))
    clip = scenario.uplink.clip
    batch_size = None if clip is None else gradient_step(scenario, clip, non_expansive)
    if batch_size is not None and statement.unit == "sample":
        reach = 2.0 if statement.adjacency == "replace" else 1.0
        return ExactStepCalibration(rounds, mu, reach, registry.total_samples, batch_size)
    return ExactCalibration(rounds, mu, 2.0 if statement.exchange else 1.0)
