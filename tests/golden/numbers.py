"""The numbers that one seed gives: words of the streams, and sums over short runs of every kind.

``python -m tests.golden`` writes them down for the stream version of the package, once: numbers that are written down
stay, and others are those of another version.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.scenario import Scenario
from wirelessfl.streams import STREAM_VERSION, Streams

KEYS: dict[str, dict[str, Any]] = {
    "jammed": {"uplink__jammer": {"epsilon": 1.0}, "channel__csi": {"error_std": 0.2}},
    "faults": {
        "faults": {"availability": {"model": "bernoulli", "p": 0.7}, "crash_rate_per_s": 20.0},
        "clients": {"count": 6, "selection": {"scheme": "poisson", "rate": 0.6}},
        "data__partition": {"scheme": "dirichlet", "alpha": 0.5},
    },
    "moving": {
        "channel": {
            "fading": {"model": "rician", "k_db": 3.0},
            "correlation": {"model": "gauss_markov"},
            "pathloss": {"model": "log_distance", "shadowing_db": 6.0, "carrier_hz": 1e6},
            "placement": {"scheme": "random_waypoint", "radius_m": 200.0, "min_speed": 4e3, "max_speed": 9e3},
        },
        "topology": {"kind": "multi_cell", "rings": 1, "inter_site_distance_m": 150.0},
    },
    "secure": {"uplink": {"kind": "secure_aggregation", "snr_db": 20.0, "clip": 1.0}},
    "private": {
        "uplink": {"kind": "ideal"},
        "training__privacy": {"mechanism": "gaussian", "noise_multiplier": 1.0, "clip": 1.0},
    },
    "made_on_demand": {
        "data": {"dataset": {"name": "synthetic"}, "partition": {"scheme": "natural"}},
        "model": {"name": "logistic"},
    },
    "wavelets": {
        "uplink": {"kind": "ideal"},
        "training__privacy": {"mechanism": "wavelet", "noise_multiplier": 1.0, "clip": 1.0},
    },
    "asynchronous": {
        "uplink": {"kind": "digital", "snr_db": 20.0},
        "aggregation": {"mode": "asynchronous", "buffer": 2},
    },
}

SCENARIOS: dict[str, Scenario] = {name: small(rounds=2, **keys) for name, keys in KEYS.items()}


def path_of(version: int) -> Path:
    """Where the numbers of a stream version are written down."""
    return Path(__file__).with_name(f"streams-{version}.json")


def stream_words() -> dict[str, list[Any]]:
    """Draws of every kind of stream; whole numbers, which are the same on all machines, where there are any."""
    streams = Streams(7)
    nodes = streams.nodes("fading", 3, np.array([0, 5, 2**40]))
    return {
        "nodes": [[str(word) for word in row] for row in nodes._words(3).tolist()],
        "generator": [str(word) for word in streams.generator("noise", 3, 5).integers(0, 2**63, 4).tolist()],
        "torch_seed": [str(streams.torch_seed("batches", 3, 5))],
        "uniform": nodes.uniform(2).ravel().tolist(),
        "normal": nodes.normal(3).ravel().tolist(),
        "complex_normal": nodes.complex_normal(1).view(np.float64).ravel().tolist(),
        "exponential": nodes.exponential(2).ravel().tolist(),
    }


def run_sums(scenario: Scenario, folder: Path) -> dict[str, float]:
    """The sum over every variable of a run's trace that holds finite numbers, the clock's aside."""
    trace = wfl.simulate(scenario, folder, device="cpu", threads=1, pictures=False).trace
    sums: dict[str, float] = {}

    def add(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "iuf" and item.dtype != ">f4" and name != "wall_time":
            values = item[()].astype(np.float64)
            finite = values[np.isfinite(values)]
            if finite.size:
                # Weights of their places, so that numbers in another order have another sum.
                sums[name] = float(finite @ np.cos(np.arange(finite.size)))

    with h5py.File(trace) as file:
        file.visititems(add)
    return sums


def numbers(folder: Path) -> dict[str, Any]:
    """All of it; runs are left in the folder."""
    runs = {name: run_sums(scenario, folder / name) for name, scenario in SCENARIOS.items()}
    return {"streams": stream_words(), "runs": runs}


def write_down(folder: Path) -> Path:
    """Write the numbers of this stream version.

    Raises:
        FileExistsError: there are others of this version.
    """
    path, found = path_of(STREAM_VERSION), numbers(folder)
    if path.exists() and not same(json.loads(path.read_text(encoding="utf-8")), found):
        raise FileExistsError(f"{path}: the numbers are others: raise STREAM_VERSION in wirelessfl/streams.py first")
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return path


def same(expected: Any, found: Any) -> bool:
    """Whether numbers are those written down: words exactly, the rest as far as machines and torch agree, 1e-3."""
    if isinstance(expected, dict):
        return all(name in found and same(value, found[name]) for name, value in expected.items())
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(same, expected, found))
    if isinstance(expected, str):
        return bool(expected == found)
    return math.isclose(expected, found, rel_tol=1e-3, abs_tol=1e-6)
