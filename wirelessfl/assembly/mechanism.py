"""Differential privacy of a scenario: clipping rules, noise mechanisms, calibrated noise, code from outside."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from wirelessfl import plugins
from wirelessfl.assembly.data import load_data
from wirelessfl.assembly.learning import build_algorithm, uploads_are_updates
from wirelessfl.assembly.noise_search import calibrate
from wirelessfl.assembly.objects import make_object
from wirelessfl.assembly.selection import planned_reports
from wirelessfl.errors import ScenarioError, instance_of
from wirelessfl.learning import FlatModel, LocalTraining, Population
from wirelessfl.learning.private import CentralNoise, PrivateGradients, descent_bound, layer_of_parameters
from wirelessfl.privacy import (
    PARTS,
    BareRelease,
    NoAmplification,
    PrivacyFacts,
    Release,
    SecureSum,
    Statement,
    settings,
)
from wirelessfl.privacy.clipping import Constant, FlatClipping, Geometric, Schedule
from wirelessfl.privacy.mechanisms import GaussianMechanism
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.base import External
from wirelessfl.scenario.clients import (
    BernoulliAvailability,
    GilbertElliottAvailability,
    RecordedAvailability,
)
from wirelessfl.scenario.downlink import MulticastDownlink
from wirelessfl.scenario.mechanism import (
    Clipping,
    DynamicClip,
    ExternalClipping,
    ExternalMechanism,
    FlatClip,
    GradientNoise,
    MedianClip,
    NoMechanism,
    WaveletNoise,
    Zcdp,
    noised_by_server,
)
from wirelessfl.scenario.selection import SelectAll, SelectPoisson, SelectRoundRobin, SelectUniform
from wirelessfl.scenario.uplink import SecureAggregation
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.local_privacy import LocalPrivacy, ProxyCalibration
from wirelessfl.simulation.window import WaitFor


def why_unamplified(scenario: Scenario, wait_for: WaitFor) -> NoAmplification | None:
    """Why the sampling of clients gives no amplification against an observer of the released models; None if it does.

    Amplification needs that a client takes part independently of all others and of earlier rounds. Availability,
    crashes and a deadline are a client's own affair: with selection at rate q it then takes part with probability q or
    less. A quorum is not: whoever is fast decides who else is in the sum, also where a fixed number is selected, as
    clients that become ready at one instant are all in time.

    Args:
        scenario: the scenario.
        wait_for: when the server stops waiting.
    """
    if isinstance(scenario.clients.selection, SelectAll):
        return None
    if wait_for.stops_early(scenario.clients.most):
        return NoAmplification.QUORUM
    if scenario.stop.sim_time_s is not None:
        return NoAmplification.STOPPED_BY_CLOCK
    if isinstance(scenario.downlink, MulticastDownlink):
        return NoAmplification.FOLLOWS_THE_WEAKEST
    own = BernoulliAvailability | GilbertElliottAvailability | RecordedAvailability
    return None if isinstance(scenario.faults.availability, own) else NoAmplification.FOREIGN_AVAILABILITY


def check_records(private: LocalPrivacy, records: Callable[[], tuple[Release, ...]]) -> None:
    """Checks that the ledger and a trace can hold what a clipping rule and a noise mechanism leave.

    Args:
        private: with one of them, or both, from outside.
        records: the records of a round.

    Raises:
        ScenarioError: they leave something else.
    """
    key = "training.privacy"
    try:
        law = private.gradients.clipping.law()
        if type(law) not in PARTS:
            allowed = ", ".join(part.__name__ for part in PARTS if part.__name__.endswith("Clip"))
            raise ScenarioError(f"{key}.clipping: its law is {instance_of(type(law))}; allowed: one of {allowed}")
        for release in records():
            settings(release)
    except (TypeError, ValueError) as error:
        place = plugins.place_of(error)
        raise ScenarioError(
            f"{key}: {f'{place}: ' if place else ''}its record cannot be stored in a trace: {error}"
        ) from error


def unvouched(scenario: Scenario) -> str | None:
    """The code from outside that sees private data, in words; None without any.

    Whatever it does with them, the noise of the uplink is not calibrated to: a client's update may then follow the
    data of others. What such code costs only a release of its own can say.
    """
    training = scenario.training
    parts: dict[str, Any] = {
        "training.optimizer.name": training.optimizer,
        "training.privacy.mechanism": training.privacy,
    }
    if not isinstance(training.privacy, NoMechanism | Zcdp):
        parts["training.privacy.clipping.name"] = training.privacy.clipping
    if build_algorithm(scenario).facts().client_side:
        parts["training.algorithm.name"] = training.algorithm
    named = [f"{key} ({part.reference})" for key, part in parts.items() if isinstance(part, External)]
    return " with ".join(named) or None


@dataclass(frozen=True)
class PrivacyContext:
    """Context of clipping rules and noise mechanisms, beside their own keys.

    Attributes:
        clip_norm: C, ``training.privacy.clip``.
        rounds: M.
        layer_of: (L,) the layer of each parameter in flat order, from 0.
    """

    clip_norm: float
    rounds: int
    layer_of: tuple[int, ...]


@dataclass(frozen=True)
class NoiseContext:
    """Context of the package's noise mechanisms, beside their own keys.

    Attributes:
        noise_multiplier: σ/C in each round.
        noise_std: σ on a mini-batch mean.
    """

    noise_multiplier: Schedule
    noise_std: float


def build_local_privacy(
    scenario: Scenario,
    model: FlatModel,
    population: Population,
    training: LocalTraining,
    facts: PrivacyFacts,
    statement: Statement,
) -> LocalPrivacy | None:
    """Clipping and noise of per-sample gradients, or None.

    Raises:
        InfeasibleError: a target ε that no noise meets.
        ScenarioError: code of the user's own cannot be used.
    """
    mechanism = scenario.training.privacy
    match mechanism:
        case NoMechanism():
            return None
        case Zcdp():
            clipping: Clipping = FlatClip()
            given, epsilon = mechanism.noise_std, mechanism.epsilon
        case GradientNoise():
            if noised_by_server(mechanism):
                return _clipping_alone(scenario, model, mechanism.gradient_clip)
            clipping, given, epsilon = mechanism.clipping, mechanism.noise_multiplier, mechanism.epsilon
        case ExternalMechanism():
            clipping, given, epsilon = mechanism.clipping, 0.0, None
        case _:
            assert_never(mechanism)
    assert mechanism.clip is not None, "noise at the clients always clips"
    context = PrivacyContext(mechanism.clip, scenario.rounds, layer_of_parameters(model))
    rule = make_object("training.privacy.clipping.name", clipping, context=context)
    proxy = _proxy(scenario, clipping, mechanism.clip)
    outside = isinstance(mechanism, ExternalMechanism)

    def with_noise(noise: float) -> LocalPrivacy:
        made_with = context if outside else NoiseContext(_multiplier_schedule(clipping, noise, scenario.rounds), noise)
        added = make_object("training.privacy.mechanism", mechanism, context=made_with)
        return LocalPrivacy(PrivateGradients(rule, added), model.dimension, proxy, uploads_are_updates(scenario))

    # Clients with equally many samples spend equally much: one stands for all of them.
    representatives = np.unique(population.sizes, return_index=True)[1].astype(np.int64)

    def records(private: LocalPrivacy, round_index: int) -> tuple[Release, ...]:
        samples = population.sizes[representatives]
        return private.releases(training, samples, representatives, round_index, _planned_sum(scenario))

    if given is None:
        assert epsilon is not None and not isinstance(mechanism, ExternalMechanism)
        reports = planned_reports(scenario, training, population.sizes, representatives, unvouched(scenario))

        def planned(noise: float, round_index: int) -> tuple[Release, ...]:
            told = reports(round_index)
            if isinstance(told, BareRelease):  # no noise of the gradients hides these losses
                return (told,)
            return (*([] if told is None else [told]), *records(with_noise(noise), round_index))

        most_rounds = _most_rounds_of_a_client(scenario, clipping)
        given = calibrate(planned, epsilon, mechanism.target, most_rounds, facts, statement)
    private = with_noise(given)
    if outside or isinstance(clipping, ExternalClipping):
        check_records(private, lambda: records(private, 1))
    return private


def _clipping_alone(scenario: Scenario, model: FlatModel, gradient_clip: float | None) -> LocalPrivacy | None:
    # Gradients clipped under noise of the server, without noise of their own
    if gradient_clip is None:
        return None
    gradients = PrivateGradients(FlatClipping(gradient_clip), GaussianMechanism(Constant(0.0)))
    return LocalPrivacy(gradients, model.dimension, uploads_are_updates=uploads_are_updates(scenario))


def build_central_noise(
    scenario: Scenario, learner: Learner, facts: PrivacyFacts, statement: Statement, wait_for: WaitFor
) -> CentralNoise | None:
    """Noise that the server adds for whole clients, or None.

    Args:
        scenario: the scenario.
        learner: model, data and local training.
        facts: public constants of the population.
        statement: what ε is said about.
        wait_for: when the server stops waiting.

    Raises:
        InfeasibleError: a target ε that no noise meets.
        ScenarioError: the probability of a client's selection is not known.
    """
    mechanism = scenario.training.privacy
    if not noised_by_server(mechanism):
        return None
    selection, count, rate = scenario.clients.selection, scenario.clients.count, scenario.clients.rate
    if rate is None or not isinstance(selection, SelectAll | SelectUniform | SelectPoisson):
        raise ScenarioError(
            f"training.privacy.unit: found client with the selection {selection.scheme}; allowed: a selection of known "
            "probability, all | uniform | poisson"
        )
    unamplified, descent = why_unamplified(scenario, wait_for), _descent(scenario, mechanism.gradient_clip, learner)

    def with_noise(multiplier: float) -> CentralNoise:
        clip: Schedule | None = None if mechanism.clip is None else Constant(mechanism.clip)
        if isinstance(mechanism.clipping, DynamicClip) and mechanism.clip is not None:
            clip = Geometric(mechanism.clip, mechanism.clipping.clip_ratio, scenario.rounds)
        haar = mechanism if isinstance(mechanism, WaveletNoise) else None
        return CentralNoise(
            noise_multiplier=_multiplier_schedule(mechanism.clipping, multiplier, scenario.rounds),
            clip=clip,
            sample_rate=rate,
            selection=selection.scheme,
            count=count,
            wavelet=None if haar is None else haar.clip_domain,
            reading="algorithm_1" if haar is None else haar.reading,
            unamplified=unamplified,
            gradient_clip=mechanism.gradient_clip,
            descent=descent,
        )

    if mechanism.noise_multiplier is not None:
        return with_noise(mechanism.noise_multiplier)
    everyone = np.arange(count, dtype=np.int64)

    def planned(noise: float, round_index: int) -> tuple[Release, ...]:
        return (with_noise(noise).release(round_index, everyone, learner.upload_dimension),)

    assert mechanism.epsilon is not None
    return with_noise(calibrate(planned, mechanism.epsilon, mechanism.target, scenario.rounds, facts, statement))


def _descent(scenario: Scenario, gradient_clip: float | None, learner: Learner) -> Schedule | None:
    # What clipped gradients leave of an update; None where clients send more than the outcome of their descent
    if gradient_clip is None or scenario.clients.roles or not uploads_are_updates(scenario):
        return None
    return descent_bound(gradient_clip, learner.training, learner.lr_schedule, learner.population.sizes)


def _most_rounds_of_a_client(scenario: Scenario, clipping: Clipping) -> int:
    # The rounds for which the noise of a client is calibrated: all, or as many as its turns where all rounds cost alike
    selection, rounds = scenario.clients.selection, scenario.rounds
    if isinstance(selection, SelectRoundRobin) and not isinstance(clipping, DynamicClip):
        return -(-rounds * selection.count // scenario.clients.count)
    return rounds


def _planned_sum(scenario: Scenario) -> SecureSum | None:
    # The secure sum of a round in which nobody is lost; None without one, or where its clients are not known yet.
    known = isinstance(scenario.clients.selection, SelectAll | SelectUniform | SelectRoundRobin)
    most = scenario.clients.most
    masked = isinstance(scenario.uplink, SecureAggregation)
    malicious = sum(role.held_by(scenario.clients.count) for role in scenario.clients.roles)
    return SecureSum(most, max(0, most - malicious), arithmetic="integer") if masked and known else None


def _multiplier_schedule(clipping: Clipping, noise: float, rounds: int) -> Schedule:
    if isinstance(clipping, DynamicClip) and noise > 0:
        return Geometric(noise, clipping.multiplier_ratio, rounds)
    return Constant(noise)


def _proxy(scenario: Scenario, clipping: Clipping, clip_norm: float) -> ProxyCalibration | None:
    if not isinstance(clipping, MedianClip):
        return None
    examples = load_data(scenario)[1]
    assert examples is not None, "the rule asks for public samples"
    return ProxyCalibration(examples, clip_norm, clipping.calibration_rounds)
