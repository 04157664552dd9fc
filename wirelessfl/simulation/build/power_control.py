"""Power control over the air, and how much noise its privacy needs."""

from __future__ import annotations

from typing import Literal, assert_never

from wirelessfl.privacy import Statement, gaussian_mu
from wirelessfl.radio import (
    Calibration,
    Cotaf,
    CrossLayer,
    ExactCalibration,
    FullPower,
    LowerGain,
    MinimumMse,
    PowerControl,
    PrivacyBudget,
    PrivacyForFree,
    StaticPrivacyForFree,
    TheoremCalibration,
    TruncatedInversion,
    required_noise_std_theorem,
    server_gain_for_epsilon,
)
from wirelessfl.scenario import Scenario, config
from wirelessfl.simulation.build.objects import make_object
from wirelessfl.simulation.network import Registry

CHANNEL_NOISE_STD = 1.0
"""σ_c: the receiver normalises its noise to variance 1 per real symbol (RADIO.md)."""


def build_power_control(
    scenario: Scenario, control: config.PowerControl, registry: Registry, statement: Statement
) -> PowerControl:
    """The power control."""
    threshold = scenario.faults.fade_threshold
    match control:
        case config.CrossLayer():
            return CrossLayer(_server_gain(scenario, control, registry), control.backoff, control.rescale)
        case config.LowerGain():
            calibration = build_calibration(control.calibration, control.epsilon, scenario, registry, statement)
            return LowerGain(calibration, control.rescale)
        case config.PrivacyForFree():
            budget = PrivacyBudget(control.epsilon, scenario.privacy.delta, scenario.rounds, registry.total_samples)
            if control.schedule == "static":
                return StaticPrivacyForFree(budget)
            return PrivacyForFree(budget, control.contraction)
        case config.FullPower():
            return FullPower()
        case config.TruncatedInversion():
            return TruncatedInversion(threshold)
        case config.Cotaf():
            return Cotaf(threshold)
        case config.MinimumMse():
            return MinimumMse()
        case config.ExternalPowerControl():
            policy: PowerControl = make_object(
                "uplink.power_control.policy", control.policy, control.options, PowerControl
            )
            return policy
        case _:
            assert_never(control)


def own_threshold(control: config.PowerControl, threshold: float) -> float:
    """The deep-fade threshold that is left to the uplink: 0 where the policy itself says who is silent."""
    return 0.0 if isinstance(control, config.TruncatedInversion | config.Cotaf) else threshold


def _server_gain(scenario: Scenario, control: config.CrossLayer, registry: Registry) -> float:
    if control.server_gain != "auto":
        return control.server_gain
    return server_gain_for_epsilon(
        control.epsilon, scenario.privacy.delta, scenario.rounds, registry.total_samples, CHANNEL_NOISE_STD
    )


def build_calibration(
    calibration: Literal["theorem", "exact"],
    epsilon: float,
    scenario: Scenario,
    registry: Registry,
    statement: Statement,
) -> Calibration:
    """How much noise a round needs for an ε of the whole run."""
    delta, rounds = scenario.privacy.delta, scenario.rounds
    if calibration == "theorem":
        return TheoremCalibration(required_noise_std_theorem(epsilon, delta, rounds, registry.total_samples))
    reach = 2.0 if statement.exchange else 1.0
    return ExactCalibration(rounds, float(gaussian_mu(epsilon, delta)), reach)
