"""The ledger is recomputable from the trace alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import small
from tests.speed import rest_slow
from wirelessfl.analysis.replay.ledger import recorded_ledger
from wirelessfl.errors import TraceError
from wirelessfl.privacy import OBSERVED_FROM

CASES: dict[str, dict[str, Any]] = {
    "air": {"uplink__jammer": {"epsilon": 1.0}},
    "observer at a place": {
        "channel": {"pathloss": {"model": "log_distance", "exponent": 3.0}, "placement": {"radius_m": 100}},
        "uplink": {"kind": "over_the_air", "tx_power_dbm": 10, "jammer": {"epsilon": 2.0, "position_m": [20, 30]}},
        "privacy": {"observer": {"position_m": [60.0, 20.0], "antennas": 2}},
    },
    "real jamming, imperfect csi": {
        "uplink__jammer": {"epsilon": 1.0, "noise": "real"},
        "channel__csi": {"error_std": 0.2},
    },
    "ideal": {"uplink": {"kind": "ideal"}},
    "some absent": {"faults__availability": {"p": 0.6}},
    "dp-sgd": {"uplink": {"kind": "ideal"}, "training__privacy": {"mechanism": "gaussian", "noise_multiplier": 2.0}},
    "local noise over the air": {"training__privacy": {"mechanism": "gaussian", "noise_multiplier": 2.0}},
    "wavelet": {"training__privacy": {"mechanism": "wavelet", "clip_domain": "weighted", "noise_multiplier": 2.0}},
    "quantile": {"training__privacy": {"mechanism": "gaussian", "clipping": {"name": "quantile"}}},
    "per layer": {"training__privacy": {"mechanism": "gaussian", "clipping": {"name": "per_layer"}}},
    "dynamic": {"training__privacy": {"mechanism": "gaussian", "clipping": {"name": "dynamic"}}},
    "zcdp": {"uplink": {"kind": "ideal"}, "training__privacy": {"mechanism": "zcdp"}},
    "dp-fedavg": {
        "uplink": {"kind": "ideal"},
        "training__privacy": {"mechanism": "gaussian", "unit": "client"},
        "privacy": {"unit": "client", "adversary": "observer"},
        "clients": {"count": 6, "selection": {"scheme": "uniform", "count": 3}},
    },
    "one gradient step": {
        "training__steps": 1,
        "training__batch_size": 8,
        "training__optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.0},
        "training__privacy": {"mechanism": "gaussian", "noise_multiplier": 0.0, "sampling": "shuffle"},
        "uplink__clip": 0.5,
    },
}


@pytest.mark.parametrize("name", rest_slow(CASES, fast=2))
def test_the_same_statement_gives_the_same_numbers_and_another_those_of_another_run(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    result = wfl.simulate(small(**case), tmp_path / "run", device="cpu", pictures=False)
    ledger = recorded_ledger(result.trace)
    assert ledger.epsilon_published() == result.summary["epsilon_published"]
    assert ledger.epsilon_accounted() == result.summary["epsilon_accounted"]
    found, told = ledger.why_different(), result.summary["why_different"]
    assert sorted(found) == sorted(told)  # a sentence on an observer comes last in the one, and first in the other
    assert [why for why in found if not why.startswith(OBSERVED_FROM)] == [
        why for why in told if not why.startswith(OBSERVED_FROM)
    ]

    stricter = {**case, "privacy": {**case.get("privacy", {}), "delta": 1e-7, "adjacency": "replace"}}
    other = wfl.simulate(small(**stricter), tmp_path / "other", device="cpu", pictures=False)
    changed = recorded_ledger(result.trace, delta=1e-7, adjacency="replace")
    if "uplink__jammer" not in case:  # a jammer, or α_u, that aims at ε for another δ is another run
        expected = recorded_ledger(other.trace)
        if name in ("dp-sgd", "zcdp", "dp-fedavg", "ideal"):
            assert changed.epsilon_accounted() == expected.epsilon_accounted()
    assert changed.epsilon_accounted() >= ledger.epsilon_accounted()


def test_a_trace_of_a_killed_run_is_refused(tmp_path: Path) -> None:
    import h5py

    result = wfl.simulate(small(rounds=1), tmp_path / "run", device="cpu", pictures=False)
    with h5py.File(result.trace, "r+") as file:
        del file.attrs["release_settings"]
    with pytest.raises(TraceError, match="resume=True"):
        recorded_ledger(result.trace)


def test_a_release_of_a_client_that_is_not_counted_is_refused(tmp_path: Path) -> None:
    """As a killed process leaves it, or a hand that altered the numbers of the clients."""
    import h5py

    result = wfl.simulate(small(rounds=1), tmp_path / "run", device="cpu", pictures=False)
    with h5py.File(result.trace, "r+") as file:
        file["client"][-1] += 1
    with pytest.raises(TraceError, match="are missing from its list of clients; continue the run with resume=True"):
        recorded_ledger(result.trace)
