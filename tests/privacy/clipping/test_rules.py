"""What every rule promises, and the two rules that have no memory, against loops over samples."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests.privacy.clipping.examples import PARTS, RULES, everyone, step_of, vectors
from wirelessfl.learning.cohort.run import clip_rows
from wirelessfl.privacy.clipping import (
    ClippingRule,
    Constant,
    DynamicClipping,
    FlatClipping,
    Geometric,
    PerLayerClipping,
    PrivateMooClipping,
    PublishedMooClipping,
    QuantileClipping,
    check_clipping_rule,
    per_layer_clipping,
)
from wirelessfl.privacy.clipping.conformance import samples_of
from wirelessfl.privacy.laws import DynamicClip, FixedClip, MooClip, PerLayerClip, QuantileClip
from wirelessfl.privacy.mechanisms.haar import clip_by_haar_norm

finite = st.floats(-1e150, 1e150, allow_nan=False)


def weighted(weights: Tensor, gradients: Tensor) -> Tensor:
    """(k, B, d) the gradients times their weights, those of ``PARTS`` each."""
    each = weights[..., None] if weights.ndim == 2 else torch.repeat_interleave(weights, torch.tensor(PARTS), dim=2)
    return each * gradients


@pytest.mark.parametrize("name", RULES)
def test_every_rule_conforms(name: str) -> None:
    check_clipping_rule(RULES[name], PARTS)


@pytest.mark.parametrize("name", [name for name in RULES if name != "moo_sample"])  # its noise is for the last sample
@given(rows=st.lists(st.lists(finite, min_size=14, max_size=14), min_size=1, max_size=4))
def test_no_clipped_gradient_exceeds_the_sensitivity(name: str, rows: list[list[float]]) -> None:
    rule, gradients = RULES[name], vectors(*rows)
    state = rule.start(1, torch.zeros(14, dtype=torch.float64))
    clipped = rule.clip(samples_of(gradients, everyone(gradients), PARTS), state, step_of([3]))
    norms = torch.linalg.vector_norm(weighted(clipped.weights, gradients), dim=-1)
    # Fourteen squares, their sum, a root, a quotient and a product: below 20 roundings.
    assert float(norms.max()) <= float(clipped.sensitivity) * (1 + 20 * torch.finfo(torch.float64).eps)


def test_a_clip_whose_square_underflows_still_binds() -> None:
    # In single precision the squares of these gradients are 0: their norms, 1.2e-23, are above the clip all the same.
    gradients, clip = torch.full((1, 1, 14), 3.3e-24), 1e-24
    for rule in (
        FlatClipping(clip),
        DynamicClipping(Constant(clip)),
        per_layer_clipping(clip, tuple(range(len(PARTS)))),
    ):
        samples = samples_of(gradients, everyone(gradients), PARTS)
        clipped = rule.clip(samples, rule.start(1, torch.zeros(14)), step_of([3]))
        norm = torch.linalg.vector_norm(weighted(clipped.weights, gradients).double())
        assert float(norm) <= float(clipped.sensitivity) * (1 + 20 * torch.finfo(torch.float32).eps)
    rows, haar = gradients[0].clone(), clip_by_haar_norm(gradients[0], clip, "coefficients")[0]
    clip_rows(rows, torch.linalg.vector_norm(rows, dim=1), clip)
    assert max(float(torch.linalg.vector_norm(row.double())) for row in (rows, haar)) <= clip


@pytest.mark.parametrize("name", RULES)
def test_small_gradients_stay_as_they_are(name: str) -> None:
    rule, gradients = RULES[name], vectors([1e-9] * 14, [0.0] * 14)
    state = rule.start(1, torch.zeros(14, dtype=torch.float64))
    clipped = rule.clip(samples_of(gradients, everyone(gradients), PARTS), state, step_of([3]))
    assert bool((clipped.weights == 1).all())


def test_flat_clipping_equals_the_loop_over_samples() -> None:
    generator = torch.Generator().manual_seed(1)
    gradients = torch.randn(3, 8, 14, generator=generator, dtype=torch.float64)
    present = torch.rand(3, 8, generator=generator) < 0.8
    samples = samples_of(gradients, present, PARTS)
    clipped = FlatClipping(3.5).clip(samples, {}, step_of([1, 2, 3]))
    for client in range(3):
        total = torch.zeros(14, dtype=torch.float64)
        for sample in range(8):
            if present[client, sample]:
                gradient = gradients[client, sample]
                total += gradient / max(1.0, float(gradient.norm()) / 3.5)
        torch.testing.assert_close(samples.weighted_sum(clipped.weights)[client], total)
    assert clipped.sensitivity.tolist() == [3.5] * 3


def test_dynamic_clipping_follows_the_round() -> None:
    gradients = vectors([3.0] + [0.0] * 13)
    rule = DynamicClipping(Geometric(2.0, 0.25, 4))
    for round_index, norm in [(1, 2.0), (2, 2.0 * 0.25**0.25), (3, 1.0), (5, 0.5), (9, 0.5)]:
        clipped = rule.clip(
            samples_of(gradients, everyone(gradients), PARTS), {}, step_of([0], round_index=round_index)
        )
        assert float(clipped.sensitivity) == pytest.approx(norm, rel=1e-12)
        assert float(clipped.weights * 3.0) == pytest.approx(norm, rel=1e-12)


def test_per_layer_clipping_equals_the_loop_over_layers() -> None:
    generator = torch.Generator().manual_seed(2)
    gradients = torch.randn(2, 6, 14, generator=generator, dtype=torch.float64)
    rule = PerLayerClipping((0.8, 2.5), (0, 0, 1, 1))
    clipped = rule.clip(samples_of(gradients, everyone(gradients), PARTS), {}, step_of([1, 2]))
    for client in range(2):
        for sample in range(6):
            first, second = gradients[client, sample, :10], gradients[client, sample, 10:]
            expected = torch.cat([first * min(1.0, 0.8 / first.norm()), second * min(1.0, 2.5 / second.norm())])
            torch.testing.assert_close(weighted(clipped.weights, gradients)[client, sample], expected)
    assert clipped.sensitivity.tolist() == pytest.approx([math.hypot(0.8, 2.5)] * 2)


def test_per_layer_sensitivity_is_reached_and_the_printed_one_is_not() -> None:
    """Layers of norms 3 and 4: a large gradient keeps norm 5, twice the √(3 + 4) that the papers print less 6 %."""
    rule = PerLayerClipping((3.0, 4.0), (0, 1, 1, 1))
    gradients = vectors([100.0] * 14)
    clipped = rule.clip(samples_of(gradients, everyone(gradients), PARTS), {}, step_of([0]))
    reached = float(torch.linalg.vector_norm(weighted(clipped.weights, gradients)))
    assert reached == pytest.approx(5.0) == pytest.approx(float(clipped.sensitivity))
    assert reached > 1.8 * math.sqrt(3.0 + 4.0)


def test_an_equal_split_keeps_the_whole_within_the_norm() -> None:
    rule = per_layer_clipping(0.6, (0, 1, 1, 2))
    assert rule.clip_norms == pytest.approx((0.6 / math.sqrt(3),) * 3)
    assert math.hypot(*rule.clip_norms) == pytest.approx(0.6)


def test_per_layer_clipping_refuses_a_norm_that_has_no_parts() -> None:
    gradients = vectors([1.0] * 14)
    samples = samples_of(gradients, everyone(gradients), (14,))
    with pytest.raises(ValueError, match="4 parts, not 1"):
        RULES["per_layer"].clip(samples, {}, step_of([0]))


@pytest.mark.parametrize(
    ("rule", "law"),
    [
        (FlatClipping(1.0), FixedClip()),
        (PerLayerClipping((0.5, 2.0), (0, 1)), PerLayerClip((0.5, 2.0))),
        (QuantileClipping(1.0, count_noise_std=3.0), QuantileClip(3.0)),
        (DynamicClipping(Constant(1.0)), DynamicClip()),
        (PublishedMooClipping(1.0, 0.1, 0.1), MooClip("published")),
        (PrivateMooClipping(1.0, 0.1, 0.1), MooClip("private")),
    ],
)
def test_the_ledger_is_told_what_the_rule_is(rule: ClippingRule, law: object) -> None:
    assert rule.law() == law


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_norms_must_be_positive_and_finite(bad: float) -> None:
    for make in (
        lambda: FlatClipping(bad),
        lambda: PerLayerClipping((1.0, bad), (0, 1)),
        lambda: QuantileClipping(bad),
        lambda: QuantileClipping(1.0, lr=bad),
        lambda: QuantileClipping(1.0, count_noise_std=bad),
        lambda: PrivateMooClipping(bad, 0.1, 0.1),
        lambda: PublishedMooClipping(1.0, 0.1, bad),
        lambda: Geometric(1.0, bad, 5),
        lambda: Geometric(bad, 1.0, 5),
    ):
        with pytest.raises(ValueError, match="must be positive and finite"):
            make()


@pytest.mark.parametrize("bad", [-0.1, math.inf, math.nan])
def test_other_numbers_out_of_range(bad: float) -> None:
    with pytest.raises(ValueError, match="quantile must lie in"):
        QuantileClipping(1.0, quantile=bad)
    with pytest.raises(ValueError, match="kappa must be finite and not negative"):
        PrivateMooClipping(1.0, bad, 0.1)
    with pytest.raises(ValueError, match="constant schedule must be finite and not negative"):
        Constant(bad)


def test_a_dynamic_rule_must_start_with_a_positive_norm() -> None:
    with pytest.raises(ValueError, match="clip_norm in round 1 must be positive"):
        DynamicClipping(Constant(0.0))


@pytest.mark.parametrize(("norms", "layers"), [((1.0,), (0, 1)), ((1.0, 1.0), (0, 0)), ((), ()), ((1.0, 1.0), (0, 2))])
def test_layers_and_norms_must_fit(norms: tuple[float, ...], layers: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="do not fit layers"):
        PerLayerClipping(norms, layers)
