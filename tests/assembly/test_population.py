"""The clients' data of a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.assembly.data import build_population, load_data
from wirelessfl.assembly.learning import build_model
from wirelessfl.errors import DataError, ScenarioError
from wirelessfl.learning import PartitionedData, evaluate
from wirelessfl.learning.data import load_digits
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


def test_each_client_holds_out_validation_and_test_samples_of_the_whole_set() -> None:
    """80/10/10 of each device's share of all samples, as the zCDP paper divides Adult."""
    parts = {"validation": {"fraction": 0.1}, "test": {"fraction": 0.1}}
    data = {"dataset": {"name": "digits"}, "limit": 1600, "partition": {"scheme": "iid"}, **parts}
    population = build_population(small(data=data, clients__count=16), Streams(3))
    assert isinstance(population, PartitionedData) and population.validation is not None
    assert population.sizes.tolist() == [80] * 16
    assert (len(population.validation), len(population.test)) == (160, 160)
    everything = torch.cat([population.dataset.train.inputs, population.validation.inputs, population.test.inputs])
    digits = load_digits()
    pooled = torch.cat([digits.train.inputs, digits.test.inputs])[:1600]

    def rows(inputs: torch.Tensor) -> list[bytes]:
        return sorted(one.tobytes() for one in inputs.numpy())

    assert rows(everything) == rows(pooled)
    without = build_population(small(data={**data, "validation": None, "test": None}, clients__count=16), Streams(3))
    assert without.validation is None and len(without.test) == len(digits.test)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"validation": {"fraction": 0.5}, "test": {"fraction": 0.5}}, r"data\.validation\.fraction: found 1 together"),
        ({"validation": {"fraction": 1.0}}, r"data\.validation\.fraction: found 1\.0"),
        (
            {"dataset": {"name": "synthetic"}, "partition": {"scheme": "natural"}, "test": {}},
            r"data\.test: found with the synthetic set in its natural partition",
        ),
    ],
)
def test_what_cannot_be_held_out_is_refused(data: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        small(data=data)


def test_samples_that_have_owners_are_not_pooled_with_those_that_have_none() -> None:
    data = {"dataset": {"name": "synthetic"}, "partition": {"scheme": "iid"}, "test": {"fraction": 0.1}}
    with pytest.raises(DataError, match=r"data\.test: .*have owners"):
        build_population(small(data=data), Streams(3))


def test_the_trace_has_the_accuracy_on_both_kinds_of_samples(tmp_path: Path) -> None:
    data = {"limit": None, "partition": {"scheme": "iid"}, "validation": {"fraction": 0.2}}
    scenario = small(data=data, evaluate={"every": 2}, trace={"models": "final"})
    result = wfl.simulate(scenario, out=tmp_path / "run", figures="none")
    population = build_population(scenario, Streams(scenario.seed))
    with wfl.open_trace(result.trace) as trace:
        accuracy, loss = trace["validation_accuracy"].values, trace["validation_loss"].values
        assert np.isnan(accuracy).tolist() == np.isnan(loss).tolist() == [True, False, False]
        assert int(trace["samples"].values.sum()) == int(population.sizes.sum())
    with h5py.File(result.trace) as file:
        weights = torch.from_numpy(file["model/weights"][-1])
    model = build_model(scenario, population)
    for name, examples in (("validation", population.validation), ("test", population.test)):
        assert examples is not None
        expected = evaluate(model, weights, examples)
        found = (result.summary[f"{name}_accuracy"], result.summary[f"{name}_loss"])
        assert found == pytest.approx((expected.accuracy, expected.loss), rel=1e-6)
    plain = wfl.simulate(small(rounds=1), out=tmp_path / "plain", figures="none")
    assert np.isnan(plain.summary["validation_accuracy"]) and not np.isnan(plain.summary["test_accuracy"])


def test_the_zcdp_paper_has_devices_of_its_own_size_in_turn(tmp_path: Path) -> None:
    """2,442 samples to train on, ⌊0.1·3052⌉ held out twice, and Theorem 1 at the ε that the noise is set for."""
    file = Path(__file__).parents[2] / "scenarios/papers/zcdp-secure-aggregation/devices.yaml"
    scenario = wfl.load_scenario(file, overrides={"data.dataset.source": "synthetic"})
    population = build_population(scenario, Streams(scenario.seed))
    assert population.sizes.tolist() == [2442] * 16 and population.feature_shape == (108,)
    assert population.validation is not None
    assert len(population.validation) == len(population.test) == 16 * 305
    assert wfl.make_plan(scenario).forecast.epsilon_published == pytest.approx(10, abs=0.02)
