"""Power control over the air: what the server announces, and how each client then scales its update.

Every policy maps onto one picture. Client i sends x_i = α_i Δ_i with ‖Δ_i‖ <= τ; the server divides what it receives by
its own gain α_u and reads Σ p_i Δ_i/τ, distorted where the power budget P_i forced a client to back off. The policies
differ in how α_u is chosen and in who stays silent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.links import Links

PowerLimit = Literal["peak", "average"]
"""Limit of a power budget: the energy of every transmission, or its mean."""
# Relative error that floating point may leave
_ROUNDING = 1e-9


@dataclass(frozen=True)
class AirInterface:
    """The constants of the uplink.

    Attributes:
        clip: τ, the bound on the norm of every update.
        channel_noise_std: σ_c, receiver noise per real coordinate.
        dimension: d, coordinates of an update.
        symbol_energy: the largest |x|² of a complex symbol that a transmitter passes; infinite without a limit.
    """

    clip: float
    channel_noise_std: float
    dimension: int
    symbol_energy: float = np.inf

    def __post_init__(self) -> None:
        precondition(0 < self.clip < np.inf, f"clip must be positive and finite, not {self.clip}")
        precondition(
            0 <= self.channel_noise_std < np.inf,
            f"channel_noise_std must be finite and at least 0, not {self.channel_noise_std}",
        )
        precondition(self.dimension >= 1, f"dimension must be at least 1, not {self.dimension}")
        precondition(self.symbol_energy > 0, f"symbol_energy must be positive, not {self.symbol_energy}")


@dataclass(frozen=True, eq=False)
class TransmitPlan:
    """Announcement of the server before a slot; public.

    Attributes:
        server_gain: α_u, the common scale of the received sum.
        receive_scale: what the server divides the received signal by: α_u/τ, or α_u where the 1/τ is not undone.
        clip: τ, the bound by which clients scale.
        silent: (n,) who is told not to transmit, in the order of the links that were planned for.
        channel_amplitude: |h| at which a weight arrives exactly, where the channel is not inverted; 1 otherwise.
        inverts: whether gains undo the channel towards α_u; over the pieces of a slot one back-off then holds for all.
    """

    server_gain: float
    receive_scale: float
    clip: float
    silent: NDArray[np.bool_]
    channel_amplitude: float = 1.0
    inverts: bool = True

    @classmethod
    def undoing_the_clip(cls, server_gain: float, air: AirInterface, silent: NDArray[np.bool_]) -> TransmitPlan:
        """The plan of a server that also undoes the division by τ, and so reads Σ p_i Δ_i."""
        return cls(server_gain, server_gain / air.clip, air.clip, silent)

    def with_server_gain(self, server_gain: float) -> TransmitPlan:
        """The same plan at another α_u; the server's division follows."""
        scale = self.receive_scale * server_gain / self.server_gain
        return replace(self, server_gain=server_gain, receive_scale=scale)


@dataclass(frozen=True, eq=False)
class Transmission:
    """Transmission of a block of clients: x_i = tx_gain_i Δ_i.

    Attributes:
        tx_gain: α_i (n,), complex: it turns the phase of the estimated channel back.
        backoff: s_i (n,) >= 1, the factor by which the power budget forced a client below its wanted gain.
    """

    tx_gain: NDArray[np.complex128]
    backoff: NDArray[np.float64]


@runtime_checkable
class PowerControl(Protocol):
    """A policy: the server plans, then every client scales; both see estimated channels only.

    ‖x_i‖² <= P_i holds for every update with ‖Δ_i‖ <= τ (save under an `AveragePowerControl`), and ‖x_i‖ does not fall
    when ‖Δ_i‖ grows. `wirelessfl.radio.conformance` checks a policy of your own.

    A policy that needs norms may have one attribute more, ``non_expansive``: True promises that x_i moves no further
    than α_u p_i/(|ĥ_i| τ) times as far as Δ_i does, so that one sample's share of an update bounds its share of the
    signal (`is_non_expansive`). Without that promise the ledger counts the whole signal for every sample.
    """

    @property
    def needs_norms(self) -> bool:
        """Whether `transmit` needs the realised norms, which makes gains private data."""

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """Announcement of the server for these clients in a round, from 1; a pure function of its arguments."""

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None) -> Transmission:
        """The gains of a block of clients that are not silent, ``norms`` (n,) being their realised ‖Δ_i‖."""


