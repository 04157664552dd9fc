"""Worker threads for blocks of clients, and the memory that blocks leave behind."""

import ctypes
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import TypeVar, cast

import torch

# Names and numbers of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_FROM_HEAP = 32 * 2**20  # glibc takes no larger one
_KEPT = 2**30

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Within the scope this thread computes alone, as befits whoever takes what workers made.

    A second torch thread would go on to spin, after each array that is large enough for two, on a core that they need.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def map_in_order(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Generator[Result, None, None]:
    """``map(work, items)`` on worker threads that begin at once; results in order, ``threads`` + 1 of them ahead.

    Each worker uses one torch thread: many small products gain nothing from more, and threads that wait for each
    other suffer from any neighbour on the machine. As one worker computes a whole item, results do not depend
    on the number of workers. To close the generator gives up what has not begun.
    """
    keep_freed_memory()
    results = _results(work, iter(items), threads)
    next(results)
    return results


def _results(work: Callable[[Item], Result], items: Iterator[Item], threads: int) -> Generator[Result, None, None]:
    pool = _pool(threads)
    pending = deque(pool.submit(work, item) for item in islice(items, threads + 1))
    try:
        yield cast(Result, None)  # the workers have begun
        while pending:
            done = pending.popleft().result()
            pending.extend(pool.submit(work, item) for item in islice(items, 1))
            yield done
    finally:
        wait([future for future in pending if not future.cancel()])


@cache
def keep_freed_memory() -> bool:
    """Setting by which this process keeps the memory of a finished block for the next, where the C library is glibc.

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


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    # The workers, kept from round to round: torch and the C library set much up in a new thread
    return ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive it
