"""Private training in bfloat16: products round, the clip and the noise do not."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.learning import ExecutionPlan
from wirelessfl.simulation import FinishedRound

ROUGH = replace(PLAN, precision="bf16")
PRIVATE = {"mechanism": "gaussian", "clip": 0.05, "noise_multiplier": 0.5}
ONE_STEP = {"training__steps": 1, "training__optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.0}}
IDEAL = {"uplink": {"kind": "ideal"}}


def first_round(plan: ExecutionPlan, **keys: Any) -> tuple[np.ndarray[Any, Any], FinishedRound]:
    """The model after one round, and the round."""
    simulation, rounds, _ = run(small(rounds=1, **{**IDEAL, **keys}), plan)
    return simulation.state.parameters, rounds[0]


@pytest.mark.parametrize(
    "privacy",
    [
        {**PRIVATE, "clipping": {"name": "flat"}},
        {**PRIVATE, "clipping": {"name": "per_layer"}},
        {**PRIVATE, "clipping": {"name": "quantile"}},
        {**PRIVATE, "clipping": {"name": "moo", "feedback": "private"}},
        {**PRIVATE, "clipping": {"name": "median"}},
        {**PRIVATE, "mechanism": "wavelet", "clip_domain": "weighted"},
        {"mechanism": "zcdp", "clip": 0.05, "noise_std": 0.01},
    ],
    ids=lambda privacy: privacy["mechanism"] + privacy.get("clipping", {}).get("name", ""),
)
def test_private_training_runs_in_bf16_with_the_noise_of_fp32(privacy: dict[str, Any]) -> None:
    keys: dict[str, Any] = {"training__privacy": privacy}
    (exact, _), (rough, this) = (first_round(plan, **keys) for plan in (PLAN, ROUGH))
    error = np.linalg.norm(rough - exact)
    assert math.isfinite(error) and 0 < error < 0.1 * np.linalg.norm(exact)
    assert math.isfinite(this.values["train_loss"])


@pytest.mark.parametrize(
    "model", [{"name": "mlp", "hidden": [8]}, {"name": "mlp", "hidden": [40, 20]}, {"name": "logistic"}]
)
def test_the_clip_holds_to_single_precision(model: dict[str, Any]) -> None:
    """One step on one sample without noise moves the model by lr · C, far closer than bfloat16 resolves (0.4 %)."""
    privacy = {**PRIVATE, "noise_multiplier": 0.0, "sampling": "shuffle"}
    one_sample = {"training__batch_size": 1, "training__privacy": privacy, "model": model, **ONE_STEP}
    _, this = first_round(ROUGH, **one_sample)
    np.testing.assert_allclose(this.slots["update_norm_raw"], 0.5 * 0.05, rtol=1e-5)
