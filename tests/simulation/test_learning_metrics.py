"""Accuracies of single clients, client drift and the norms of steps in the trace of whole runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import wirelessfl as wfl
from tests.simulation.scenarios import PLAN
from tests.simulation.scenarios import run as run_here
from wirelessfl.assembly import build_simulation
from wirelessfl.assembly.data import build_population
from wirelessfl.assembly.learning import build_model
from wirelessfl.streams import Streams
from wirelessfl.trace import Role, Status, model_weights

SMALL: dict[str, Any] = {
    "name": "metrics",
    "rounds": 3,
    "clients": {"count": 12, "selection": {"scheme": "uniform", "count": 6}},
    "data": {"limit": 600, "test": {"fraction": 0.25}, "partition": {"scheme": "dirichlet", "alpha": 0.4}},
    "evaluate": {"client_drift": True},
    "trace": {"models": "every 1"},
}
UPLINKS: dict[str, dict[str, Any]] = {
    "ideal": {"kind": "ideal"},
    "over_the_air": {"kind": "over_the_air"},
    "digital": {"kind": "digital"},
    "secure_aggregation": {"kind": "secure_aggregation"},
}


def run(folder: Path, uplink: str, **keys: Any) -> wfl.Result:
    scenario = wfl.load_scenario({**SMALL, "uplink": UPLINKS[uplink], **keys})
    return wfl.simulate(scenario, folder, pictures=False)


@pytest.mark.parametrize("uplink", UPLINKS)
def test_numbers_follow_from_the_models_of_the_trace(tmp_path: Path, uplink: str) -> None:
    result = run(tmp_path, uplink)
    scenario, trace = wfl.load_scenario(tmp_path / "scenario.yaml"), result.dataset
    population = build_population(scenario, Streams(scenario.seed))
    model, owners = build_model(scenario, population), population.test_owners
    assert owners is not None and len(owners) == len(population.test)
    first = model.initial(Streams(scenario.seed).torch_seed("initial_model")).numpy()
    models = [first, *(model_weights(result.trace, index) for index in (1, 2, 3))]
    for at, index in enumerate(trace["round"].values.tolist()):
        logits = model.logits(torch.from_numpy(models[index]), population.test.inputs)
        right = (logits.argmax(dim=1) == population.test.targets).numpy()
        accuracy = np.array([right[owners == one].mean() for one in np.unique(owners)])
        this = trace.isel(round=at)
        assert float(this["accuracy_client_mean"]) == pytest.approx(accuracy.mean(), abs=1e-12)
        assert float(this["accuracy_worst10"]) == pytest.approx(np.sort(accuracy)[:2].mean(), abs=1e-12)
        assert float(this["fairness_index"]) == pytest.approx(accuracy.sum() ** 2 / 12 / (accuracy**2).sum())
        step = np.linalg.norm(models[index].astype(float) - models[index - 1])
        assert float(this["server_step_norm"]) == pytest.approx(step, rel=1e-12)
        clients, heard = this["client_id"].values, this["status"].values == 1
        own = [right[owners == one].mean() if one >= 0 else np.nan for one in clients]
        assert np.allclose(this["local_accuracy"], own, atol=1e-12, equal_nan=True)
        samples = trace["samples"].sel(client=clients[heard]).values
        loss = np.average(this["local_loss"].values[heard], weights=samples)
        assert loss == pytest.approx(float(this["train_loss"]))
        norms = this["update_norm_raw"].values[heard]
        assert 0 < float(this["client_drift"]) <= np.sqrt((norms**2).mean()) * (1 + 1e-6)


def test_drift_of_ideal_uploads_completes_the_step(tmp_path: Path) -> None:
    # With equal weights and no noise: mean square norm = square of the mean's norm + drift squared
    equal = {"data": {**SMALL["data"], "partition": {"scheme": "iid"}, "limit": 480}}
    trace = run(tmp_path, "ideal", **equal, training={"algorithm": {"name": "fedavg"}}).dataset
    squares = (trace["update_norm_raw"] ** 2).mean("slot")
    assert len(set(trace["samples"].values.tolist())) == 1
    assert np.allclose(trace["server_step_norm"] ** 2 + trace["client_drift"] ** 2, squares, rtol=1e-5)


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold", "feddyn"])
def test_they_do_not_change_the_run(algorithm: str, tmp_path: Path) -> None:
    """Rows and uploads are made by the threads that train without them, and by the one that collects with them."""
    keys = {"training": {"algorithm": {"name": algorithm}}, "compute": {"threads": 2, "chunk": 2}}
    whole = run(tmp_path / "a", "over_the_air", evaluate={"client_drift": False}, **keys)
    plain, measured = whole.dataset, run(tmp_path / "b", "over_the_air", **keys).dataset
    assert np.array_equal(model_weights(whole.trace, 3), model_weights(tmp_path / "b" / "trace.h5", 3))
    assert np.isnan(plain["client_drift"]).all() and (measured["client_drift"] > 0).all()
    for name in ("test_accuracy", "update_norm", "channel_re", "server_step_norm", "accuracy_worst10"):
        assert np.array_equal(plain[name], measured[name], equal_nan=True), name


def test_a_test_set_of_nobody_has_no_clients(tmp_path: Path) -> None:
    trace = run(tmp_path, "ideal", data={"limit": 600}).dataset
    for name in ("accuracy_client_mean", "accuracy_worst10", "fairness_index", "local_accuracy"):
        assert np.isnan(trace[name].values).all(), name


def test_clients_of_data_on_demand_have_test_samples(tmp_path: Path) -> None:
    natural = {"dataset": {"name": "synthetic"}, "partition": {"scheme": "natural"}}
    trace = run(tmp_path, "ideal", data=natural, model={"name": "logistic"}).dataset
    accuracy = trace["accuracy_client_mean"].values  # equally many samples of each client
    assert np.allclose(accuracy, trace["test_accuracy"], atol=1e-12)


def test_only_rounds_that_are_evaluated_have_them(tmp_path: Path) -> None:
    trace = run(tmp_path, "digital", evaluate={"every": 2}, rounds=3).dataset
    assert np.isnan(trace["accuracy_worst10"].values).tolist() == [True, False, False]
    assert np.isnan(trace["local_accuracy"].values).all(axis=1).tolist() == [True, False, False]
    bits = trace["payload_bits"].values[np.isfinite(trace["tx_time"].values)]
    assert set(bits.tolist()) == {32.0 * trace.attrs["dimension"]}


ALGORITHMS: dict[str, dict[str, Any]] = {
    "fedavg": {"algorithm": {"name": "fedavg"}},
    "fednova": {"algorithm": {"name": "fednova"}},
    "scaffold": {"algorithm": {"name": "scaffold"}},
    "scaffold, one vector": {"algorithm": {"name": "scaffold", "payload": 1}, "steps": 5},
    "feddyn": {"algorithm": {"name": "feddyn", "alpha": 0.1}},
}


@pytest.mark.parametrize("uplink", [{"kind": "ideal"}, {"kind": "digital", "clip": 0.01}, {"kind": "over_the_air"}])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_drift_is_that_of_the_models_that_honest_training_leaves(algorithm: str, uplink: dict[str, Any]) -> None:
    """Of the first round, in which no algorithm corrects anything yet: the same with each, of all but free riders."""
    roles = [{"role": "sign_flip", "factor": 3.0}, {"role": "free_rider", "count": 2}]
    training = {"algorithm": {"name": "fedavg"}, **({"steps": 5} if "steps" in ALGORITHMS[algorithm] else {})}
    keys = {**SMALL, "rounds": 1, "clients": {"count": 12}}
    plain = build_simulation(wfl.load_scenario({**keys, "uplink": {"kind": "ideal"}, "training": training}), PLAN)
    learner, state = plain.deployment.learner, plain.state
    updates = np.zeros((12, learner.dimension))
    for block in learner.train(state.parameters, state, np.arange(12), 1):
        updates[block.positions] = block.updates.numpy()
    scenario = wfl.load_scenario(
        {**keys, "uplink": uplink, "training": ALGORITHMS[algorithm], "clients": {"count": 12, "roles": roles}}
    )
    simulation, (this,), _ = run_here(scenario)
    of_roles = simulation.deployment.roles
    assert of_roles is not None
    trained = updates[(this.status == Status.PARTICIPATED) & (this.slots["role"] != Role.FREE_RIDER)]
    assert len(trained) >= 8
    spread = np.sqrt(((trained - trained.mean(axis=0)) ** 2).sum(axis=1).mean())
    # The proximal term of FedDyn alone acts in the first round
    assert this.values["client_drift"] == pytest.approx(spread, rel=0.05 if algorithm == "feddyn" else 1e-5)


@pytest.mark.parametrize("uplink", UPLINKS)
def test_no_norm_of_a_whole_model_is_taken_by_blas(
    uplink: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From ten thousand numbers on OpenBLAS takes all cores, and its threads spin on beside those that train."""
    taken, by_blas = [], np.linalg.norm

    def norm(values: Any, *arguments: Any, axis: Any = None, **options: Any) -> Any:
        if axis is None and not arguments:
            taken.append(np.size(values))
        return by_blas(values, *arguments, axis=axis, **options)

    monkeypatch.setattr(np.linalg, "norm", norm)
    found = run(tmp_path / "run", uplink, model={"name": "mlp", "hidden": [200]}, trace={"models": "final"})
    assert found.summary["d"] > 10_000 and max(taken, default=0) < 10_000
