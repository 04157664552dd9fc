"""Child processes that take requests on stdin and answer on stdout.

Not ``multiprocessing``: that would run the user's script once more in every child, which a script without a main guard
and a notebook do not survive.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO


def start_child(module: str, threads: int, log: int, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """A child that calls ``main`` of a module, without the terminal's Ctrl-C; the end of its stdin is to be its end.

    Args:
        module: The module's full name, looked up where this process finds modules.
        threads: Threads of its numerical libraries.
        log: Descriptor of the file to which its stderr is appended.
        environment: Further variables.
    """
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    path = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {module} import main; main()"],  # -P: not from the current folder
        env={**os.environ, **limits, **environment, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )


def taken_streams() -> tuple[BinaryIO, BinaryIO]:
    """Requests and replies of a child; a user's own code neither reads the ones nor prints into the others."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    return requests, replies
