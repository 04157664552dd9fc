"""Whatever becomes of a client, its status in the trace and its event belong to the same round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import run, small
from wirelessfl.trace import JAMMER_NODE, EventKind, Status

EVENT_OF = {
    Status.UNAVAILABLE: EventKind.UNAVAILABLE,
    Status.CRASHED: EventKind.CRASH,
    Status.LATE: EventKind.LATE,
    Status.DEEP_FADE: EventKind.DEEP_FADE,
    Status.JAMMING: EventKind.JAM,
    Status.BATTERY_EMPTY: EventKind.BATTERY_EMPTY,
    Status.OUTAGE: EventKind.OUTAGE,
    Status.NO_MODEL: EventKind.NO_MODEL,
}
CELLS = {"kind": "multi_cell", "rings": 1, "inter_site_distance_m": 300.0}
ABSENT = {"p": 0.6}
FAULTY: dict[str, dict[str, Any]] = {
    "over the air": {"faults": {"availability": ABSENT, "crash_rate_per_s": 300.0, "fade_threshold": 0.5}},
    "deadline": {"timing": {"deadline_s": 0.02, "straggler_scale": 1.0}, "faults": {"fade_threshold": 0.5}},
    "the first two": {"timing": {"wait_for": {"count": 2}}},
    "deadline before anybody is ready": {"timing": {"deadline_s": 610 / 1e6 + 1e-6}},
    "everybody in a deep fade": {"faults": {"fade_threshold": 50.0}},
    "everybody crashes": {"faults": {"crash_rate_per_s": 1e9}},
    "rotating jammer": {"uplink__jammer": {"epsilon": 1.0, "role": "rotating"}},
    "batteries": {  # a slot at full power takes 0.1 W times 610 symbols
        "uplink": {"kind": "over_the_air", "tx_power_dbm": 20.0, "power_control": {"policy": "full_power"}},
        "faults": {"battery_j": 1.5e-4},
    },
    "several cells": {
        "topology": CELLS,
        "channel__pathloss": {"model": "log_distance"},
        "faults": {"availability": ABSENT, "fade_threshold": 0.5},
    },
    "digital": {
        "uplink": {"kind": "digital", "snr_db": 0.0, "rate": {"model": "fixed", "rate_bps": 1e5}},
        "timing": {"deadline_s": 0.4},
        "faults": {"availability": ABSENT, "crash_rate_per_s": 20.0},
    },
    "downlink": {
        "downlink": {"model": "fixed", "rate_bps": 9e5, "snr_db": 3.0},
        "uplink__jammer": {"epsilon": 1.0, "role": "rotating"},
        "faults": {"availability": ABSENT},
    },
    "asynchronous": {
        "downlink": {"model": "multicast", "min_rate_bps": 5e5, "snr_db": 3.0},
        "training__algorithm": {"name": "fedavg"},
        "aggregation": {"mode": "asynchronous"},
        "uplink": {"kind": "digital", "snr_db": 0.0, "rate": {"model": "fixed", "rate_bps": 1e5}},
        "faults": {"availability": ABSENT, "crash_rate_per_s": 20.0},
    },
}


@pytest.mark.parametrize("name", FAULTY)
def test_every_status_has_its_event_in_the_round_of_the_status(name: str) -> None:
    _, rounds, events = run(small(rounds=5, **FAULTY[name]))
    seen = set()
    for this, batch in zip(rounds, events, strict=True):
        kinds, nodes = np.asarray(batch.kind), np.asarray(batch.node)
        for status, kind in EVENT_OF.items():
            happened = nodes[(kinds == kind) & (nodes != JAMMER_NODE)]
            assert sorted(happened.tolist()) == this.clients[this.round.with_status(status)].tolist(), (
                this.index,
                status,
            )
        seen |= {Status(code) for code in this.status.tolist()}
        assert np.all(np.diff(np.asarray(batch.time)) >= 0)
    assert seen & set(EVENT_OF), "nothing went wrong"


def test_every_fault_was_seen_in_one_of_them() -> None:
    seen = {
        Status(code) for keys in FAULTY.values() for this in run(small(rounds=5, **keys))[1] for code in this.status
    }
    assert set(EVENT_OF) <= seen


def test_the_jammers_estimate_is_recorded() -> None:
    simulation, rounds, _ = run(small(uplink__jammer={"epsilon": 1.0}, channel__csi={"error_std": 0.3}))
    for this in rounds:
        link = simulation.deployment.network.jammer_link(this.round.moment)
        assert complex(this.values["jammer_csi_re"], this.values["jammer_csi_im"]) == link.estimate != link.channel
