"""The package's own models conform, and each promise of the public checks is seen when it is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from wirelessfl.errors import CheckFailed
from wirelessfl.radio import (
    AirInterface,
    CrossLayer,
    FadingModel,
    FullPower,
    Links,
    MinimumMse,
    Nakagami,
    PowerControl,
    PrivacyBudget,
    PrivacyForFree,
    Rayleigh,
    Rician,
    Static,
    StaticPrivacyForFree,
    Transmission,
    TransmitPlan,
    TruncatedInversion,
    WeakestInversion,
)
from wirelessfl.radio.conformance import check_fading_model, check_power_control
from wirelessfl.streams import NodeStream

BUDGET = PrivacyBudget(cost=0.08, rounds=20, total_samples=3000)
POLICIES: list[PowerControl] = [
    CrossLayer(50.0),
    CrossLayer(50.0, backoff="actual"),
    CrossLayer(1e5, rescale="none"),
    FullPower(),
    TruncatedInversion(0.1),
    WeakestInversion(),
    WeakestInversion(0.3),
    MinimumMse(),
    StaticPrivacyForFree(BUDGET),
    PrivacyForFree(BUDGET, contraction=0.95),
    PrivacyForFree(BUDGET, contraction=1.0, spent=BUDGET.squared_gains(1.3) / 2),
]


@pytest.mark.parametrize("model", [Rayleigh(), Static(), Rician(3.0), Nakagami(0.5), Nakagami(6.0)])
def test_fading_models_conform(model: FadingModel) -> None:
    check_fading_model(model)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_power_controls_conform(policy: PowerControl) -> None:
    check_power_control(policy)


@dataclass
class BrokenFading:
    """Rayleigh with one defect."""

    defect: str
    calls: list[int] = field(default_factory=list)

    def draw(self, stream: NodeStream) -> Any:
        gains = Rayleigh().draw(stream)
        self.calls.append(1)
        match self.defect:
            case "mean power":
                return gains * 1.02
            case "shape":
                return gains[:, None]
            case "complex128":
                return gains.real
            case "finite":
                return np.where(stream.nodes == 5, np.inf, gains)
            case "hidden state":
                return gains * np.exp(1j * len(self.calls))
            case "other nodes":
                return gains[::-1]
        raise AssertionError


@pytest.mark.parametrize("defect", ["mean power", "shape", "complex128", "finite", "hidden state", "other nodes"])
def test_broken_fading_is_refused(defect: str) -> None:
    with pytest.raises(CheckFailed, match=defect):
        check_fading_model(BrokenFading(defect))


def test_something_else_is_refused() -> None:
    with pytest.raises(CheckFailed, match="draw"):
        check_fading_model("rayleigh")  # type: ignore[arg-type]
    with pytest.raises(CheckFailed, match="lacks"):
        check_power_control(Rayleigh())  # type: ignore[arg-type]


@dataclass(frozen=True)
class ByTheNorm:
    """Channel inversion at a gain that follows the norm of the update: ``law`` of r = ‖Δ‖/τ is the amplitude sent."""

    law: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    non_expansive: bool = True
    needs_norms: ClassVar[bool] = True

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        return CrossLayer(50.0).plan(links, round_index, air)

    def transmit(self, plan: TransmitPlan, links: Links, norms: Any) -> Transmission:
        sent, fill = CrossLayer(50.0).transmit(plan, links), norms / plan.clip
        return replace(sent, tx_gain=sent.tx_gain * self.law(fill) / fill)


def test_only_non_expansive_scaling_by_norms_passes() -> None:
    """A projection and a contraction; not the same power for every update, nor a step between two gains."""
    check_power_control(CrossLayer(50.0, backoff="actual"))
    check_power_control(ByTheNorm(lambda fill: np.asarray(np.minimum(fill, 0.3))))
    check_power_control(ByTheNorm(lambda fill: np.asarray(np.log1p(fill))))
    laws: list[Callable[[NDArray[np.float64]], NDArray[np.float64]]] = [
        lambda fill: np.ones_like(fill),
        lambda fill: np.asarray(np.sqrt(fill)),
        lambda fill: np.where(fill > 0.5, fill, 0.5 * fill),
    ]
    for law in laws:
        with pytest.raises(CheckFailed, match="a change of an update"):
            check_power_control(ByTheNorm(law))
        check_power_control(ByTheNorm(law, non_expansive=False))


@dataclass
class BrokenPolicy:
    """Cross-layer power control with one defect."""

    defect: str
    calls: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    needs_norms: ClassVar[bool] = False

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        plan = CrossLayer(50.0).plan(links, round_index, air)
        self.calls.append(1)
        match self.defect:
            case "server_gain is":
                return replace(plan, server_gain=np.nan)
            case "receive_scale is":
                return replace(plan, receive_scale=0.0)
            case "clip is":
                return replace(plan, clip=2 * air.clip)
            case "silent has shape":
                return replace(plan, silent=plan.silent[:0])
            case "silent holds":
                return replace(plan, silent=np.arange(len(links)))  # type: ignore[arg-type]
            case "planning twice":
                return plan.with_server_gain(50.0 + len(self.calls))
            case "who is silent":
                return replace(plan, silent=np.arange(len(links)) == 1)
            case "server_gain depends on the order":
                return plan.with_server_gain(50.0 * abs(links.estimate[0]))
            case "what was sent":
                return plan.with_server_gain(50.0 + len(self.sent))
        return plan

    def transmit(self, plan: TransmitPlan, links: Links, norms: Any) -> Transmission:
        sent = CrossLayer(50.0).transmit(plan, links)
        self.sent.append(len(links))
        match self.defect:
            case "tx_gain has shape":
                return replace(sent, tx_gain=sent.tx_gain[:, None])
            case "backoff has shape":
                return replace(sent, backoff=np.ones(1 + len(links)))
            case "tx_gain holds":
                return replace(sent, tx_gain=sent.tx_gain.real)  # type: ignore[arg-type]
            case "tx_gain is not finite":
                return replace(sent, tx_gain=sent.tx_gain * np.nan)
            case "backoff is not positive":
                return replace(sent, backoff=sent.backoff * 0)
            case "times the power budget":
                return replace(sent, tx_gain=sent.tx_gain * 1.001)
            case "others are in its block":
                return replace(sent, tx_gain=sent.tx_gain / len(links))
            case "less energy":
                return replace(sent, tx_gain=sent.tx_gain * np.where(norms > 0.5 * plan.clip, 0.1, 1.0))
            case "realised norms":
                return sent if norms is None else CrossLayer(50.0, backoff="actual").transmit(plan, links, norms)
        return sent


@pytest.mark.parametrize(
    "defect",
    [
        "server_gain is",
        "receive_scale is",
        "clip is",
        "silent has shape",
        "silent holds",
        "planning twice",
        "who is silent",
        "server_gain depends on the order",
        "tx_gain has shape",
        "backoff has shape",
        "tx_gain holds",
        "tx_gain is not finite",
        "backoff is not positive",
        "times the power budget",
        "others are in its block",
        "less energy",
        "realised norms",
        "what was sent",
    ],
)
def test_broken_power_control_is_refused(defect: str) -> None:
    with pytest.raises(CheckFailed, match=defect):
        check_power_control(BrokenPolicy(defect))
