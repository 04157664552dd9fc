"""Small arrays of the host on the computing device, on their way while the host goes on."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


def sent(array: NDArray[Any], device: torch.device) -> Tensor:
    """``array`` on ``device``, in its dtype; the same memory on a CPU.

    To a GPU it goes from pinned memory, which torch keeps until the copy is done: the host does not wait for it.
    """
    here = torch.from_numpy(array)
    return (here.pin_memory() if device.type == "cuda" else here).to(device, non_blocking=True)
