"""Over-the-air aggregation: the noise of the receiver and of the jammer protects the sum of the updates."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.privacy.costs import (
    Caveat,
    Conversion,
    PrivacyFacts,
    Spending,
    Statement,
    no_guarantee,
    require_choices,
    require_non_negative,
)
from wirelessfl.privacy.releases.base import Record, per_client, sentences

AirRule = Literal["whole_update", "gradient_step"]
AirTheorem = Literal["cross_layer", "privacy_for_free", "slot_groups", "none"]
_OF_ONE_SUM = "theorems are of one sum of all clients of a round, and not of groups that send in slots of their own"
_UNPUBLISHED: dict[AirTheorem, str] = {
    "none": "the paper of this power control states no privacy theorem",
    "slot_groups": _OF_ONE_SUM,
}
_CONVERSION: dict[AirTheorem, Conversion] = {"cross_layer": "zcdp", "privacy_for_free": "tail_bound"}


@dataclass(frozen=True, eq=False)
class AirRelease(Record):
    """One over-the-air slot, in units of y/α_u with updates normalised by the clip τ.

    Attributes:
        clients: (n,) who transmitted.
        weight: (n,) p_i as sent, before the server renormalises.
        backoff: (n,) recorded back-off s_i; data of the client, not public, with ``backoff: actual``.
        received_bound: (n,) R_i |h_i/ĥ_i|, the largest norm that client i can contribute to y/α_u.
        effective_noise_std: σ_m per real dimension, as the theorem has it.
        accounted_noise_std: () or (n,) what the adversary cannot remove of it, with jamming. Real-valued jamming that
            can be partly nulled counts in part only; interference from other cells does not count.
        unjammed_noise_std: σ_c/α_u, the receiver's own noise. It is all that counts against colluders. Where several
            receivers or an observer hear a client, R_i is what a receiver with that noise would have to read to learn
            as much without jamming.
        csi_ratio: (n,) or scalar |h_i/ĥ_i|, times by how much louder a client is heard at all antennas and receivers
            than the server reads it; the adversary sees both quadratures.
        rule: ``whole_update`` for any local training whose update is clipped to τ. ``gradient_step`` for one step
            of per-sample-clipped gradients, τ = η clip, with no momentum or optimizer state carried over.
        batch_size: (n,) samples in the mean of a gradient step; None for all n_i of the client.
        backoff_is_public: True for ``backoff: bound``.
        theorem: Whose published privacy applies.
        caveat: A circumstance that voids the accounted guarantee.
        same_for_others: Whether any other client, had it sent, would have been heard under the same noise with
            R_j = p_j at most: α_u is fixed, channels are known, nobody jams, and one receiver has one antenna.

    Raises:
        ValueError: If a shape or a value is out of range.
    """

    route: ClassVar[str] = "the noise of the channel and the jammer"

    weight: NDArray[np.float64]
    backoff: NDArray[np.float64]
    received_bound: NDArray[np.float64]
    effective_noise_std: float
    accounted_noise_std: NDArray[np.float64] | float
    unjammed_noise_std: float
    csi_ratio: NDArray[np.float64] | float = 1.0
    rule: AirRule = "whole_update"
    batch_size: NDArray[np.int64] | None = None
    backoff_is_public: bool = True
    theorem: AirTheorem = "cross_layer"
    caveat: Caveat | None = None
    same_for_others: bool = False

    def __post_init__(self) -> None:
        count = len(self.clients)
        for name in ("weight", "backoff", "received_bound", "accounted_noise_std", "csi_ratio"):
            per_client(name, getattr(self, name), count)
        precondition(not np.any(self.backoff == 0), "backoff must be positive")
        precondition(
            self.batch_size is None or not np.any(per_client("batch_size", self.batch_size, count) < 1),
            "batch_size must be at least one sample",
        )
        require_non_negative(effective_noise_std=self.effective_noise_std, unjammed_noise_std=self.unjammed_noise_std)
        require_choices(self, rule=AirRule, theorem=AirTheorem)

    @property
    def relation(self) -> str:
        """Relation of the theorem."""
        return "one sample exchanged for another" if self.theorem == "privacy_for_free" else "one sample more or fewer"

    def published(self, facts: PrivacyFacts) -> Spending:
        """Theorems 1 and 3, ρ_i = Σ 1/(2 |D|² s² σ_m²), for one sample more or less; or that of Liu and Simeone.

        Theirs is Σ 2 γ² c²/σ_c² for one sample exchanged, where c γ is the received amplitude of a sample: α_u/|D|.
        """
        if self.theorem in _UNPUBLISHED:
            return no_guarantee(len(self.clients), _UNPUBLISHED[self.theorem])
        with np.errstate(divide="ignore"):
            mu = 1.0 / (facts.total_samples * self.backoff * np.float64(self.effective_noise_std))
        return Spending(mu**2, conversion=_CONVERSION[self.theorem])

    def accounted(self, facts: PrivacyFacts, statement: Statement) -> Spending:
        """Gaussian mechanism of sensitivity X and the noise that the adversary cannot remove."""
        if self.caveat is not None:
            return no_guarantee(len(self.clients), self.caveat.value)
        if statement.adversary == "individual":
            return no_guarantee(len(self.clients), "what a client transmits over the air carries no noise of its own")
        noise_std = self.unjammed_noise_std if statement.colluding else self.accounted_noise_std
        if np.any(np.asarray(noise_std) == 0):
            return no_guarantee(len(self.clients), Caveat.NOTHING_ADDS_NOISE.value)
        return Spending((self.sensitivity(facts, statement) / noise_std) ** 2)

    def sensitivity(self, facts: PrivacyFacts, statement: Statement) -> NDArray[np.float64]:
        """(n,) X: how far one unit can move y/α_u."""
        ball = (2.0 if statement.exchange else 1.0) * self.received_bound
        if self.rule == "whole_update" or statement.unit == "client":
            return ball
        samples = facts.samples[self.clients] if self.batch_size is None else self.batch_size
        one_sample = self.csi_ratio * self.weight / samples / (self.backoff if self.backoff_is_public else 1.0)
        return np.minimum(one_sample * (2.0 if statement.adjacency == "replace" else 1.0), ball)

    def remarks(self, facts: PrivacyFacts, statement: Statement) -> Iterator[str]:
        """Why the theorem and the exact composition differ."""
        if statement.adversary == "individual":
            return iter(())
        claims, cross_layer = self.theorem not in _UNPUBLISHED, self.theorem == "cross_layer"
        of_sample, whole_update = statement.unit == "sample", self.rule == "whole_update"
        of_step = of_sample and not whole_update
        accounted_noise_std = np.asarray(self.accounted_noise_std)
        jammed_for_others = statement.colluding and np.any(self.unjammed_noise_std < accounted_noise_std)
        bound = "(for Theorems 1 and 3, ε = ρ + 2√(ρ ln 1/δ))" if cross_layer else "on the Gaussian tail"
        return sentences(
            (
                claims and of_step and self.batch_size is not None,
                "The theorem divides one sample's share by all samples of the client; a step on a mini-batch divides "
                "it by the batch size only.",
            ),
            (
                claims and not of_sample,
                "The theorem protects one sample; the accounted figure protects the whole update of a client, which "
                "weighs p_i and not 1/|D|.",
            ),
            (
                claims and of_sample and whole_update,
                "The theorem assumes that one sample moves a whole update by at most τ/n_i. Clipping the whole update "
                "does not enforce that: one sample can change it by up to 2τ.",
            ),
            (
                cross_layer and statement.adjacency == "replace" and not (of_sample and whole_update),
                "The theorem compares runs with one sample more or less; the accounted figure exchanges one unit for "
                "another, which moves the sum twice as far as leaving it out.",
            ),
            (
                claims,
                f"The theorem converts with a bound {bound}, the accounted figure with the exact Gaussian curve.",
            ),
            (
                of_step and not self.backoff_is_public,
                "The back-off follows the actual norm of the update, which is private: the accounted figure does "
                "not count it as protection.",
            ),
            (
                np.any(self.csi_ratio != 1),
                "With imperfect channel knowledge, several antennas or further receivers the adversary receives more "
                "of a signal than the server uses: the accounted sensitivity counts both quadratures of all antennas.",
            ),
            (
                jammed_for_others,
                "A colluding party may be the jammer, also where that role rotates: no jamming is counted as noise, "
                "in any round.",
            ),
            (
                not jammed_for_others and np.any(accounted_noise_std < self.effective_noise_std),
                "Part of the noise can be removed by an adversary who sees both quadratures or knows its source; "
                "the accounted figure counts the rest only.",
            ),
        )
