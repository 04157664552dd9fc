"""Kernels as a processor without AVX-512 runs them."""

import ctypes
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from hatch_build import FLAGS, compiler
from wirelessfl.kernels import POINTER


def without_avx512(library: Path, folder: Path, arguments: Mapping[str, int]) -> ctypes.CDLL:
    """The library compiled anew for such a processor; where there is no compiler the test is skipped.

    Args:
        library: Of the package, beside its source.
        folder: Where to put the new one.
        arguments: Of each of its functions how many it takes, all pointers.
    """
    narrow = folder / library.name
    source, flags = str(library.with_suffix(".c")), [*FLAGS, "-DWITHOUT_AVX512"]
    try:
        subprocess.run([*compiler(), *flags, source, "-o", str(narrow), "-lm"], check=True)
    except OSError:
        pytest.skip("there is no compiler")
    found = ctypes.CDLL(str(narrow))
    for name, count in arguments.items():
        getattr(found, name).argtypes = (POINTER,) * count
    return found
