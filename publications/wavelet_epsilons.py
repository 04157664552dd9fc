"""Claims on the ε that the wavelet paper states: what they would cost, and whether one training has all three."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from publications.claims import Claim, Outcome, Verdict, verdict
from publications.effects import Effect, ratio
from publications.tables import Tables
from publications.wavelet_numbers import (
    EPSILONS,
    ROUNDS,
    STEP_COUNTS,
    all_fits,
    least_epsilon,
    most_affordable_rounds,
)


def _stated_epsilons(tables: Tables) -> Verdict:
    """The least ε of the stated rounds and epochs, which depends on how many rounds a client takes part in."""
    stated = EPSILONS["mnist"]
    few = most_affordable_rounds(stated)
    least = {
        rounds: {sigma: least_epsilon(float(sigma), share=rounds / ROUNDS) for sigma in stated}
        for rounds in (ROUNDS, few)
        if rounds
    }
    parts = [_over_stated(stated, rounds, found) for rounds, found in least.items()]
    numbers = "; ".join(
        f"in {rounds} of {ROUNDS} rounds: {', '.join(f'{one:.3g}' for one in found.values())}"
        for rounds, found in least.items()
    )
    outcome = {0: Outcome.CONTRADICTED, ROUNDS: Outcome.CONFIRMED}.get(few, Outcome.UNDECIDED)
    return Verdict(
        outcome,
        f"the least ε at σ = {', '.join(stated)} of a client that takes part {numbers}",
        f"{ROUNDS} rounds of 50 local epochs on 600 samples with the smallest possible batches of one sample, by the "
        "RDP accountant for DP-SGD; larger batches cost more. Section 6.1 speaks of 100 clients and of 50 epochs of "
        "each a round; section 3 has a subset of the clients in each round, whose size in the experiments is not "
        f"stated. By this accountant a client that takes part in more than {few} rounds spends more than is stated. "
        "What a secret choice of the clients would amplify is left out",
        replace(parts[0], parts=tuple(parts) if len(parts) > 1 else ()),
        "it depends on the participation" if outcome is Outcome.UNDECIDED else "",
    )


def _over_stated(stated: Mapping[str, float], rounds: int, least: Mapping[str, float]) -> Effect:
    """The quotient of the least and the stated ε at the σ where it is largest."""
    over = {sigma: least[sigma] / one for sigma, one in stated.items()}
    worst = max(over, key=lambda sigma: over[sigma])
    return ratio(over[worst], f"{rounds} of {ROUNDS} rounds, least over stated ε at σ = {worst}")


def _one_training(data: str, tables: Tables) -> Verdict:
    """Whether any training that costs what is stated at σ = 1 costs what is stated at the others."""
    stated, fits = EPSILONS[data], all_fits(data)
    told, within, apart = [], [], {}
    for sigma in ("1.5", "3"):
        found = [fit[sigma] for _, fit in fits]
        told.append(f"σ = {sigma}: stated {stated[sigma]:g}, from {min(found):.4g} to {max(found):.4g}")
        within.append(min(found) - 0.01 <= stated[sigma] <= max(found) + 0.01)
        apart[sigma] = max(stated[sigma] / max(found), min(found) / stated[sigma])
    farthest = max(apart, key=lambda sigma: apart[sigma])
    return verdict(
        all(within),
        f"fitted to {stated['1']:g} at σ = 1, " + "; ".join(told),
        f"{STEP_COUNTS[0]} to {STEP_COUNTS[-1]:,} steps with q to match by today's RDP conversion, and small batches "
        "by the classical one; epochs and clients play no part",
        ratio(apart[farthest], f"how far the stated ε lies outside, σ = {farthest}"),
    )


EPSILON_CLAIMS = (
    Claim(
        "300 rounds of 50 local epochs cost no more than ε = 6.38, 3.61 and 1.64 at σ = 1, 1.5 and 3.",
        "6.1, Table 3",
        _stated_epsilons,
        everywhere=True,
    ),
    Claim(
        "The ε of MNIST and Fashion-MNIST, 6.38, 3.61 and 1.64, are those of one training at three σ.",
        "Table 3; whatever its batches are",
        partial(_one_training, "mnist"),
        everywhere=True,
    ),
    Claim(
        "The ε of CIFAR-10, 24.5, 7.94 and 4.75, are those of one training at three σ.",
        "Table 3; whatever its batches are",
        partial(_one_training, "cifar10"),
        everywhere=True,
    ),
)
