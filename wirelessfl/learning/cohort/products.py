"""Matrix products in single precision, by the faster of the two libraries that torch has for them.

On processors of AMD MKL takes code for vectors of 256 bits, whatever the processor has. On one of family 26 (Zen 5),
whose vectors have 512 bits, oneDNN multiplied matrices 1.3 to 2.4 times as fast where a product took ``FEWEST``
operations or more; with fewer, its calls took longer. Of older families no such gain is expected: their units have 256
bits. On all of them, and wherever precision is not single, torch chooses.
"""

from functools import cache

import torch
from torch import Tensor

from wirelessfl.learning.cohort.gradients import add_to
from wirelessfl.processor import is_wide_amd, processor_name

__all__ = ["add_product", "product", "products", "products_added", "takes_onednn"]

FEWEST = 2**22
"""Operations of a product from which oneDNN is taken. Its first product of a size takes a millisecond more."""

_CACHED = 2**18  # numbers of a product that the cache of a core holds until they are added
_LOOPED_ELEMENTS = 4096


def product(left: Tensor, right: Tensor) -> Tensor:
    """(m, n) product of matrices (m, k) and (k, n)."""
    return _by_onednn(left, right) if takes_onednn(left, right) else left @ right


def products(left: Tensor, right: Tensor) -> Tensor:
    """(c, m, n) products of matrices (c, m, k) and (c, k, n), for each of c clients."""
    if not takes_onednn(left, right):
        return torch.bmm(left, right)
    out = left.new_empty(len(left), left.shape[1], right.shape[2])
    for own, first, second in zip(out, left, right, strict=True):
        own.copy_(_by_onednn(first, second))
    return out


def products_added(summand: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """(c, m, n) ``summand`` + products of matrices (c, m, k) and (c, k, n); a ``summand`` (c, 1, n) is for all rows."""
    if not takes_onednn(left, right):
        return torch.baddbmm(summand, left, right)
    return products(left, right).add_(summand)


def add_product(into: Tensor, left: Tensor, right: Tensor, decay: float) -> None:
    """Sets into ← decay · into + left @ right, batched; ``into`` (c, m, n) may be a slice of a wider matrix.

    Into memory that is not contiguous, MKL's batched product runs one matrix at a time: right for large matrices,
    where it saves a pass, wrong for small ones, where it is all overhead. Products in reduced precision cannot
    be accumulated in place.
    """
    in_place, device = into.is_contiguous() or into[0].numel() >= _LOOPED_ELEMENTS, into.device.type
    if takes_onednn(left, right):
        rows = max(1, _CACHED // into.shape[2])
        for own, first, second in zip(into, left, right, strict=True):
            for part, some in zip(own.split(rows), first.split(rows), strict=True):
                add_to(part, _by_onednn(some, second), decay)
    elif in_place and not (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)):
        torch.baddbmm(into, left, right, beta=decay, out=into)
    else:
        add_to(into, torch.bmm(left, right), decay)


def takes_onednn(left: Tensor, right: Tensor) -> bool:
    """Whether oneDNN multiplies matrices (..., m, k) and (..., k, n)."""
    operations = 2 * left.shape[-2] * left.shape[-1] * right.shape[-1]
    return operations >= FEWEST and _is_plain(left) and _is_plain(right) and _onednn_is_faster()


def _is_plain(matrix: Tensor) -> bool:
    return matrix.device.type == "cpu" and matrix.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")


def _by_onednn(left: Tensor, right: Tensor) -> Tensor:
    out: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.mT, None, "none", [], "")
    return out


@cache
def _onednn_is_faster() -> bool:
    return is_wide_amd(processor_name()) and _onednn_agrees()


def _onednn_agrees() -> bool:
    # The operator has no public name: where torch has another, or none, MKL multiplies
    left, right = torch.linspace(-1, 1, 30).cos().view(5, 6), torch.linspace(-1, 2, 42).sin().view(6, 7)
    try:
        found = _by_onednn(left, right)
    except (AttributeError, RuntimeError):
        return False
    return torch.allclose(found, left @ right, atol=1e-5)
