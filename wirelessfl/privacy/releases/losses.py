"""Losses that clients report with noise of their own, for the selection of the clients of a round."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy.costs import PrivacyFacts, Spending, Statement, require_choices, require_positive
from wirelessfl.privacy.releases.base import Record

LossStatistic = Literal["mean", "batch_mean", "rms", "training_mean"]


@dataclass(frozen=True)
class LossNoise:
    """Gaussian noise on a report of clipped losses.

    Attributes:
        noise_std: σ of a report.
        clip: C, the bound of a sample's loss (of a ``training_mean`` as a whole).
        statistic: ``mean`` or ``batch_mean`` of the samples' losses, ``rms`` their root mean square, or the
            ``training_mean`` over local steps, on each of which a sample has an influence.
        batch_size: samples of a ``batch_mean``.
        fewest: samples of the registered client that has least.

    Raises:
        ValueError: If a value is out of range.
    """

    noise_std: float
    clip: float
    statistic: LossStatistic = "mean"
    batch_size: int = 1
    fewest: int = 1

    def __post_init__(self) -> None:
        require_positive(noise_std=self.noise_std, clip=self.clip, batch_size=self.batch_size)
        require_choices(self, statistic=LossStatistic)

    def sensitivity(self, samples: NDArray[np.int64], statement: Statement) -> NDArray[np.float64]:
        """(n,) how far one unit can move the report of a client with (n,) samples.

        Reports lie in [0, C], so that a client moves its own by C at most, left out or exchanged. A sample moves a mean
        of n clipped losses by C/n, and its root mean square by C/√n, as √a − √b ≤ √(a − b).
        """
        if statement.unit == "client" or self.statistic == "training_mean":
            return np.full(len(samples), self.clip)
        counted = np.minimum(samples, self.batch_size) if self.statistic == "batch_mean" else samples
        return self.clip / (np.sqrt(counted) if self.statistic == "rms" else counted)


@dataclass(frozen=True)
class LocalPlans:
    """Public numbers of the local training that m clients would do, had they been selected, (m,) each.

    Attributes:
        samples: n_i.
        batch_size: Samples in a full batch, at most n_i.
        steps: Local steps.
    """

    samples: tuple[int, ...]
    batch_size: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LossRelease(Record):
    """Noisy losses of one round, which every adversary is taken to see.

    It stands beside the other releases of a run, whatever protects these: its cost is added to each of them. From then
    on who takes part follows released numbers, so that other releases of the round are charged to all who might have
    been selected, as much as they would have cost these (see ``Ledger.add``).

    Attributes:
        clients: (n,) who were asked, drawn without any private data; none where all clients are charged.
        noise: of a report.
        everyone: whether reports come with uploads, so that who reports follows earlier reports: every registered
            client is charged as if it had been selected, by its own numbers.
        plans: what those who were asked would do if selected, in their order; where all clients are charged, all that
            occur among these; None where code from outside trains, and in traces of earlier versions.
    """

    route: ClassVar[str] = "the noise on reported losses"
    relation: ClassVar[str] = "one client or one sample more or fewer"

    noise: LossNoise
    everyone: bool = False
    plans: LocalPlans | None = None

    def published(self, facts: PrivacyFacts) -> Spending:
        """No paper claims privacy for it: the theorem of the uplink stands as it is."""
        return Spending(np.zeros(len(self.clients)))

    def accounted(self, facts: PrivacyFacts, statement: Statement) -> Spending:
        """Gaussian mechanism of the reports' sensitivity."""
        if self.everyone:  # of the fewest samples, of which the sensitivity is largest
            mu = self.noise.sensitivity(np.array([self.noise.fewest]), statement) / self.noise.noise_std
            return Spending(mu**2, everyone=True)
        mu = self.noise.sensitivity(facts.samples[self.clients], statement) / self.noise.noise_std
        return Spending(mu**2)

    def remarks(self, facts: PrivacyFacts, statement: Statement) -> Iterator[str]:
        """What is added to the theorem's figure."""
        noise, charged = self.noise, "every client in every round" if self.everyone else "whoever was asked in a round"
        return iter(
            (
                f"Clients report losses, clipped to {noise.clip:g} and with noise of standard deviation "
                f"{noise.noise_std:g}, for the selection; the accounted figure counts these reports, the published one "
                "does not.",
                "Who is selected follows these reports, and so does a client's number of rounds: the accounted figure "
                f"charges {charged} what it would have cost it to be selected.",
            )
        )
