"""Normal numbers where a GPU needs them: what goes there, and which of two ways makes them there.

Both ways compute the integers of ``portable``, and its float operations one by one in its order, so that the noise on
a device is that on a CPU: its words bit for bit, and its normal numbers wherever operations round to nearest. (torch's
own generator on a device would be another stream than on a CPU, and is no cryptographic one.)

Unverified on a GPU: no machine with one has run this yet. On a CPU the operations of torch, and the kernel in Triton's
interpreter, give equal bits; Triton's compiler, which needs no GPU, gives instructions that round one by one.
"""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.privacy.clipping.base import sent
from wirelessfl.privacy.mechanisms.normals.operations import add_by_operations
from wirelessfl.privacy.mechanisms.normals.portable import add_portably

_CONSTANTS = b"expand 32-byte k"  # RFC 8439, Section 2.3
_TRIED = 5000  # numbers that are compared before the kernel is used


def nonces(clients: NDArray[np.int64], step: int) -> NDArray[np.uint32]:
    """(k, 3) words: two of the client, one of the step."""
    words = clients.astype("<i8")[:, None].view("<u4").astype(np.uint32)
    return np.column_stack([words, np.full(len(clients), step, dtype=np.uint32)])


def state_words(key: bytes, clients: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(12,) words of constants and key in ChaCha20's first state, and (k, 2) of the clients."""
    head = np.frombuffer(_CONSTANTS + key, dtype="<u4").astype(np.uint32)
    return head.view(np.int32), nonces(clients, 0)[:, :2].copy().view(np.int32)


def add_on_device(out: Tensor, std: Tensor, key: bytes, clients: NDArray[np.int64], step: int) -> None:
    """Addition of the normals of every row's stream, std (k,) times, to rows (k, d) outside the host's memory.

    What the streams need to know of a block of clients is copied once, and serves all steps of the block. The device is
    asked for nothing, so that the host runs ahead of it.
    """
    head, members = _words_of_blocks.sent(key, clients, out.device)
    std = std.to(out.dtype)
    if out.is_cuda and out.dtype in (torch.float32, torch.float64) and fused_works(out.device):
        from wirelessfl.privacy.mechanisms.normals.fused import add_fused

        add_fused(out, std, head, members, step)
    else:
        add_by_operations(out, std, head, members, step)


class _WordsOfBlocks(threading.local):
    """The words of a round's blocks of clients on their device, where later steps find them.

    A block, or a piece of one whose noise is drawn at a time, is known by its first client. As clients only ever leave
    a block at its end, those of a later step are the first of it.
    """

    def __init__(self) -> None:
        self.of: tuple[bytes, torch.device] | None = None
        self.blocks: dict[int, tuple[NDArray[np.int64], Tensor]] = {}

    def sent(self, key: bytes, clients: NDArray[np.int64], device: torch.device) -> tuple[Tensor, Tensor]:
        # (12,) int32 words of constants and key, (k, 2) words of the clients.
        if self.of != (key, device):
            self.of, self.blocks = (key, device), {}
        first = int(clients[0]) if len(clients) else -1
        if first not in self.blocks or not np.array_equal(self.blocks[first][0][: len(clients)], clients):
            head, members = state_words(key, clients)
            self.blocks[first] = clients.copy(), sent(np.concatenate([head, members.ravel()]), device)
        _, words = self.blocks[first]
        return words[:12], words[12:].view(-1, 2)[: len(clients)]


_words_of_blocks = _WordsOfBlocks()


@cache
def fused_works(device: torch.device) -> bool:
    """Whether Triton is there, compiles the kernel for a CUDA device, and the numbers are those of the CPU.

    It is tried once a process, before the first noise, and only then the host waits for the device. Roundings may
    differ: however these polynomials are rounded, a number lies within 5 · 2⁻²³ radii √(−2 ln u) of R cos φ, and so two
    differ by less than 10⁻⁶ of the number, or of 1 where it is small, if few roundings do. Words may not differ: of
    another word comes another number altogether.

    Warns:
        RuntimeWarning: If the kernel is there and fails; torch's operations then give the same numbers, slowly.
    """
    from wirelessfl.privacy.mechanisms.normals.fused import THERE

    if not THERE:
        return False
    try:
        with _waiting_allowed(device):
            wrong = None if _gives_the_portable_numbers(device) else "it gives other numbers than the CPU"
    except Exception as error:  # whatever a compiler, a driver or another version of Triton may throw
        wrong = f"{type(error).__name__}: {error}"
    if wrong is not None:
        warnings.warn(f"local noise is drawn slowly on {device}, as Triton's kernel fails: {wrong}", RuntimeWarning, 2)
    return wrong is None


@contextmanager
def _waiting_allowed(device: torch.device) -> Iterator[None]:
    # Whatever ``torch.cuda.set_sync_debug_mode`` says outside.
    if device.type != "cuda":
        yield
        return
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("default")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(mode)


def _gives_the_portable_numbers(device: torch.device) -> bool:
    from wirelessfl.privacy.mechanisms.normals.fused import add_fused

    key, clients, step = bytes(range(32)), np.array([3, 2**40 + 1]), 5
    expected = np.zeros((2, _TRIED), dtype=np.float32)
    add_portably(expected, np.ones(2, dtype=np.float32), key, nonces(clients, step))
    found = torch.zeros(2, _TRIED, device=device)
    head, members = (sent(words, device) for words in state_words(key, clients))
    add_fused(found, torch.ones(2, device=device), head, members, step)
    return np.allclose(found.cpu().numpy(), expected, rtol=1e-6, atol=1e-6)
