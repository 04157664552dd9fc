"""Copies of arrays between the host and a computing device.

A copy from memory that is not pinned, and any value that Python reads, makes the host wait until the device has done
all that was launched before. So whatever a block of clients needs is packed and sent before it is trained, and what is
reported of it comes back in one piece, both from and to pinned memory. That nothing else waits is tested on a GPU, with
``torch.cuda.set_sync_debug_mode``; whether these copies run beside the kernels was not measured.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_ALIGNMENT = 16  # bytes at which each packed array begins: any dtype may be read from there


def sent(array: NDArray[Any], device: torch.device) -> Tensor:
    """``array`` on ``device``, in its dtype; the same memory on a CPU.

    To a GPU it goes from pinned memory, which torch keeps until the copy is done: the host does not wait for it.
    """
    here = torch.from_numpy(array)
    return (here.pin_memory() if device.type == "cuda" else here).to(device, non_blocking=True)


def aligned(array: NDArray[Any]) -> Tensor:
    """A copy of ``array`` in memory of torch's, which begins at a multiple of 64 bytes.

    The order in which BLAS sums depends on where an operand begins: of a row of a matrix that is anywhere.
    """
    return torch.tensor(array)


def upload(arrays: Sequence[NDArray[Any]], device: torch.device) -> list[Tensor]:
    """``arrays`` as tensors on ``device``: on a CPU the same memory, elsewhere views of one copy that nobody waits for.

    Args:
        arrays: NumPy arrays of any dtypes and shapes.
        device: Where to.
    """
    if device.type == "cpu":
        return [torch.from_numpy(array) for array in arrays]
    packed, places = pack(arrays, pinned=device.type == "cuda")
    there = torch.empty(len(packed), dtype=torch.uint8, device=device)
    there.copy_(packed, non_blocking=True)
    return unpack(there, arrays, places)


def pack(arrays: Sequence[NDArray[Any]], pinned: bool = False) -> tuple[Tensor, list[slice]]:
    """The bytes of ``arrays`` one after the other, and where each lies."""
    length, places = places_of(arrays)
    packed = torch.empty(length, dtype=torch.uint8, pin_memory=pinned)
    for array, place in zip(arrays, places, strict=True):
        packed[place] = torch.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    return packed, places


def places_of(arrays: Sequence[NDArray[Any]]) -> tuple[int, list[slice]]:
    """Bytes that ``arrays`` take, packed, and the place of each."""
    firsts = [0, *accumulate(-(-array.nbytes // _ALIGNMENT) * _ALIGNMENT for array in arrays)]
    return firsts[-1], [slice(first, first + array.nbytes) for first, array in zip(firsts, arrays, strict=False)]


def unpack(packed: Tensor, arrays: Sequence[NDArray[Any]], places: Sequence[slice]) -> list[Tensor]:
    """Views of what was packed, in the dtypes and shapes of ``arrays``."""
    dtypes = [torch.from_numpy(np.empty(0, array.dtype)).dtype for array in arrays]
    return [
        packed[place].view(dtype).view(array.shape) for array, dtype, place in zip(arrays, dtypes, places, strict=True)
    ]


def download(values: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """Float tensors of one device as NumPy arrays of their dtypes, in one copy; the one time that the host waits."""
    tensors = list(values.values())
    if not tensors or tensors[0].device.type == "cpu":
        return {name: tensor.numpy() for name, tensor in values.items()}
    packed = _on_host(torch.cat([tensor.double().flatten() for tensor in tensors]))
    parts = torch.split(packed, [tensor.numel() for tensor in tensors])
    return {
        name: part.view(tensor.shape).to(tensor.dtype).numpy()
        for (name, tensor), part in zip(values.items(), parts, strict=True)
    }


def _on_host(values: Tensor) -> Tensor:
    # ``values`` in pinned memory of the host; an event is waited for, and no other stream of the device
    if values.device.type != "cuda":
        return values.cpu()
    here = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    here.copy_(values, non_blocking=True)
    torch.cuda.current_stream(values.device).record_event().synchronize()
    return here
