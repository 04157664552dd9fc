"""Rehearsal of a scenario without training (receptions, ledger, worst client), and the parts of it that games know."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import InfeasibleError, precondition
from wirelessfl.learning.selection import SelectAll, SelectPoisson, SelectRoundRobin, SelectUniform
from wirelessfl.privacy import (
    AirRelease,
    BareRelease,
    DpSgdRelease,
    Ledger,
    LossRelease,
    Release,
    ServerNoiseRelease,
    Spending,
    WaveformRelease,
    ZcdpRelease,
)
from wirelessfl.privacy.clipping import (
    DynamicClipping,
    FlatClipping,
    PerLayerClipping,
    PrivateMooClipping,
    PublishedMooClipping,
    QuantileClipping,
    SampleMooClipping,
)
from wirelessfl.privacy.mechanisms import GaussianMechanism, HaarMechanism, MeanGaussianMechanism
from wirelessfl.simulation import Round, Simulation, SimulationState
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.rehearsal import without_training
from wirelessfl.simulation.run import Deployment
from wirelessfl.simulation.uplinks import SlotPlan
from wirelessfl.trace import Status

_KNOWN: dict[str, tuple[type, ...]] = {
    "selection": (SelectAll, SelectPoisson, SelectRoundRobin, SelectUniform),
    "clipping rule": (
        *(FlatClipping, DynamicClipping, PerLayerClipping),
        *(PrivateMooClipping, PublishedMooClipping, QuantileClipping, SampleMooClipping),
    ),
    "noise mechanism": (GaussianMechanism, HaarMechanism, MeanGaussianMechanism),
}
_KNOWN_RELEASES = (AirRelease, BareRelease, DpSgdRelease, ServerNoiseRelease, WaveformRelease, ZcdpRelease)

NOBODY = "the server receives no client in any round, so there is nothing to audit"


def require_known(what: str, part: object) -> None:
    """Refusal of a selection, a clipping rule or a noise mechanism for which there is no game.

    Raises:
        InfeasibleError: it is of such a kind.
    """
    precondition(
        isinstance(part, _KNOWN[what]),
        f"this scenario cannot be audited: the audit has no game for the {what} {type(part).__name__}",
        InfeasibleError,
    )


def require_known_releases(releases: list[Release]) -> None:
    """Refusal of releases for which there is no game.

    Raises:
        InfeasibleError: one is of such a kind.
    """
    for release in releases:
        known = type(release) in _KNOWN_RELEASES
        if isinstance(release, BareRelease) and not known:
            raise InfeasibleError(
                f"this scenario cannot be audited: {release.reason}, and the audit has no game for it"
            )
        precondition(
            known,
            f"this scenario cannot be audited: the audit has no game for the release {type(release).__name__}",
            InfeasibleError,
        )


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A scenario without its training.

    Attributes:
        parts: the simulation as it was built.
        learner: as it was built.
        ledger: after all rounds.
        state: after all rounds.
        slots: what was heard when, of uplinks that have slots.
        num_rounds: rounds played.
        client: the client that the ledger charges most; of several, the one with the largest weight in the most slots.
        releases: all that the ledger charges this client for, in order.
        reports: the noisy losses that it reports for the selection, in order.
    """

    parts: Deployment
    learner: Learner
    ledger: Ledger
    state: SimulationState
    slots: list[tuple[Round, SlotPlan]]
    num_rounds: int
    client: int
    releases: list[Release]
    reports: list[LossRelease]

    @property
    def rounds(self) -> list[int]:
        """Rounds that the ledger counts for the client."""
        return list(dict.fromkeys(release.round_index for release in self.releases))

    def local_records(self) -> dict[int, Release]:
        """The record of the client's own noise in each round that has one."""
        uplinks = AirRelease | BareRelease | ServerNoiseRelease
        return {release.round_index: release for release in self.releases if not isinstance(release, uplinks)}

    def published_mu(self) -> float:
        """√(2ρ) of a published zCDP theorem for the client; NaN where none is published."""
        claims = [release.published(self.ledger.facts) for release in self.releases]
        return math.sqrt(self._total(claims)) if all(claim.conversion == "zcdp" for claim in claims) else math.nan

    def accounted_mu(self) -> float:
        """The μ from which the client's accounted ε follows, where all its noise is plain Gaussian; else NaN."""
        if self.reports:  # which are charged beside the others, as is whatever the client might have been selected for
            return self.ledger.accounted_mu(self.client)
        truths = [release.accounted(self.ledger.facts, self.ledger.statement) for release in self.releases]
        plain = all(truth.sampled is None for truth in truths)
        one_route = len({release.route for release in self.releases}) == 1 and not self.ledger.is_void
        return math.sqrt(self._total(truths)) if plain and one_route else math.nan

    def _total(self, spendings: list[Spending]) -> float:
        # Σ μ² of the client; where not everyone is charged, of the releases that it takes part in.
        return sum(
            float(spending.mu_squared[0 if spending.everyone else self.place_in(release)])
            for spending, release in zip(spendings, self.releases, strict=True)
            if spending.everyone or self.client in release.clients
        )

    def place_in(self, release: Release) -> int:
        """Where the client stands in a release."""
        return int(np.flatnonzero(release.clients == self.client)[0])


