"""Sums of clipped gradients of which some are not finite, against a loop over the finite ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from wirelessfl.learning.cohort.gradients import Pieces
from wirelessfl.learning.private.transform import FiniteGradients, not_finite

SIZES = [3, 1, 2]


class Formed:
    """Gradients (k, B, 6) that are there, in chunks of two samples."""

    def __init__(self, gradients: Tensor, present: Tensor) -> None:
        self.gradients, self.present, self.losses = gradients, present, torch.zeros(present.shape)
        self.sizes = SIZES

    def squared_norms(self) -> Tensor:
        return torch.stack([part.square().sum(-1) for part in torch.split(self.gradients, SIZES, dim=-1)], dim=-1)

    def weighted_sum(self, weights: Tensor, into: Tensor | None = None, decay: float = 0.0) -> Tensor:
        raise AssertionError("zero times infinity")

    def inner_products(self, vectors: Tensor) -> Tensor:
        raise AssertionError("nobody asks for them")

    def pieces(self) -> Iterator[Pieces]:
        raise AssertionError("nobody asks for them")

    def formed(self) -> Iterator[tuple[slice, Tensor]]:
        for first in range(0, self.gradients.shape[1], 2):
            part = slice(first, first + 2)
            yield part, self.gradients[:, part]


@pytest.mark.parametrize("by_layer", [False, True])
def test_sum_leaves_out_what_is_not_finite(by_layer: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    gradients = torch.randn(4, 5, 6, generator=generator, dtype=torch.float64)
    present = torch.ones(4, 5, dtype=torch.bool)
    present[1, 3:] = False
    gradients[1, 4, 0] = torch.nan  # no sample, but its weight of zero would reach the sum
    gradients[0, 1, 2], gradients[2, 0, 5], gradients[2, 4] = torch.inf, torch.nan, -torch.inf
    given = Formed(gradients, present)
    broken = not_finite(given.squared_norms())
    assert broken.nonzero().tolist() == [[0, 1], [1, 4], [2, 0], [2, 4]]
    weights = torch.rand(4, 5, *([len(SIZES)] if by_layer else []), generator=generator, dtype=torch.float64)
    expected = torch.zeros(4, 6, dtype=torch.float64)
    for client in range(4):
        for sample in range(5):
            if present[client, sample] and not broken[client, sample]:
                weight = weights[client, sample]
                each = weight.repeat_interleave(torch.tensor(SIZES)) if by_layer else weight
                expected[client] += each * gradients[client, sample]
    finite = FiniteGradients(given, broken)
    torch.testing.assert_close(finite.weighted_sum(weights), expected)
    into = torch.ones(4, 6, dtype=torch.float64)
    torch.testing.assert_close(finite.weighted_sum(weights, into, 0.5), expected + 0.5)


def test_nothing_is_done_where_all_are_finite() -> None:
    gradients = Formed(torch.ones(2, 3, 6), torch.ones(2, 3, dtype=torch.bool))
    assert not not_finite(gradients.squared_norms()).any()
