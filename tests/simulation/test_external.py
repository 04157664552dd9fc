"""What a user brings along: a data set made by a function of his own."""

from __future__ import annotations

import pytest
import torch

from tests.simulation.scenarios import run, small
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import Dataset, Examples


def own_dataset(samples: int = 60) -> Dataset:
    """A data set of a user's own."""
    targets = torch.arange(samples) % 3
    examples = Examples(torch.nn.functional.one_hot(targets, 3).float(), targets)
    return Dataset("own", examples, examples, ("a", "b", "c"))


def test_a_dataset_of_the_users_own() -> None:
    name = {"name": "tests.simulation.test_external:own_dataset", "options": {"samples": 48}}
    simulation, rounds, _ = run(small(data={"dataset": name, "partition": {"scheme": "iid"}}))
    assert simulation.deployment.network.registry.total_samples == 48
    assert rounds[-1].values["test_accuracy"] >= 1 / 3


def test_a_function_that_makes_no_dataset() -> None:
    with pytest.raises(ScenarioError, match=r"data\.dataset\.name"):
        run(small(data__dataset={"name": "builtins:dict"}))
