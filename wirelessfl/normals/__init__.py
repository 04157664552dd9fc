"""Fast normal numbers for noise on whole parameter vectors.

The k · d normals of one local step are most of the cost of private training. On a CPU they are drawn by a small C
kernel, compiled when the package is installed; where that was not possible, by NumPy, which gives the same numbers
slowly. On a GPU a Triton kernel makes the same numbers in one launch, or where that is not possible torch's operations.

Both ways on a GPU compute the integers of ``portable``, and its float operations one by one in its order, so that the
noise on a device is that on a CPU: its words bit for bit, and its normal numbers wherever operations round to nearest.
(torch's own generator on a device would be another stream than on a CPU, and is no cryptographic one.)

That is tested on a GPU (an H200 with torch 2.11 has passed it), and without one: on a CPU the operations of torch, and
the kernel in Triton's interpreter, give equal bits; Triton's compiler gives instructions that round one by one.
"""

import ctypes
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.errors import precondition
from wirelessfl.kernels import COUNT, POINTER, library_beside, loaded
from wirelessfl.normals.operations import add_by_operations
from wirelessfl.normals.portable import add_portably
from wirelessfl.streams import Streams
from wirelessfl.transfers import sent

__all__ = ["NoiseStreams", "add_normal", "noise_key", "nonces"]

_KEY_PARTS = 4  # of 63 random bits each, written as 64

LIBRARY = library_beside(__file__)

_TRIED = 2000  # numbers that are compared before a library is used
_CONSTANTS = b"expand 32-byte k"  # RFC 8439, Section 2.3
_TRIED_ON_DEVICE = 5000  # numbers that are compared before the kernel is used


def add_normal(
    out: Tensor,
    std: Tensor,
    streams: Streams,
    purpose: str,
    round_index: int,
    clients: NDArray[np.int64],
    step: int,
) -> Tensor:
    """Addition of std_i · N(0, 1), independently, to every element of row i of ``out`` (k, d), which is returned.

    The noise of row i is a function of the seed, the purpose, the round, ``clients[i]`` and the step alone, not
    of the other rows, and noise on fewer columns is the beginning of noise on more. (torch's CPU generator looks at
    the lowest 32 bits of a seed: with one seed a row, hundreds of thousands of rows are enough for two of them to get
    the same noise.) Nor of the device: a GPU computes the same stream.

    Args:
        out: (k, d), changed in place.
        std: (k,).
        streams: The run's random streams.
        purpose: Names the stream.
        round_index: Communication round.
        clients: (k,) whose noise this is.
        step: Local step.
    """
    key = noise_key(streams, purpose, round_index)
    if out.device.type != "cpu":
        add_on_device(out, std, key, clients, step)
    elif out.dtype == torch.float32 and out.stride(1) == 1:
        _add_to_floats(out, std, key, nonces(clients, step))
    else:
        _add_to_others(out, std.to(out.dtype), key, nonces(clients, step))
    return out


def _add_to_others(out: Tensor, std: Tensor, key: bytes, nonces: NDArray[np.uint32]) -> None:
    for row, scale, nonce in zip(out, std, nonces, strict=True):
        if scale != 0:
            noise = torch.zeros(1, out.shape[1])
            _add_to_floats(noise, torch.ones(1), key, nonce[None])
            row += noise[0].to(out.dtype) * scale


def _add_to_floats(out: Tensor, std: Tensor, key: bytes, nonces: NDArray[np.uint32]) -> None:
    # Adds the normals of every row's stream, ``std`` (k,) times, to rows of contiguous floats (k, d).
    if (library := kernel()) is not None:
        add_compiled(library, out.numpy(), std.float().numpy(), key, nonces)
    else:
        add_portably(out.numpy(), std.float().numpy(), key, nonces)


