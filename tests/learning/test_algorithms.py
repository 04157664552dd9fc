"""Algorithms of the package against equations (8) and (9) of ota-cross-layer-dp."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from wirelessfl.learning import Algorithm, FedAvg, FedProx, RoundFacts, Upcycled, upcycle
from wirelessfl.learning.conformance import check_algorithm

SCHEDULE = {1: 0.15, 26: 0.4, 51: 0.9, 76: 1.9}


def test_upcycle_is_equation_9_and_keeps_its_inputs() -> None:
    previous, current = torch.tensor([1.0, 2.0]), torch.tensor([2.0, 0.0])
    result = upcycle(previous, current, mu=0.1, lam=0.4)
    torch.testing.assert_close(result, torch.tensor([2.0 + 0.2 * 1.0, 0.0 + 0.2 * -2.0]))
    assert previous.tolist() == [1.0, 2.0] and current.tolist() == [2.0, 0.0]


def test_limits_of_upcycle() -> None:
    previous, current = torch.randn(5), torch.randn(5)
    assert torch.equal(upcycle(previous, current, 0.1, math.inf), current)
    assert torch.equal(upcycle(previous, current, 0.0, 1.0), current)
    torch.testing.assert_close(upcycle(previous, current, 0.1, 0.0), 2 * current - previous)


@pytest.mark.parametrize(("mu", "lam"), [(-0.1, 1.0), (0.1, -1.0), (0.0, 0.0), (math.nan, 1.0), (0.1, math.nan)])
def test_upcycle_refuses(mu: float, lam: float) -> None:
    with pytest.raises(ValueError, match=r"mu|lambda"):
        upcycle(torch.zeros(1), torch.zeros(1), mu, lam)


def test_the_schedule_changes_with_the_round_counted_from_one() -> None:
    rule = Upcycled(0.1, SCHEDULE)
    found = [rule.lam(number) for number in (1, 25, 26, 50, 51, 75, 76, 80, 1000)]
    assert found == [0.15, 0.15, 0.4, 0.4, 0.9, 0.9, 1.9, 1.9, 1.9]


@pytest.mark.parametrize("schedule", [{}, {2: 0.1}, {0: 0.1, 1: 0.2}, {1: -0.1}, {1: math.nan}])
def test_bad_schedules_are_refused(schedule: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="lambda"):
        Upcycled(0.1, schedule)


@pytest.mark.parametrize("mu", [-1.0, math.nan, math.inf])
def test_bad_mu_is_refused(mu: float) -> None:
    with pytest.raises(ValueError, match="mu"):
        FedProx(mu)


@pytest.mark.parametrize("rule", [FedAvg(), FedProx(0.1), Upcycled(0.1, SCHEDULE), Upcycled(0.1, {1: math.inf})])
def test_three_rounds_by_hand(rule: Algorithm) -> None:
    state = rule.start(torch.tensor([1.0]))
    expected = 1.0
    factor = 0.1 / 0.25 if rule == Upcycled(0.1, SCHEDULE) else 0.0
    for round_index, received in enumerate([0.5, -0.25, 1.0], start=1):
        before = state
        facts = RoundFacts(
            round_index, 1, np.zeros(1, dtype=np.int64), np.ones(1), np.ones(1, dtype=np.int64), 0.1, 1.0
        )
        state = rule.step(state, torch.tensor([[received]]), facts)
        expected += received + factor * received
        assert before is not state
        torch.testing.assert_close(state.parameters, torch.tensor([expected]))


@pytest.mark.parametrize("algorithm", [FedAvg(), FedProx(0.1), Upcycled(0.1, SCHEDULE)])
def test_the_packages_own_algorithms_conform(algorithm: Algorithm) -> None:
    check_algorithm(algorithm)
