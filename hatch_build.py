"""Compiles the kernels in C as the package is installed or built: models, norms, pools, noise, transforms, sums.

Without a C compiler the package is built all the same: NumPy or torch then does their work, more slowly, and the wheel
is for every machine. With one its tag names the oldest system on which the kernels can be loaded.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # the kernel is also compiled in place, on machines that install nothing
    BuildHookInterface = object  # type: ignore[assignment, misc]

SOURCES = (
    Path("wirelessfl/learning/cohort/gram/kernel.c"),
    Path("wirelessfl/learning/cohort/patches/kernel.c"),
    Path("wirelessfl/learning/cohort/pooling/kernel.c"),
    Path("wirelessfl/learning/cohort/softmax_regression/kernel.c"),
    Path("wirelessfl/learning/direct/kernel.c"),
    Path("wirelessfl/learning/winograd/kernel.c"),
    Path("wirelessfl/privacy/mechanisms/haar_noise/kernel.c"),
    Path("wirelessfl/privacy/mechanisms/haar_norms/kernel.c"),
    Path("wirelessfl/normals/kernel.c"),
    Path("wirelessfl/quotients/kernel.c"),
    Path("wirelessfl/radio/weighted_sums/kernel.c"),
    Path("wirelessfl/short_sums/kernel.c"),
)
# Without contraction every processor rounds alike. That errno and traps do not matter lets loops be vectorised.
FLAGS = ["-O3", "-shared", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
WIDE = "-mprefer-vector-width=512"
# Libraries that every Linux with glibc has, by the policy of PEP 600; the kernel needs no other.
_EVERYWHERE = re.compile(rb"(libc|libm|ld-linux[\w-]*)\.so\.\d+")
_OLDEST_GLIBC = (2, 17)
"""manylinux2014: no index and no torch of today knows an older system."""
_OLDEST_MACOS = {"arm64": (11, 0), "x86_64": (10, 13)}


class KernelBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles each of ``SOURCES`` to a library beside it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before a wheel is put together, an editable one included."""
        libraries = [(Path(self.root) / source).with_suffix(".bin") for source in SOURCES]
        try:
            for source, library in zip(SOURCES, libraries, strict=True):
                compile_kernel(Path(self.root) / source, library)
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"no compiled kernels, local noise and wide channels will be slow: {error}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(b''.join(library.read_bytes() for library in libraries))}"
        build_data["artifacts"] += [f"/{source.with_suffix('.bin').as_posix()}" for source in SOURCES]


def compiler() -> list[str]:
    """The command of the C compiler: that of the environment, else the one that Python was built with."""
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


def platform_tag(library: bytes) -> str:
    """Tag of the systems on which compiled kernels can be loaded.

    Args:
        library: its bytes, or those of several, in which the names of the libraries and versions that are needed stand
            as text.
    """
    if sysconfig.get_platform().startswith("macosx"):
        return "macosx_{}_{}_{}".format(*deployment_target(), platform.machine())
    versions = [tuple(map(int, found)) for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)]
    foreign = [name for name in re.findall(rb"[\w+-]+\.so[.\d]*", library) if not _EVERYWHERE.fullmatch(name)]
    if platform.libc_ver()[0] != "glibc" or foreign:  # no index takes this one
        return _plain(sysconfig.get_platform())
    oldest = max([_OLDEST_GLIBC, *versions])
    return _plain(f"manylinux_{oldest[0]}_{oldest[1]}_{platform.machine()}")


def deployment_target() -> tuple[int, int]:
    """Oldest macOS that a library is compiled for: as the environment says, else that of Python."""
    name, oldest = "MACOSX_DEPLOYMENT_TARGET", _OLDEST_MACOS[platform.machine()]
    target = os.environ.get(name) or sysconfig.get_config_var(name) or "11.0"
    major, minor = (int(part) for part in f"{target}.0".split(".")[:2])
    return max(oldest, (major, 0) if major > 10 else (major, minor))  # since macOS 11 a tag names the major version


def _plain(name: str) -> str:
    return name.replace("-", "_").replace(".", "_")


def compile_kernel(source: Path, library: Path) -> None:
    """Compile, and put the library in its place at once: a running program keeps the one that it has loaded.

    Raises:
        OSError: there is no compiler.
        subprocess.CalledProcessError: it does not take the source.
    """
    wide = [WIDE] if platform.machine() == "x86_64" else []
    if sysconfig.get_platform().startswith("macosx"):
        wide += ["-arch", platform.machine(), "-mmacosx-version-min={}.{}".format(*deployment_target())]
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        subprocess.run([*compiler(), *FLAGS, *wide, str(source), "-o", str(made), "-lm"], check=True)
        made.replace(library)