def noise_key(streams: Streams, purpose: str, round_index: int) -> bytes:
    """The 32 bytes of a ChaCha20 key for all clients and steps of a round."""
    parts = (streams.torch_seed(purpose, round_index, part) for part in range(_KEY_PARTS))
    return b"".join(part.to_bytes(8, "little") for part in parts)


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    arguments = (POINTER, COUNT, COUNT, COUNT, POINTER, POINTER, POINTER)
    return loaded(LIBRARY, {"wirelessfl_add_normals": arguments}, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    found, expected = np.zeros((2, 1, _TRIED), dtype=np.float32)
    trial = np.full(1, 1.5, dtype=np.float32), bytes(range(32)), np.arange(3, dtype=np.uint32)[None]
    add_compiled(library, found, *trial)
    add_portably(expected, *trial)
    return np.array_equal(found, expected)


def add_compiled(
    library: ctypes.CDLL,
    out: NDArray[np.float32],
    std: NDArray[np.float32],
    key: bytes,
    nonces: NDArray[np.uint32],
) -> None:
    """Addition of std_i times the normals of the stream of ``key`` and ``nonces[i]`` to row i; other threads go on.

    Args:
        library: See ``kernel``.
        out: (k, d), changed in place; the elements of a row lie side by side.
        std: (k,).
        key: 32 bytes.
        nonces: (k, 3).
    """
    rows, columns = out.shape
    precondition(
        out.dtype == np.float32 and out.strides[1] == out.itemsize and out.flags.writeable,
        f"rows must be writeable floats side by side, found {out.dtype} with strides {out.strides}",
    )
    streams = NoiseStreams.of(rows, std, key, nonces)
    at = out.ctypes.data, rows, out.strides[0] // out.itemsize, columns
    library.wirelessfl_add_normals(*at, *streams.addresses())


class NoiseStreams(NamedTuple):
    """Streams of normal numbers as compiled kernels read them.

    Attributes:
        std: (k,) float32 deviations.
        words: (8,) uint32 of the key.
        nonces: (k, 3) uint32.
    """

    std: NDArray[np.float32]
    words: NDArray[np.uint32]
    nonces: NDArray[np.uint32]

    @classmethod
    def of(cls, rows: int, std: NDArray[np.floating], key: bytes, nonces: NDArray[np.integer]) -> Self:
        """The streams of so many rows.

        Raises:
            ValueError: Deviations or nonces are not as many as the rows, or the key has not 32 bytes.
        """
        precondition(
            std.shape == (rows,) and nonces.shape == (rows, 3) and len(key) == 32,
            f"found {std.shape} deviations, {nonces.shape} nonces and a key of {len(key)} for {rows} rows",
        )
        words = np.frombuffer(key, dtype="<u4").astype(np.uint32)
        return cls(np.ascontiguousarray(std, np.float32), words, np.ascontiguousarray(nonces, np.uint32))

    def addresses(self) -> tuple[int, int, int]:
        """Where they begin, for as long as this lives."""
        return self.std.ctypes.data, self.words.ctypes.data, self.nonces.ctypes.data


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
        from wirelessfl.normals.fused import add_fused

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
    from wirelessfl.normals.fused import THERE

    if not THERE:
        return False
    try:
        with _waiting_allowed(device):
            wrong = None if _fused_agrees(device) else "it gives other numbers than the CPU"
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


def _fused_agrees(device: torch.device) -> bool:
    from wirelessfl.normals.fused import add_fused

    key, clients, step = bytes(range(32)), np.array([3, 2**40 + 1]), 5
    expected = np.zeros((2, _TRIED_ON_DEVICE), dtype=np.float32)
    add_portably(expected, np.ones(2, dtype=np.float32), key, nonces(clients, step))
    found = torch.zeros(2, _TRIED_ON_DEVICE, device=device)
    head, members = (sent(words, device) for words in state_words(key, clients))
    add_fused(found, torch.ones(2, device=device), head, members, step)
    return np.allclose(found.cpu().numpy(), expected, rtol=1e-6, atol=1e-6)
