"""Memory of a finished block stays with the process."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys

import pytest

_TOUCH_AGAIN = """
import resource, torch
from wirelessfl.learning.cohort.execution import keep_freed_memory
if {keep}:
    assert keep_freed_memory()
def touch():
    block = [torch.ones(16 * 2**18) for _ in range(4)]  # 16 MiB each
for _ in range(3):
    touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told so")
@pytest.mark.slow
def test_freed_memory_is_not_given_back() -> None:
    pages = 4 * 16 * 2**20 // resource.getpagesize()
    # glibc's own threshold adapts; held at its first value, what is larger is given back for sure.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(128 * 2**10)}
    faults = {
        keep: int(subprocess.check_output([sys.executable, "-c", _TOUCH_AGAIN.format(keep=keep)], env=environment))
        for keep in (0, 1)
    }
    assert faults[0] > pages / 2 > 10 * faults[1]
