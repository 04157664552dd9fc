"""The agreement of server and jammer: how much noise a slot needs, and who gives way where power is short.

Against a receiver of several antennas an exact calibration counts what all of them hear together (`observation`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.antenna_links import AntennaLinks
from wirelessfl.radio.jamming import (
    JammerNoise,
    jammer_gain_for_noise,
    required_noise_std_exact,
    server_gain_for_noise,
)
from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import (
    AirInterface,
    PowerControl,
    TransmitPlan,
    at_the_clip,
    credited_backoff,
    received_bound,
    server_gain_for_received_limit,
)

# A client that no jamming hides is brought down to this multiple of what remains of it
_NEARLY = 1.01
# Of α_u, at which nobody backs off; a power of two, with which scaling is exact
_FAINT = 2.0**-60


class Calibration(Protocol):
    """Effective noise that a slot needs, and the α_u for which the noise there is suffices."""

    def required_noise_std(self, policy: PowerControl, plan: TransmitPlan, links: Links) -> float:
        """σ_m that the slot must reach, in units of y/α_u."""

    def server_gain(self, received_noise_std: float, links: Links) -> float:
        """The largest α_u at which noise of this standard deviation at the receiver is enough."""

    def signal_limit(
        self, policy: PowerControl, plan: TransmitPlan, links: Links, sends: NDArray[np.bool_]
    ) -> NDArray[np.float64] | None:
        """(m,) how loudly updates at the clip may arrive against the noise of all antennas; None if they do not count.

        In units of τ |α_i| ‖Σ^{−1/2} h_i‖ with the gain of each of m links alone; see `whitened_amplitude`. ``sends``
        (n, R, F) says to which estimates and groups of subcarriers of n clients the links belong.
        """


@dataclass(frozen=True)
class TheoremCalibration:
    """Theorems 2 and 4 of the cross-layer paper: the same σ_m in every round, from the sensitivity 1/|D|."""

    noise_std: float

    def required_noise_std(self, policy: PowerControl, plan: TransmitPlan, links: Links) -> float:
        """The constant σ_m of the theorem."""
        return self.noise_std

    def server_gain(self, received_noise_std: float, links: Links) -> float:
        """α_u = noise/σ_m."""
        return server_gain_for_noise(self.noise_std, received_noise_std)

    def signal_limit(self, policy: PowerControl, plan: TransmitPlan, links: Links, sends: NDArray[np.bool_]) -> None:
        """None: the theorem is about what the server reads."""


@dataclass(frozen=True)
class ExactCalibration:
    """The accounted sensitivity of this slot's worst client, and exact Gaussian composition (PRIVACY.md).

    Attributes:
        rounds: M.
        gdp_mu: μ*, the budget of the whole run.
        reach: X = reach · R_i: 2 for a sample, or for a client that is replaced; 1 for a client left out.
    """

    rounds: int
    gdp_mu: float
    reach: float

    def required_noise_std(self, policy: PowerControl, plan: TransmitPlan, links: Links) -> float:
        """σ_m = X √M/μ* for the client that is received with the largest amplitude."""
        loudest = float(received_bound(policy, plan, links).max(initial=0.0))
        return required_noise_std_exact(self.reach * loudest, self.rounds, self.gdp_mu)

    def server_gain(self, received_noise_std: float, links: Links) -> float:
        """The α_u at which no client is received above noise · μ*/(reach √M)."""
        return server_gain_for_received_limit(links, received_noise_std * self._limit)

    def signal_limit(
        self, policy: PowerControl, plan: TransmitPlan, links: Links, sends: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """μ*/(reach √M), times the client's largest back-off, which holds in all its pieces, over that of the link."""
        if not plan.inverts:
            return np.full(len(links), self._limit)
        backoff = at_the_clip(policy, plan, links).backoff
        each = np.zeros(sends.shape)
        each[sends] = backoff
        common = np.broadcast_to(each.max(axis=(1, 2), keepdims=True), sends.shape)[sends]
        return np.asarray(self._limit * (common / backoff))

    @property
    def _limit(self) -> float:
        return self.gdp_mu / (self.reach * math.sqrt(self.rounds))


