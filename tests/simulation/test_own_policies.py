"""Power control from outside the package: the ledger believes no policy beyond what its gains bear out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulation.scenarios import run, small
from tests.simulation.test_mechanisms import GRADIENT_STEP
from wirelessfl.errors import CheckFailed, ScenarioError
from wirelessfl.privacy import Caveat, gaussian_epsilon
from wirelessfl.radio import AirInterface, CrossLayer, Links, Transmission, TransmitPlan, check_power_control
from wirelessfl.simulation import FinishedRound, Simulation

GAIN = 60.0


@dataclass(frozen=True)
class Plain:
    """Channel inversion towards a given gain, with public gains."""

    needs_norms: ClassVar[bool] = False

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        return CrossLayer(GAIN).plan(links, round_index, air)

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None) -> Transmission:
        return CrossLayer(GAIN).transmit(plan, links)


class Normalising(Plain):
    """Every update is sent as if it had the norm τ."""

    needs_norms: ClassVar[bool] = True

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None) -> Transmission:
        assert norms is not None
        sent = super().transmit(plan, links, None)
        return replace(sent, tx_gain=sent.tx_gain * plan.clip / norms)


class FalselyNonExpansive(Normalising):
    non_expansive: ClassVar[bool] = True


class Projecting(Plain):
    """The package's back-off by realised norms, under another name and without its promise."""

    needs_norms: ClassVar[bool] = True

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None) -> Transmission:
        return CrossLayer(GAIN, backoff="actual").transmit(plan, links, norms)


class Promising(Projecting):
    non_expansive: ClassVar[bool] = True


class Boasting(Plain):
    """Reports a back-off that its gains do not have."""

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None) -> Transmission:
        sent = super().transmit(plan, links, norms)
        return replace(sent, backoff=1e4 * sent.backoff)


class Peeking(Plain):
    """Uses norms that it is not entitled to, where it gets them."""

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None) -> Transmission:
        sent = super().transmit(plan, links, norms)
        return sent if norms is None else replace(sent, tx_gain=sent.tx_gain * (norms / plan.clip))


class Understating(Plain):
    """Sends in the run a hundred times as loud as where it is asked about norms."""

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None) -> Transmission:
        sent = super().transmit(plan, links, None)
        return sent if norms is None else replace(sent, tx_gain=0.01 * sent.tx_gain)


class Sharing(Plain):
    """Scales all updates by the largest norm among them: what one client sends tells of another one's update."""

    needs_norms: ClassVar[bool] = True
    non_expansive: ClassVar[bool] = False

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None) -> Transmission:
        assert norms is not None
        sent = super().transmit(plan, links, None)
        return replace(sent, tx_gain=sent.tx_gain * plan.clip / norms.max())


class Following(Plain):
    """Plans a round after the norms of the one before, in a state that nobody is told of."""

    needs_norms: ClassVar[bool] = True
    heard: ClassVar[list[float]] = [1.0]

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        return super().plan(links, round_index, air).with_server_gain(GAIN / self.heard[-1])

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None) -> Transmission:
        assert norms is not None
        self.heard.append(float(norms.mean()))
        return super().transmit(plan, links, None)


class Falling(Plain):
    """Sends small updates louder than large ones."""

    needs_norms: ClassVar[bool] = True

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None) -> Transmission:
        assert norms is not None
        sent = super().transmit(plan, links, None)
        return replace(sent, tx_gain=sent.tx_gain * (plan.clip / norms) ** 2)


class Overstating(Plain):
    """Plans for a smaller clip than the updates have."""

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        return replace(super().plan(links, round_index, air), clip=0.01 * air.clip)


class Remembering(Normalising):
    """Has a state, and is told norms."""

    def after(self, plan: TransmitPlan) -> Remembering:
        return self

    def state(self) -> dict[str, float]:
        return {}

    def restored(self, state: dict[str, float]) -> Remembering:
        return self


def played(policy: type, **overrides: Any) -> tuple[Simulation, list[FinishedRound]]:
    """A run of clipped gradient steps under a policy of this file."""
    control = {"policy": f"{__name__}:{policy.__name__}"}
    keys = {**GRADIENT_STEP, "uplink__power_control": control, **overrides}
    simulation, rounds, _ = run(small(**keys))
    return simulation, rounds


def cross_layer(**control: Any) -> float:
    """The accounted ε under the package's own policy."""
    _, rounds, _ = run(small(**GRADIENT_STEP, uplink__power_control={"server_gain": GAIN, **control}))
    return rounds[-1].values["epsilon_accounted"]


