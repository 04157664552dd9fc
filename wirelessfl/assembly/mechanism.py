"""Differential privacy of a scenario: clipping rules, noise mechanisms, and noise calibrated to a target."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from wirelessfl.assembly.amplification import why_unamplified
from wirelessfl.assembly.learning import load_data, uploads_are_updates
from wirelessfl.assembly.noise_search import calibrate
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import FlatModel, LocalTraining, Population
from wirelessfl.learning.private import CentralNoise, PrivateGradients, layer_of_parameters
from wirelessfl.privacy import PrivacyFacts, Release, Statement
from wirelessfl.privacy.clipping import (
    ClippingRule,
    Constant,
    DynamicClipping,
    FlatClipping,
    Geometric,
    PerLayerClipping,
    PrivateMooClipping,
    PublishedMooClipping,
    QuantileClipping,
    Schedule,
)
from wirelessfl.privacy.mechanisms import GaussianMechanism, HaarMechanism, MeanGaussianMechanism, NoiseMechanism
from wirelessfl.privacy.releases import SecureSum
from wirelessfl.scenario import Scenario, config
from wirelessfl.scenario.clients import ExternalSelection
from wirelessfl.simulation.local_privacy import LocalPrivacy, ProxyCalibration
from wirelessfl.simulation.window import WaitFor


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
    """
    mechanism = scenario.training.privacy
    if isinstance(mechanism, config.NoMechanism) or getattr(mechanism, "unit", "sample") == "client":
        return None

    def with_noise(noise: float) -> LocalPrivacy:
        adds_noise = noise > 0
        if isinstance(mechanism, config.Zcdp):
            gradients = PrivateGradients(FlatClipping(mechanism.clip), MeanGaussianMechanism(noise))
            return LocalPrivacy(gradients, adds_noise, model.dimension, None, uploads_are_updates(scenario))
        assert isinstance(mechanism, config.GradientNoise)
        rule = build_clipping(mechanism, model, noise, scenario.rounds)
        gradients = PrivateGradients(rule, _noise_mechanism(mechanism, noise, scenario.rounds))
        proxy = _proxy(scenario, mechanism)
        return LocalPrivacy(gradients, adds_noise, model.dimension, proxy, uploads_are_updates(scenario))

    given = mechanism.noise_std if isinstance(mechanism, config.Zcdp) else mechanism.noise_multiplier
    if given is not None:
        return with_noise(given)

    representatives = _one_client_of_each_size(population)

    def planned(noise: float, round_index: int) -> tuple[Release, ...]:
        samples = population.sizes[representatives]
        return with_noise(noise).releases(training, samples, representatives, round_index, _planned_sum(scenario))

    assert mechanism.epsilon is not None
    return with_noise(calibrate(planned, mechanism.epsilon, mechanism.target, scenario.rounds, facts, statement))


def build_central_noise(
    scenario: Scenario, dimension: int, facts: PrivacyFacts, statement: Statement, wait_for: WaitFor
) -> CentralNoise | None:
    """Noise that the server adds for whole clients, or None.

    Args:
        scenario: the scenario.
        dimension: of an upload.
        facts: public constants of the population.
        statement: what ε is said about.
        wait_for: when the server stops waiting.

    Raises:
        InfeasibleError: a target ε that no noise meets.
    """
    mechanism = scenario.training.privacy
    if not isinstance(mechanism, config.GradientNoise) or mechanism.unit != "client":
        return None
    selection, count = scenario.clients.selection, scenario.clients.count
    match selection:
        case config.SelectAll():
            rate = 1.0
        case config.SelectUniform():
            rate = selection.count / count
        case config.SelectPoisson():
            rate = selection.rate
        case ExternalSelection():
            raise TypeError("central noise needs a known probability of selection; the scenario was checked")
        case _:
            assert_never(selection)

    unamplified = why_unamplified(scenario, wait_for)

    def with_noise(multiplier: float) -> CentralNoise:
        clip: Schedule | None = None if mechanism.clip is None else Constant(mechanism.clip)
        if isinstance(mechanism.clipping, config.DynamicClip) and mechanism.clip is not None:
            clip = Geometric(mechanism.clip, mechanism.clipping.clip_ratio, scenario.rounds)
        wavelet = mechanism if isinstance(mechanism, config.WaveletNoise) else None
        return CentralNoise(
            noise_multiplier=_multiplier_schedule(mechanism, multiplier, scenario.rounds),
            clip=clip,
            sample_rate=rate,
            selection=selection.scheme,
            count=count,
            wavelet=None if wavelet is None else wavelet.clip_domain,
            reading="algorithm_1" if wavelet is None else wavelet.reading,
            unamplified=unamplified,
        )

    if mechanism.noise_multiplier is not None:
        return with_noise(mechanism.noise_multiplier)
    everyone = np.arange(count, dtype=np.int64)

    def planned(noise: float, round_index: int) -> tuple[Release, ...]:
        return (with_noise(noise).release(round_index, everyone, dimension),)

    assert mechanism.epsilon is not None
    return with_noise(calibrate(planned, mechanism.epsilon, mechanism.target, scenario.rounds, facts, statement))


