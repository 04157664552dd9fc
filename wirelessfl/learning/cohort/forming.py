"""How many per-sample gradients are formed at a time."""

from __future__ import annotations

import torch

_ELSEWHERE = 2**30  # bytes, not measured: of a GPU's memory little, and its launches are few


def samples_at_once(bytes_each: int, device: torch.device, on_cpu: int) -> int:
    """Samples whose gradients are held at a time, at least one.

    Args:
        bytes_each: Of the gradients of one sample of every client.
        device: Where they are formed.
        on_cpu: Bytes to be held on a CPU, whose caches they fit.
    """
    return max(1, (on_cpu if device.type == "cpu" else _ELSEWHERE) // bytes_each)
