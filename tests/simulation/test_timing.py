"""Durations against their formulas and laws."""

from __future__ import annotations

import numpy as np

from tests.statistics import assert_follows
from wirelessfl.learning.faults import BernoulliAvailability, Faults
from wirelessfl.learning.timing import Timing
from wirelessfl.streams import Streams

TIMING = Timing(bandwidth_hz=1e6, downlink_bps=1e7, cycles_per_sample=2e6, cpu_hz=(1e9, 3e9), straggler_scale=0.25)
STREAMS = Streams(3)
CLIENTS = np.arange(100_000)


def test_downlink_carries_32_bits_a_parameter() -> None:
    assert TIMING.downlink_time(1000) == 32 * 1000 / 1e7


def test_compute_time_is_a_shifted_exponential_of_the_nominal_time() -> None:
    samples = np.full(len(CLIENTS), 40)
    times = TIMING.compute_time(samples, CLIENTS, 1, STREAMS)
    later = TIMING.compute_time(samples, CLIENTS, 2, STREAMS)
    steady = Timing(1e6, 1e7, 2e6, (1e9, 3e9), 0.0).compute_time(samples, CLIENTS, 1, STREAMS)
    # The speed is the client's own: without stragglers all rounds take the same time.
    np.testing.assert_array_equal(
        steady, Timing(1e6, 1e7, 2e6, (1e9, 3e9), 0.0).compute_time(samples, CLIENTS, 2, STREAMS)
    )
    assert not np.array_equal(times, later)
    assert_follows(2e6 * 40 / steady, lambda speed: np.clip((speed - 1e9) / 2e9, 0, 1))
    assert_follows((times / steady - 1) / 0.25, lambda delay: -np.expm1(-delay))


def test_availability_and_crashes() -> None:
    there = BernoulliAvailability(0.7).available(CLIENTS, 1, STREAMS)
    # Hoeffding's inequality at a false-alarm rate of 1e-6.
    assert abs(there.mean() - 0.7) < np.sqrt(np.log(2e6) / (2 * len(CLIENTS)))
    assert BernoulliAvailability(1.0).available(CLIENTS, 1, STREAMS).all()
    assert not BernoulliAvailability(0.0).available(CLIENTS, 1, STREAMS).any()
    faults = Faults(BernoulliAvailability(1.0), crash_rate_per_s=4.0, battery_j=None)
    assert_follows(faults.crash_after(CLIENTS, 1, STREAMS), lambda t: -np.expm1(-4.0 * t))
    assert np.isinf(Faults(BernoulliAvailability(1.0), 0.0, None).crash_after(CLIENTS, 1, STREAMS)).all()