def rehearse_for_audit(simulation: Simulation) -> Rehearsal:
    """Rehearsal of all rounds without training; the simulation is used up by it.

    Raises:
        InfeasibleError: nobody is heard in any round.
    """
    parts, ledger = simulation.deployment, simulation.ledger
    learner, rounds = without_training(simulation), list[Round]()
    simulation.run(lambda this, _: rounds.append(this.round))
    slots = [(this, this.heard) for this in rounds if this.heard is not None]
    if parts.selection.reads_losses:
        client = _worst_client(ledger, slots, _taking_part(rounds, ledger.facts.num_clients))
    else:
        client = _worst_client(ledger, slots if isinstance(parts.selection.rule, SelectAll) else [])
    releases = [
        release
        for this in rounds
        for release in this.releases
        if client in release.clients or release.published(ledger.facts).everyone
    ]
    if not releases:
        raise InfeasibleError(NOBODY)
    return Rehearsal(
        parts=parts,
        learner=learner,
        ledger=ledger,
        state=simulation.state,
        slots=slots,
        num_rounds=len(rounds),
        client=client,
        releases=releases,
        reports=[release for this in rounds for release in _reports(this, client)],
    )


def _taking_part(rounds: list[Round], registered: int) -> NDArray[np.bool_]:
    # (K,) who is in a release of any round; who might only have been selected has nothing to play a game on.
    there = np.zeros(registered, dtype=np.bool_)
    for this in rounds:
        for release in this.releases:
            there[release.clients] = True
    return there


def _reports(this: Round, client: int) -> list[LossRelease]:
    # The noisy loss that the client reports, if it does: in answer to a query, or beside an upload that is heard.
    release = this.loss_release
    if not isinstance(release, LossRelease):
        return []
    heard = this.clients[this.with_status(Status.PARTICIPATED)]
    return [release] if client in (heard if release.everyone else release.clients) else []


def _worst_client(ledger: Ledger, slots: list[tuple[Round, SlotPlan]], among: NDArray[np.bool_] | None = None) -> int:
    # The client charged most, of all or of some; of several, the one that slots of which it is known who is in them
    # tell most of.
    #
    # A trusted server charges everybody for every round, also those whom a quorum never lets in.
    published, accounted = ledger.client_epsilons()
    told = ledger.facts.weights.copy()
    if slots:
        heard = np.concatenate([this.clients[plan.senders] for this, plan in slots])
        told *= np.sqrt(np.bincount(heard, minlength=len(told)))
    first = np.zeros(len(told)) if among is None else among
    return int(np.lexsort((published, told, accounted, first))[-1])
