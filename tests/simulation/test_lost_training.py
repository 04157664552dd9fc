"""What clients keep of an update that is not finite: what they had before, since nothing of it is in an aggregate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import run, small
from tests.simulation.test_divergence import broken
from wirelessfl.simulation import Simulation

UPLINKS: dict[str, dict[str, Any]] = {
    "ideal": {"uplink": {"kind": "ideal", "clip": 1e3}},
    "digital": {"uplink": {"kind": "digital", "snr_db": 20, "clip": 1e3}},
}
ALGORITHMS: dict[str, tuple[dict[str, Any], str, str, float]] = {
    "scaffold": ({"name": "scaffold"}, "control", "control", 1.0),
    "scaffold, option 1": ({"name": "scaffold", "option": 1}, "control", "control", 1.0),
    "feddyn": ({"name": "feddyn", "alpha": 0.2}, "gradient", "drift", 5.0),
}


def of_clients(simulation: Simulation, name: str) -> np.ndarray:
    """(K, d) what each client keeps."""
    store = simulation.state.client_rows
    return np.asarray(store[name][np.argsort(store["client"])], dtype=np.float64)


@pytest.mark.parametrize("uplink", UPLINKS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_servers_mean_is_that_of_the_clients(algorithm: str, uplink: str) -> None:
    """C = Σ p_i c_i and h = Σ p_i λ_i, with everybody heard: also where the update of one is not finite."""
    options, row, memory, scale = ALGORITHMS[algorithm]
    simulation, rounds, _ = run(broken(training__algorithm=options, **UPLINKS[uplink]))
    assert [this.values["updates_not_finite"] for this in rounds] == [1, 1, 1]
    rows, weight = of_clients(simulation, row), simulation.deployment.network.registry.weight(np.arange(6))
    (lost,) = np.flatnonzero(~np.isfinite(rounds[0].slots["update_norm_raw"]))
    assert np.all(rows[lost] == 0.0) and np.all(np.linalg.norm(np.delete(rows, lost, axis=0), axis=1) > 0)
    np.testing.assert_allclose(simulation.state.server_memory[memory], scale * weight @ rows, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    "changes",
    [
        {"training__algorithm": {"name": "feddyn"}, "training__robust": {"rule": "median"}},
        {"training__algorithm": {"name": "scaffold"}, "uplink__clip": 1.0},
        {"training__robust": {"rule": "median"}, "uplink__codec": {"name": "top_k", "error_feedback": True}},
    ],
    ids=["feddyn", "scaffold", "error feedback"],
)
def test_who_diverged_in_one_round_is_back_in_the_next(changes: dict[str, Any]) -> None:
    schedule = {"training__optimizer": {"lr": 0.05}, "training__lr_schedule": {1: 1e38, 2: 1.0}, "training__epochs": 4}
    simulation, rounds, _ = run(small(uplink__kind="digital", rounds=3, **schedule, **changes))
    assert [this.values["updates_not_finite"] for this in rounds] == [6, 0, 0]
    assert np.isfinite(simulation.state.parameters).all() and rounds[-1].values["server_step_norm"] > 0
