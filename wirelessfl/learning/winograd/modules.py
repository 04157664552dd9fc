"""Minimal filtering within modules that are called as they are: in place of each ``conv2d`` where it is faster."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.modules.utils import _pair
from torch.overrides import TorchFunctionMode
from typing_extensions import override

from wirelessfl.learning.kernel_geometry import KernelGeometry
from wirelessfl.learning.winograd import MinimalFiltering, minimal_filtering

aten = torch.ops.aten


class MinimallyFiltered(TorchFunctionMode):
    """Scope in which ``conv2d`` of torch goes by minimal filtering where that is faster, its derivatives included.

    Images in another memory than channels-last are left to torch: their outputs are to be in the same, which a module
    may rely on.
    """

    @override
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        outputs = _filtered(*args, **named) if func is functional.conv2d else None
        return func(*args, **named) if outputs is None else outputs


def filtering_of_call(
    images: Sequence[int],
    kernels: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> MinimalFiltering | None:
    """Minimal filtering for the arguments of a ``conv2d``; None where it does not apply, or is not faster.

    Args:
        images: B, C, H and W.
        kernels: O, C, kh and kw.
        stride: As of ``conv2d``; so are the others.
        padding: With zeros.
        dilation: Of the kernels.
        groups: Of channels.
    """
    (samples, channels, *image), (filters, of_each, *size) = images, kernels
    if groups != 1 or channels != of_each or size[0] != size[1]:
        return None
    if isinstance(padding, str):
        padding = size[0] // 2 if padding == "same" else 0  # sizes that are filtered are odd
    geometry = KernelGeometry((size[0], size[1]), _pair(stride), _pair(padding), _pair(dilation))
    return minimal_filtering(geometry, samples, image, channels, filters)


def _filtered(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *settings: Any,
    **named: Any,
) -> Tensor | None:
    operands = [each for each in (input, weight, bias) if each is not None]
    if not all(map(_is_of_host, operands)) or torch.is_autocast_enabled("cpu"):
        return None
    if input.ndim != 4 or not input.is_contiguous(memory_format=torch.channels_last):
        return None
    filtering = filtering_of_call(input.shape, weight.shape, *settings, **named)
    if filtering is None or (bias is not None and bias.shape != weight.shape[:1]):
        return None
    return cast(Tensor, _Convolution.apply(filtering, input, weight, bias))  # type: ignore[no-untyped-call]


def _is_of_host(numbers: Tensor) -> bool:
    # Within a transform of torch.func tensors have no memory of their own
    plain = not torch._C._functorch.is_functorch_wrapped_tensor(numbers) and numbers.layout == torch.strided
    return plain and numbers.device.type == "cpu" and numbers.dtype == torch.float32


class _Convolution(torch.autograd.Function):
    # The convolutions of one client

    @staticmethod
    def forward(
        ctx: Any, filtering: MinimalFiltering, images: Tensor, kernels: Tensor, biases: Tensor | None
    ) -> Tensor:
        ctx.filtering = filtering
        ctx.save_for_backward(images, kernels)
        return filtering.convolved(images, kernels.unsqueeze(0), None if biases is None else biases.unsqueeze(0))

    @staticmethod
    def backward(ctx: Any, delta: Tensor) -> tuple[Tensor | None, ...]:
        (images, kernels), filtering = ctx.saved_tensors, cast(MinimalFiltering, ctx.filtering)
        _, by_images, by_kernels, by_biases = ctx.needs_input_grad
        if torch.is_grad_enabled():  # the derivatives are to be derived in turn
            settings = [len(kernels)], (1, 1), filtering.padding, (1, 1), False, (0, 0), 1
            wanted = by_images, by_kernels, by_biases
            return None, *aten.convolution_backward(delta, images, kernels, *settings, wanted)
        size = images.shape[2], images.shape[3]
        return (
            None,
            filtering.image_derivatives(delta, kernels.unsqueeze(0), size) if by_images else None,
            filtering.kernel_derivatives(images, delta, 1).squeeze(0) if by_kernels else None,
            delta.sum((0, 2, 3)) if by_biases else None,
        )
