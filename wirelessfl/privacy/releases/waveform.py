"""Schemes over the air that choose their own symbols: the noise of all antennas against a client's whole signal."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.privacy.costs import PrivacyFacts, Spending, Statement, no_guarantee, require_choices
from wirelessfl.privacy.releases.air import AirRelease
from wirelessfl.privacy.releases.base import sentences

Signals = Literal["opposite", "non_negative"]


@dataclass(frozen=True, eq=False)
class WaveformRelease(AirRelease):
    """One slot of votes or other symbols that are no linear function of an update.

    Symbols have the norm τ at most, whatever the update is. To an adversary who knows the channels the slot is a
    Gaussian mechanism on the signal of a client, of which one sample can change every symbol.

    Attributes:
        signals: the largest distance of two signals of one client over the largest norm of one: 2 where they can be
            ``opposite``, as signs, √2 where they are ``non_negative``, as energies of tones.
    """

    route: ClassVar[str] = "the noise of the channel"

    signals: Signals = "opposite"

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        require_choices(self, signals=Signals)

    @classmethod
    def of(cls, slot: AirRelease, signals: Signals) -> Self:
        """The record of a slot as of linear amplitudes, for symbols of the same energy."""
        return cls(**{one.name: getattr(slot, one.name) for one in fields(AirRelease)}, signals=signals)

    @override
    def published(self, facts: PrivacyFacts) -> Spending:
        """No paper claims privacy for it."""
        return no_guarantee(len(self.clients), "the paper of this modulation states no privacy theorem")

    @override
    def sensitivity(self, facts: PrivacyFacts, statement: Statement) -> NDArray[np.float64]:
        """(n,) X: the whole signal, or the distance of two."""
        distance = {"opposite": 2.0, "non_negative": math.sqrt(2.0)}[self.signals]
        return (distance if statement.exchange else 1.0) * self.received_bound

    @override
    def remarks(self, facts: PrivacyFacts, statement: Statement) -> Iterator[str]:
        """What the accounted figure counts."""
        return sentences(
            (
                statement.adversary != "individual" and self.caveat is None,
                "One sample can change every symbol that a client sends: the accounted figure counts the whole signal "
                "at all antennas, against the noise of the receiver alone.",
            ),
        )
