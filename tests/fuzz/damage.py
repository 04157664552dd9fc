"""Damage to the bytes of any file, and to what a name in a folder stands for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

from tests.fuzz.case import Step, pick
from tests.fuzz.verdict import CANARY

BYTE_OPS = ("write", "cut", "zero", "grow")
PLACES = ("missing", "empty", "folder", "fifo", "device", "dangling", "loop", "unreadable", "text")
_WORDS = (b"\x00" * 8, b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x01", b"\x00\x00\x00\x80", b"nan", b"\xc3\x28", b"\n")


def draw_bytes(rng: np.random.Generator, content: bytes) -> Step:
    """A few bytes written somewhere, three times in four where the file holds anything but zeros."""
    at = _interesting(rng, content)
    how = int(rng.integers(4))
    if how == 0:
        data = bytes([content[at] ^ (1 << int(rng.integers(8)))]) if content else b"\0"
    elif how == 1:
        data = rng.bytes(int(rng.integers(1, 65)))
    elif how == 2:
        data = pick(rng, _WORDS)
    else:
        start = _interesting(rng, content)
        data = content[start : start + int(rng.integers(1, 65))] or b"\0"
    return {"op": "write", "at": at, "hex": data.hex()}


def draw_cut(rng: np.random.Generator, content: bytes) -> Step:
    """The end cut off, or, seldom, a tail added."""
    if rng.random() < 0.1:
        return {"op": "grow", "by": int(rng.integers(1, 1 << 16))}
    size = len(content)
    to = int(rng.integers(size + 1)) if rng.random() < 0.5 else int(size * (1 - 10 ** -rng.uniform(0, 5)))
    return {"op": "cut", "to": to}


def draw_zeros(rng: np.random.Generator, content: bytes) -> Step:
    """A block of 8 bytes to 64 KiB set to zero, as lost sectors leave it."""
    size = 1 << int(rng.integers(3, 17))
    return {"op": "zero", "at": _interesting(rng, content) // size * size, "count": size}


def draw_place(rng: np.random.Generator) -> Step:
    """Something else than a regular file under the file's name."""
    return {"op": "become", "what": pick(rng, PLACES)}


def damage_bytes(path: Path, step: Step) -> None:
    """Carry out one of `BYTE_OPS` on a file."""
    with path.open("r+b") as file:
        size = path.stat().st_size
        match step["op"]:
            case "write":
                file.seek(step["at"])
                file.write(bytes.fromhex(step["hex"]))
            case "cut":
                file.truncate(min(step["to"], size))
            case "grow":
                file.truncate(size + step["by"])
            case "zero":
                file.seek(step["at"])
                file.write(bytes(max(0, min(step["count"], size - step["at"]))))
            case other:
                raise ValueError(f"no damage to bytes is called {other!r}")


def become(path: Path, what: str) -> None:
    """Put something else in the place of a file or folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    match what:
        case "missing":
            pass
        case "empty":
            path.write_bytes(b"")
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "dangling":
            path.symlink_to("nowhere")
        case "loop":
            path.symlink_to(path.name)
        case "unreadable":
            path.write_bytes(b"x")
            path.chmod(0)
        case "text":
            path.write_text(f"{CANARY}\n" * 3)
        case other:
            raise ValueError(f"nothing is called {other!r}")


def _interesting(rng: np.random.Generator, content: bytes) -> int:
    if not content:
        return 0
    at = int(rng.integers(len(content)))
    if rng.random() < 0.75:
        values = np.frombuffer(content, dtype=np.uint8)
        start = at // 512 * 512
        following = np.flatnonzero(values[start:])
        at = start + int(following[min(int(rng.integers(512)), len(following) - 1)]) if len(following) else at
    return at
