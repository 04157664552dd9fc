"""The plan of a slot over the air, and power control, whose properties are checked before the ledger uses them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.conformance import given, returned
from wirelessfl.errors import ScenarioError
from wirelessfl.privacy import AirRelease, Caveat, Release, settings
from wirelessfl.radio import (
    AdaptivePowerControl,
    AirInterface,
    AntennaLinks,
    CellLinks,
    CentredPowerControl,
    JammerLink,
    Links,
    Modulation,
    NormScaledPowerControl,
    Overheard,
    PowerControl,
    Receiver,
    SlotLinks,
    SlotPlan,
    Transmission,
    TransmitPlan,
    at_the_clip,
    follows_own_norms,
)
from wirelessfl.simulation.uplinks.air.excess import Excess

# Relative error of norms in single precision
_ROUNDING = 1e-5


def announced(policy: PowerControl, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
    """Transmit plan that the server announces; without clients the policy is not called.

    Raises:
        ScenarioError: the policy plans for another clip than τ, which every bound in the ledger rests on; or it needs
            norms, and what a client sends follows those of other clients or of earlier transmissions.
    """
    if not len(links):
        return TransmitPlan.undoing_the_clip(1.0, air, silent=np.zeros(0, dtype=np.bool_))
    plan = given("power_control", policy, "plan", policy.plan(links, round_index, air), TransmitPlan)
    returned("power_control", policy, "plan (silent)", plan.silent, (len(links),), kind=np.bool_)
    if plan.clip != air.clip:
        _refuse(policy, f"plans for updates clipped to {plan.clip}, and not to uplink.clip, {air.clip}")
    if policy.needs_norms and not plan.silent.all():
        _check_own_norms(policy, plan, links, round_index, air)
    return plan


def _check_own_norms(
    policy: PowerControl, plan: TransmitPlan, links: Links, round_index: int, air: AirInterface
) -> None:
    # A policy may tell the norms it needs neither to other clients nor to later rounds
    if not follows_own_norms(policy, plan, links.take(~plan.silent)):
        _refuse(policy, "scales a client's update by more than its own norm; a common scale is for `settled`")
    again = policy.plan(links, round_index, air)
    if again.server_gain != plan.server_gain or np.any(again.silent != plan.silent):
        _refuse(policy, "plans after norms that it was told before; what it remembers is for `after` and `state`")


def transmission(
    policy: PowerControl, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None
) -> Transmission:
    """Transmission of a block of clients; a policy that needs no norms is not told any.

    Raises:
        ScenarioError: a client sends more than it would at the clip, which is all that the ledger counts.
    """
    if not policy.needs_norms or norms is None:
        return policy.transmit(plan, links, None)
    sent = policy.transmit(plan, links, norms)
    bound = np.abs(at_the_clip(policy, plan, links).tx_gain) * plan.clip
    if not np.all(np.abs(sent.tx_gain) * norms <= bound * (1 + _ROUNDING)):
        _refuse(policy, "sends a smaller update with more energy than one of norm uplink.clip")
    return sent


def caveat(policy: PowerControl) -> Caveat | None:
    """Caveat that voids the guarantee: a common scale after realised norms, or means of updates that are told apart.

    The norms are those of this slot, or maybe of earlier ones.
    """
    if isinstance(policy, CentredPowerControl):
        return Caveat.MEANS_TOLD_APART
    may_remember_norms = policy.needs_norms and isinstance(policy, AdaptivePowerControl)
    return Caveat.REALISED_NORMS if may_remember_norms or isinstance(policy, NormScaledPowerControl) else None


@runtime_checkable
class OwnRelease(Protocol):
    """A receiver or a modulation with its own record of the privacy cost of a slot."""

    def release(self, slot: Release) -> Release:
        """The record for the ledger in place of that of linear amplitudes at one antenna."""


def vouched(slot: AirRelease, parts: Sequence[object], unvouched: bool) -> Release:
    """The record of a slot by receiver and modulation; without any guarantee where one of them has no record.

    Args:
        slot: the record of linear amplitudes at one antenna.
        parts: receiver and modulation.
        unvouched: whether one of them comes from outside and leaves no record.

    Raises:
        ScenarioError: one of them leaves something else than a record, or one that no trace can hold.
    """
    if unvouched:
        return replace(slot, theorem="none", caveat=Caveat.OUTSIDE_WAVEFORM)
    release: Release = slot
    for part in (part for part in parts if isinstance(part, OwnRelease)):
        release, name = part.release(release), f"{type(part).__module__}:{type(part).__qualname__}"
        if not isinstance(release, Release):
            raise ScenarioError(f"uplink: release of {name} gives a {type(release).__name__}; allowed: a Release")
        try:
            settings(release)
        except (TypeError, ValueError) as error:
            raise ScenarioError(f"uplink: release of {name} leaves no record: {error}") from error
    return release


def _refuse(policy: PowerControl, found: str) -> None:
    name = f"{type(policy).__module__}:{type(policy).__qualname__}"
    raise ScenarioError(f"uplink.power_control.policy: {name} {found}; `check_power_control` tests it")


@dataclass(frozen=True, kw_only=True)
class AirPlan(SlotPlan):
    """A slot over the air with C receivers.

    Attributes:
        links: the k senders' links behind the combiners.
        heard: their channels (k, C, T, F, A) to all antennas.
        sends: (k, R, F) where each of them sends.
        transmit: what each receiver with senders announces, by its number.
        noise_std: (C, R, F) receiver noise behind the combiners.
        jammer: the link of all antennas of the jammer to all those of the only receiver, or None without one.
        jammer_behind: the same behind the combiner.
        round_index: from 1.
        clients: (k,) numbers of the senders among the registered clients.
        antenna_links: the k senders' links to all antennas of the receiver that serves them.
        overheard: the senders' channels to an external observer; None without one.
        excess: of senders who exceed their gains; None where nobody does.
        group: number of the group of clients that sends in the slot, 0 where all send in one.
    """

    links: CellLinks
    heard: NDArray[np.complex128]
    sends: NDArray[np.bool_]
    transmit: dict[int, TransmitPlan]
    noise_std: NDArray[np.float64]
    jammer: JammerLink | None
    jammer_behind: JammerLink | None
    round_index: int
    clients: NDArray[np.int64]
    antenna_links: SlotLinks
    overheard: Overheard | None = None
    excess: Excess | None = None
    group: int = 0

    @cached_property
    def loudest(self) -> TransmitPlan:
        """The plan with the largest α_u, in whose units receivers are compared."""
        return max(self.transmit.values(), key=lambda plan: plan.server_gain)

    def heard_weight(self, station: int) -> NDArray[np.float64]:
        """(R, F) Σ p_i of a receiver's own clients that send in each block and group of subcarriers."""
        mine, shape = self.links.serving == station, self.sends.shape[1:]
        weight, sends = self.links.own.weight[mine], self.sends[mine].reshape(-1, math.prod(shape))
        if sends.all():
            return np.full(shape, weight.sum())
        return np.array([weight[there].sum() for there in sends.T]).reshape(shape)