@runtime_checkable
class AdaptivePowerControl(PowerControl, Protocol):
    """A policy with state, which is explicit, so that a checkpoint can hold it."""

    def after(self, plan: TransmitPlan) -> Self:
        """The policy of the next round, once this plan was carried out."""

    def state(self) -> dict[str, float]:
        """All that the policy remembers."""

    def restored(self, state: dict[str, float]) -> Self:
        """The same policy with a remembered state."""


@runtime_checkable
class AveragePowerControl(PowerControl, Protocol):
    """A policy that says whether P_i limits every transmission or their mean.

    With "average" a single ‖x_i‖² may exceed P_i, and what arrives is bounded by the gain at the clip alone.
    """

    @property
    def power_limit(self) -> PowerLimit:
        """Limit by P_i: "peak", ‖x_i‖² of every transmission; "average", its mean."""


@runtime_checkable
class NormScaledPowerControl(PowerControl, Protocol):
    """A policy whose common scale follows from the norms that the updates of a slot turn out to have: private data."""

    def settled(self, plan: TransmitPlan, norms: NDArray[np.float64]) -> TransmitPlan:
        """The plan at its final α_u, once the norms (k,) of all senders are known; every α_i changes in proportion."""


@runtime_checkable
class CentredPowerControl(PowerControl, Protocol):
    """A policy whose clients send updates without their means, and tell mean and variance apart: private data.

    x_i = α_i (Δ_i − m_i) with the mean m_i over the coordinates; the server adds Σ p_i m_i to what it receives. The
    common scale follows from the variances of all senders; every ‖x_i‖² stays within P_i.
    """

    def settled_by_variances(
        self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64], air: AirInterface
    ) -> TransmitPlan:
        """The plan at its final α_u, from the links of all senders and the norms (n,) of their centred updates.

        Every α_i changes in proportion. Over pieces of a slot there is a link for each in which a client sends.
        """


def is_peak_limited(policy: PowerControl) -> bool:
    """Whether ‖x_i‖² <= P_i holds for every single update with ‖Δ_i‖ <= τ."""
    return not isinstance(policy, AveragePowerControl) or policy.power_limit == "peak"


def full_power_amplitude(links: Links) -> NDArray[np.float64]:
    """|ĥ_i| sqrt(P_i) (n,): expected received amplitude of each client at full power.

    Raises:
        ValueError: if a power budget is infinite, which leaves nothing to control.
    """
    precondition(np.all(np.isfinite(links.power_budget)), "this power control needs finite power budgets")
    return np.asarray(np.abs(links.estimate) * np.sqrt(links.power_budget))


