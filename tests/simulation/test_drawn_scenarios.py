"""Drawn scenarios with asynchronous and hierarchical aggregation: stopped runs go on to the same bits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import small
from wirelessfl.errors import ScenarioError

OPTIMIZERS = ["sgd", "adam", "yogi", "adagrad"]
CODECS: list[dict[str, Any]] = [
    {"name": "top_k", "share": 0.1, "error_feedback": True},
    {"name": "rand_k", "share": 0.2},
    {"name": "qsgd", "error_feedback": True},
    {"name": "sign", "error_feedback": True},
    {"name": "uniform", "bits": 4},
]
LAST: dict[str, Any] = {"scheme": "power_of_choice", "count": 3, "candidates": 5, "loss": "last"}
SELECTIONS: list[dict[str, Any]] = [
    *({"scheme": one, "count": 4} for one in ("uniform", "best_channel", "proportional_fair", "age", "oort")),
    {"scheme": "poisson", "rate": 0.4},
    LAST,
    {**LAST, "loss_noise_std": 1.0},
]
NOISE: list[dict[str, Any]] = [
    {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.0, "clipping": {"name": name}}
    for name in ("flat", "quantile")
]


def drawn(kind: str, random: Random) -> dict[str, Any]:
    """Keys of a scenario."""
    roles: list[dict[str, Any]] = random.choice(
        [[], [{"role": "sign_flip"}, {"role": "scaled", "factor": 3.0}], [{"role": "free_rider"}]]
    )
    silent: list[dict[str, Any]] = random.choice([[], [{"role": "label_flip"}, {"role": "silent"}]])
    keys: dict[str, Any] = {
        "rounds": 4,
        "seed": random.randrange(1000),
        "clients__count": 8,
        "clients__roles": [*roles, *silent],
        "data__partition": random.choice([{"scheme": "sizes", "exponent": 0.8}, {"scheme": "dirichlet"}]),
        "training__algorithm": random.choice([{"name": "fedavg"}, {"name": "fedprox", "mu": 0.1}]),
        "training__epochs": random.choice([1, 2]),
        "training__batch_size": 6,
        "timing__straggler_scale": random.choice([0.0, 1.0]),
        "faults__availability": {"model": "bernoulli", "p": random.choice([1.0, 0.6, 0.1])},
        "faults__crash_rate_per_s": random.choice([0.0, 5.0]),
        "faults__server_restart": {"p": random.choice([0.0, 0.3]), "downtime_s": 0.1},
    }
    if random.random() < 0.3:
        keys["training__privacy"] = random.choice(NOISE)
    if kind == "hierarchical":
        keys["topology"] = {"kind": kind, "edge_rounds": random.choice([1, 2, 3])}
        keys["channel__pathloss"] = {"model": "log_distance"}
        keys["clients__selection"] = random.choice(SELECTIONS)
        keys["uplink"] = {"kind": "over_the_air", "snr_db": 10.0, "clip": random.choice([0.5, 5.0])}
        return keys
    keys["training__server_optimizer"] = {"name": random.choice(OPTIMIZERS)}
    keys["clients__selection"] = random.choice([{"scheme": "all"}, {"scheme": "uniform", "count": 4}])
    keys["uplink"] = {"kind": "digital", "snr_db": 5.0, "codec": random.choice(CODECS)}
    mixes, buffer = random.choice(["models", "updates"]), random.choice([1, 2, 3])
    keys["aggregation"] = {"mode": kind, "buffer": buffer, "mixes": mixes}
    return keys


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["asynchronous", "hierarchical"])
def test_drawn_scenarios_go_on_to_the_same_bits(kind: str, tmp_path: Path) -> None:
    random, ran = Random(20), Counter[str]()
    for _ in range(40):
        try:
            scenario = small(**drawn(kind, random))
        except ScenarioError as error:
            assert "allowed" in str(error)
            continue
        whole, _ = goes_on_to_the_same_bits(scenario, tmp_path, random.choice([1, 2, 3]))
        finite = bool(np.isfinite(whole.state.parameters).all())
        assert finite or whole.simulation.diverged
        ran["finite" if finite else "diverged"] += 1
    assert ran["finite"] >= 20, ran
