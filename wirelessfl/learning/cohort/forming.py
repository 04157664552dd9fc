"""Per-sample gradients formed some samples at a time, as many as memory is to hold."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

_ELSEWHERE = 2**30  # bytes, not measured: of a GPU's memory little, and its launches are few


def formed_in_parts(
    form: Callable[[slice], Tensor], samples: int, bytes_each: int, device: torch.device, on_cpu: int
) -> Iterator[tuple[slice, Tensor]]:
    """Gradients (k, b, d) of some samples at a time, at least of one.

    Without values, on the ``meta`` device, all parts are alike but for the length of the last. So the second stands for
    those between, whose memory is as much, and planning does not take as long as they are many.

    Args:
        form: From a slice of the samples to their gradients.
        samples: Samples in the batch of a client.
        bytes_each: Of the gradients of one sample of every client.
        device: Where they are formed.
        on_cpu: Bytes to be held on a CPU, whose caches they fit.
    """
    at_once = max(1, (on_cpu if device.type == "cpu" else _ELSEWHERE) // bytes_each)
    alike: Tensor | None = None
    for first in range(0, samples, at_once):
        part = slice(first, min(first + at_once, samples))
        formed = form(part) if alike is None or part.stop == samples else alike
        if first and device.type == "meta":
            alike = formed
        yield part, formed
        del formed
