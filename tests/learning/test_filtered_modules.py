"""Minimal filtering in modules: answered and refused as by torch, and as accurate, with all derivatives."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.autograd.functional import jacobian
from torch.func import grad, vmap
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from tests.learning.test_winograd import compiled_only, error
from wirelessfl.learning.winograd import MinimalFiltering
from wirelessfl.learning.winograd.modules import MinimallyFiltered


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding="same", bias=False),
        nn.ReLU(),
        nn.Conv2d(32, 48, 5, padding=2),
        nn.ReLU(),
        nn.Conv2d(48, 48, 3, padding="valid"),
        nn.GroupNorm(2, 48),
        nn.Conv2d(48, 64, 3, padding=1, stride=2),
        nn.Conv2d(64, 64, 3, padding=1, groups=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def gradients_of(module: nn.Module, images: Tensor) -> list[Tensor]:
    images = images.detach().requires_grad_()
    return [*torch.autograd.grad(module(images).square().sum(), [images, *module.parameters()])]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods of ``MinimalFiltering`` that are called."""
    made: list[str] = []
    for name in ("convolved", "image_derivatives", "kernel_derivatives"):
        original = getattr(MinimalFiltering, name)

        def noted(self: MinimalFiltering, *arguments: object, name: str = name, original: object = original) -> object:
            made.append(name)
            return original(self, *arguments)  # type: ignore[operator]

        monkeypatch.setattr(MinimalFiltering, name, noted)
    return made


@compiled_only
def test_modules_take_it_in_channels_last_memory(calls: list[str]) -> None:
    torch.manual_seed(0)
    module, images = network(), torch.rand(20, 3, 16, 16).contiguous(memory_format=torch.channels_last)
    with MinimallyFiltered():
        found = gradients_of(module, images)
    assert {name: calls.count(name) for name in calls} == dict.fromkeys(calls, 3) and len(calls) == 9
    expected = gradients_of(module.double(), images.double())
    for one, other in zip(found, expected, strict=True):
        assert error(one, other) < 1e-4  # ten layers, ReLUs among them


@compiled_only
def test_modules_are_left_to_torch_elsewhere(calls: list[str]) -> None:
    torch.manual_seed(0)
    module, images = network(), torch.rand(6, 3, 16, 16)
    expected = gradients_of(module, images)
    with MinimallyFiltered():
        found = gradients_of(module, images)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    last = images.contiguous(memory_format=torch.channels_last)
    with MinimallyFiltered(), torch.autocast("cpu", dtype=torch.bfloat16):
        module(last)
    with MinimallyFiltered():
        module.double()(last.double())
        functional.conv2d(images[0], torch.rand(16, 3, 3, 3))
    assert not calls


@compiled_only
def test_derivatives_of_derivatives_are_those_of_torch() -> None:
    torch.manual_seed(0)
    layer = nn.Conv2d(16, 16, 3, padding=1)
    images = torch.rand(8, 16, 12, 12).contiguous(memory_format=torch.channels_last).requires_grad_()

    def penalty() -> list[Tensor]:
        (first,) = torch.autograd.grad(layer(images).square().sum(), images, create_graph=True)
        return [*torch.autograd.grad(first.square().sum(), [images, layer.weight])]

    expected = penalty()
    with MinimallyFiltered():
        found = penalty()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-2)


def images_and_kernels() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(8, 32, 16, 16, generator=generator).contiguous(memory_format=torch.channels_last)
    return images, torch.randn(32, 32, 3, 3, generator=generator)


class Doubled(Tensor):
    """A tensor whose convolutions are twice as large."""

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        untyped: Any = super()
        found = untyped.__torch_function__(func, types, tuple(args), dict(kwargs or {}))
        return 2 * found if func is functional.conv2d else found


CALLS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "negative padding": lambda x, w: functional.conv2d(x, w, padding=-1),
    "padding of another name": lambda x, w: functional.conv2d(x, w, padding="full"),
    "padding of three numbers": lambda x, w: functional.conv2d(x, w, padding=(1, 1, 1)),
    "no stride": lambda x, w: functional.conv2d(x, w, stride=0),
    "lists of one number": lambda x, w: functional.conv2d(x, w, None, [1], (1,)),
    "named": lambda x, w: functional.conv2d(input=x, weight=w, bias=w[0, 0, 0].repeat(11)[:32], padding="same"),
    "no samples": lambda x, w: functional.conv2d(x[:0], w, padding=1),
    "no filters": lambda x, w: functional.conv2d(x, w[:0], padding=1),
    "images smaller than kernels": lambda x, w: functional.conv2d(x[..., :2, :2], w),
    "kernels of three axes in space": lambda x, w: functional.conv2d(x, w[..., None]),
    "kernels of other channels": lambda x, w: functional.conv2d(x, w[:, :16]),
    "biases of other filters": lambda x, w: functional.conv2d(x, w, w[0, :16, 0, 0], padding=1),
    "negative by a flag": lambda x, w: functional.conv2d(torch._neg_view(x), w, padding=1),
    "a subclass": lambda x, w: functional.conv2d(x.as_subclass(Doubled), w, padding=1).as_subclass(Tensor),
    "within a gradient": lambda x, w: grad(lambda s: (functional.conv2d(x, w, padding=1) * s).sum())(torch.ones(())),
    "within vmap": lambda x, w: vmap(lambda s: functional.conv2d(x, w, padding=1)[0, 0] * s)(torch.ones(2)),
    "several derivatives at once": lambda x, w: derivatives(
        lambda v: functional.conv2d(x, v, padding=1)[0, :2, 0, 0], w
    ),
    "forward derivatives": lambda x, w: forward_derivative(x, w),
    "counted": lambda x, w: torch.tensor(flops(lambda: functional.conv2d(x, w, padding=1))),
    "traced": lambda x, w: traced(lambda v: functional.conv2d(v, w, padding=1), x)(x),
}


def derivatives(call: Callable[[Tensor], Tensor], kernels: Tensor) -> Tensor:
    untyped: Any = jacobian
    return cast(Tensor, untyped(call, kernels, vectorize=True))


def flops(call: Callable[[], Tensor]) -> int:
    with FlopCounterMode(display=False) as counter:
        call()
    return int(counter.get_total_flops())


def traced(call: Callable[[Tensor], Tensor], images: Tensor) -> Callable[[Tensor], Tensor]:
    trace: Any = torch.jit.trace  # untyped in torch
    return cast(Callable[[Tensor], Tensor], trace(call, images, check_trace=False))


def forward_derivative(images: Tensor, kernels: Tensor) -> Tensor:
    untyped: Any = forward_ad
    with untyped.dual_level():
        dual = untyped.make_dual(images, images.cos())
        return cast(Tensor, untyped.unpack_dual(functional.conv2d(dual, kernels, padding=1)).tangent.clone())


@compiled_only
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_calls_are_answered_and_refused_as_by_torch(name: str) -> None:
    call, operands = CALLS[name], images_and_kernels()
    try:
        expected = call(*operands)
    except (RuntimeError, ValueError, TypeError) as refusal:
        with MinimallyFiltered(), pytest.raises(type(refusal)) as found:
            call(*operands)
        assert str(found.value) == str(refusal)
        return
    with MinimallyFiltered():
        answer = call(*operands)
    assert answer.shape == expected.shape and answer.stride() == expected.stride()
    torch.testing.assert_close(answer, expected, rtol=1e-4, atol=1e-3)
