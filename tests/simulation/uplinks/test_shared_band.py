"""OFDMA whose freed bandwidth is reallocated: times of whole rounds, and what it can be combined with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.radio.test_shared_band import event_loop
from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import run, small
from tests.simulation.uplinks.cells import play
from wirelessfl.errors import ScenarioError
from wirelessfl.trace import EventKind, Status

SHARED = {"kind": "digital", "ofdma": "reallocate", "snr_db": 20.0, "rate": {"min_rate_bps": 1.0}}
COMPUTE = (1e-5, 2e-5, 2e-5, 9e-4, 0.05, 0.3)
RUNS: dict[str, dict[str, Any]] = {
    "alone": {},
    "grant": {"uplink__grant_delay_s": 0.01},
    "deadline": {"timing__deadline_s": 0.302},
    "the first four": {"timing__wait_for": {"count": 4}},
    "dropouts": {"faults": {"availability": {"p": 0.5}, "crash_rate_per_s": 2.0}},
    "deep fades": {"faults": {"fade_threshold": 0.5}},
    "outage": {"channel__csi": {"error_std": 0.3, "estimator": "mmse"}},
    "downlink": {"downlink": {"model": "fixed", "rate_bps": 1e6, "snr_db": 6.0}},
}


def shared(**keys: Any) -> Any:
    uplink = {f"uplink__{name}": value for name, value in SHARED.items()}
    return small(**{**uplink, **keys})


def test_a_round_ends_as_in_an_event_loop() -> None:
    played = play(shared(), compute=COMPUTE)
    network = played.simulation.deployment.network
    for this in played.rounds:
        power = np.abs(network.slot_links(this.clients, this.round.moment).channel.ravel()) ** 2
        expected = event_loop(list(COMPUTE), 320, (50.0 * power).tolist())
        begin = this.round.slot_opens
        arrived = {node: time for time, node in played.times(EventKind.ARRIVE, this.index)}
        np.testing.assert_allclose([arrived[node] - begin for node in range(6)], expected, rtol=1e-6, atol=3e-12)
        airtime = np.array(expected) - COMPUTE
        np.testing.assert_allclose(this.slots["tx_time"][:6], airtime, rtol=1e-6, atol=3e-12)


@pytest.mark.parametrize("name", RUNS)
def test_nobody_arrives_later_than_in_a_band_of_its_own(name: str) -> None:
    ends = {}
    for ofdma in ("fixed", "reallocate"):
        _, rounds, events = run(shared(rounds=4, uplink__ofdma=ofdma, **RUNS[name]))
        ends[ofdma] = [
            dict(
                zip(
                    np.asarray(batch.node)[sel].tolist(),
                    (np.asarray(batch.time)[sel] - this.round.slot_opens).tolist(),
                    strict=True,
                )
            )
            for this, batch in zip(rounds, events, strict=True)
            for sel in [np.asarray(batch.kind) == EventKind.ARRIVE]
        ]
        statuses = [this.status for this in rounds]
        assert all(np.any(status == Status.PARTICIPATED) for status in statuses)
    first_fixed, first_shared = ends["fixed"][0], ends["reallocate"][0]
    both = first_fixed.keys() & first_shared.keys()
    assert all(first_shared[node] <= first_fixed[node] + 1e-9 for node in both)
    assert any(first_shared[node] < first_fixed[node] for node in both)


@pytest.mark.parametrize("name", RUNS)
def test_a_resumed_run_is_the_same(name: str, tmp_path: Path) -> None:
    goes_on_to_the_same_bits(shared(rounds=3, **RUNS[name]), tmp_path)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"uplink__access": "tdma"}, "tdma"),
        ({"uplink__rate": {"model": "fixed"}}, "fixed"),
        ({"uplink__rate": {"model": "mcs"}}, "mcs"),
        ({"uplink__rate": {"packets": {}}}, "packets"),
        ({"uplink__harq": {}}, "harq"),
        ({"channel__correlation": {"model": "clarke"}}, "clarke"),
        ({"aggregation": {"mode": "asynchronous"}, "training__algorithm": {"name": "fedavg"}}, "asynchronous"),
    ],
)
def test_what_needs_a_band_that_stays_is_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=f"uplink.ofdma: found reallocate with .*{words}"):
        shared(**keys)