@dataclass(frozen=True)
class ExactStepCalibration:
    """Exact composition at the share of one sample, for updates of one step of per-sample-clipped gradients.

    The theorem's sensitivity holds here, so that this differs from `TheoremCalibration` by its conversion alone (and,
    with batches smaller than n_i or imperfect channel knowledge, by what the theorem leaves out).

    Attributes:
        rounds: M.
        gdp_mu: μ*, the budget of the whole run.
        reach: 1 for a sample left out, 2 for one that is replaced.
        total_samples: |D|.
        batch_size: samples in the mean of a step, at most.
    """

    rounds: int
    gdp_mu: float
    reach: float
    total_samples: int
    batch_size: int

    def required_noise_std(self, policy: PowerControl, plan: TransmitPlan, links: Links) -> float:
        """σ_m = X √M/μ*, X = reach · max_i |h_i/ĥ_i| p_i/min(n_i, batch).

        A back-off earns no credit; one below 1, of a client that is heard louder than its weight, costs. Gains must be
        public, or follow norms in a way that is non-expansive.
        """
        sent = at_the_clip(policy, plan, links)
        return self._required(links, np.minimum(credited_backoff(sent, plan, links), 1.0))

    def server_gain(self, received_noise_std: float, links: Links) -> float:
        """α_u = noise/σ_m: in units of y/α_u the share of a sample does not depend on α_u."""
        return server_gain_for_noise(self._required(links, np.ones(len(links))), received_noise_std)

    def signal_limit(
        self, policy: PowerControl, plan: TransmitPlan, links: Links, sends: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """μ*/(reach √M) min(n_i, batch)/max(s_i, 1): a sample moves an update by its share, and back-off earns none."""
        backoff = np.maximum(credited_backoff(at_the_clip(policy, plan, links), plan, links), 1.0)
        return self.gdp_mu / (self.reach * math.sqrt(self.rounds)) * self._in_step(links) / backoff

    def _in_step(self, links: Links) -> NDArray[np.float64]:
        return np.minimum(links.weight * self.total_samples, self.batch_size)

    def _required(self, links: Links, backoff: NDArray[np.float64]) -> float:
        shares = np.abs(links.channel) / np.abs(links.estimate) * links.weight / self._in_step(links) / backoff
        return required_noise_std_exact(self.reach * float(shares.max(initial=0.0)), self.rounds, self.gdp_mu)


@dataclass(frozen=True)
class Jamming:
    """The cooperative jammer's side of the protocol.

    Attributes:
        calibration: how much noise is needed.
        margin: factor on the jammer's gain; the paper's experiments use 7.
        gain_limit: the largest α_CJ that its power allows.
        noise: circular ("complex") or "real".
        on_shortfall: "record" sends what it can and lets ε rise; "lower_gain" lowers α_u in that slot instead.
    """

    calibration: Calibration
    margin: float
    gain_limit: float
    noise: JammerNoise
    on_shortfall: Literal["record", "lower_gain"]

    def agree(
        self,
        policy: PowerControl,
        plan: TransmitPlan,
        links: Links,
        air: AirInterface,
        jammer_estimate: complex,
        antennas: AntennaLinks | None = None,
        read_noise_std: float | None = None,
    ) -> tuple[TransmitPlan, float]:
        """The plan and the gain α_CJ of a slot.

        Args:
            policy: the power control.
            plan: what the server would announce without a jammer.
            links: (k,) the clients that will send.
            air: constants of the uplink.
            jammer_estimate: ĥ_CJ, what the jammer believes its channel to be; what arrives follows the true one.
            antennas: the same links to each antenna of the receiver, group by group of subcarriers; None where there is
                one of both.
            read_noise_std: of the receiver behind its combiner; None where it is that of an antenna.

        Returns:
            The plan, with a lower α_u where power is short and ``lower_gain`` is asked for, and α_CJ.
        """
        if antennas is not None and antennas.count > 1:
            loudness = self.loudness(policy, plan, links, antennas.sends)
            if loudness is not None:
                return self._hidden_from(antennas, loudness, policy, plan, links, air)
        required = self.calibration.required_noise_std(policy, plan, links)
        read_std = air.channel_noise_std if read_noise_std is None else read_noise_std
        wanted = jammer_gain_for_noise(required, plan.server_gain, read_std, jammer_estimate, self.margin)
        if antennas is not None:
            # The loudest client may be in another group of subcarriers than the weakest jamming
            loudness = self.loudness(policy, plan, links, antennas.sends)
            least = wanted if loudness is None else self.margin * antennas.hiding_gain(loudness, air.channel_noise_std)
            if least <= self.gain_limit:
                return plan, least
        gain = min(wanted, self.gain_limit)
        noise_there = math.hypot(gain * abs(jammer_estimate), read_std)
        # Only a shortfall of the noise that is needed counts, not one of the margin on top of it.
        if self.on_shortfall == "lower_gain" and noise_there < required * plan.server_gain:
            enough = self.calibration.server_gain(noise_there, links)
            plan = plan.with_server_gain(min(plan.server_gain, enough))
        return plan, gain

    def loudness(
        self, policy: PowerControl, plan: TransmitPlan, links: Links, sends: NDArray[np.bool_]
    ) -> NDArray[np.float64] | None:
        """(m,) what ‖Σ^{−1/2} h_i‖ is to be at most 1 with as a factor; None where all antennas do not count.

        Args:
            policy: the power control.
            plan: what the server announces.
            links: (m,) of n clients, the estimates and groups of subcarriers of one side by side.
            sends: (n, R, F) which of them there are.
        """
        limit = self.calibration.signal_limit(policy, plan, links, sends)
        return None if limit is None else np.abs(at_the_clip(policy, plan, links).tx_gain) * plan.clip / limit

    def _hidden_from(
        self,
        antennas: AntennaLinks,
        loudness: NDArray[np.float64],
        policy: PowerControl,
        plan: TransmitPlan,
        links: Links,
        air: AirInterface,
    ) -> tuple[TransmitPlan, float]:
        # The same against all antennas
        noise_std = air.channel_noise_std
        gain = min(self.margin * antennas.hiding_gain(loudness, noise_std), self.gain_limit)
        if math.isinf(gain):
            # no jamming is enough: as much as brings the loudest to a hundredth of what it cannot hide
            floor = antennas.loudest(loudness, noise_std)
            gain = self.margin * antennas.hiding_gain(loudness / (_NEARLY * floor), noise_std)
        amplitude = antennas.amplitude(noise_std, gain)
        if self.on_shortfall == "lower_gain" and np.any(too_loud := loudness * amplitude > 1.0):
            # Clients at the limit of their power arrive as before until α_u is low enough for them: what counts is how
            # loud they are without back-off
            faint = plan.with_server_gain(_FAINT * plan.server_gain)
            unlimited = self.loudness(policy, faint, links, antennas.sends)
            assert unlimited is not None, "the calibration counts all antennas"
            there = float((unlimited / _FAINT * amplitude)[too_loud].max())
            plan = plan.with_server_gain(plan.server_gain / there)
        return plan, gain
