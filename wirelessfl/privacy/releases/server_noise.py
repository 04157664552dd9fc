"""Client-level noise that a trusted server adds to the aggregate: DP-FedAvg, DP-FedAvg-WAV and Dyn-DP-FedAvg.

The server adds up clipped updates with fixed public weights, Σ p_i/q Δ_i over the clients that take part, each selected
with probability q; the sum is never divided by who arrived. Dyn-DP-FedAvg is the same with clip and noise multiplier on
a ``Geometric`` schedule. Everything here is NumPy, drawn once a round.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.privacy.costs import (
    Caveat,
    PrivacyFacts,
    Spending,
    Statement,
    no_guarantee,
    require_choices,
    require_non_negative,
    sampled_spending,
)
from wirelessfl.privacy.laws import HaarNoise, NoiseLaw, WhiteNoise
from wirelessfl.privacy.releases.base import Record, sentences
from wirelessfl.privacy.wavelet import haar_weights, inverse_haar, padded_length


def server_weights(weights: NDArray[np.float64], sample_rate: float) -> NDArray[np.float64]:
    """(n,) the fixed public factors p_i/q on the updates of selected clients.

    Args:
        weights: (n,) p_i = n_i/|D|.
        sample_rate: q, the probability of a client to be selected.

    Raises:
        ValueError: If the rate lies outside (0, 1].
    """
    _require_rate(sample_rate)
    return weights / sample_rate


def server_noise_std(noise_multiplier: float, clip: float, sample_rate: float, count: float) -> float:
    """σ = z C/(q K) on the aggregate (McMahan et al., ICLR 2018, Algorithm 1 with the estimator of fixed denominator).

    With equal weights p_i = 1/K the noise multiplier is z; in general it is z/(K max p_i). The wavelet paper prints
    the number of samples |D| for K, whose true multiplier is z/max n_i.

    Args:
        noise_multiplier: z, zero or more.
        clip: C, the bound on the norm of every client's update, positive.
        sample_rate: q in (0, 1].
        count: K, the number of registered clients (or |D|, as printed), at least 1.

    Raises:
        ValueError: If a value is out of range.
    """
    _require_rate(sample_rate)
    precondition(
        0 <= noise_multiplier < np.inf and 0 < clip < np.inf and 1 <= count < np.inf,
        f"found noise multiplier {noise_multiplier}, clip {clip} and count {count}; "
        "allowed are at least 0, above 0 and at least 1",
    )
    return noise_multiplier * clip / (sample_rate * count)


def white_server_noise(dimension: int, noise_std: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """(d,) N(0, σ² I): DP-FedAvg."""
    return generator.standard_normal(dimension) * noise_std


def haar_server_noise(dimension: int, noise_std: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """(d,) noise of N(0, (σ/W)²) on the Haar coefficients of the zero-padded aggregate, cut to d: DP-FedAvg-WAV."""
    length = padded_length(dimension)
    coefficients = generator.standard_normal(length) * (noise_std / haar_weights(length))
    return np.asarray(inverse_haar(coefficients)[:dimension], dtype=np.float64)


def _require_rate(sample_rate: float) -> None:
    precondition(0 < sample_rate <= 1, f"sample_rate must lie in (0, 1], found {sample_rate}")


Selection = Literal["all", "poisson", "uniform"]
Bounded = Literal["updates", "gradients"]


class NoAmplification(StrEnum):
    """Why the sampling of clients gives no amplification, although the observer does not see who was selected."""

    UNSTATED = (
        "the record is of a version that added no noise in rounds without clients, and does not say that all take part "
        "independently"
    )
    QUORUM = (
        "the server waits for a part of the clients only (timing.wait_for), so that a fast client that is selected "
        "pushes another one out of the sum"
    )
    STOPPED_BY_CLOCK = (
        "the run ends at a simulated time (stop.sim_time_s), so that the number of rounds depends on who was selected"
    )
    FOREIGN_AVAILABILITY = (
        "who can be reached is decided by code from outside (faults.availability), which may follow who was selected "
        "before"
    )
    FOLLOWS_THE_WEAKEST = (
        "the model is sent at the rate of the weakest client that is selected (downlink.model: multicast), so that the "
        "duration of a round tells who it is"
    )


@dataclass(frozen=True, eq=False)
class ServerNoiseRelease(Record):
    """One noised aggregate Σ (p_i/q) Δ_i + N(0, σ²) over the selected clients, with fixed public weights.

    Every round is one, also that in which nobody took part: an observer who saw that a round adds no noise would know
    that nobody did.

    Attributes:
        clients: (n,) who took part; none in an empty round.
        published_multiplier: z, the multiplier that the paper's accountant is fed, as in σ = z C/(q d).
        noise_std: σ on the aggregate; for Haar noise, before division by the weights of the coefficients.
        clip: Bound on the norm of every client's update: the norm C that updates are clipped to, or what clipped
            gradients leave of them; None where nothing bounds it.
        sample_rate: q, the public probability to be selected; it divides the sum.
        selection: ``all``, ``poisson`` (independently) or ``uniform`` (a fixed number).
        noise: How the noise is shaped.
        unamplified: Why sampling amplifies nothing; None where an observer cannot tell who takes part, nobody's part
            depends on that of another, and every round is noised.
        clipped: What is clipped: ``updates``, or ``gradients`` in local training alone, as in Algorithm 2 of the
            wavelet paper.

    Raises:
        ValueError: If a value is out of range.
    """

    route: ClassVar[str] = "the noise that the server adds"
    relation: ClassVar[str] = "one client more or fewer"

    published_multiplier: float
    noise_std: float
    clip: float | None
    sample_rate: float = 1.0
    selection: Selection = "all"
    noise: NoiseLaw = WhiteNoise()  # noqa: RUF009 - frozen
    unamplified: NoAmplification | None = None
    clipped: Bounded = "updates"

    def __post_init__(self) -> None:
        require_non_negative(published_multiplier=self.published_multiplier, noise_std=self.noise_std)
        precondition(
            self.clip is None or 0 < self.clip < np.inf, f"clip must be positive and finite, found {self.clip}"
        )
        _require_rate(self.sample_rate)
        require_choices(self, selection=Selection, clipped=Bounded)
        precondition(self.selection != "all" or self.sample_rate == 1, "with selection all the sample rate is 1")

    def published(self, facts: PrivacyFacts) -> Spending:
        """The accountant at z, amplified by client sampling as if that were Poisson, for add/remove of a client."""
        factor = self.noise.published_factor_at_server()
        if factor is None:
            return no_guarantee(None, "no paper claims anything for clipping the update itself")
        return sampled_spending(factor * self.published_multiplier, self.sample_rate, 1, exchange=False, everyone=True)

    def accounted(self, facts: PrivacyFacts, statement: Statement) -> Spending:
        """Multiplier σ/(C max p_i/q) with amplification, for an observer; the server knows its own noise.

        Without amplification it is one Gaussian mechanism a round for everybody, whoever takes part: by the joint
        convexity of the hockey-stick divergence, a mixture over what is secret is told apart no better than the worst
        of its parts, and once all selections are known, worlds with equal completion times differ in one summand.
        """
        if statement.adversary != "observer":
            return no_guarantee(len(self.clients), "the server adds the noise itself and sees the updates without it")
        if self.clip is None:
            caveat = Caveat.UNCLIPPED if self.clipped == "updates" else Caveat.UNBOUNDED_DESCENT
            return no_guarantee(None, caveat.value)
        largest = self.clip * facts.largest_weight / self.sample_rate
        multiplier = self.noise.accounted_factor() * self.noise_std / largest
        if multiplier == 0:
            return no_guarantee(None, Caveat.NOTHING_ADDS_NOISE.value)
        return sampled_spending(
            multiplier,
            self._secret_rate(facts, statement),
            1,
            exchange=statement.exchange,
            fixed_size=self.selection == "uniform",
            everyone=True,
        )

    def _secret_rate(self, facts: PrivacyFacts, statement: Statement) -> float:
        # The probability that a client takes part, given all that the adversary knows of the selection; 1 at most.
        #
        # Colluding clients know whether they were selected. Of a fixed number m of K, all may then be among the other
        # K − k: each of these is there with probability m/(K − k) at most. Independent selections tell nothing.
        if self.unamplified is not None:
            return 1.0
        if self.selection != "uniform" or statement.colluding == 0:
            return self.sample_rate
        others = facts.num_clients - statement.colluding
        return min(1.0, self.sample_rate * facts.num_clients / others) if others > 0 else 1.0

    def remarks(self, facts: PrivacyFacts, statement: Statement) -> Iterator[str]:
        """Why the multiplier of the paper and the one that holds differ."""
        yield from self.noise.remarks()
        if statement.adversary != "observer":
            return
        unamplified = self.sample_rate < 1 and self.unamplified is not None
        fixed_number = not unamplified and self.selection == "uniform"
        of_updates, bound = self.clipped == "updates", 0.0 if self.clip is None else self.clip
        own_norm = isinstance(self.noise, HaarNoise) and self.noise.clip_domain == "gradient"
        yield from sentences(
            (
                not of_updates and self.clip is not None,
                f"Gradients are clipped in local training, as Algorithm 2 of the wavelet paper does, and no update is: "
                f"an update of all local steps has a norm of up to {bound:.4g}, which the noise is compared with.",
            ),
            (
                own_norm and of_updates and self.clip is not None,
                "Algorithm 2 of the wavelet paper clips gradients in local training only, which bounds an update of N "
                "steps by their learning rate times N C; both figures are of updates clipped to C, in the same norm.",
            ),
            (
                True,
                "The paper's multiplier z assumes that all clients have the same weight; the accounted one divides the "
                "noise by the largest share C max p_i/q of a client.",
            ),
            (
                statement.unit == "sample",
                "One sample can change an update by up to twice its bound: it is protected like an exchanged client.",
            ),
            (
                unamplified,
                f"The paper amplifies by the sampling of clients; the accounted figure does not: {self.unamplified}. "
                "Every round counts as one whole use of the noise for every client.",
            ),
            (
                fixed_number,
                "The paper amplifies as if clients were selected independently; a fixed number of them is drawn "
                "without replacement, so that another client takes the place of one that is left out.",
            ),
            (
                fixed_number and statement.colluding,
                "Colluding clients know whether they were selected. If they were not, every other client is selected "
                "with a larger probability, and the accounted figure is amplified by this probability.",
            ),
        )
