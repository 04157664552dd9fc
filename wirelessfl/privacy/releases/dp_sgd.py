"""Differentially private local training: per-sample gradients clipped and noised before any optimizer sees them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.privacy.clipping_laws import ClippingLaw, DynamicClip, FixedClip, UnknownClip
from wirelessfl.privacy.noise_laws import NoiseLaw, WhiteNoise
from wirelessfl.privacy.releases.base import non_negative, per_client
from wirelessfl.privacy.spending import Caveat, Spending, no_guarantee, sampled_spending
from wirelessfl.privacy.statement import PrivacyFacts, Statement

Sampling = Literal["poisson", "shuffle"]

ONE_SAMPLE_ONLY = "noise on the gradients of samples protects a sample; nothing is proven for a whole client"


@dataclass(frozen=True, eq=False)
class DpSgdRelease:
    """The local steps of one round (DP-SGD, DP-Adam, DP-AdaGrad, their wavelet forms): the optimizer costs nothing.

    A round in which the multiplier changes is several releases, one a multiplier.

    Attributes:
        round_index: Communication round.
        clients: (n,) who trained and released the result.
        noise_multiplier: sigma, noise standard deviation on the sum of a batch over the clipping norm.
        batch_size: (n,) samples in a batch; expected samples under Poisson sampling. At most n_i.
        steps: (n,) local steps.
        sampling: ``poisson``; ``shuffle`` for batches of a fixed size from an order that is shuffled afresh in every
            round and for every pass over the data, of ⌈n_i/batch⌉ batches.
        noise: How the noise is shaped.
        clipping: How the clipping norm is set.

    Raises:
        ValueError: If a shape or a value is out of range.
    """

    route: ClassVar[str] = "the noise that every client adds to its gradients"
    relation: ClassVar[str] = "one sample more or fewer"

    round_index: int
    clients: NDArray[np.int64]
    noise_multiplier: float
    batch_size: NDArray[np.int64]
    steps: NDArray[np.int64]
    sampling: Sampling = "poisson"
    noise: NoiseLaw = WhiteNoise()  # noqa: RUF009 - frozen
    clipping: ClippingLaw = FixedClip()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        count = len(self.clients)
        non_negative(noise_multiplier=self.noise_multiplier)
        precondition(
            not np.any(per_client("batch_size", self.batch_size, count) < 1), "batch_size must be at least one sample"
        )
        per_client("steps", self.steps, count)
        precondition(
            self.sampling in get_args(Sampling), f"sampling must be poisson or shuffle, found {self.sampling!r}"
        )

    def published(self, facts: PrivacyFacts) -> Spending:
        """The accountant at the multiplier the paper names, as if sampling were Poisson, for add/remove."""
        factor = self.noise.published_factor()
        if factor is None:
            return no_guarantee(len(self.clients), "no paper claims anything for clipping the gradient itself")
        if isinstance(self.clipping, UnknownClip):
            return no_guarantee(len(self.clients), self.clipping.unproven)
        multiplier = self.clipping.published_multiplier(self.noise_multiplier, factor)
        if isinstance(self.clipping, DynamicClip):
            return self._central_limit(multiplier, facts)
        return sampled_spending(multiplier, self._sample_rate(facts), self.steps, exchange=False)

    def accounted(self, facts: PrivacyFacts, statement: Statement) -> Spending:
        """Poisson-subsampled Gaussian, or parallel composition over the batches of a pass; for any adversary."""
        if self.clipping.unproven is not None:
            return no_guarantee(len(self.clients), self.clipping.unproven)
        if statement.unit == "client":
            return no_guarantee(len(self.clients), ONE_SAMPLE_ONLY)
        multiplier = self.clipping.accounted_multiplier(self.noise.accounted_factor() * self.noise_multiplier)
        if multiplier == 0:
            return no_guarantee(len(self.clients), Caveat.NOTHING_ADDS_NOISE.value)
        exchange = statement.adjacency == "replace"
        if self.sampling == "poisson":
            return sampled_spending(multiplier, self._sample_rate(facts), self.steps, exchange=exchange)
        with np.errstate(over="ignore", under="ignore"):
            cost = np.full(len(self.clients), np.float64((2.0 if exchange else 1.0) / multiplier) ** 2)
        per_pass = -(-facts.samples[self.clients] // self.batch_size)
        return Spending(-(-self.steps // per_pass) * cost)

    def _central_limit(self, multiplier: float, facts: PrivacyFacts) -> Spending:
        # μ² = q² Σ_t (e^{μ_t²} − 1), μ_t = 1/σ_t (Du et al., arXiv:2111.00173); a limit is no bound.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            each = np.expm1(np.float64(multiplier) ** -2.0)
            return Spending(np.where(self.steps > 0, self.steps * self._sample_rate(facts) ** 2 * each, 0.0))

    def _sample_rate(self, facts: PrivacyFacts) -> NDArray[np.float64]:
        return np.divide(self.batch_size, facts.samples[self.clients], dtype=np.float64)

    def remarks(self, facts: PrivacyFacts, statement: Statement) -> Iterator[str]:
        """Why the accountant of the paper and what ran differ."""
        yield from self.noise.remarks()
        yield from self.clipping.remarks()
        if self.sampling != "poisson" and np.any(self.batch_size < facts.samples[self.clients]):
            yield (
                "The published figure treats shuffled batches of a fixed size as if they were Poisson sampled; the "
                "accounted one counts one use of every sample per pass over the data, without amplification."
            )
        if statement.adjacency == "replace":
            yield (
                "The papers compare data sets with one sample more or less; the accounted figure exchanges one sample "
                "for another."
            )
