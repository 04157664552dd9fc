"""Worker threads for blocks of clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_order(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """``map(work, items)`` on worker threads, results in order, at most ``threads`` + 1 of them ahead.

    Each worker uses one torch thread: many small products gain nothing from more, and threads that wait for each
    other suffer from any neighbour on the machine. As one worker computes a whole item, results do not depend
    on the number of workers.
    """
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            for item in items:
                pending.append(pool.submit(work, item))
                if len(pending) > threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
