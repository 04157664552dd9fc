"""Which GPU there is, asked in a process of its own so that this one holds nothing of it; and which commit this is."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.gpu.prepare import ROOT, NotReadyError
from benchmarks.gpu.runner import child_environment

_SOURCES = {".py", ".c", ".yaml"}
_QUESTION = """
import json, torch
there = torch.cuda.is_available()
print(json.dumps([torch.__version__, torch.cuda.get_device_name() if there else ""]))
"""


@dataclass(frozen=True)
class Machine:
    """What a row says of its circumstances.

    Attributes:
        device: Name of the GPU; empty where torch sees none.
        driver: Its version.
        torch: Its version.
        commit: Of this repository, or a digest of its sources where there is no git.
    """

    device: str
    driver: str
    torch: str
    commit: str

    @property
    def has_cuda(self) -> bool:
        """Whether torch sees a GPU."""
        return bool(self.device)


def look(commit: str | None) -> Machine:
    """This machine; ``commit`` names the commit where git cannot.

    Raises:
        NotReadyError: torch cannot be imported.
    """
    asked = subprocess.run(
        [sys.executable, "-c", _QUESTION], env=child_environment(), capture_output=True, text=True, check=False
    )
    if asked.returncode:
        raise NotReadyError(f"torch cannot be imported: {asked.stderr.strip()}")
    torch, device = json.loads(asked.stdout.splitlines()[-1])
    return Machine(device, _driver() if device else "", torch, commit or _commit())


def _driver() -> str:
    told = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    return told.splitlines()[0].strip() if told else "unknown"


def _commit() -> str:
    """The commit of git, with a plus where files differ from it."""
    if not (ROOT / ".git").exists():
        return f"sources {source_digest()}"
    commit = _output("git", "rev-parse", "--short=12", "HEAD").strip()
    changed = _output("git", "status", "--porcelain", "--untracked-files=no", "--", "wirelessfl", "benchmarks")
    return f"{commit} + {source_digest()}" if changed else commit or f"sources {source_digest()}"


def source_digest() -> str:
    """Ten hexadecimal digits over all that is measured: equal sources, equal digits."""
    digest = hashlib.sha256()
    for folder in ("wirelessfl", "benchmarks"):
        for path in sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in _SOURCES):
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:10]


def _output(*command: str) -> str:
    """What a command prints; empty where it fails or is not there."""
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
