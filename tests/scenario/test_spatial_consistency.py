"""What an array behind digital uplinks does not go together with."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.simulation.scenarios import small
from wirelessfl.errors import ScenarioError
from wirelessfl.scenario.uplink import Digital

RING = {"model": "one_ring"}


@pytest.mark.parametrize(
    ("uplink", "changes", "message"),
    [
        (
            {"receiver": {"combiner": "zf", "antennas": 4, "streams": 5}},
            {},
            r"uplink\.receiver\.streams: found 5 with 4 antennas; allowed: at most 4, one for each antenna",
        ),
        ({"receiver": {"combiner": "sum"}}, {}, r"uplink\.receiver\.combiner: found sum; allowed: zf \| mmse"),
        ({"receiver": {"combiner": "max_min"}}, {}, r"found max_min; allowed: zf \| mmse"),
        ({"receiver": {"antennas": 4, "array": {"geometry": "upa", "rows": 3}}}, {}, r"array\.rows: found 3 with 4"),
        (
            {"kind": "secure_aggregation"},
            {},
            r"uplink\.receiver: found zf with uplink\.kind: secure_aggregation",
        ),
        ({"kind": "over_the_air"}, {}, r"combiner: found zf; allowed: sum \| random \| max_min"),
        ({"harq": {"max": 2}}, {}, r"uplink\.harq: found retransmissions with uplink\.receiver"),
        (
            {"rate": {"model": "recorded", "file": "log.csv"}},
            {},
            r"uplink\.rate\.model: found recorded with uplink",
        ),
        ({}, {"aggregation__mode": "asynchronous"}, r"uplink\.receiver: found zf with aggregation\.mode: asynchronous"),
        ({}, {"channel__correlation": {"model": "gauss_markov", "doppler_hz": 1.0}}, r"found gauss_markov with uplink"),
        (
            {"receiver": {"antennas": 2, "correlation": RING}},
            {"channel__csi__error_std": 0.1},
            r"uplink\.rate\.outage: found 0\.01 with correlated antennas and channel\.csi\.error_std: 0\.1",
        ),
        (
            {"rate": {"outage": 5e-5}},
            {"channel__csi__pilot_symbols": 4},
            r"outage: found 5e-05 with uplink\.receiver and channel\.csi\.pilot_symbols: 4.*at least 0\.0001",
        ),
        (
            {},
            {"channel__csi__error_std": 0.1, "channel__fading": {"model": "nakagami"}},
            r"uplink\.rate\.outage: found 0\.01 with nakagami fading",
        ),
        (
            {"receiver": {"combiner": "mmse"}, "rate": {"power": "water_filling"}},
            {},
            r"uplink\.rate\.power: found water_filling with combiner: mmse, behind which",
        ),
        ({"ofdma": "reallocate"}, {}, r"uplink\.ofdma: found reallocate with uplink\.receiver"),
        ({}, {"channel__csi__refresh": "piece"}, r"channel\.csi\.refresh: found piece with uplink\.receiver"),
        (
            {"receiver": {"antennas": 1024, "correlation": RING}},
            {"clients__count": 200, "data__limit": None},
            r"uplink\.receiver\.correlation\.model: found one_ring with 1024 antennas and 200 clients",
        ),
    ],
    ids=str,
)
def test_refusals(uplink: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    section = {"kind": "digital", "receiver": {"combiner": "zf", "antennas": 2}, **uplink}
    with pytest.raises(ScenarioError) as refused:
        small(uplink=section, **changes)
    assert re.search(message, str(refused.value)), str(refused.value)


def test_what_goes_together() -> None:
    overloaded = small(uplink={"kind": "digital", "receiver": {"combiner": "mmse", "antennas": 2, "streams": 5}})
    assert isinstance(overloaded.uplink, Digital) and overloaded.uplink.receiver is not None
    assert overloaded.uplink.receiver.most_streams == 5
    few = {"antennas": 1024, "streams": 20, "correlation": RING}  # correlations of one group at a time
    small(uplink={"kind": "digital", "receiver": few}, clients__count=100)
    rate = {"model": "fixed", "rate_bps": 1e6}
    small(uplink={"kind": "digital", "receiver": {"antennas": 2}, "rate": rate}, channel__csi__error_std=0.1)
    small(uplink={"kind": "digital", "receiver": {"antennas": 2}}, channel__csi__error_std=0.1)
