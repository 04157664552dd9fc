"""Execution of a cohort's training: its plan, worker threads with the memory they leave behind, and precision."""

import ctypes
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Literal, TypeVar, cast, get_args

import torch

from wirelessfl.errors import precondition

# Names and numbers of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8
_KEPT = 2**30

Item = TypeVar("Item")
Result = TypeVar("Result")


Precision = Literal["fp32", "tf32", "bf16"]


@dataclass(frozen=True)
class ExecutionPlan:
    """Plan of the computation; it changes results by float rounding only, and a run repeats under one plan.

    Attributes:
        device: A torch device name.
        threads: Worker threads on a CPU, each working on its own clients.
        chunk: Clients trained together in one block.
        precision: Of matrix products: ``fp32``, or ``tf32`` (CUDA only) or ``bf16``.

    Raises:
        ValueError: if a number is below 1 or the precision is unknown.
    """

    device: str = "cpu"
    threads: int = 1
    chunk: int = 16
    precision: Precision = "fp32"

    def __post_init__(self) -> None:
        least, on_cuda = min(self.threads, self.chunk), self.device.startswith("cuda")
        for holds, message in (
            (least >= 1, f"threads and chunk must be at least 1, not {self.threads} and {self.chunk}"),
            (self.precision in get_args(Precision), f"precision must be fp32, tf32 or bf16, not {self.precision!r}"),
            (self.precision != "tf32" or on_cuda, f"precision tf32 is there on CUDA only, not on {self.device}"),
        ):
            precondition(holds, message)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Scope in which torch uses this thread only, for a thread that collects the results of workers.

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
        begun = [future for future in pending if not future.cancel()]
        if not getattr(_worker, "is_one", False):
            wait(begun)  # a worker that collects what a failed run left behind would wait for itself


@cache
def keep_freed_memory() -> bool:
    """Setting by which this process keeps the memory of a finished block for the next, where the C library is glibc.

    Left to itself it gives large pieces back to the system, which must then fill them with zeros again, page by
    page: a third of the time of a round of short local training. Pieces above 32 MiB come from the heap too, as a
    vector of a model of ten million parameters is one; the peak is then up to two fifths higher, below it is the same.
    All threads take from one heap: those that each thread would get hold only one such vector in 64 MiB, and the memory
    of a thousand clients' training grew to four times that of forty.

    Returns:
        Whether the C library took it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None  # musl has none
    if mallopt is None:
        return False
    return all([mallopt(_M_MMAP_MAX, 0), mallopt(_M_TRIM_THRESHOLD, _KEPT), mallopt(_M_ARENA_MAX, 1)])


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    # The workers, kept from round to round: torch and the C library set much up in a new thread
    return ThreadPoolExecutor(threads, initializer=_begin_worker)


_worker = threading.local()


def _begin_worker() -> None:
    _worker.is_one = True
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive it


@contextmanager
def precision_scope(plan: ExecutionPlan) -> Iterator[None]:
    """Within the scope, this thread's matrix products and convolutions run in ``plan.precision``.

    On CUDA, TF32 is on for ``tf32`` only; torch allows it in convolutions by default.
    """
    device = torch.device(plan.device).type
    with ExitStack() as scope:
        if plan.precision == "bf16":
            scope.enter_context(torch.autocast(device, dtype=torch.bfloat16))
        if device == "cuda":
            scope.enter_context(_cuda_tf32(plan.precision == "tf32"))
        yield


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """A scope in which products are rounded to neither bfloat16 nor TF32: a clip that is off by 1 % protects less.

    The gradients that are measured are then those that are summed, and their norms are exact to single precision.
    """
    with ExitStack() as scope:
        if torch.amp.is_autocast_available(device.type):
            scope.enter_context(torch.autocast(device.type, enabled=False))
        if device.type == "cuda":
            scope.enter_context(_cuda_tf32(False))
        yield


@contextmanager
def _cuda_tf32(allowed: bool) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    try:
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=allowed):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