def _planned_sum(scenario: Scenario) -> SecureSum | None:
    """The secure sum of a round in which nobody is lost; None without one, or where its clients are not known yet."""
    selection = scenario.clients.selection
    if not isinstance(scenario.uplink, config.SecureAggregation) or isinstance(selection, config.SelectPoisson):
        return None
    selected = scenario.clients.most
    return SecureSum(selected, selected, arithmetic="integer")


def _one_client_of_each_size(population: Population) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Clients with equally many samples spend equally much: one stands for all of them."""
    return np.unique(population.sizes, return_index=True)[1].astype(np.int64)


def build_clipping(mechanism: config.GradientNoise, model: FlatModel, noise: float, rounds: int) -> ClippingRule:
    """How gradients are clipped.

    Raises:
        ScenarioError: norms of other layers than the model has.
    """
    clipping, clip = mechanism.clipping, mechanism.clip
    assert clip is not None, "noise at the clients always clips"
    match clipping:
        case config.FlatClip() | config.MedianClip():
            return FlatClipping(clip)
        case config.PerLayerClip():
            layers = layer_of_parameters(model)
            if clipping.norms is None:
                return PerLayerClipping.split(clip, layers)
            if len(clipping.norms) != len(set(layers)):
                raise ScenarioError(
                    f"training.privacy.clipping.norms: found {len(clipping.norms)} norms; "
                    f"allowed with this model: {len(set(layers))}, one for each layer, or null"
                )
            return PerLayerClipping(clipping.norms, layers)
        case config.QuantileClip():
            return QuantileClipping(clip, clipping.quantile, clipping.lr, clipping.count_noise_std)
        case config.DynamicClip():
            return DynamicClipping(Geometric(clip, clipping.clip_ratio, rounds))
        case config.MooClip(feedback="published"):
            return PublishedMooClipping(clip, clipping.kappa, clipping.lr)
        case config.MooClip():
            return PrivateMooClipping(clip, clipping.kappa, clipping.lr)
        case _:
            assert_never(clipping)


def _noise_mechanism(mechanism: config.GradientNoise, noise: float, rounds: int) -> NoiseMechanism:
    schedule = _multiplier_schedule(mechanism, noise, rounds)
    if isinstance(mechanism, config.WaveletNoise):
        return HaarMechanism(schedule, mechanism.clip_domain, mechanism.reading)
    return GaussianMechanism(schedule)


def _multiplier_schedule(mechanism: config.GradientNoise, noise: float, rounds: int) -> Schedule:
    if isinstance(mechanism.clipping, config.DynamicClip) and noise > 0:
        return Geometric(noise, mechanism.clipping.multiplier_ratio, rounds)
    return Constant(noise)


def _proxy(scenario: Scenario, mechanism: config.GradientNoise) -> ProxyCalibration | None:
    if not isinstance(mechanism.clipping, config.MedianClip):
        return None
    examples = load_data(scenario)[1]
    assert examples is not None and mechanism.clip is not None
    return ProxyCalibration(examples, mechanism.clip, mechanism.clipping.calibration_rounds)
