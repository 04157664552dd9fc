"""Compiled kernels: libraries that ``hatch_build.py`` puts beside their sources, and how they are taken into use."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

COUNT, FLOAT, POINTER = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
"""Types of arguments."""


def library_beside(module: str) -> Path:
    """Path of the library of a package, by the file of its ``__init__``; by another ending it would be a module."""
    return Path(module).with_name("kernel.bin")


def loaded(
    path: Path, functions: Mapping[str, Sequence[Any]], agrees: Callable[[ctypes.CDLL], bool]
) -> ctypes.CDLL | None:
    """A library; None where it was not compiled, does not fit this machine, or gives other numbers than it should.

    The last may be so where a compiler contracts operations in spite of its flags, or left over from an older source.
    What has other arguments than before, others in a structure, or another need of room, has to have another name: it
    would be called.

    Args:
        path: Of the library.
        functions: Its functions, which return nothing, with the types of their arguments.
        agrees: Whether it gives the numbers that it should.
    """
    try:
        library = ctypes.CDLL(str(path))
        for name, arguments in functions.items():
            function = getattr(library, name)
            function.argtypes, function.restype = tuple(arguments), None
    except (OSError, AttributeError):
        return None
    return library if agrees(library) else None