@dataclass(frozen=True, eq=False)
class AnnouncedSlot:
    """A slot as the server announces it, before a jammer is heard.

    Attributes:
        found: the links of n clients to all antennas of C receivers.
        weights: (C, R, F, A) the combiners.
        links: the links behind them.
        noise_std: (C, R, F) receiver noise behind the combiners.
        sends: (n, R, F) where each client sends.
        transmit: what each receiver with senders announces, by its number.
    """

    found: CellLinks
    weights: NDArray[np.complex128]
    links: CellLinks
    noise_std: NDArray[np.float64]
    sends: NDArray[np.bool_]
    transmit: dict[int, TransmitPlan]

    @property
    def rows(self) -> Links:
        """The links (m,) behind the combiners in all blocks and groups of subcarriers in which their clients send."""
        return self.links.own.rows().take(self.sends.ravel())

    def each_antenna(self, jammer: JammerLink) -> AntennaLinks:
        """The same links to each antenna, beside those of the jammer to all antennas."""
        links = self.found.own
        count, estimates, subcarriers, antennas = links.estimate.shape
        shape = (count, estimates, links.pieces // estimates, subcarriers, antennas)
        channel = links.channel.reshape(shape).swapaxes(2, 3)
        return AntennaLinks(channel, jammer.estimated_parts[:, :, None], self.sends)


def combiners(
    receiver: Receiver, links: CellLinks, count: int, round_index: int, air: AirInterface
) -> NDArray[np.complex128]:
    """(C, R, F, A) the combiners of so many receivers; ones at those that serve nobody."""
    weights = np.ones((count, *links.own.estimate.shape[1:]), dtype=np.complex128)
    for station in np.unique(links.serving).tolist():
        found = receiver.combine(links.own.take(links.serving == station), round_index, air)
        weights[station] = returned("receiver", receiver, "combine", found, weights.shape[1:])
    return weights


def noise_behind(receiver: Receiver, weights: NDArray[np.complex128], air: AirInterface) -> NDArray[np.float64]:
    """(C, R, F) the noise behind the combiners of all receivers."""
    found = [receiver.noise_std(each, air) for each in weights]
    return np.stack([returned("receiver", receiver, "noise_std", one, weights.shape[1:3], 0.0) for one in found])


def decoded(modulation: Modulation, signal: NDArray[np.float64], plan: TransmitPlan) -> NDArray[np.float64]:
    """(d,) the sum that a received signal (d,) stands for."""
    shape = signal.shape  # decoding may change what it is handed
    return returned("modulation", modulation, "decode", modulation.decode(signal, plan), shape)


def read_behind(air: AirInterface, noise_std: NDArray[np.float64]) -> AirInterface:
    """The uplink with the least of a receiver's noise (R, F) behind its combiner in place of that of an antenna."""
    least = float(noise_std.min())
    # A beam of norm 1 has that norm up to rounding
    same = math.isclose(least, air.channel_noise_std, rel_tol=1e-12)
    return air if same else replace(air, channel_noise_std=least)


def announcements(
    policies: Sequence[PowerControl],
    links: CellLinks,
    sends: NDArray[np.bool_],
    round_index: int,
    air: AirInterface,
    noise_std: NDArray[np.float64],
) -> dict[int, TransmitPlan]:
    """Transmit plans of receivers for clients that would send (n, R, F); the silent ones are taken out of it.

    A power control knows the noise (C, R, F) behind the combiner of its receiver.
    """
    transmit: dict[int, TransmitPlan] = {}
    for station in np.unique(links.serving[sends.any(axis=(1, 2))]).tolist():
        mine = np.flatnonzero(links.serving == station)
        heard = sends[mine]
        rows, read = links.own.take(mine).rows().take(heard.ravel()), read_behind(air, noise_std[station])
        plan = announced(policies[station], rows, round_index, read)
        heard[heard] = ~plan.silent
        sends[mine] = heard
        if heard.any():
            transmit[station] = plan
    return transmit
