"""How the C library treats memory that blocks of clients leave behind."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

# Names and numbers of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_FROM_HEAP = 32 * 2**20  # glibc takes no larger one
_KEPT = 2**30


@cache
def keep_freed_memory() -> bool:
    """Let this process keep the memory of a finished block for the next one, where the C library is glibc.

    Left to itself it gives large pieces back to the system, which must then fill them with zeros again, page by
    page: a third of the time of a round of short local training. The peak does not change.

    Returns:
        Whether the C library took it.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # musl
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST_FROM_HEAP)) and bool(mallopt(_M_TRIM_THRESHOLD, _KEPT))
