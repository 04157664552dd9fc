"""What noise and local steps change in Fig. 3 and 4, also where σ is larger than any of the paper's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from publications.paper import PaperTable
from publications.tables import Tables
from publications.texts import epsilon
from publications.zcdp_points import CHOSEN, DELTA, KINDS, LEVELS, NOISE, PAPER_LEVELS, convergence_point
from wirelessfl.privacy import zcdp_epsilon, zcdp_rho

MASKED_COLUMN = f"ε published, with masks (r = {CHOSEN})"


def _points(tables: Tables) -> Iterator[tuple[str, float, list[float]]]:
    """Kind of model, the least σ of a size, and those from the paper's largest on."""
    for kind in KINDS:
        levels = sorted(float(one) for one in tables.study(f"convergence-{kind}").levels(NOISE))
        yield kind, levels[0], [one for one in levels if one > levels[0] and one >= PAPER_LEVELS[kind][0][1]]


def _times(kind: str, noise: float) -> str:
    """σ as a multiple of the paper's largest."""
    return f"{noise / PAPER_LEVELS[kind][0][1]:g}"


def masked_epsilon(plain: float) -> float:
    """ε that Theorem 1 publishes with masks, from that without (r = 1): its ρ is divided by the devices of a round."""
    return float(zcdp_epsilon(float(zcdp_rho(plain, DELTA)) / CHOSEN, DELTA))


def noise_rows(tables: Tables) -> list[dict[str, Any]]:
    """What noise costs at the end: each σ against the least one of the same τ, paired by seed.

    Raises:
        MissingRuns: a study has not run.
    """
    rows = []
    for kind, least, noises in _points(tables):
        for steps in LEVELS[kind][1]:
            for noise in noises:
                there, base = convergence_point(kind, noise, steps), convergence_point(kind, least, steps)
                told = [float(tables.band(*there, name).mean[0]) for name in ("epsilon_published", "epsilon_accounted")]
                rows.append(
                    {
                        "model": KINDS[kind],
                        "τ": steps,
                        "σ": f"{noise:g}",
                        "times the paper's largest σ": _times(kind, noise),
                        "ε published": epsilon(told[0]),
                        MASKED_COLUMN: epsilon(masked_epsilon(told[0])),
                        "ε accounted": epsilon(told[1]),
                        "σ of the comparison": f"{least:g}",
                        "accuracy": tables.difference(there, base).text(),
                        "test loss": tables.difference(there, base, "test_loss").text(percent=False),
                    }
                )
    return rows


def step_rows(tables: Tables) -> list[dict[str, Any]]:
    """What the largest τ changes against τ = 1 at each σ, paired by seed.

    Raises:
        MissingRuns: a study has not run.
    """
    rows = []
    for kind in KINDS:
        few, many = LEVELS[kind][1]
        for noise in sorted(float(one) for one in tables.study(f"convergence-{kind}").levels(NOISE)):
            there, base = convergence_point(kind, noise, many), convergence_point(kind, noise, few)
            rows.append(
                {
                    "model": KINDS[kind],
                    "σ": f"{noise:g}",
                    "times the paper's largest σ": _times(kind, noise),
                    "τ": f"{few} → {many}",
                    "accuracy, first quarter": tables.difference(there, base, "early_accuracy").text(),
                    "accuracy, end": tables.difference(there, base).text(),
                    "test loss, end": tables.difference(there, base, "test_loss").text(percent=False),
                }
            )
    return rows


NOISE_TABLES = (
    PaperTable("noise-cost", "What noise costs at the end", noise_rows),
    PaperTable("local-steps", "What more local steps change", step_rows),
)
