"""Compiled kernels of this machine: with the processor they decide how sums of floating-point numbers are rounded."""

from collections.abc import Callable, Mapping
from typing import Any

from wirelessfl import normals, quotients, short_sums
from wirelessfl.learning import direct, winograd
from wirelessfl.learning.cohort import gram, patches, pooling, softmax_regression
from wirelessfl.privacy.mechanisms import haar_noise, haar_norms
from wirelessfl.radio import weighted_sums

_KERNELS: Mapping[str, Callable[[], Any]] = {
    "direct": direct.kernel,
    "gram": gram.kernel,
    "haar_noise": haar_noise.kernel,
    "haar_norms": haar_norms.kernel,
    "normals": normals.kernel,
    "patches": patches.kernel,
    "pooling": pooling.kernel,
    "quotients": quotients.kernel,
    "short_sums": short_sums.kernel,
    "softmax_regression": softmax_regression.kernel,
    "weighted_sums": weighted_sums.kernel,
    "winograd": winograd.kernel,
}
"""By the name of the package."""


def compiled_kernels() -> list[str]:
    """Names of the compiled kernels in use on this machine; NumPy and PyTorch do the work of those that are absent."""
    return [name for name, kernel in _KERNELS.items() if kernel() is not None]
