"""Updates that are not finite: what their clients keep, and that they count in nothing once a rule leaves them out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from tests.simulation.scenarios import run, small
from tests.simulation.test_divergence import broken
from wirelessfl.learning import Dataset, Examples
from wirelessfl.simulation import Simulation
from wirelessfl.trace import Role, Status

UPLINKS: dict[str, dict[str, Any]] = {
    "ideal": {"uplink": {"kind": "ideal", "clip": 1e3}},
    "digital": {"uplink": {"kind": "digital", "snr_db": 20, "clip": 1e3}},
}
RULE: dict[str, Any] = {
    "uplink": {"kind": "digital", "snr_db": 20},
    "training__robust": {"rule": "norm_clip", "norm": 1e3},
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


@pytest.mark.parametrize(
    ("algorithm", "uplink"),
    [*itertools.product(("scaffold", "scaffold, option 1", "feddyn"), UPLINKS), ("feddyn", "rule")],
)
def test_the_servers_mean_is_that_of_the_clients(algorithm: str, uplink: str) -> None:
    """Of c = Σ p_i c_i and h = Σ p_i λ_i, with everybody heard, also where the update of one is not finite."""
    options, row, memory, scale = ALGORITHMS[algorithm]
    simulation, rounds, _ = run(broken(training__algorithm=options, **{**UPLINKS, "rule": RULE}[uplink]))
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


INFINITE: list[int] = []


def unequal_owners() -> Dataset:
    """Two samples of the first client, three of the next and so on; those of some clients are infinite."""
    owners = np.repeat(np.arange(6), np.arange(2, 8))
    generator = torch.Generator().manual_seed(3)
    inputs, labels = torch.randn(len(owners), 4, generator=generator), torch.arange(len(owners)) % 2
    inputs[np.isin(owners, INFINITE)] = torch.inf
    test = Examples(torch.randn(20, 4, generator=generator), torch.arange(20) % 2)
    return Dataset("unequal", Examples(inputs, labels), test, ("no", "yes"), owners)


@pytest.mark.parametrize("uplink", ["ideal", "digital"])
@pytest.mark.parametrize("rule", ["median", "norm_clip", "geometric_median"])
@pytest.mark.parametrize(
    "training",
    [
        {"algorithm": {"name": "fedavg"}},
        {"algorithm": {"name": "fednova"}},
        {"algorithm": {"name": "feddyn", "alpha": 0.2}},
        {"algorithm": {"name": "scaffold", "payload": 1}, "steps": 3},
        {"server_optimizer": {"name": "adam", "lr": 0.01}},
    ],
    ids=["fedavg", "fednova", "feddyn", "scaffold", "adam"],
)
def test_who_is_left_out_is_as_if_it_had_sent_nothing(
    training: dict[str, Any], rule: str, uplink: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {"dataset": {"name": f"{__name__}:unequal_owners"}, "partition": {"scheme": "natural"}}
    work = {"epochs": 1} if "steps" not in training else {}
    changes: dict[str, Any] = {
        "data": data,
        "model": {"name": "logistic"},
        "uplink": {"kind": uplink},
        "training": {"robust": {"rule": rule}, "batch_size": 1, **work, **training},
    }
    silent, without, _ = run(small(**changes, clients={"count": 6, "roles": [{"role": "silent"}]}))
    roles = silent.deployment.roles
    assert roles is not None and roles.codes.tolist() == [Role.SILENT]
    monkeypatch.setitem(globals(), "INFINITE", roles.clients.tolist())
    broken_one, rounds, _ = run(small(**changes))
    assert broken_one.state.parameters.tobytes() == silent.state.parameters.tobytes()
    for name, values in silent.state.server_memory.items():
        np.testing.assert_array_equal(broken_one.state.server_memory[name], values)
    for this, plain in zip(rounds, without, strict=True):
        assert this.status[roles.clients].tolist() == [Status.ABORTED]
        for name in ("participants", "train_loss", "test_loss", "server_step_norm"):
            assert this.values[name] == plain.values[name], name
