"""Small simulations to audit, and ways to put a mechanism that is wrong into them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from tests.simulation.scenarios import PLAN, small
from tests.statistics import shifted
from wirelessfl.analysis.audit.audit import Audit, audit_simulation
from wirelessfl.assembly import build_simulation
from wirelessfl.learning.private import CentralNoise, PrivateGradients
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.local_privacy import LocalPrivacy
from wirelessfl.simulation.uplinks import SlotUplink, TrustedServer

FALSE_ALARM = 1e-6
"""How many of all seeds would let the audit of a right mechanism fail in a test."""

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


def descending(**overrides: Any) -> Simulation:
    """The same without a clip of updates: clipped gradients bound them, as in Algorithm 2 of the wavelet paper."""
    changes = {"clip": None, "gradient_clip": 0.5, "noise_multiplier": 1.0, "sampling": "shuffle"}
    privacy = {f"training__privacy__{name}": value for name, value in changes.items()}
    return trusted(training__optimizer={"name": "sgd", "lr": 0.05, "momentum": 0.5}, **{**privacy, **overrides})


def as_other(part: Any, other: type[Part]) -> Part:
    """The same values in a class derived from that of ``part``."""
    return other(**{field.name: getattr(part, field.name) for field in fields(part)})


def with_uplink(simulation: Simulation, other: type[SlotUplink]) -> Simulation:
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


def with_server(simulation: Simulation, other: type[CentralNoise]) -> Simulation:
    """The simulation with its server's mechanism replaced by a wrong one."""
    uplink = simulation.deployment.uplink
    assert isinstance(uplink, TrustedServer)
    wrong = replace(uplink, central=as_other(uplink.central, other))
    simulation.deployment = replace(simulation.deployment, uplink=wrong)
    return simulation
