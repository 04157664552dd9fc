"""Fast normal numbers for noise on whole parameter vectors.

The k · d normals of one local step are most of the cost of private training. On a CPU they are drawn by a small C
kernel, compiled when the package is installed; where that was not possible, by NumPy, which gives the same numbers
slowly. On a GPU a Triton kernel makes the same numbers in one launch, or where that is not possible torch's operations.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.privacy.mechanisms.normals.compiled import add_compiled, kernel
from wirelessfl.privacy.mechanisms.normals.device import add_on_device, nonces
from wirelessfl.privacy.mechanisms.normals.portable import add_portably
from wirelessfl.streams import Streams

__all__ = ["add_normal", "noise_key"]

_KEY_PARTS = 4  # of 63 random bits each, written as 64


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
    the same noise.) Nor of the device: a GPU computes the same stream, see ``device``.

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
