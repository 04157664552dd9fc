"""Matrix products in single precision: short sums of many clients by a kernel, large ones by the faster library.

Products of one pair of matrices a client, whose entries are sums of few terms, go to the kernel ``short_sums``.

On processors of AMD MKL takes code for vectors of 256 bits, whatever the processor has. On one of family 26 (Zen 5),
whose vectors have 512 bits, oneDNN multiplied large matrices 1.9 to 2.4 times as fast. Older families have units of 256
bits, so that no such gain is expected. On all of them, wherever precision is not single, and for products that are
differentiated, torch chooses.

oneDNN compiles code for each size that it meets and keeps it: 0.6 MB and one to two milliseconds a size. So it is given
numbers of samples, of which a run has many, with four significant bits only: sums get zeros behind their samples, and
rows that are left are a product of their own, the last of them MKL's.
"""

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from wirelessfl import short_sums
from wirelessfl.learning.cohort.gradients import add_to
from wirelessfl.processor import is_wide_amd, is_wide_intel, processor_name

__all__ = ["add_product", "batched_product", "product", "takes_onednn"]

FEWEST = 2**22
"""Operations of a product from which oneDNN is taken."""

FEWEST_ADDED = 2**24
"""The same where it is added to another matrix, in a pass of its own."""

SHORT = 64
"""Terms of a sum up to which the kernel multiplies everywhere; where MKL is slow, all that the kernel takes."""

SHORT_OF_LARGE = 104
"""Terms up to which the kernel forms large matrices where MKL takes vectors of 512 bits, on processors of Intel.

Large are `LARGE` numbers in rows and columns of `LARGE_SIDE` at least. There the kernel took 0.4 to 0.85 of the time of
MKL on an Intel Xeon with AMX, to the same bits; with fewer rows or columns, or added to what is there, MKL was mostly
faster, or rounds in another way.
"""

LARGE = 2**20

LARGE_SIDE = 512

_CACHED = 2**18  # numbers of a product that the cache of a core holds until they are added
_LOOPED_ELEMENTS = 4096
_SIGNIFICANT_BITS = 4


def product(left: Tensor, right: Tensor) -> Tensor:
    """(m, n) product of matrices (m, k) and (k, n); m is a number of samples."""
    if not takes_onednn(left, right):
        return left @ right
    rest = len(left) % _step(len(left))
    out = _by_onednn(left[: len(left) - rest], right)
    return torch.cat([out, product(left[-rest:], right)]) if rest else out


def add_product(into: Tensor, left: Tensor, right: Tensor, decay: float) -> None:
    """Sets into ← decay · into + left @ right, batched; ``into`` (c, m, n) may be a slice of a wider matrix.

    Into memory that is not contiguous, MKL's batched product runs one matrix at a time: right for large matrices,
    where it saves a pass, wrong for small ones, where it is all overhead. Products in reduced precision cannot
    be accumulated in place.

    Args:
        into: Of each of c clients.
        left: (c, m, k), with k a number of samples.
        right: (c, k, n).
        decay: What ``into`` is multiplied by; where it is 0, nothing that ``into`` held matters.
    """
    fits = into.stride(2) == 1 and _is_plain(into)
    if fits and _are_short(left, right, decay) and (library := short_sums.kernel()):
        short_sums.add_sums(library, into.numpy(), left.numpy(), right.numpy(), decay)
    elif takes_onednn(left, right, FEWEST_ADDED):
        rows = max(1, _CACHED // into.shape[2])
        if absent := -left.shape[2] % _step(left.shape[2]):
            left, right = functional.pad(left, (0, absent)), functional.pad(right, (0, 0, 0, absent))
        for own, first, second in zip(into, left, right, strict=True):
            for part, some in zip(own.split(rows), first.split(rows), strict=True):
                add_to(part, _by_onednn(some, second), decay)
    else:
        _add_by_mkl(into, left, right, decay)


def batched_product(left: Tensor, right: Tensor) -> Tensor:
    """(c, m, n) products of matrices (c, m, k) and (c, k, n), one of each client."""
    if not _are_short(left, right) or (library := short_sums.kernel()) is None:
        return torch.bmm(left, right)
    out = left.new_empty(*left.shape[:2], right.shape[2])
    short_sums.add_sums(library, out.numpy(), left.numpy(), right.numpy(), 0.0)
    return out


def _are_short(left: Tensor, right: Tensor, decay: float = 0.0) -> bool:
    # A single row of sums would read all of the right matrix, in pieces that lie apart
    longest = short_sums.LONGEST if _mkl_is_narrow() else SHORT
    rows, columns = left.shape[1], right.shape[2]
    if decay == 0 and rows * columns >= LARGE and min(rows, columns) >= LARGE_SIDE and _mkl_is_wide():
        longest = SHORT_OF_LARGE
    fit = rows > 1 and left.shape[2] <= longest and right.stride(2) == 1
    return fit and _is_plain(left) and _is_plain(right)


def _add_by_mkl(into: Tensor, left: Tensor, right: Tensor, decay: float) -> None:
    in_place, device = into.is_contiguous() or into[0].numel() >= _LOOPED_ELEMENTS, into.device.type
    if in_place and not (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)):
        torch.baddbmm(into, left, right, beta=decay, out=into)
    else:
        add_to(into, torch.bmm(left, right), decay)


def takes_onednn(left: Tensor, right: Tensor, fewest: int | None = None) -> bool:
    """Whether oneDNN multiplies matrices (..., m, k) and (..., k, n), from ``fewest`` operations on, or `FEWEST`."""
    operations = 2 * left.shape[-2] * left.shape[-1] * right.shape[-1]
    return operations >= (fewest or FEWEST) and _is_plain(left) and _is_plain(right) and _onednn_is_faster()


def _is_plain(matrix: Tensor) -> bool:
    on_host = matrix.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return on_host and matrix.dtype == torch.float32 and not matrix.requires_grad


def _step(samples: int) -> int:
    # Of numbers of that length with _SIGNIFICANT_BITS: at most an eighth of them
    return 1 << max(0, samples.bit_length() - _SIGNIFICANT_BITS)


def _by_onednn(left: Tensor, right: Tensor) -> Tensor:
    out: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.mT, None, "none", [], "")
    return out


@cache
def _mkl_is_narrow() -> bool:
    return is_wide_amd(processor_name())


@cache
def _mkl_is_wide() -> bool:
    return is_wide_intel(processor_name())


@cache
def _onednn_is_faster() -> bool:
    return _mkl_is_narrow() and _onednn_agrees()


def _onednn_agrees() -> bool:
    # The operator has no public name: where torch has another, or none, MKL multiplies
    numbers = torch.linspace(-1, 2, 72, dtype=torch.float32, device="cpu").sin()
    left, right = numbers[:30].view(5, 6), numbers[30:].view(6, 7)
    try:
        found = _by_onednn(left, right)
    except (AttributeError, RuntimeError):
        return False
    return torch.allclose(found, left @ right, atol=1e-5)
