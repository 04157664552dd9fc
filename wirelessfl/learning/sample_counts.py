"""Numbers of samples in the batches of clients, as compiled kernels read them."""

import torch
from torch import Tensor

from wirelessfl.errors import precondition


def address_of_counts(counts: Tensor | None, clients: int) -> int:
    """Address of the first of (k,) counts for as long as these live; 0, which is no address, where there are none.

    Args:
        counts: Samples of each client; None where all count.
        clients: k.

    Raises:
        ValueError: They are not k whole numbers of 64 bits side by side in the memory of the host.
    """
    if counts is None:
        return 0
    fits = counts.dtype == torch.int64 and counts.device.type == "cpu" and counts.is_contiguous()
    precondition(
        fits and counts.shape == (clients,),
        f"counts: expected ({clients},) int64 side by side on the host, found {tuple(counts.shape)} {counts.dtype}",
    )
    return counts.data_ptr()
