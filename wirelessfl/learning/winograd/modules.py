"""Minimal filtering within modules that are called as they are: in place of each ``conv2d`` where it is faster."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from typing_extensions import override

from wirelessfl.learning.kernel_geometry import KernelGeometry, Pair
from wirelessfl.learning.winograd import MinimalFiltering, minimal_filtering

aten = torch.ops.aten


class _OnConvolutions(TorchFunctionMode):
    # Scope in which ``convolve`` answers each call of ``conv2d``

    def convolve(self, call: Callable[..., Tensor], args: Sequence[Any], named: Mapping[str, Any]) -> Tensor:
        raise NotImplementedError

    @override
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        return self.convolve(func, args, named) if func is functional.conv2d else func(*args, **named)


class MinimallyFiltered(_OnConvolutions):
    """Scope in which ``conv2d`` of torch goes by minimal filtering where that is faster, its derivatives included.

    Images in another memory than channels-last are left to torch: their outputs are to be in the same, which a module
    may rely on.
    """

    @override
    def convolve(self, call: Callable[..., Tensor], args: Sequence[Any], named: Mapping[str, Any]) -> Tensor:
        outputs = _filtered(*args, **named)
        return call(*args, **named) if outputs is None else outputs


class ConvolutionCount(_OnConvolutions):
    """Scope that counts the products of the convolutions in it.

    Args:
        samples: Images of a batch, by whose number minimal filtering is chosen.

    Attributes:
        products: Of all two-dimensional convolutions.
        filtered: Of those for which minimal filtering is taken.
    """

    def __init__(self, samples: int) -> None:
        super().__init__()
        self._samples = samples
        self.products = self.filtered = 0

    @override
    def convolve(self, call: Callable[..., Tensor], args: Sequence[Any], named: Mapping[str, Any]) -> Tensor:
        outputs = call(*args, **named)
        self._count(outputs, *args, **named)
        return outputs

    def _count(
        self,
        outputs: Tensor,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        *settings: Any,
        **named: Any,
    ) -> None:
        of_call = outputs.numel() * weight[0].numel()
        self.products += of_call
        images = self._samples, *input.shape[1:]
        self.filtered += of_call if _filtering(images, weight.shape, *settings, **named) else 0


def _filtered(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *settings: Any,
    **named: Any,
) -> Tensor | None:
    operands = [each for each in (input, weight, bias) if each is not None]
    if not all(map(_is_plain, operands)) or torch.is_autocast_enabled("cpu") or _is_transformed():
        return None
    if input.ndim != 4 or not input.is_contiguous(memory_format=torch.channels_last):
        return None
    filtering = _filtering(input.shape, weight.shape, *settings, **named)
    if filtering is None or (bias is not None and bias.shape != weight.shape[:1]):
        return None
    return cast(Tensor, _Convolution.apply(filtering, input, weight, bias))  # type: ignore[no-untyped-call]


def _filtering(
    images: Sequence[int],
    kernels: Sequence[int],
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
) -> MinimalFiltering | None:
    # Of the arguments of a conv2d, with the shapes of images and kernels; what is wrong is torch's to refuse
    if groups != 1 or len(images) != 4 or len(kernels) != 4 or images[1] != kernels[1]:
        return None
    (samples, channels, *image), (filters, _, *size) = images, kernels
    if isinstance(padding, str):
        same = tuple(side // 2 for side in size)  # of even sizes it is not, but they are not filtered
        padding = {"same": same, "valid": (0, 0)}.get(padding)
    pairs = [_pair_of(numbers) for numbers in (size, stride, padding, dilation)]
    known = [pair for pair in pairs if pair is not None]
    if len(known) < len(pairs):
        return None
    return minimal_filtering(KernelGeometry(*known), samples, image, channels, filters)


def _pair_of(numbers: Any) -> Pair | None:
    # A number for both axes, or one for each
    both = [numbers, numbers] if isinstance(numbers, int) else numbers
    if not isinstance(both, Sequence) or len(both) != 2 or not all(isinstance(number, int) for number in both):
        return None
    return both[0], both[1]


def _is_plain(numbers: Tensor) -> bool:
    # Whether its memory holds its numbers, and nobody else computes with it in another way
    if type(numbers) not in (Tensor, nn.Parameter) or not torch._C._has_storage(numbers):
        return False
    if numbers.device.type != "cpu" or numbers.dtype != torch.float32 or numbers.layout != torch.strided:
        return False
    return not numbers.is_neg()


def _is_transformed() -> bool:
    # Within a transform of torch.func, forward derivatives, or what records or counts the operations
    traced = torch._C._get_tracing_state() is not None or torch.compiler.is_compiling()
    traced = traced or torch._C._len_torch_dispatch_stack() > 0
    derived = torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0
    return traced or derived


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
        if torch.is_grad_enabled() or not _is_plain(delta):  # derivatives that are derived in turn, or several at once
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
