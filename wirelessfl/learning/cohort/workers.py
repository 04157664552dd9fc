"""Worker threads for blocks of clients."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import TypeVar, cast

import torch

from wirelessfl.learning.cohort.memory import keep_freed_memory

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
def _pool(threads: int) -> ThreadPoolExecutor:
    """The workers, kept from round to round: torch and the C library set much up in a new thread."""
    return ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive it