def clamped_inversion(plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
    """Channel inversion inside the power budget: α_i = α_u p_i/(ĥ_i τ s_i).

    s_i = max(1, α_u p_i/(|ĥ_i| sqrt(P_i))); with ``norms`` the realised ‖Δ_i‖/τ multiplies the second entry, so that a
    client with a small update backs off less.

    Raises:
        ValueError: if an estimate is zero; such a client has to stay silent.
    """
    magnitude = np.abs(links.estimate)
    precondition(
        np.all(magnitude > 0), "a channel estimate is zero: this client cannot invert its channel and has to be silent"
    )
    fill = 1.0 if norms is None else norms / plan.clip
    wanted = plan.server_gain * links.weight / magnitude
    backoff = np.maximum(1.0, wanted * fill / np.sqrt(links.power_budget))
    gain = wanted / (plan.clip * backoff)
    return Transmission(gain * links.estimate.conj() / magnitude, backoff)


def inversion(plan: TransmitPlan, links: Links) -> Transmission:
    """Channel inversion without a power limit: α_i = α_u p_i/(ĥ_i τ), no back-off.

    Raises:
        ValueError: if an estimate is zero; such a client has to stay silent.
    """
    precondition(
        np.all(links.estimate != 0),
        "a channel estimate is zero: this client cannot invert its channel and has to be silent",
    )
    return Transmission(plan.server_gain * links.weight / (plan.clip * links.estimate), np.ones(len(links)))


def at_the_clip(policy: PowerControl, plan: TransmitPlan, links: Links) -> Transmission:
    """Transmission of updates of norm τ by clients; a policy that needs no norms is not told any, as on the air."""
    return policy.transmit(plan, links, np.full(len(links), plan.clip) if policy.needs_norms else None)


def follows_own_norms(policy: PowerControl, plan: TransmitPlan, links: Links) -> bool:
    """Whether the gain of a client follows from its own norm, and from nothing that was told before.

    What a client sends would otherwise tell of the updates of others, and no bound on its own signal would cover that.
    The norms that the policy is asked about here are made up.
    """
    norms = plan.clip * np.linspace(0.9, 0.2, len(links))
    first = policy.transmit(plan, links, norms).tx_gain
    even = np.arange(len(links)) % 2 == 0
    for kept in (even, ~even, np.ones_like(even)):
        others = policy.transmit(plan, links, np.where(kept, norms, 0.1 * norms)).tx_gain
        if not np.allclose(others[kept], first[kept], rtol=1e-6, atol=0.0):
            return False
    return True


def is_non_expansive(policy: PowerControl) -> bool:
    """Whether one sample's share of an update bounds its share of what is sent.

    So it is where gains are public, for x_i is then linear in Δ_i. A gain that follows ‖Δ_i‖ can do anything to small
    changes: normalising every update turns a change of its direction by one sample into the whole signal. It is
    believed only where the policy promises it (see `PowerControl`).
    """
    return not policy.needs_norms or getattr(policy, "non_expansive", False) is True


def credited_backoff(sent: Transmission, plan: TransmitPlan, links: Links) -> NDArray[np.float64]:
    """The back-off (n,) that the gains confirm: s_i, at most α_u p_i/(|ĥ_i| τ |α_i|)."""
    with np.errstate(divide="ignore"):
        borne_out = plan.server_gain * links.weight / (np.abs(links.estimate * sent.tx_gain) * plan.clip)
    return np.where(sent.backoff > borne_out * (1 + _ROUNDING), borne_out, sent.backoff)


def received_bound(policy: PowerControl, plan: TransmitPlan, links: Links) -> NDArray[np.float64]:
    """R_i (n,): the largest norm with which an update can arrive, in units of y/α_u.

    R_i = |h_i α_i| τ/α_u with the gain α_i of an update of norm τ. For clamped inversion this is
    min(p_i, |ĥ_i| sqrt(P_i)/α_u) |h_i/ĥ_i| under either kind of back-off, for inversion under an average power limit
    p_i |h_i/ĥ_i|; it counts both quadratures (PRIVACY.md).
    """
    return np.abs(links.channel * at_the_clip(policy, plan, links).tx_gain) * plan.clip / plan.server_gain


def server_gain_for_received_limit(links: Links, limit: float) -> float:
    """The largest α_u at which clamped inversion keeps every client within ``limit`` in the received signal.

    On the air client i arrives with at most min(α_u p_i, |ĥ_i| sqrt(P_i)) |h_i/ĥ_i|. Who cannot reach the limit even at
    full power does not count; infinite where nobody can.
    """
    mismatch = np.abs(links.channel) / np.abs(links.estimate)
    can_exceed = np.abs(links.channel) * np.sqrt(links.power_budget) > limit
    return float(np.min(limit / (links.weight * mismatch)[can_exceed], initial=np.inf))
