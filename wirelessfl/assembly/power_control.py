"""Power control over the air, and how much noise its privacy needs."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wirelessfl.assembly.inputs import found
from wirelessfl.assembly.learning import uploads_are_updates
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
    Gbma,
    LowerGain,
    MeasuredNorms,
    Network,
    PowerControl,
    PrivacyBudget,
    PrivacyForFree,
    Registry,
    StaticPrivacyForFree,
    TheoremCalibration,
    TruncatedInversion,
    WeakestInversion,
    check_power_control,
    is_non_expansive,
    mean_inverse_power,
    server_gain_for_noise,
)
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.base import External
from wirelessfl.scenario.mechanism import FlatClip, GaussianNoise
from wirelessfl.scenario.power_control import MEASURED
from wirelessfl.scenario.power_control import PowerControl as PowerControlSection
from wirelessfl.scenario.reception import SumCombiner
from wirelessfl.scenario.training import Sgd

CHANNEL_NOISE_STD = 1.0
"""σ_c: the receiver normalises its noise to variance 1 per real symbol (RADIO.md)."""


@dataclass(frozen=True)
class PowerControlContext:
    """Context of power controls, beside their keys.

    Attributes:
        scenario: the whole of it.
        network: registered clients, their weights and budgets, and their channels.
        statement: what ε is said about.
        rounds: M.
        threshold: the deep-fade threshold on |ĥ|²/E|ĥ|².
        total_samples: |D|.
    """

    scenario: Scenario
    network: Network
    statement: Statement
    rounds: int
    threshold: float
    total_samples: int


def build_power_control(
    scenario: Scenario, control: PowerControlSection, network: Network, statement: Statement
) -> PowerControl:
    """The power control; declared properties of one from outside, which the ledger uses, are tested.

    Raises:
        DataError: a file of expected norms is missing, damaged or too short.
        InfeasibleError: a threshold that no channel reaches.
        ScenarioError: a policy of the user's own cannot be used.
    """
    facts = (scenario.rounds, scenario.faults.fade_threshold, network.registry.total_samples)
    context = PowerControlContext(scenario, network, statement, *facts)
    located = found(scenario, "uplink.power_control", control)
    policy: PowerControl = make_object("uplink.power_control.policy", located, context=context)
    if isinstance(control, External) and policy.needs_norms and is_non_expansive(policy):
        try:
            check_power_control(policy)
        except CheckFailed as broken:
            raise ScenarioError(
                f"uplink.power_control.policy: {control.policy} declares non_expansive, but fails its check: {broken}"
            ) from broken
    return policy


def cross_layer(
    server_gain: float | Literal["auto"],
    epsilon: float,
    backoff: Literal["bound", "actual"],
    rescale: Literal["clip_norm", "none"],
    scenario: Scenario,
    total_samples: int,
) -> CrossLayer:
    """Cross-layer power control, with the server gain at which channel noise alone meets ε where it is ``auto``."""
    if server_gain == "auto":
        needed = noise_std_theorem(epsilon, scenario.privacy.delta, scenario.rounds, total_samples)
        server_gain = server_gain_for_noise(needed, _read_noise_std(scenario))
    return CrossLayer(server_gain, backoff, rescale)


def _read_noise_std(scenario: Scenario) -> float:
    # What adds up behind the plain sum of A antennas; other combiners have the norm 1
    receiver = getattr(scenario.uplink, "receiver", None)
    return CHANNEL_NOISE_STD * (math.sqrt(receiver.antennas) if isinstance(receiver, SumCombiner) else 1.0)


def lower_gain(
    epsilon: float,
    calibration: Literal["theorem", "exact"],
    rescale: Literal["clip_norm", "none"],
    scenario: Scenario,
    network: Network,
    statement: Statement,
) -> LowerGain:
    """The server gain lowered until the channel noise meets ε."""
    return LowerGain(build_calibration(calibration, epsilon, scenario, network.registry, statement, True), rescale)


def privacy_for_free(
    epsilon: float,
    schedule: Literal["static", "adaptive"],
    contraction: float,
    scenario: Scenario,
    total_samples: int,
) -> StaticPrivacyForFree | PrivacyForFree:
    """The policy of Liu and Simeone with its budget of the whole run."""
    cost = float(tail_bound_cost(epsilon, scenario.privacy.delta))
    budget = PrivacyBudget(cost, scenario.rounds, total_samples)
    return StaticPrivacyForFree(budget) if schedule == "static" else PrivacyForFree(budget, contraction)


def truncated_inversion(
    power_limit: Literal["peak", "average"], threshold: float, network: Network
) -> TruncatedInversion:
    """Inversion above the deep-fade threshold."""
    return TruncatedInversion(threshold, _mean_inverse_power(network, threshold) if power_limit == "average" else None)


def weakest_inversion(threshold: float) -> WeakestInversion:
    """The scale of the weakest client above the deep-fade threshold."""
    return WeakestInversion(threshold)


def cotaf(
    expected_norms: tuple[float, ...] | str | None, h_min: float | None, rounds: int, threshold: float
) -> Cotaf | MeasuredNorms:
    """COTAF by norms that are given, or by those of each round."""
    policy = Cotaf(_expected_norms(expected_norms, rounds), h_min, threshold)
    return MeasuredNorms(policy) if expected_norms == MEASURED else policy


def gbma(expected_norms: tuple[float, ...] | str | None, rounds: int) -> Gbma | MeasuredNorms:
    """GBMA by norms that are given, or by those of each round."""
    policy = Gbma(_expected_norms(expected_norms, rounds))
    return MeasuredNorms(policy) if expected_norms == MEASURED else policy


def _expected_norms(given: tuple[float, ...] | str | None, rounds: int) -> ExpectedNorms:
    # By which norms a precoder scales; where they are measured, the clip stands for them until they are known.
    if given is None or given == MEASURED:
        return ExpectedNorms()
    return ExpectedNorms(load_norms(given, rounds) if isinstance(given, str) else given)


def _mean_inverse_power(network: Network, threshold: float) -> float:
    # E[1/X; X >= g] of the clients' estimates, the larger one where lines of sight make a difference. Raises
    # InfeasibleError: no channel ever reaches the threshold.
    clients = network.clients
    # At β = 1: with pilots and a path loss the error is another on each link, and only Rayleigh fading gets here, whose
    # estimate has the same law whatever the error (`precoder_consistency`).
    error_std, estimator = float(clients.impairments.error_std(np.ones(1))[0]), clients.impairments.csi_estimator
    laws = [clients.antennas[0].law_of(in_sight) for in_sight in (False, True)]
    cost = max(mean_inverse_power(law, threshold, error_std, estimator) for law in laws)
    if cost == 0:
        raise InfeasibleError(
            f"faults.fade_threshold: found {threshold:g}, which no channel reaches, so that no client would send"
        )
    return cost


def gradient_step(scenario: Scenario, clip: float, non_expansive: bool) -> int | None:
    """The batch size of one step of per-sample-clipped gradients with τ = η·clip; None for any other training.

    None also where the power control is not known to be ``non_expansive``, or clients send something else than updates:
    what bounds one sample's share of the update then bounds nothing of what is sent. The optimizer starts anew in every
    round, so that the momentum of plain SGD has no part in a single step; noise that a client adds and the clip of its
    update, which only contracts, take nothing away from the bound.
    """
    training = scenario.training
    mechanism, optimizer = training.privacy, training.optimizer
    if not (non_expansive and uploads_are_updates(scenario)):
        return None
    per_sample = isinstance(mechanism, GaussianNoise) and isinstance(mechanism.clipping, FlatClip)
    one_step = training.steps == 1 and isinstance(optimizer, Sgd) and training.lr_schedule is None
    if not (per_sample and one_step and isinstance(mechanism, GaussianNoise) and mechanism.clip is not None):
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
    """Calibration of a round's noise to an ε of the whole run, under a power control that may be ``non_expansive``."""
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
