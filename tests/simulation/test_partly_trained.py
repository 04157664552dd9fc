"""Runs in which a part of the model is trained: what is sent, counted and stored, over every kind of uplink."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.simulation.scenarios import run, small
from wirelessfl import api
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.analysis.trained import trained_model
from wirelessfl.errors import RunInterrupted, TraceError
from wirelessfl.simulation import FinishedRound

LAST = {"name": "mlp", "hidden": [8], "trainable": "3.*"}
LORA = {"name": "mlp", "hidden": [8], "lora": {"rank": 2, "targets": "1", "unfrozen": "3.bias"}}
DIMENSIONS = [(LAST, 90), (LORA, 2 * (64 + 8) + 10)]

UPLINKS: dict[str, dict[str, Any]] = {
    "air": {"uplink": {"kind": "over_the_air"}},
    "scaffold": {"uplink": {"kind": "digital"}, "training__algorithm": {"name": "scaffold"}},
    "secagg": {"uplink": {"kind": "secure_aggregation", "protocol": "secagg"}},
    "private": {"uplink": {"kind": "ideal"}, "training__privacy": {"mechanism": "gaussian", "noise_multiplier": 1.0}},
    "feddyn": {"uplink": {"kind": "ideal"}, "training__algorithm": {"name": "feddyn"}},
}


@pytest.mark.parametrize(("model", "dimension"), DIMENSIONS, ids=["last", "lora"])
@pytest.mark.parametrize("kind", UPLINKS)
def test_the_trained_part_alone_is_sent(kind: str, model: dict[str, Any], dimension: int) -> None:
    simulation, rounds, _ = run(small(model=model, rounds=2, **UPLINKS[kind]))
    learner = simulation.deployment.learner
    assert learner.dimension == dimension == len(simulation.state.parameters)
    assert np.any(simulation.state.parameters != learner.initial_state(0).parameters)
    sent = {"scaffold": 2}.get(kind, 1) * dimension
    if kind == "air":
        assert all(this.values["airtime"] == pytest.approx(sent / 1e6) for this in rounds)
    if kind == "scaffold":
        bits = np.concatenate([this.slots["payload_bits"] for this in rounds])
        assert np.all(bits == 32 * sent)


def test_a_trace_holds_the_trained_part_and_names_the_rest(tmp_path: Path) -> None:
    augment = {"crop": 1, "rotation": 10.0}
    scenario = small(model=LORA, data__augment=augment, rounds=3, uplink={"kind": "ideal"}, trace__models="every 1")

    def stop(this: FinishedRound) -> None:
        if this.index == 2:
            raise RunInterrupted("enough")

    options: dict[str, Any] = {"pictures": False, "device": "cpu", "threads": 1}
    whole = api.simulate(scenario, tmp_path / "whole", **options)
    with pytest.raises(RunInterrupted):
        api.simulate(scenario, tmp_path / "parts", on_round=stop, **options)
    resumed = api.simulate(scenario, tmp_path / "parts", resume=True, pictures=False)
    with h5py.File(whole.trace) as first, h5py.File(resumed.trace) as second:
        stored = first["model/weights"][()]
        assert stored.shape == (3, 154) and stored.tobytes() == second["model/weights"][()].tobytes()
        named = json.loads(first["model"].attrs["parameters"])
        assert named == {"1.lora_A": [2, 64], "1.lora_B": [8, 2], "3.bias": [10]}
        assert json.loads(first["model"].attrs["frozen"]) == {"1.weight": [8, 64], "1.bias": [8], "3.weight": [10, 8]}
        assert first.attrs["dimension"] == 154
        first_accuracy = float(first["test_accuracy"][0])
    assert whole.summary["d"] == 154
    verify(open_recording(whole.trace))
    dataset = api.load_population(scenario).test
    for round_index, accuracy in ((None, whole.summary["test_accuracy"]), (1, first_accuracy)):
        network = trained_model(tmp_path / "whole", round_index)
        right = network(dataset.inputs).argmax(dim=1) == dataset.targets
        assert right.double().mean().item() == pytest.approx(accuracy, abs=1e-9)
    assert list(network.state_dict()) == ["1.weight", "1.bias", "3.weight", "3.bias"]
    assert "1.lora_A" in trained_model(tmp_path / "whole", merged=False).state_dict()
    with pytest.raises(TraceError, match="no such model; those kept: of rounds 1, 2, 3"):
        trained_model(whole.trace, 4)


def test_frozen_parameters_follow_the_seed() -> None:
    first, again, other = (
        run(small(model=LAST, rounds=1, seed=seed))[0].deployment.learner.model.module.get_parameter("1.weight")
        for seed in (11, 11, 12)
    )
    assert first.equal(again) and not first.equal(other)


def test_everything_trained_leaves_every_bit_as_it_was() -> None:
    plain = run(small())[0].state.parameters
    named = run(small(model={"name": "mlp", "hidden": [8], "trainable": "[13].*"}))[0].state.parameters
    assert plain.tobytes() == named.tobytes()
