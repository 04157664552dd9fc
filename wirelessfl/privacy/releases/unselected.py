"""Cost of a round to clients that were not selected for it, where released losses decided who was."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy.costs import PrivacyFacts, SampledSteps, Spending, Statement, no_guarantee
from wirelessfl.privacy.releases.air import AirRelease
from wirelessfl.privacy.releases.base import BareRelease, Release
from wirelessfl.privacy.releases.local import DpSgdRelease, ZcdpRelease
from wirelessfl.privacy.releases.losses import LocalPlans

FOLLOWS_THE_SELECTION = (
    "the selection of clients follows released losses, and what an upload would have cost those who were not selected "
    "is not known"
)


def cost_if_selected(
    release: Release,
    plans: LocalPlans | None,
    facts: PrivacyFacts,
    statement: Statement,
    chosen: NDArray[np.bool_] | None = None,
) -> Spending:
    """Spending of clients that did not leave the release of a round, had they been selected: each by its own numbers.

    Args:
        release: Of those who were selected.
        plans: Of m clients; None where they are not known.
        facts: Of the population.
        statement: What is protected from whom.
        chosen: (m,) of which of them; None for all, or for one where they are not known.
    """
    if chosen is None:
        chosen = np.ones(1 if plans is None else len(plans.samples), dtype=np.bool_)
    count = int(chosen.sum())
    if isinstance(release, BareRelease):
        return no_guarantee(count, release.reason)
    would = None if plans is None else _would(release, plans, chosen, facts)
    return no_guarantee(count, FOLLOWS_THE_SELECTION) if would is None else would[0].accounted(would[1], statement)


def _would(
    release: Release, plans: LocalPlans, chosen: NDArray[np.bool_], facts: PrivacyFacts
) -> tuple[Release, PrivacyFacts] | None:
    # The release of these clients, who are numbered from 0, and the facts on them
    samples, batch_size, steps = (
        np.array(column, dtype=np.int64)[chosen] for column in (plans.samples, plans.batch_size, plans.steps)
    )
    theirs, clients = PrivacyFacts(samples, samples / facts.total_samples, facts.total_samples), np.arange(len(samples))
    # These kinds and none that goes on from them, which may hold more
    if type(release) is DpSgdRelease or type(release) is ZcdpRelease:
        return replace(release, clients=clients, batch_size=batch_size, steps=steps), theirs
    if type(release) is AirRelease and release.same_for_others:
        return _would_send(release, theirs, clients, batch_size), theirs
    return None


def _would_send(
    release: AirRelease, theirs: PrivacyFacts, clients: NDArray[np.int64], batch_size: NDArray[np.int64]
) -> AirRelease:
    # As loud as they may be: without any back-off
    return replace(
        release,
        clients=clients,
        weight=theirs.weights,
        backoff=np.ones(len(clients)),
        received_bound=theirs.weights,
        accounted_noise_std=release.unjammed_noise_std,
        csi_ratio=1.0,
        batch_size=batch_size if release.rule == "gradient_step" else None,
    )


def joined(first: Spending, second: Spending) -> Spending:
    """Spending of the clients of both, who are not the same, those of the first before the others."""
    count = len(first.mu_squared) + len(second.mu_squared)
    reasons = [each.unproven for each in (first, second) if each.unproven is not None and len(each.mu_squared)]
    if reasons:
        return replace(no_guarantee(count, reasons[0]), conversion=first.conversion)
    mu_squared = np.concatenate([first.mu_squared, second.mu_squared])
    steps = first.sampled or second.sampled
    if steps is None:
        return replace(first, mu_squared=mu_squared)

    def column(name: str, absent: Any) -> NDArray[Any]:
        parts = [
            np.full(len(each.mu_squared), absent) if each.sampled is None else getattr(each.sampled, name)
            for each in (first, second)
        ]
        return np.concatenate(parts)

    sampled = SampledSteps(
        column("noise_multiplier", 1.0),
        column("sample_rate", 1.0),
        column("count", 0),
        steps.exchange,
        steps.fixed_size,
    )
    return replace(first, mu_squared=mu_squared, sampled=sampled)
