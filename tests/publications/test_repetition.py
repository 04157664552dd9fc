"""For which λ the corrected Theorem 5 of the over-the-air paper says something."""

from __future__ import annotations

import numpy as np
import pytest

from publications.claims import Outcome, judge
from publications.repetition import OF_THE_PAPER, PROX, REPETITION_CLAIMS, REPETITION_FIGURE, clouds, over_trivial
from publications.tables import Tables

NO_RUNS = Tables({"size": "small"}, {})


@pytest.mark.parametrize("mu", [*PROX, 1e6])
@pytest.mark.parametrize("ratio", [0.0, 0.2, 1.0, 1.5, 19.0])
def test_the_bound_is_at_least_what_its_first_term_says(mu: float, ratio: float) -> None:
    assert over_trivial(mu, ratio) >= 2 / (1 + ratio) * (1 - 1e-12)


@pytest.mark.parametrize("ratio", OF_THE_PAPER)
def test_for_large_mu_it_is_that_term(ratio: float) -> None:
    """And so below G² from λ > μ on: "of the size of μ" is too much to say."""
    assert over_trivial(1e6, ratio) == pytest.approx(2 / (1 + ratio), rel=1e-4)
    assert over_trivial(1e6, ratio) < 1


def test_it_falls_with_lambda_and_says_nothing_for_small_mu() -> None:
    found = [over_trivial(20.0, ratio) for ratio in (0.1, 1.0, 10.0)]
    assert found == sorted(found, reverse=True)
    assert np.isinf(over_trivial(0.1, 19.0))


def test_the_clients_are_those_of_the_runs() -> None:
    problem = clouds()
    np.testing.assert_allclose(problem.weight, 0.25)
    for client in range(4):
        assert len(set(problem.targets[problem.device == client])) == 1


def test_verdicts_and_picture() -> None:
    found = [judge(claim, NO_RUNS) for claim in REPETITION_CLAIMS]
    assert [one.outcome for one in found] == [Outcome.CONFIRMED, Outcome.CONFIRMED]
    assert "μ = 0.1: ∞, ∞, ∞, ∞" in found[1].numbers
    assert all(one.effect is not None and one.effect.value <= 1 for one in found)
    assert found[1].effect is not None and found[1].effect.value == pytest.approx(0.8, abs=0.01)  # 2/(1 + 1.5)
    assert not REPETITION_FIGURE.runs
    axes = REPETITION_FIGURE.draw(NO_RUNS).axes[0]
    assert len(axes.lines) == len(PROX) + 2
