"""Constants of softmax regression against torch's derivatives and random models."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from publications.convergence import SoftmaxRegression
from tests.statistics import shifted
from wirelessfl.learning import FlatModel
from wirelessfl.learning.flat import sample_losses
from wirelessfl.learning.models import logistic


def problem(classes: int = 3, apart: float = 0.0) -> SoftmaxRegression:
    generator = np.random.default_rng(shifted(3))
    targets = np.arange(36) % classes
    inputs = generator.uniform(-1, 1, (36, 2))
    inputs[:, 0] = (2 * targets - 1) * (apart + np.abs(inputs[:, 0])) if apart else inputs[:, 0]
    return SoftmaxRegression(inputs, targets, np.repeat([0, 1, 2], [20, 10, 6]), classes)


def models(one: SoftmaxRegression, count: int = 40) -> list[np.ndarray]:
    generator = np.random.default_rng(shifted(4))
    shape = (one.classes, one.inputs.shape[1] + 1)
    return [scale * generator.standard_normal(shape) for scale in np.geomspace(0.1, 10, count)]


def test_loss_and_gradient_are_those_of_the_library() -> None:
    one = problem()
    model = FlatModel(lambda: logistic((2,), 3), (2,), 3)
    flat = model.initial(1).double().requires_grad_()
    inputs, targets = torch.from_numpy(one.inputs), torch.from_numpy(one.targets)
    loss = sample_losses(model.logits(flat, inputs), targets).mean()
    (slope,) = torch.autograd.grad(loss, flat)
    theta = one.matrix(flat.detach().numpy())
    assert one.loss(theta) == pytest.approx(loss.item())
    np.testing.assert_allclose(one.gradient(theta), one.matrix(slope.numpy()), atol=1e-12)


def test_the_devices_gradients_average_to_the_whole() -> None:
    one = problem()
    theta = models(one)[5]
    np.testing.assert_allclose(np.tensordot(one.weight, one.device_gradients(theta), 1), one.gradient(theta))


@pytest.mark.parametrize("classes", [2, 3])
def test_bounds_hold_at_random_models(classes: int) -> None:
    one = problem(classes)
    for theta in models(one):
        local, whole = one.device_gradients(theta), one.gradient(theta)
        lengths = np.linalg.norm(local.reshape(3, -1), axis=1)
        away = np.linalg.norm((local - whole).reshape(3, -1), axis=1)
        assert np.all(lengths <= one.gradient_bounds())
        assert np.all(away <= one.deviations())
        assert one.weight @ away**2 <= one.heterogeneity()


def test_gradients_are_lipschitz_and_the_constant_is_not_idle() -> None:
    """At Θ = 0 with two classes the Hessian is (mean x̃ x̃ᵀ)/2 along (1, −1)/√2: L is attained by the worst device."""
    one = problem(2)
    top = 0.0
    for theta in [np.zeros((2, 3)), *models(one)]:
        for other in models(one, 10):
            near = theta + 1e-4 * other
            moved = one.device_gradients(near) - one.device_gradients(theta)
            top = max(top, np.linalg.norm(moved.reshape(3, -1), axis=1).max() / np.linalg.norm(near - theta))
    assert top <= one.smoothness() * (1 + 1e-6)
    worst = max(np.linalg.eigvalsh(one.extended[one.device == i].T @ one.extended[one.device == i])[-1] / n
                for i, n in enumerate([20, 10, 6]))  # fmt: skip
    assert one.smoothness() == pytest.approx(worst / 2)


def test_the_variance_of_one_sample() -> None:
    one = problem()
    for theta in models(one, 10):
        for device in range(3):
            rows = np.flatnonzero(one.device == device)
            singles = [
                SoftmaxRegression(one.inputs[[r]], one.targets[[r]], np.zeros(1, int), 3).gradient(theta) for r in rows
            ]
            assert np.stack(singles).var(axis=0).sum() <= one.gradient_variance()


def test_dissimilarity_of_separated_classes() -> None:
    one = problem(2, apart=1.0)
    alike = one.dissimilarity(np.array([2.0, 0.0, 0.0]))
    for theta in models(one):
        squares = (one.device_gradients(theta) ** 2).sum(axis=(1, 2))
        assert one.weight @ squares <= alike**2 * (one.gradient(theta) ** 2).sum()


@pytest.mark.slow
def test_the_minimum_is_one() -> None:
    one = problem(2)
    least = one.minimum()
    assert all(one.loss(theta) >= least for theta in models(one))
    # Against plain gradient descent, which comes from above.
    theta = np.zeros((2, 3))
    for _ in range(20_000):
        theta = theta - one.gradient(theta) / one.smoothness()
    assert one.loss(theta) == pytest.approx(least, abs=1e-8)


def test_bad_input_is_refused() -> None:
    good = problem(2)
    with pytest.raises(ValueError, match="equal lengths"):
        SoftmaxRegression(good.inputs, good.targets[1:], good.device, 2)
    with pytest.raises(ValueError, match="every device"):
        SoftmaxRegression(good.inputs, good.targets, good.device * 2, 2)
    with pytest.raises(ValueError, match="between 0 and 0"):
        SoftmaxRegression(good.inputs, good.targets, good.device, 1)
    with pytest.raises(ValueError, match="6 numbers"):
        good.matrix(np.zeros(5))
    with pytest.raises(ValueError, match="separate"):
        good.dissimilarity(np.array([1.0, 0.0, 0.0]))
    with pytest.raises(ValueError, match="two classes"):
        problem(3).dissimilarity(np.ones(3))
    with pytest.raises(ValueError, match="separable"):
        problem(2, apart=1.0).minimum(steps=3)
