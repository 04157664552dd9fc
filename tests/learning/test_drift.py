"""Client drift, beside all updates in one array."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from wirelessfl.learning.drift import ClientDrift


@pytest.mark.parametrize("blocks", [[7], [1] * 7, [3, 0, 4], [6, 1]])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_it_is_the_spread_about_the_mean_whatever_the_blocks(blocks: list[int], offset: float) -> None:
    generator = torch.Generator().manual_seed(1)
    updates = torch.randn(7, 31, generator=generator) + offset
    every = updates.double().numpy()
    wanted = math.sqrt(((every - every.mean(axis=0)) ** 2).sum() / 7)
    drift, before = ClientDrift(), updates.clone()
    for block in torch.split(updates, blocks):
        drift.add(block)
    assert drift.rms == pytest.approx(wanted, rel=1e-11)
    assert torch.equal(updates, before) and drift.count == 7


def test_one_client_does_not_drift_and_nobody_is_unknown() -> None:
    drift = ClientDrift()
    assert math.isnan(drift.rms)
    drift.add(torch.ones(1, 4))
    assert drift.rms == 0.0


def test_updates_that_are_not_finite_are_seen() -> None:
    drift = ClientDrift()
    drift.add(torch.tensor([[1.0, np.inf], [0.0, 0.0]]))
    assert not math.isfinite(drift.rms)
