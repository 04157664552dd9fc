"""Opacus does the work of the plain loop, where it is installed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.convolutions import IMAGE_WORKLOADS
from benchmarks.opacus_loop import WAYS, Way, is_installed, train_with_opacus
from benchmarks.plain_loop import train_plainly


@pytest.mark.skipif(not is_installed(), reason="Opacus is not installed")
@pytest.mark.parametrize("way", WAYS)
def test_without_noise_the_loss_is_that_of_the_plain_loop(way: Way) -> None:
    workload = next(each for each in IMAGE_WORKLOADS if each.name == "C3 DP")
    task = replace(replace(workload, clients=2, samples=40).plain_task(), noise_multiplier=0.0)
    expected = train_plainly(task, 2, 1).loss
    assert train_with_opacus(task, 2, 1, way).loss == pytest.approx(expected, rel=1e-5)
