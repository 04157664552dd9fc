"""Haar wavelet transform by means and half differences, and the variance of noise added to its coefficients.

Source: the wavelet paper (DP-SGD-WAV), Section 4.3 and Lemma 1. Coefficients come in the order
[H_0, coarsest detail, …, finest details]; a level-l detail spans 2^l elements, level 1 being next to the leaves.
The transform is not orthonormal: ``weights * haar(x)`` has orthogonal rows of squared length 2^l (m for H_0).
"""

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition

if TYPE_CHECKING:
    import torch

Array = TypeVar("Array", NDArray[Any], "torch.Tensor")


def _levels(length: int) -> int:
    # log2 of a power of two.
    precondition(
        length >= 1 and not length & (length - 1),
        f"the Haar transform needs a length that is a power of two, found {length}",
    )
    return length.bit_length() - 1


def _writable_copy(x: Any) -> Any:
    # A floating copy that can be written to; integers become float64, other dtypes are kept.
    if hasattr(x, "is_floating_point"):  # a torch tensor, without importing torch
        return x.clone() if x.is_floating_point() else x.double()
    array = np.asarray(x)
    return array.copy() if np.issubdtype(array.dtype, np.floating) else array.astype(np.float64)


def haar(x: Array) -> Array:
    """Haar coefficients along the last axis.

    Args:
        x: (..., m) array or torch tensor, m a power of two.

    Returns:
        (..., m) of the same kind, dtype and device: mean H_0, then the half differences (L − R)/2 from the
        coarsest level to the finest.

    Raises:
        ValueError: If m is no power of two.
    """
    coefficients: Array = _writable_copy(x)
    means = coefficients
    for level in reversed(range(_levels(coefficients.shape[-1]))):
        left, right = means[..., 0::2], means[..., 1::2]
        means, details = (left + right) / 2, (left - right) / 2
        coefficients[..., 1 << level : 2 << level] = details
    coefficients[..., :1] = means
    return coefficients


def inverse_haar(c: Array) -> Array:
    """The array whose Haar coefficients are ``c``; inverse of ``haar``.

    Args:
        c: (..., m) coefficients in the order of ``haar``.

    Returns:
        (..., m) of the same kind, dtype and device.

    Raises:
        ValueError: If m is no power of two.
    """
    values: Array = _writable_copy(c)
    for level in range(_levels(values.shape[-1])):
        means, details = values[..., : 1 << level], values[..., 1 << level : 2 << level]
        left, right = means + details, means - details
        values[..., 0 : 2 << level : 2], values[..., 1 : 2 << level : 2] = left, right
    return values


def padded_length(dimension: int) -> int:
    """m, the smallest power of two that is not below ``dimension``."""
    return 1 << max(dimension - 1, 0).bit_length()


def haar_weights(length: int) -> NDArray[np.float64]:
    """(m,) weights W in the order of ``haar``: m for H_0 and 2^l for a detail of level l.

    Noise on coefficient j has standard deviation sigma C / W_j.

    Raises:
        ValueError: If ``length`` is no power of two.
    """
    weights = np.full(length, float(length))
    for level in range(1, _levels(length) + 1):
        weights[length >> level : 2 * length >> level] = 2.0**level
    return weights


def element_noise_variance(length: int) -> float:
    """Variance of one element after the inverse transform of noise N(0, 1/W²): 1/m² + sum of 4^−l, about 1/3.

    Multiply by sigma² C². This is the noise that the optimizer sees; Lemma 1 bounds another quantity.

    Raises:
        ValueError: If ``length`` is no power of two.
    """
    levels = _levels(length)
    return 1.0 / length**2 + (1.0 - 4.0**-levels) / 3.0


def lemma_1_variance(length: int) -> float:
    """Lemma 1's (2 + log2 m)/2: a bound on the variance of any range sum, which the paper takes for an element's.

    Raises:
        ValueError: If ``length`` is no power of two.
    """
    return (2.0 + _levels(length)) / 2.0
