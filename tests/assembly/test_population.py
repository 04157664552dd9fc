"""The clients' data of a scenario."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import small
from wirelessfl.assembly.learning import build_population, load_data
from wirelessfl.streams import Streams

CLIENTS = 4000


@pytest.mark.parametrize(("keys", "low", "high"), [({}, 50, 500), ({"min_samples": 20, "max_samples": 300}, 20, 300)])
def test_the_synthetic_set_has_sizes_of_the_published_law(keys: dict[str, Any], low: int, high: int) -> None:
    """n_i = min(low + ⌊lognormal(4, 2)⌋, high), whose median is low + ⌊e^4⌋ = low + 54.

    The share of clients below the median lies within 5 standard deviations, 5/(2√4000) = 4 %, of one half.
    """
    data = {"dataset": {"name": "synthetic", **keys}, "partition": {"scheme": "natural"}}
    scenario = small(data=data, clients__count=CLIENTS)
    sizes = build_population(scenario, Streams(3)).sizes
    assert (sizes.min(), sizes.max()) == (low, high)
    assert np.mean(sizes <= low + 54) == pytest.approx(0.5, abs=0.04)
    assert np.mean((sizes > low) & (sizes < high)) > 0.7
    pooled = load_data(small(data={**data, "partition": {"scheme": "iid"}}, clients__count=6))[0]
    assert pooled.owners is not None
    shares = np.bincount(pooled.owners)
    assert low <= shares.min() and shares.max() <= high
