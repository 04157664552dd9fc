"""A mechanism from outside the package: one record with its two functions is all the ledger needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.privacy.rounds import facts_of
from wirelessfl.privacy import PrivacyFacts, Release, Spending, Statement, gaussian_epsilon, recompute


@dataclass(frozen=True)
class NoisedCount:
    """A count of one per client, released with Gaussian noise; its paper claims half the cost."""

    route: ClassVar[str] = "the noise on a count"

    round_index: int
    clients: NDArray[np.int64]
    noise_std: float

    @property
    def relation(self) -> str:
        return "one count more or fewer"

    def published(self, facts: PrivacyFacts) -> Spending:
        return Spending(np.full(len(self.clients), 0.25 / self.noise_std**2))

    def accounted(self, facts: PrivacyFacts, statement: Statement) -> Spending:
        return Spending(np.full(len(self.clients), 1.0 / self.noise_std**2))

    def remarks(self, facts: PrivacyFacts, statement: Statement) -> Iterator[str]:
        yield "The paper forgets one side of the count."


def test_a_record_of_ones_own_is_accounted_for() -> None:
    rounds: list[Release] = [NoisedCount(m, np.array([0, 1]), 2.0) for m in range(4)]
    ledger = recompute(rounds, facts_of([5, 5]), Statement(1e-5))
    assert ledger.epsilon_accounted() == pytest.approx(float(gaussian_epsilon(1.0, 1e-5)), rel=1e-12)
    assert ledger.epsilon_published() == pytest.approx(float(gaussian_epsilon(0.5, 1e-5)), rel=1e-12)
    assert ledger.why_different() == ["The paper forgets one side of the count."]
