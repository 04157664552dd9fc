"""Kind of the processor: what decides, beside versions and threads, how sums of floating-point numbers are rounded."""

import platform
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import torch

_VECTORS = ("amx_tile", "avx512f", "avx2", "asimd")
# Widest first: libraries of linear algebra choose their kernels by it.
_WIDE_FAMILY = 26  # the first of AMD, Zen 5


@cache
def processor_name(device: str = "cpu") -> str:
    """Name, family, model and widest vector instructions of the processor, as far as the system tells.

    Args:
        device: Where training runs; behind a semicolon comes the name of the GPU for ``cuda``.
    """
    if device != "cpu":
        return f"{processor_name()}; {torch.cuda.get_device_name(device)}"
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    return name_of(text) or platform.processor() or platform.machine()


def name_of(cpuinfo: str) -> str:
    """Name of the first processor in the text of Linux's ``/proc/cpuinfo``, "" where it is not told."""
    first, _, _ = cpuinfo.partition("\n\n")
    told = {key.strip(): value.strip() for key, colon, value in (line.partition(":") for line in first.splitlines())}
    return ", ".join(part for part in (_model(told), _vectors(told)) if part)


def is_wide_amd(processor: str) -> bool:
    """Whether the processor of that name is one of AMD whose arithmetic units have 512 bits, as its vectors."""
    family = re.search(r"family (\d+)", processor)
    wide = family is not None and int(family[1]) >= _WIDE_FAMILY
    return wide and processor.startswith("AMD") and "avx512f" in processor


def is_wide_intel(processor: str) -> bool:
    """Whether the processor of that name is one of Intel with vectors of 512 bits."""
    return processor.startswith("Intel") and any(widest in processor for widest in _VECTORS[:2])


def _model(told: Mapping[str, str]) -> str:
    numbers = [f"{word} {told[key]}" for word, key in (("family", "cpu family"), ("model", "model")) if key in told]
    return ", ".join(([told["model name"]] if "model name" in told else []) + numbers)


def _vectors(told: Mapping[str, str]) -> str:
    flags = told.get("flags", told.get("Features", "")).split()
    return next((one for one in _VECTORS if one in flags), "")
