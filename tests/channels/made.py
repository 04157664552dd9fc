"""Channels and channel files made for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from wirelessfl.channels import ChannelRecord

BANDWIDTH_HZ = 1e6


def made(
    snapshots: int = 40,
    clients: int = 6,
    antennas: int = 1,
    subcarriers: int = 1,
    interval_s: float = 5.0,
    gain_db: float = -100.0,
    **further: Any,
) -> ChannelRecord:
    """Independent CN(0, 1) gains at even times, weakened by some decibels."""
    drawn = np.random.default_rng(3).standard_normal((2, snapshots, clients, antennas, subcarriers))
    gains = (drawn[0] + 1j * drawn[1]) / np.sqrt(2) * 10 ** (gain_db / 20)
    frequency = BANDWIDTH_HZ / subcarriers * (np.arange(subcarriers) - (subcarriers - 1) / 2)
    keys: dict[str, Any] = {"frequency_hz": frequency if subcarriers > 1 else None, **further}
    return ChannelRecord(gains, np.asarray(interval_s * np.arange(snapshots), dtype=np.float64), **keys)
