"""How server and jammer settle a slot: how much noise there has to be, and who gives way when power is short."""

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

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


class Calibration(Protocol):
    """How much effective noise a slot needs, and the α_u that makes do with the noise there is."""

    def required_noise_std(self, policy: PowerControl, plan: TransmitPlan, links: Links) -> float:
        """σ_m that the slot must reach, in units of y/α_u."""

    def server_gain(self, received_noise_std: float, links: Links) -> float:
        """The largest α_u at which noise of this standard deviation at the receiver is enough."""


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
        """σ_m = X √M/μ* for the client that is heard loudest."""
        loudest = float(received_bound(policy, plan, links).max(initial=0.0))
        return required_noise_std_exact(self.reach * loudest, self.rounds, self.gdp_mu)

    def server_gain(self, received_noise_std: float, links: Links) -> float:
        """The α_u at which nobody arrives above noise · μ*/(reach √M)."""
        limit = received_noise_std * self.gdp_mu / (self.reach * math.sqrt(self.rounds))
        return server_gain_for_received_limit(links, limit)


@dataclass(frozen=True)
class ExactStepCalibration:
    """Where an update is one step of per-sample-clipped gradients: exact composition at the share of one sample.

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

    def _required(self, links: Links, backoff: NDArray[np.float64]) -> float:
        in_step = np.minimum(links.weight * self.total_samples, self.batch_size)
        shares = np.abs(links.channel) / np.abs(links.estimate) * links.weight / in_step / backoff
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
        self, policy: PowerControl, plan: TransmitPlan, links: Links, air: AirInterface, jammer_estimate: complex
    ) -> tuple[TransmitPlan, float]:
        """The plan and the gain α_CJ of a slot.

        Args:
            policy: the power control.
            plan: what the server would announce without a jammer.
            links: (k,) the clients that will send.
            air: constants of the uplink.
            jammer_estimate: ĥ_CJ, what the jammer believes its channel to be; what arrives follows the true one.

        Returns:
            The plan, with a lower α_u where power is short and ``lower_gain`` is asked for, and α_CJ.
        """
        required = self.calibration.required_noise_std(policy, plan, links)
        wanted = jammer_gain_for_noise(required, plan.server_gain, air.channel_noise_std, jammer_estimate, self.margin)
        gain = min(wanted, self.gain_limit)
        noise_there = math.hypot(gain * abs(jammer_estimate), air.channel_noise_std)
        # Only a shortfall of the noise that is needed counts, not one of the margin on top of it.
        if self.on_shortfall == "lower_gain" and noise_there < required * plan.server_gain:
            enough = self.calibration.server_gain(noise_there, links)
            plan = plan.with_server_gain(min(plan.server_gain, enough))
        return plan, gain
