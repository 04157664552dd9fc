"""Small rounds for the ledger's tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wirelessfl.privacy import AirRelease, PrivacyFacts


def facts_of(samples: ArrayLike) -> PrivacyFacts:
    """Clients with these sample counts, weighted by them."""
    counts = np.asarray(samples, dtype=np.int64)
    return PrivacyFacts(counts, counts / counts.sum(), int(counts.sum()))


def air_release(
    facts: PrivacyFacts, clients: ArrayLike, round_index: int = 0, *, limit: ArrayLike = np.inf, **overrides: Any
) -> AirRelease:
    """A cross-layer slot by the formulas of DESIGN.md §3.

    Args:
        facts: The population.
        clients: Who transmits.
        round_index: Communication round.
        limit: |ĥ_i| √P_i / α_u of each client.
        overrides: Fields of the record to replace.
    """
    clients = np.asarray(clients, dtype=np.int64)
    weight = facts.weights[clients]
    csi_ratio = overrides.get("csi_ratio", 1.0)
    values: dict[str, Any] = {
        "round_index": round_index,
        "clients": clients,
        "weight": weight,
        "backoff": np.maximum(1.0, weight / np.asarray(limit, dtype=np.float64)),
        "received_bound": np.minimum(weight, limit) * csi_ratio,
        "effective_noise_std": 0.01,
        "accounted_noise_std": 0.01,
        "unjammed_noise_std": 0.01,
    }
    return AirRelease(**{**values, **overrides})
