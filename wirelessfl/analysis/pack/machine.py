"""The machine on which an archive is packed: interpreter, installed packages, commit of a checkout."""

import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path

from wirelessfl.version import package_version

THAT_MATTER = ("wirelessfl", "torch", "numpy")
"""Packages whose version can change results."""
_PACKAGE = Path(__file__).resolve().parents[2]
_PATIENCE_S = 10.0


def installed_packages() -> dict[str, str]:
    """Versions of the installed packages, in the order of names; the first on the path counts, as for Python."""
    found: dict[str, str] = {}
    for distribution in distributions():
        name = distribution.metadata["Name"]
        if name:
            found.setdefault(name, distribution.version)
    found["wirelessfl"] = package_version()
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def this_machine() -> dict[str, str]:
    """Python, platform, version of the package, and its commit in a checkout."""
    commit = _commit()
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "wirelessfl": package_version(),
        **({"commit": commit} if commit else {}),
    }


def other_versions(packages: Mapping[str, str]) -> list[str]:
    """Packages that can change results and have another version here, in words."""
    here = installed_packages()
    return [
        f"{name} {packages[name]} there, {here.get(name, 'none')} here"
        for name in THAT_MATTER
        if name in packages and packages[name] != here.get(name)
    ]


def _commit() -> str | None:
    # Of the checkout that the package runs from, marked where files of the package are changed; None elsewhere
    root = _PACKAGE.parent
    if not (root / ".git").exists():
        return None
    with suppress(OSError, subprocess.SubprocessError):
        commit = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", _PACKAGE.name)
        return f"{commit} with changes" if changed else commit
    return None


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_PATIENCE_S)
    return done.stdout.strip()