def worst_case(rounds: list[FinishedRound], normalised: bool) -> float:
    """Exact ε at which a sample turns an update of client i, of any norm r, into its opposite; the worst i and r.

    x_i = ±α_i(r) r v, seen under noise σ_c per coordinate in all rounds: μ² = Σ (2 |h_i| α_i(r) r/σ_c)².
    """
    total = np.zeros(len(rounds[0].clients))
    for this in rounds:
        channel = np.hypot(this.slots["channel_re"], this.slots["channel_im"])
        estimate = np.hypot(this.slots["csi_re"], this.slots["csi_im"])
        wanted = GAIN / 6 / estimate / this.slots["backoff"]
        # One gradient of 20 turns an update of norm τ/20 around; a normalised one is sent as loud as any.
        total += (2 * channel * wanted * (1.0 if normalised else 1 / 20) / this.values["channel_noise_std"]) ** 2
    return float(gaussian_epsilon(math.sqrt(total.max()), 1e-5))


@pytest.mark.parametrize("jammer", [None, {"epsilon": 1.5, "calibration": "exact"}])
def test_a_policy_that_normalises_earns_no_credit_for_the_share_of_a_sample(jammer: Any) -> None:
    _, rounds = played(Normalising, uplink__jammer=jammer)
    if jammer is None:
        exact, as_if_linear = worst_case(rounds, normalised=True), worst_case(rounds, normalised=False)
        assert rounds[-1].values["epsilon_accounted"] == pytest.approx(exact, rel=1e-9)
        assert exact > 50 * as_if_linear
    else:
        assert rounds[-1].values["epsilon_accounted"] == pytest.approx(1.5, rel=1e-3), "the jammer covers it"


def test_credit_is_earned_by_a_promise_that_was_tried_out() -> None:
    promised, alike = played(Promising), played(Projecting)
    assert promised[1][-1].values["epsilon_accounted"] == cross_layer(backoff="actual")
    assert alike[1][-1].values["epsilon_accounted"] > 2 * cross_layer(backoff="actual")
    with pytest.raises(ScenarioError, match=r"fails its check: .* a change of an update"):
        played(FalselyNonExpansive)


def test_a_reported_backoff_counts_as_far_as_the_gains_bear_it_out() -> None:
    honest, boasting = played(Plain)[1], played(Boasting)[1]
    assert honest[-1].values["epsilon_accounted"] == cross_layer()
    assert boasting[-1].values["epsilon_accounted"] == pytest.approx(cross_layer(), rel=1e-9)


def test_norms_are_told_only_to_those_that_ask() -> None:
    (one, _), (other, _) = played(Plain), played(Peeking)
    np.testing.assert_array_equal(one.state.parameters, other.state.parameters)


@pytest.mark.parametrize("keys", [{}, {"training__steps": None, "training__epochs": 1}])
def test_what_is_counted_is_what_is_sent(keys: dict[str, Any]) -> None:
    """A policy that needs no norms is told none where the ledger asks how loud it is at the clip."""
    honest, understating = played(Plain, **keys), played(Understating, **keys)
    assert understating[1][-1].values["epsilon_accounted"] == honest[1][-1].values["epsilon_accounted"]


@pytest.mark.parametrize("policy", [Sharing, Following])
def test_norms_reach_neither_other_clients_nor_later_rounds(policy: type) -> None:
    Following.heard[:] = [1.0]
    with pytest.raises(CheckFailed, match=r"norms of other clients|hidden state"):
        check_power_control(policy())


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Falling, "with more energy"),
        (Overstating, r"clipped to 0\.005"),
        (Sharing, "more than its own norm"),
        (Following, "norms that it was told before"),
    ],
)
def test_what_the_bound_rests_on_is_checked_in_the_run(policy: type, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        played(policy)


def test_a_policy_that_is_told_norms_and_remembers_has_no_guarantee() -> None:
    simulation, rounds = played(Remembering)
    assert rounds[-1].values["epsilon_accounted"] == math.inf
    assert any(Caveat.REALISED_NORMS.value in sentence for sentence in simulation.ledger.why_different())


def test_an_exact_jammer_covers_clients_that_are_heard_louder_than_their_weight() -> None:
    """At full power the share of a sample exceeds p_i/n_i where a channel is strong."""
    jammer, keys = {"epsilon": 1.5, "calibration": "exact"}, {"uplink__power_control": {"policy": "full_power"}}
    _, rounds, _ = run(small(**GRADIENT_STEP, **keys, uplink__jammer=jammer))
    assert np.any(rounds[0].slots["backoff"] < 1)
    assert rounds[-1].values["epsilon_accounted"] <= 1.5 * (1 + 1e-9)
