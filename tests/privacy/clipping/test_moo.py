"""MOO adaptive clipping against scalar computations and numerical derivatives."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.privacy.clipping.examples import everyone, step_of, vectors
from wirelessfl.privacy.clipping import PrivateMooClipping, PublishedMooClipping, SampleMooClipping, moo_clip
from wirelessfl.privacy.clipping.adaptive import SMALLEST_CLIP, moo_clips
from wirelessfl.privacy.clipping.conformance import ExampleStep, samples_of


@pytest.mark.parametrize(
    ("clip", "loss_sensitivity", "penalty", "rate"),
    [
        (1.0, 0.05, 0.02, 0.5),
        (0.3, -0.2, 0.1, 0.1),
        (2.0, 0.0, 1.0, 0.5),
        (0.01, -5.0, 0.0, 1.0),
        (1e-3, 0.4, 0.1, 0.2),
    ],
)
def test_the_update_is_equations_10_to_12(clip: float, loss_sensitivity: float, penalty: float, rate: float) -> None:
    gradient = penalty - loss_sensitivity / clip
    expected = max(clip - rate * gradient, 1e-3)
    numbers = torch.tensor([[clip], [loss_sensitivity]], dtype=torch.float64)
    found = moo_clip(numbers[0], numbers[1], penalty, rate)
    assert float(found) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_the_clip_stays_where_training_diverged(broken: float) -> None:
    assert float(moo_clip(torch.tensor([0.4]), torch.tensor([broken]), 0.1, 0.1)) == pytest.approx(0.4)


def test_the_floor() -> None:
    assert (
        float(moo_clip(torch.tensor([0.5], dtype=torch.float64), torch.tensor([0.0], dtype=torch.float64), 100.0, 1.0))
        == SMALLEST_CLIP
    )


class Logistic:
    """Per-sample gradients of a logistic regression, and its mean loss, by hand."""

    def __init__(self, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.inputs = torch.randn(9, 4, generator=generator, dtype=torch.float64) * torch.linspace(0.2, 3, 9)[:, None]
        self.targets = torch.randint(2, (9,), generator=generator).double()
        self.noise = torch.randn(4, generator=generator, dtype=torch.float64)

    def gradients(self, parameters: Tensor) -> Tensor:
        """(1, 9, 4)."""
        return ((torch.sigmoid(self.inputs @ parameters) - self.targets)[:, None] * self.inputs)[None]

    def loss(self, parameters: Tensor) -> float:
        logits = self.inputs @ parameters
        return float((torch.nn.functional.softplus(logits) - self.targets * logits).mean())

    def noised_mean(self, parameters: Tensor, clip: float, multiplier: float) -> Tensor:
        """g̃(C) at fixed noise, by a loop over samples."""
        total = multiplier * clip * self.noise
        for gradient in self.gradients(parameters)[0]:
            total = total + gradient * min(1.0, clip / float(gradient.norm()))
        return total / 9


def read_off(rule: PublishedMooClipping | PrivateMooClipping, before: float, after: float) -> float:
    """S, from one update of C."""
    return ((after - before) / rule.lr + rule.kappa) * before


def example_step(index: int, learning_rate: float) -> ExampleStep:
    step = step_of([0], divisor=9.0, step=index)
    return ExampleStep(step.streams, 1, index, step.clients, step.divisor, learning_rate)


def test_published_feedback_is_the_derivative_of_the_loss_in_the_clip() -> None:
    """S = −d L(θ − η g̃(C))/dC, compared with a central difference."""
    task, clip, multiplier, rate = Logistic(), 0.6, 0.8, 0.7
    rule = PublishedMooClipping(clip, 0.05, 0.1)
    start = torch.tensor([0.3, -0.2, 0.5, 0.1], dtype=torch.float64)
    state = rule.start(1, start)
    gradients = task.gradients(start)
    norms = gradients.norm(dim=-1)
    assert 0 < int((norms > clip).sum()) < 9  # some are clipped and some are not
    first = rule.clip(samples_of(gradients, everyone(gradients), (4,)), state, example_step(0, rate))
    noised = 9 * task.noised_mean(start, clip, multiplier)[None]
    state = rule.learn(noised, first.state, example_step(0, rate))
    there = start - rate * noised[0] / 9
    gradients = task.gradients(there)
    second = rule.clip(samples_of(gradients, everyone(gradients), (4,)), state, example_step(1, rate))
    width = 1e-5
    losses = [task.loss(start - rate * task.noised_mean(start, clip + h, multiplier)) for h in (width, -width)]
    falls = -(losses[0] - losses[1]) / (2 * width)
    assert read_off(rule, clip, float(second.sensitivity)) == pytest.approx(falls, rel=1e-7)
    assert float(second.sensitivity) == float(second.state["clip_norm"])  # it holds at once


def test_published_feedback_by_hand() -> None:
    """One dimension, gradients 3 and 0.5, C = 1, z = 0: g̃ = (1 + 0.5)/2, ∂g̃/∂C = 1/2; then gradients 2 and 1."""
    rule = PublishedMooClipping(1.0, 0.2, 0.5)
    gradients = vectors([3.0], [0.5])
    state = rule.start(1, torch.zeros(1, dtype=torch.float64))
    step = step_of([0], divisor=2.0)
    first = rule.clip(samples_of(gradients, everyone(gradients), (1,)), state, step)
    assert float(first.sensitivity) == 1.0
    state = rule.learn(torch.tensor([[1.5]], dtype=torch.float64), first.state, step)
    assert state["direction"].tolist() == [[0.5]]
    gradients = vectors([2.0], [1.0])
    second = rule.clip(samples_of(gradients, everyone(gradients), (1,)), state, step_of([0], divisor=2.0, step=1))
    fall = 0.1 * (2.0 + 1.0) / 2 * 0.5
    assert float(second.sensitivity) == pytest.approx(1.0 - 0.5 * (0.2 - fall / 1.0))


def test_algorithm_1_by_hand() -> None:
    """One dimension, C = 1, κ = 0.2, η_C = 0.5, η = 0.1, z = 0, L = 2.

    Round's first step, gradients 3 and 0.5: no fall yet, so that C goes down to 0.9 and 0.8; 3 is clipped to 0.9,
    g̃ = (0.9 + 0.5)/2 and ∂g̃/∂C = 1/2. Then gradients 2 and 1: falls 0.1·2/2 and 0.1·1/2.
    """
    rule = SampleMooClipping(1.0, 0.2, 0.5)
    gradients = vectors([3.0], [0.5])
    step = step_of([0], divisor=2.0)
    first = rule.clip(samples_of(gradients, everyone(gradients), (1,)), rule.start(1, gradients[0, 0]), step)
    assert first.weights[0].tolist() == pytest.approx([0.9 / 3, 1.0]) and float(first.sensitivity) == pytest.approx(0.8)
    state = rule.learn(torch.tensor([[1.4]], dtype=torch.float64), first.state, step)
    assert state["direction"].tolist() == [[pytest.approx(0.5)]] and float(state["clip_norm"]) == pytest.approx(0.8)
    gradients, clips = vectors([2.0], [1.0]), [0.8]
    for fall in (0.1, 0.05):
        clips.append(clips[-1] - 0.5 * (0.2 - fall / clips[-1]))
    second = rule.clip(samples_of(gradients, everyone(gradients), (1,)), state, step_of([0], divisor=2.0, step=1))
    assert second.weights[0].tolist() == pytest.approx([clips[1] / 2, clips[2] / 1])
    assert float(second.sensitivity) == pytest.approx(clips[2])


def test_one_sample_multiplies_the_norm_and_the_noise_by_any_factor() -> None:
    """Why no finite ε holds for the published form: batches that differ in one sample have noise of other scales."""
    rule, norms = SampleMooClipping(1.0, 0.2, 0.5), []
    for longest in (1.0, 1e6):
        gradients, state = vectors([3.0], [0.5]), rule.start(1, torch.zeros(1, dtype=torch.float64))
        first = rule.clip(samples_of(gradients, everyone(gradients), (1,)), state, step_of([0], divisor=2.0))
        state = rule.learn(torch.tensor([[1.4]], dtype=torch.float64), first.state, step_of([0], divisor=2.0))
        gradients = vectors([2.0], [longest])
        second = rule.clip(samples_of(gradients, everyone(gradients), (1,)), state, step_of([0], divisor=2.0, step=1))
        norms.append(float(second.sensitivity))
    assert norms[1] > 1e4 * norms[0]


def test_the_fall_of_a_sample_is_the_derivative_of_its_loss_in_the_clip() -> None:
    """S_b = −dℓ_b(θ − η g̃)/dC for a common shift of the C of all samples, by a central difference."""
    task, rate = Logistic(), 0.7
    rule = SampleMooClipping(0.6, 0.05, 0.1)
    start = torch.tensor([0.3, -0.2, 0.5, 0.1], dtype=torch.float64)
    gradients = task.gradients(start)
    first = rule.clip(samples_of(gradients, everyone(gradients), (4,)), rule.start(1, start), example_step(0, rate))
    clips = [0.6 - 0.1 * 0.05 * (1 + b) for b in range(9)]
    assert any(weight < 1 for weight in first.weights[0]) and any(weight == 1 for weight in first.weights[0])

    def stepped(shift: float) -> Tensor:
        total = 0.8 * (clips[-1] + shift) * task.noise
        for gradient, clip in zip(gradients[0], clips, strict=True):
            total = total + gradient * min(1.0, (clip + shift) / float(gradient.norm()))
        return start - rate * total / 9

    state = rule.learn((start - stepped(0.0))[None] / rate * 9, first.state, example_step(0, rate))
    there = task.gradients(stepped(0.0))
    falls = rate * samples_of(there, everyone(there), (4,)).inner(state["direction"])[0]
    width = 1e-5
    for b in range(9):
        one, losses = Logistic(), []
        for shift in (width, -width):
            one.inputs, one.targets = task.inputs[[b]], task.targets[[b]]
            losses.append(one.loss(stepped(shift)))
        assert float(falls[b]) == pytest.approx(-(losses[0] - losses[1]) / (2 * width), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_clips_after_each_sample_are_those_of_single_updates_bit_for_bit(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(5)
    falls = torch.randn(7, 40, generator=generator, dtype=dtype) * torch.logspace(-4, 1, 7, dtype=dtype)[:, None]
    falls[2, 3], falls[3, 4], falls[4, 5] = torch.nan, torch.inf, -torch.inf
    present = torch.rand(7, 40, generator=generator) < 0.8
    start = torch.linspace(1e-3, 2.0, 7, dtype=dtype)
    found = moo_clips(start, falls, present, 0.1, 0.03)
    clip_norm, floors = start, 0
    for b in range(40):
        clip_norm = torch.where(present[:, b], moo_clip(clip_norm, falls[:, b], 0.1, 0.03), clip_norm)
        assert torch.equal(found[:, b], clip_norm)
        floors += int((clip_norm == SMALLEST_CLIP).sum())
    assert found.dtype == dtype
    assert 0 < floors < 7 * 40
    assert torch.equal(start, torch.linspace(1e-3, 2.0, 7, dtype=dtype))


def test_private_feedback_by_hand() -> None:
    """S = η⟨g̃₂, g̃₁⟩/C₁ after the second step, and the new C holds from the third."""
    rule = PrivateMooClipping(0.5, 0.2, 0.5)
    state = rule.start(1, torch.zeros(2, dtype=torch.float64))
    released = [torch.tensor([[2.0, 4.0]], dtype=torch.float64), torch.tensor([[6.0, -1.0]], dtype=torch.float64)]
    gradients = vectors([9.0, 9.0])
    clips = []
    for index in range(3):
        step = step_of([0], divisor=2.0, step=index)
        clipped = rule.clip(samples_of(gradients, everyone(gradients), (2,)), state, step)
        clips.append(float(clipped.sensitivity))
        if index < 2:
            state = rule.learn(released[index], clipped.state, step)
    fall = 0.1 * (1.0 * 3.0 + 2.0 * -0.5) / 0.5
    assert clips == pytest.approx([0.5, 0.5, 0.5 - 0.5 * (0.2 - fall / 0.5)])


def test_private_feedback_equals_the_derivative_where_all_samples_are_clipped_to_it() -> None:
    """With every gradient above C and fixed noise, g̃(C) is proportional to C, so that ∂g̃/∂C = g̃/C."""
    task = Logistic(4)
    start = torch.tensor([0.3, -0.2, 0.5, 0.1], dtype=torch.float64)
    clip = 0.5 * float(task.gradients(start).norm(dim=-1).min())
    rule = PrivateMooClipping(clip, 0.05, 0.1)
    noised = 9 * task.noised_mean(start, clip, 0.8)[None]
    state = rule.learn(noised, rule.start(1, start), example_step(0, 0.7))
    width = 1e-6 * clip
    slope = (task.noised_mean(start, clip + width, 0.8) - task.noised_mean(start, clip - width, 0.8)) / (2 * width)
    found = state["sum"] / state["divisor"] / state["clipped_to"]
    torch.testing.assert_close(found[0], slope, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", [PublishedMooClipping, PrivateMooClipping])
def test_a_round_starts_without_feedback_and_keeps_the_clip(
    kind: type[PublishedMooClipping] | type[PrivateMooClipping],
) -> None:
    rule = kind(1.0, 0.2, 0.5)
    assert rule.lasting == ("clip_norm",)
    gradients = vectors([3.0, 1.0])
    kept = {"clip_norm": torch.tensor([0.37], dtype=torch.float64)}
    state = {name: torch.ones_like(rows) for name, rows in rule.start(1, torch.zeros(2).double()).items()} | kept
    step = step_of([0], divisor=1.0, step=0, round_index=7)
    clipped = rule.clip(samples_of(gradients, everyone(gradients), (2,)), state, step)
    after = rule.learn(torch.ones(1, 2).double(), clipped.state, step)
    assert float(clipped.sensitivity) == float(after["clip_norm"]) == pytest.approx(0.37)


@pytest.mark.parametrize("kind", [PublishedMooClipping, PrivateMooClipping])
def test_many_clients_of_a_large_model_are_followed_a_few_at_a_time(
    kind: type[PublishedMooClipping] | type[PrivateMooClipping],
) -> None:
    """Bit for bit what each of them gets alone: 7 clients of 100,000 parameters, of which two fit at a time."""
    rule, clients, dimension = kind(0.5, 0.2, 1e-4), 7, 100_000
    generator = torch.Generator().manual_seed(3)
    drawn = [torch.randn(clients, 2, dimension, generator=generator) for _ in range(3)]
    released = [torch.randn(clients, dimension, generator=generator) for _ in range(3)]

    def follow(own: slice) -> Tensor:
        state = rule.start(own.stop - own.start, torch.zeros(dimension))
        for index in range(3):
            step = step_of(list(range(own.start, own.stop)), divisor=2.0, step=index)
            gradients = drawn[index][own]
            clipped = rule.clip(samples_of(gradients, everyone(gradients), (dimension,)), state, step)
            state = rule.learn(released[index][own], clipped.state, step)
        return state["clip_norm"]

    found = follow(slice(0, clients))
    assert len(set(found.tolist())) == clients
    assert torch.equal(found, torch.cat([follow(slice(k, k + 1)) for k in range(clients)]))


def test_private_feedback_keeps_the_noised_sum_and_changes_no_row_with_another() -> None:
    """The sum is not copied; C and what was clipped to are two rows, as the engine writes to a part of one."""
    rule = PrivateMooClipping(1.0, 0.2, 0.5)
    state = rule.start(3, torch.zeros(2))
    released, step = torch.ones(3, 2), step_of([0, 1, 2], divisor=2.0, step=0)
    after = rule.learn(released, state, step)
    assert after["sum"] is released
    places = {rows.data_ptr() for rows in (*after.values(), step.divisor)}
    assert len(places) == len(after) + 1


def test_private_feedback_reads_no_gradient_but_the_noised_one() -> None:
    rule = PrivateMooClipping(1.0, 0.2, 0.5)
    released = torch.tensor([[0.3, -0.4]], dtype=torch.float64)
    states = []
    for gradients in (vectors([3.0, 1.0]), vectors([-0.1, 70.0])):
        state = rule.start(1, torch.zeros(2, dtype=torch.float64))
        for index in range(3):
            step = step_of([0], divisor=1.0, step=index)
            clipped = rule.clip(samples_of(gradients, everyone(gradients), (2,)), state, step)
            state = rule.learn(released, clipped.state, step)
        states.append(state)
    for name in states[0]:
        assert torch.equal(states[0][name], states[1][name])
