"""Noise that clients add while they train, before any optimizer sees the gradients.

DP-SGD and its kin add it to sums of clipped gradients; the zCDP paper adds it to clipped mini-batch means, which secure
aggregation hides further.
"""

from collections.abc import Iterator
from dataclasses import dataclass
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
    require_positive,
    sampled_spending,
)
from wirelessfl.privacy.laws import ClippingLaw, DynamicClip, FixedClip, NoiseLaw, UnknownClip, WhiteNoise
from wirelessfl.privacy.releases.base import Record, per_client, sentences

Sampling = Literal["poisson", "shuffle"]
Arithmetic = Literal["real", "integer"]

ONE_SAMPLE_ONLY = "noise on the gradients of samples protects a sample; nothing is proven for a whole client"


@dataclass(frozen=True, eq=False)
class DpSgdRelease(Record):
    """The local steps of one round (DP-SGD, DP-Adam, DP-AdaGrad, their wavelet forms): the optimizer costs nothing.

    A round in which the multiplier changes is several releases, one a multiplier.

    Attributes:
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

    noise_multiplier: float
    batch_size: NDArray[np.int64]
    steps: NDArray[np.int64]
    sampling: Sampling = "poisson"
    noise: NoiseLaw = WhiteNoise()  # noqa: RUF009 - frozen
    clipping: ClippingLaw = FixedClip()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        count = len(self.clients)
        require_non_negative(noise_multiplier=self.noise_multiplier)
        precondition(
            not np.any(per_client("batch_size", self.batch_size, count) < 1), "batch_size must be at least one sample"
        )
        per_client("steps", self.steps, count)
        require_choices(self, sampling=Sampling)

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
        yield from sentences(
            (
                self.sampling != "poisson" and np.any(self.batch_size < facts.samples[self.clients]),
                "The published figure treats shuffled batches of a fixed size as if they were Poisson sampled; the "
                "accounted one counts one use of every sample per pass over the data, without amplification.",
            ),
            (
                statement.adjacency == "replace",
                "The papers compare data sets with one sample more or less; the accounted figure exchanges one sample "
                "for another.",
            ),
        )


@dataclass(frozen=True)
class SecureSum:
    """One secure aggregation.

    Attributes:
        selected: r, clients asked to take part.
        survivors: Clients whose input is in the sum with its noise: colluding ones included, but none that
            does not follow the protocol.
        threshold: Colluding clients from which on individual inputs can be unmasked; None for no such number.
        arithmetic: ``real`` is the idealisation in which sums of Gaussians are Gaussian. ``integer`` is Gaussian noise
            rounded into a ring: nothing is proven about the sum, only about each input.
    """

    selected: int
    survivors: int
    threshold: int | None = None
    arithmetic: Arithmetic = "real"

    def __post_init__(self) -> None:
        precondition(
            0 <= self.survivors <= self.selected,
            f"survivors must lie between 0 and selected, found {self.survivors} of {self.selected}",
        )
        require_choices(self, arithmetic=Arithmetic)

    def opened_for(self, statement: Statement) -> Iterator[str]:
        """Why every single input counts as visible to the adversary; empty if the sum hides it."""
        seen = statement.adversary == "individual"
        opened = not seen and self.threshold is not None and statement.colluding >= self.threshold
        return sentences(
            (seen, "the adversary sees every upload"),
            (
                opened,
                f"{statement.colluding} clients may collude, and {self.threshold} of a round are enough to open single "
                "inputs",
            ),
            (
                self.arithmetic == "integer",
                "rounded Gaussian noise in integer arithmetic is proven for single inputs only, not for their sum",
            ),
        )


@dataclass(frozen=True, eq=False)
class ZcdpRelease(Record):
    """The uploads of one round of the zCDP paper, alone or in a secure sum with equal weights.

    Attributes:
        clients: (n,) whose masked (or plain) input was sent, also if they vanished afterwards.
        clip: G, the norm that a sample's gradient is clipped to.
        noise_std: Standard deviation σ of the noise on a mini-batch mean.
        batch_size: (n,) γ, samples in a full batch, at most n_i; the last batch of a pass may be smaller.
        steps: (n,) τ local steps.
        secure_sum: The aggregation; None for plain uploads.
        linear_upload: Whether an upload of one step is a constant times the noised mean: plain SGD, no clipping of
            the update, no optimizer that rescales, no clipping norm that follows the local gradients.

    Raises:
        ValueError: If a shape or a value is out of range.
    """

    route: ClassVar[str] = "the noise that clients add to their mini-batch means"
    relation: ClassVar[str] = "one sample exchanged for another"

    clip: float
    noise_std: float
    batch_size: NDArray[np.int64]
    steps: NDArray[np.int64]
    secure_sum: SecureSum | None = None
    linear_upload: bool = True

    def __post_init__(self) -> None:
        count = len(self.clients)
        require_non_negative(noise_std=self.noise_std)
        require_positive(clip=self.clip)
        precondition(
            not np.any(per_client("batch_size", self.batch_size, count) < 1), "batch_size must be at least one sample"
        )
        per_client("steps", self.steps, count)

    def published(self, facts: PrivacyFacts) -> Spending:
        """Theorem 1: ρ_i grows by 2 τ G²/(r n_i γ σ²) in a round, for one sample replaced."""
        selected = 1 if self.secure_sum is None else self.secure_sum.selected
        if self.noise_std == 0:
            return no_guarantee(len(self.clients), Caveat.NOTHING_ADDS_NOISE.value)
        clip, noise_std = _in_a_common_unit(self.clip, self.noise_std)
        crowd = float(selected) * facts.samples[self.clients] * self.batch_size
        with np.errstate(over="ignore", under="ignore"):
            rho = 2 * self.steps * np.square(clip) / crowd
            return Spending(2 * rho / np.square(noise_std), conversion="zcdp")

    def accounted(self, facts: PrivacyFacts, statement: Statement) -> Spending:
        """The local Gaussians, divided by the surviving honest clients where the sum hides one local step.

        The noise on a mean hides the members of the smallest batch of a pass least, and that is its last; passes begin
        afresh in every round and have reached it only if they are whole.
        """
        count = len(self.clients)
        if statement.unit == "client":
            return no_guarantee(count, ONE_SAMPLE_ONLY)
        if self.noise_std == 0:
            return no_guarantee(count, Caveat.NOTHING_ADDS_NOISE.value)
        reach = 2.0 if statement.adjacency == "replace" else 1.0
        samples = facts.samples[self.clients]
        per_pass = -(-samples // self.batch_size)
        last_batch = samples - (per_pass - 1) * self.batch_size
        clip, noise_std = _in_a_common_unit(self.clip, self.noise_std)
        hiding = self.hiding_clients(statement)
        with np.errstate(over="ignore", under="ignore"):
            in_full, in_last = (
                np.square(reach * clip / (size * noise_std)) / hiding for size in (self.batch_size, last_batch)
            )
            whole, rest = np.divmod(self.steps, per_pass)
            return Spending(whole * np.where(whole > 0, in_last, 0.0) + np.where(rest > 0, in_full, 0.0))

    def hiding_clients(self, statement: Statement) -> NDArray[np.float64]:
        """(n,) how many independent equal noises hide one upload: the surviving honest clients, or its own alone.

        After more than one local step the uploads of neighbours have diverged in more than the noised
        gradient, and the noise of others does not hide that.
        """
        alone = np.ones(len(self.clients))
        if self.secure_sum is None or not self.linear_upload or any(self.secure_sum.opened_for(statement)):
            return alone
        honest = max(1, self.secure_sum.survivors - statement.colluding)
        return np.where(self.steps == 1, float(honest), alone)

    def remarks(self, facts: PrivacyFacts, statement: Statement) -> Iterator[str]:
        """Why Theorem 1 and what holds differ."""
        if self.secure_sum is not None:
            alone = sentences(
                (np.any(self.steps > 1), "the proof holds for one local step only, because later steps differ"),
                (not self.linear_upload, "an upload that is clipped or rescaled is not a multiple of the noised mean"),
            )
            reasons = "; ".join([*self.secure_sum.opened_for(statement), *alone])
            fewer = self.secure_sum.survivors - statement.colluding < self.secure_sum.selected
            yield from sentences(
                (reasons, f"Theorem 1 divides by the clients of a round; the accounted figure does not: {reasons}."),
                (
                    fewer and not reasons,
                    "Theorem 1 divides by all clients of a round; only the noise of surviving honest clients "
                    "protects an upload.",
                ),
            )
        per_pass = -(-facts.samples[self.clients] // np.asarray(self.batch_size))
        yield from sentences(
            (
                np.any(self.steps % per_pass != 0),
                "Theorem 1 needs whole passes over the data; a part of a pass costs as much as one of full batches.",
            ),
            (
                statement.adjacency == "add_remove",
                "Theorem 1 exchanges one sample for another; the accounted figure leaves one out, which changes the "
                "mean half as much.",
            ),
        )


def _in_a_common_unit(clip: float, noise_std: float) -> tuple[np.float64, np.float64]:
    # G and σ in a unit, a power of two, in which σ is about 1: squares neither overflow nor vanish, bits are kept.
    exponent = np.frexp(noise_std)[1]
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(np.float64(clip), -exponent), np.ldexp(np.float64(noise_std), -exponent)
