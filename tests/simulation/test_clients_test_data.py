"""Data of clients beside their updates: test samples that end a run, and numbers by which all are scaled."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl import api
from wirelessfl.analysis.replay.ledger import recorded_ledger
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.privacy import ENDED_BY_ITS_OUTPUTS, ENDS_BY_CLIENTS_DATA, SCALED_BY_ALL_DATA
from wirelessfl.simulation import rehearse

HELD_OUT = {"data__test": {"fraction": 0.25}}
NOISED: dict[str, dict[str, Any]] = {
    "over the air": {"uplink": {"kind": "over_the_air"}},
    "at the clients": {"uplink": {"kind": "digital"}, "training__privacy": {"mechanism": "gaussian"}},
    "at the server": {
        "uplink": {"kind": "ideal"},
        "training__privacy": {"mechanism": "gaussian", "unit": "client", "clip": 0.5},
        "privacy__unit": "client",
        "privacy__adversary": "observer",
    },
}


@pytest.mark.parametrize("noise", NOISED)
def test_an_end_at_an_accuracy_on_clients_samples_leaves_no_guarantee(noise: str) -> None:
    """Also where that accuracy is never reached: an end that does not come tells as much."""
    for stop in (1e-9, 1.0):
        simulation, rounds, _ = run(small(**NOISED[noise], **HELD_OUT, stop={"accuracy": stop}))
        assert len(rounds) == (1 if stop < 1 else 3)
        ledger = simulation.ledger
        assert ledger.epsilon_accounted() == rounds[-1].values["epsilon_accounted"] == math.inf
        assert np.isinf(ledger.client_epsilons()[1]).all() and math.isnan(ledger.accounted_mu(0))
        assert ENDS_BY_CLIENTS_DATA in ledger.why_different()
        assert not any("has no meaning" in why for why in ledger.why_different())


@pytest.mark.parametrize("noise", NOISED)
def test_test_samples_of_nobody_and_other_ends_leave_the_guarantee(noise: str) -> None:
    for changes in ({"stop": {"accuracy": 1e-9}}, HELD_OUT, {**HELD_OUT, "stop": {"sim_time_s": 1e-9}}):
        simulation, _, _ = run(small(**NOISED[noise], **changes))
        assert math.isfinite(simulation.ledger.epsilon_accounted()), changes
        assert ENDS_BY_CLIENTS_DATA not in simulation.ledger.why_different()


def test_the_forecast_and_the_recorded_ledger_say_so_too(tmp_path: Path) -> None:
    chosen = small(**HELD_OUT, stop={"accuracy": 1e-9})
    assert rehearse(build_simulation(chosen, PLAN)).epsilon_accounted == math.inf
    result = api.simulate(chosen, out=tmp_path / "run", pictures=False)
    assert result.summary["epsilon_accounted"] == math.inf and math.isfinite(result.summary["epsilon_published"])
    again = recorded_ledger(result.trace, delta=1e-6)
    assert again.epsilon_accounted() == math.inf and math.isfinite(again.epsilon_published())
    assert ENDS_BY_CLIENTS_DATA in again.why_different() and ENDED_BY_ITS_OUTPUTS not in again.why_different()


def arrays(path: Path, broken: bool, owned: bool, scale: float = 1.0, **changes: Any) -> Any:
    """Six clients of eight samples; one test sample overflows if ``broken``, and belongs to the first if ``owned``."""
    rng = np.random.default_rng(5)
    columns: dict[str, Any] = {
        "x_train": scale * rng.normal(size=(48, 4)).astype(np.float32),
        "y_train": rng.integers(0, 2, 48),
        "owners_train": np.repeat(np.arange(6), 8),
        "x_test": rng.normal(size=(12, 4)).astype(np.float32),
        "y_test": np.arange(12) % 2,
        "owners_test": np.repeat(np.arange(6) + (0 if owned else 100), 2),
    }
    if broken:
        columns["x_test"][0] = 3e38
    np.savez(path, allow_pickle=False, **columns)
    data = {"dataset": {"name": "arrays", "file": str(path)}, "partition": {"scheme": "natural"}}
    return small(data=data, model={"name": "logistic"}, clients={"count": 6}, **changes)


@pytest.mark.parametrize("owned", [True, False])
def test_a_loss_that_is_not_finite_ends_a_run_only_where_its_sample_belongs_to_nobody(
    tmp_path: Path, owned: bool
) -> None:
    found = {}
    for broken in (False, True):
        steep: dict[str, Any] = {"uplink": {"kind": "ideal"}, "training__optimizer": {"name": "sgd", "lr": 100.0}}
        chosen = arrays(tmp_path / f"{broken}.npz", broken, owned, evaluate={"every": 1}, **steep)
        simulation, rounds, _ = run(chosen)
        found[broken] = len(rounds)
        assert simulation.diverged == broken
    assert found == {False: 3, True: 3 if owned else 1}


def test_validation_samples_leave_test_samples_to_their_owners(tmp_path: Path) -> None:
    noise = {**NOISED["at the clients"], "stop": {"accuracy": 1.0}}
    validated: tuple[dict[str, Any], ...] = {}, {"data__validation": {"fraction": 0.2}}
    for changes in validated:
        simulation, _, _ = run(arrays(tmp_path / "some.npz", False, True, **noise, **changes))
        assert simulation.ledger.epsilon_accounted() == math.inf
        assert simulation.deployment.learner.population.test_owners is not None


def test_a_budget_of_epsilon_where_none_is_finite_is_refused() -> None:
    stop = {"accuracy": 0.9, "epsilon": 100.0}
    with pytest.raises(ScenarioError, match=r"stop\.epsilon: found 100 with stop\.accuracy on test samples"):
        build_simulation(small(**HELD_OUT, stop=stop), PLAN)
    build_simulation(small(stop=stop), PLAN)


def test_a_model_that_is_not_finite_ends_a_run_whoever_has_the_test_samples(tmp_path: Path) -> None:
    wild = {"uplink": {"kind": "ideal"}, "training__optimizer": {"name": "sgd", "lr": 1e38}}
    simulation, rounds, _ = run(arrays(tmp_path / "some.npz", False, True, 100.0, **wild))
    assert not np.isfinite(simulation.state.parameters).all() and len(rounds) == 1


@pytest.mark.parametrize("scaling", ["standard", "none"])
def test_numbers_of_all_clients_that_columns_are_scaled_by_are_pointed_out(tmp_path: Path, scaling: str) -> None:
    rows = "".join(f"{row % 7},{row % 5},{row % 2}\n" for row in range(60))
    (tmp_path / "some.csv").write_text("a,b,label\n" + rows, encoding="utf-8")
    table = {"name": "table", "file": str(tmp_path / "some.csv"), "label": "label", "scaling": scaling}
    data = {"dataset": table, "partition": {"scheme": "iid"}}
    simulation = build_simulation(small(data=data, model={"name": "logistic"}), PLAN)
    assert (SCALED_BY_ALL_DATA in simulation.ledger.why_different()) == (scaling == "standard")
