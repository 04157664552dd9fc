"""Quotients of the rows of matrices by a number each, added to what is there or multiplied with each other.

Such are mean gradients with noise, which optimizers accumulate, and what clipping rules learn from them: few operations
on large matrices. A kernel in C passes once over memory where torch does so for every operation. It gives the numbers
of torch bit for bit, on a CPU in single precision, of matrices whose rows have their numbers beside each other.
"""

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache, partial

import torch
from torch import Tensor

from wirelessfl.kernels import COUNT, FLOAT, POINTER, library_beside, loaded

__all__ = ["add_quotient", "in_parts", "inner_products", "kernel"]

LIBRARY = library_beside(__file__)

_CACHED = 2**18  # numbers that a pass holds at a time on a CPU: new memory for those of all rows takes longer than it


def add_quotient(into: Tensor, value: Tensor, divisor: Tensor, decay: float) -> None:
    """Sets into ← decay · into + value / divisor.

    Args:
        into: (k, m), changed in place.
        value: (k, m), elsewhere in memory.
        divisor: (k,) a number for each row.
        decay: What ``into`` is multiplied by; where it is 0, nothing that ``into`` held matters.
    """
    if (library := _library_for([into, value], [divisor])) is not None:
        _add(library, into, value, divisor, decay)
    else:
        _add_by_torch(into, value, divisor, decay)


def inner_products(one: Tensor, one_by: Tensor, other: Tensor, other_by: Tensor, then_by: Tensor) -> Tensor:
    """(k,) inner products ⟨a / α, b / β / γ⟩ of rows, through which no gradient follows.

    Args:
        one: (k, m) a.
        one_by: (k,) α.
        other: (k, m) b.
        other_by: (k,) β.
        then_by: (k,) γ.
    """
    products, found = one.new_empty(min(_at_once(one), len(one)), one.shape[1]), one.new_empty(len(one))
    for a, alpha, b, beta, gamma, out in in_parts(one, one_by, other, other_by, then_by, found):
        own = products[: len(a)]
        if (library := _library_for([own, a, b], [alpha, beta, gamma])) is not None:
            _multiply(library, own, a, alpha, b, beta, gamma)
        else:
            _multiply_by_torch(own, a, alpha, b, beta, gamma)
        torch.sum(own, 1, out=out)
    return found


def in_parts(*stacked: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Some rows at a time of a matrix (k, m), as many as a cache holds, and of whatever else is stacked by row.

    How many rows they are decides in which order torch adds up the numbers of one.
    """
    return zip(*(torch.split(each, _at_once(stacked[0])) for each in stacked), strict=True)


def _at_once(matrix: Tensor) -> int:
    rows = _CACHED // max(1, matrix.shape[1]) if matrix.device.type == "cpu" else len(matrix)
    return max(1, rows)


def _library_for(matrices: Sequence[Tensor], divisors: Sequence[Tensor]) -> ctypes.CDLL | None:
    # The library, where matrices have one shape, of which the first is written, and each row has its divisors, all in
    # single precision and the memory of the host, the numbers of a row beside each other
    (out, *_), operands = matrices, [*matrices, *divisors]
    fit = all(each.shape == out.shape for each in matrices) and all(each.shape == out.shape[:1] for each in divisors)
    if out.ndim != 2 or not fit or out.stride(0) < out.shape[1] or not all(map(_is_plain, operands)):
        return None
    return kernel()


def _is_plain(operand: Tensor) -> bool:
    on_host = operand.device.type == "cpu" and operand.dtype == torch.float32 and operand.stride(-1) == 1
    return on_host and not operand.requires_grad and not operand.is_neg()


def _add(library: ctypes.CDLL, into: Tensor, value: Tensor, divisor: Tensor, decay: float) -> None:
    out, rows = (into.data_ptr(), into.stride(0)), (value.data_ptr(), value.stride(0))
    library.wirelessfl_add_quotients(*into.shape, *out, *rows, divisor.data_ptr(), decay)


def _add_by_torch(into: Tensor, value: Tensor, divisor: Tensor, decay: float) -> None:
    each = divisor[:, None]
    if decay == 0:
        torch.div(value, each, out=into)
    elif decay == 1:
        into.addcdiv_(value, each)
    else:
        into.mul_(decay).addcdiv_(value, each)


def _multiply(
    library: ctypes.CDLL, out: Tensor, one: Tensor, one_by: Tensor, other: Tensor, other_by: Tensor, then_by: Tensor
) -> None:
    # (k, m) the products of which inner products are the sums
    first = one.data_ptr(), one.stride(0), one_by.data_ptr()
    second = other.data_ptr(), other.stride(0), other_by.data_ptr(), then_by.data_ptr()
    library.wirelessfl_multiply_quotients(*out.shape, out.data_ptr(), *first, *second)


def _multiply_by_torch(
    out: Tensor, one: Tensor, one_by: Tensor, other: Tensor, other_by: Tensor, then_by: Tensor
) -> None:
    torch.div(one, one_by[:, None], out=out).mul_((other / other_by[:, None]).div_(then_by[:, None]))


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    row = POINTER, COUNT
    functions = {
        "wirelessfl_add_quotients": (COUNT, COUNT, *row, *row, POINTER, FLOAT),
        "wirelessfl_multiply_quotients": (COUNT, COUNT, POINTER, *row, POINTER, *row, POINTER, POINTER),
    }
    return loaded(LIBRARY, functions, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    numbers = torch.linspace(-1.3, 1.7, 2000, dtype=torch.float32, device="cpu").mul_(2.0**12).cos_()
    one, other, before = numbers[:1800].view(3, 6, 100).unbind()
    divisors = numbers[-18:].view(3, 6).abs().add_(0.1).unbind()
    found, expected = one.new_zeros(2, 3, 6, 100).unbind()
    for way, out in ((partial(_multiply, library), found), (_multiply_by_torch, expected)):
        way(out[0], one, divisors[0], other, *divisors[1:])
    for add, out in ((partial(_add, library), found), (_add_by_torch, expected)):
        out[1] = before
        add(out[1], other, divisors[0], 0.7)
        add(out[2], other, divisors[1], 0.0)
    return torch.equal(found, expected)
