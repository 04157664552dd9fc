"""Small simulations to audit, and mechanisms that are wrong on purpose: what they record is not what they do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.simulation.scenarios import PLAN, small
from tests.statistics import shifted
from wirelessfl.analysis.audit import Audit, audit_simulation
from wirelessfl.learning import CohortBlock, LocalTraining
from wirelessfl.learning.cohort import StepContext
from wirelessfl.learning.private import CentralNoise, PrivateGradients
from wirelessfl.privacy import Release, SecureSum
from wirelessfl.privacy.clipping import Clipped, ClippingState, FlatClipping, QuantileClipping, Samples, Step
from wirelessfl.privacy.mechanisms import GaussianMechanism, HaarMechanism, MeanGaussianMechanism
from wirelessfl.simulation import Simulation, build_simulation
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.local_privacy import LocalPrivacy
from wirelessfl.simulation.uplinks import OverTheAir, TrustedServer
from wirelessfl.simulation.uplinks.air_noise import AirPlan
from wirelessfl.streams import Streams

FALSE_ALARM = 1e-6
"""How many of all seeds would let the audit of a right mechanism fail in a test."""

Build = Callable[[], Simulation]
Part = TypeVar("Part")


def built(**overrides: Any) -> Simulation:
    """The small scenario with overrides, ready to run."""
    return build_simulation(small(**{"seed": shifted(11), **overrides}), PLAN)


def audited(simulation: Simulation, trials: int = 60) -> Audit:
    """An audit whose false-alarm rate is that of the tests."""
    return audit_simulation(simulation, "small", trials, FALSE_ALARM)


def whole_update() -> Simulation:
    """Over the air, whole updates clipped."""
    return built(training__privacy__mechanism="none")


def jammed() -> Simulation:
    """The same with a jammer that makes nearly all of the noise."""
    return built(uplink__jammer={"epsilon": 0.01}, uplink__power_control__epsilon=500.0)


def client_zeroed() -> Simulation:
    """A whole client, there or not."""
    return built(privacy__unit="client", uplink__jammer={"epsilon": 4.0, "calibration": "exact"})


def gradient_step(**overrides: Any) -> Simulation:
    """Over the air, one step of clipped gradients."""
    private = {"mechanism": "gaussian", "sampling": "shuffle", "clip": 1.0, "noise_multiplier": 0}
    training = {"optimizer": {"name": "sgd", "lr": 2.0, "momentum": 0}, "steps": 1, "epochs": None, "batch_size": 1000}
    return built(training={**training, "privacy": private}, uplink__clip=2.0, **overrides)


def local(mechanism: str = "gaussian", **overrides: Any) -> Simulation:
    """Noise at the clients, which upload over an ideal link."""
    private: dict[str, Any] = {"mechanism": mechanism, "sampling": "poisson", "clip": 1.0, "noise_multiplier": 1.5}
    if mechanism == "zcdp":
        private = {"mechanism": "zcdp", "clip": 1.0, "noise_std": 0.2}
    if mechanism == "wavelet":
        private["clip_domain"] = "weighted"
    changes = {f"training__privacy__{name}": value for name, value in overrides.pop("privacy", {}).items()}
    training = {"optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0}, "batch_size": 5, "privacy": private}
    return built(training=training, **{"uplink": {"kind": "ideal"}, **changes, **overrides})


def trusted(**overrides: Any) -> Simulation:
    """Noise at a trusted server, for whole clients."""
    private = {"mechanism": "gaussian", "unit": "client", "clip": 0.05, "noise_multiplier": 1.0}
    return built(
        training__privacy=private,
        uplink={"kind": "ideal"},
        privacy={"unit": "client", "adversary": "observer"},
        **overrides,
    )


# ------------------------------------------------------------------------------------------ wrong over the air


class Noiseless(OverTheAir):
    """Forgets all noise."""

    def _noise(self, round_index: int, plan: AirPlan) -> NDArray[np.float64]:
        return np.zeros(self.air.dimension)


class HalfTheNoise(OverTheAir):
    """Halves the noise."""

    def _noise(self, round_index: int, plan: AirPlan) -> NDArray[np.float64]:
        return super()._noise(round_index, plan) / 2


class JammerAsleep(OverTheAir):
    """Forgets the jammer."""

    def _noise(self, round_index: int, plan: AirPlan) -> NDArray[np.float64]:
        return super()._noise(round_index, replace(plan, jammer=None))


def as_other(part: Any, other: type[Part]) -> Part:
    """The same values in a class derived from that of ``part``."""
    return other(**{field.name: getattr(part, field.name) for field in fields(part)})


def with_uplink(simulation: Simulation, other: type[OverTheAir]) -> Simulation:
    """The simulation with its uplink replaced by a wrong one."""
    uplink = as_other(simulation.deployment.uplink, other)
    simulation.deployment = replace(simulation.deployment, uplink=uplink)
    return simulation


def with_training(simulation: Simulation, **changes: Any) -> Simulation:
    """The simulation with something of local training replaced that no record hears of."""
    learner = simulation.deployment.learner
    assert isinstance(learner, Learner)
    changed = replace(learner, training=replace(learner.training, **changes))
    simulation.deployment = replace(simulation.deployment, learner=changed)
    return simulation


class SameNoiseInAllRounds(OverTheAir):
    """Draws the noise of the first round in every round."""

    def _noise(self, round_index: int, plan: AirPlan) -> NDArray[np.float64]:
        return super()._noise(1, plan)


class AlternatingNoise(OverTheAir):
    """Takes in every second round the noise of the round before, turned round."""

    def _noise(self, round_index: int, plan: AirPlan) -> NDArray[np.float64]:
        even = round_index % 2 == 0
        return np.asarray(super()._noise(round_index - even, plan) * (-1.0 if even else 1.0))


class NoiseInHalfOfTheCoordinates(OverTheAir):
    """Forgets every second coordinate, and makes up for the variance in the others."""

    def _noise(self, round_index: int, plan: AirPlan) -> NDArray[np.float64]:
        there = np.arange(self.air.dimension) % 2
        return np.asarray(super()._noise(round_index, plan) * np.sqrt(2) * there)


# --------------------------------------------------------------------------------------- wrong at the clients


class OneNoiseForAll(GaussianMechanism):
    """Draws all noise for client 0."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """As it should be for one client."""
        assert isinstance(step, StepContext)
        return super().add(total, sensitivity, replace(step, clients=np.zeros_like(step.clients)))


class OneNoiseForAllSteps(GaussianMechanism):
    """Draws the noise of the first step in every step of a round."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """As it should be in step 0."""
        assert isinstance(step, StepContext)
        return super().add(total, sensitivity, replace(step, step=0))


class OneNoiseForAllRounds(GaussianMechanism):
    """Draws the noise of the first round in every round."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """As it should be in round 1."""
        assert isinstance(step, StepContext)
        return super().add(total, sensitivity, replace(step, round_index=1))


class OneNoiseForAllSeeds(GaussianMechanism):
    """Draws noise that everybody knows, from a seed of its own."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """As it should be with seed 1."""
        assert isinstance(step, StepContext)
        return super().add(total, sensitivity, replace(step, streams=Streams(1)))


class NoiseOnEverySecondCoordinate(GaussianMechanism):
    """Forgets every second coordinate, and makes up for the variance in the others."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """√2 times the noise on half of the coordinates."""
        noisy = total.clone()
        multiplier = super().add(noisy, sensitivity, step)
        total[:, 1::2] += (noisy - total)[:, 1::2] * 2**0.5
        return multiplier


class UniformNoise(GaussianMechanism):
    """Noise of the right variance with a bounded law."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """The normal quantiles of the right noise, made uniform."""
        noisy = total.clone()
        multiplier = super().add(noisy, sensitivity, step)
        std = (multiplier * sensitivity)[:, None]
        total += std * 12**0.5 * (torch.special.ndtr((noisy - total) / std) - 0.5)
        return multiplier


class BareCount(QuantileClipping):
    """Releases the count of clipped samples as it is."""

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        """As with next to no standard deviation."""
        bare = QuantileClipping(self.initial_clip, self.quantile, self.clip_learning_rate, 1e-12)
        return bare.clip(samples, state, step)


class HalvedCountNoise(QuantileClipping):
    """Half of the noise on the count that it says."""

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        """As with half the standard deviation."""
        less = QuantileClipping(self.initial_clip, self.quantile, self.clip_learning_rate, self.count_noise_std / 2)
        return less.clip(samples, state, step)


class RepeatedCountNoise(QuantileClipping):
    """One number as the noise of all counts of a round."""

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        """As in step 0."""
        assert isinstance(step, StepContext)
        return super().clip(samples, state, replace(step, step=0))


class ForgottenClip(FlatClipping):
    """Says that it clips, and does not."""

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        """As it should be, with weights 1."""
        clipped = super().clip(samples, state, step)
        return replace(clipped, weights=clipped.weights.new_ones(clipped.weights.shape))


class ForgottenNoise(GaussianMechanism):
    """Says that it adds noise, and does not."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """The multiplier of the record only."""
        return super().add(total.clone(), sensitivity, step)


class HalvedNoise(GaussianMechanism):
    """Half of the noise that it says."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """Scales to half the sensitivity."""
        return super().add(total, sensitivity / 2, step)


class HalvedHaarNoise(HaarMechanism):
    """Half of the noise that it says."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """Scales to half the sensitivity."""
        return super().add(total, sensitivity / 2, step)


class UnweightedHaarNorm(HaarMechanism):
    """Clips the gradient where its record says that it clips weighted coefficients."""

    def squared_norms(self, gradients: Any) -> Tensor:
        """Of the gradients as they are."""
        norms: Tensor = gradients.squared_norms()
        return norms


class NoiseOnTheSum(MeanGaussianMechanism):
    """Takes the noise meant for the mean and adds it to the sum, γ times too little."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """As it should be, divided by γ."""
        noisy = total.clone()
        multiplier = super().add(noisy, sensitivity, step)
        total += (noisy - total) / step.divisor[:, None]
        return multiplier


class RarerThanItSays(LocalPrivacy):
    """Records half the batch size that is drawn, and so half the sampling rate."""

    def releases(
        self,
        training: LocalTraining,
        samples: NDArray[np.int64],
        clients: NDArray[np.int64],
        round_index: int,
        secure_sum: SecureSum | None,
    ) -> tuple[Release, ...]:
        """As if batches were half as large, in as many steps."""
        halved = replace(training, batch_size=training.batch_size // 2, epochs=None, steps=4)
        return super().releases(halved, samples, clients, round_index, secure_sum)


def with_gradients(
    simulation: Simulation, clipping: type[Any] | None = None, noise: type[Any] | None = None
) -> Simulation:
    """The simulation with its clipping rule or noise mechanism replaced by a wrong one."""
    learner = simulation.deployment.learner
    assert isinstance(learner, Learner) and learner.private is not None
    right = learner.private.gradients
    wrong = PrivateGradients(
        right.clipping if clipping is None else as_other(right.clipping, clipping),
        right.noise if noise is None else as_other(right.noise, noise),
    )
    return with_private(simulation, replace(learner.private, gradients=wrong))


def with_private(simulation: Simulation, private: LocalPrivacy) -> Simulation:
    """The simulation with its local privacy replaced."""
    learner = simulation.deployment.learner
    assert isinstance(learner, Learner)
    simulation.deployment = replace(simulation.deployment, learner=replace(learner, private=private))
    return simulation


# ----------------------------------------------------------------------------------------- wrong at the server


class SilentServer(CentralNoise):
    """Forgets the noise."""

    def noise(self, dimension: int, round_index: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """None."""
        return np.zeros(dimension)


class QuietServer(CentralNoise):
    """Halves the noise."""

    def noise(self, dimension: int, round_index: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Half of it."""
        return super().noise(dimension, round_index, generator) / 2


class OneNoiseForTheServer(CentralNoise):
    """Adds the same noise in every second round, whatever the seed."""

    def noise(self, dimension: int, round_index: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """One for all odd rounds and one for all even ones."""
        return super().noise(dimension, round_index, np.random.default_rng(round_index % 2))


class UnclippingServer(CentralNoise):
    """Takes updates as they come."""

    def clip_block(self, block: CohortBlock, round_index: int) -> CohortBlock:
        """Nothing."""
        return block


class SkipsEmptyRounds(TrustedServer):
    """Leaves the model as it is where nobody was selected, and does not record it."""

    @property
    def steps_without_senders(self) -> bool:
        """No."""
        return False


def with_server(simulation: Simulation, other: type[CentralNoise]) -> Simulation:
    """The simulation with its server's mechanism replaced by a wrong one."""
    uplink = simulation.deployment.uplink
    assert isinstance(uplink, TrustedServer)
    wrong = replace(uplink, central=as_other(uplink.central, other))
    simulation.deployment = replace(simulation.deployment, uplink=wrong)
    return simulation
