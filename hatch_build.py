"""Compiles the kernel of the noise when the package is installed or built.

Without a C compiler the package is built all the same: NumPy then draws the same numbers, more slowly.
"""

from __future__ import annotations

import os
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

SOURCE = Path("wirelessfl/privacy/mechanisms/normals/kernel.c")
# Without contraction every processor rounds alike. That errno and traps do not matter lets loops be vectorised.
FLAGS = ["-O3", "-shared", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
WIDE = "-mprefer-vector-width=512"


class KernelBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles ``SOURCE`` to a library beside it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before a wheel is put together, an editable one included."""
        library = (Path(self.root) / SOURCE).with_suffix(".bin")
        try:
            compile_kernel(Path(self.root) / SOURCE, library)
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"no compiled noise kernel, local noise will be slow: {error}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append(f"/{SOURCE.with_suffix('.bin').as_posix()}")


def compiler() -> list[str]:
    """The command of the C compiler: that of the environment, else the one that Python was built with."""
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


def compile_kernel(source: Path, library: Path) -> None:
    """Compile, and put the library in its place at once: a running program keeps the one that it has loaded.

    Raises:
        OSError: there is no compiler.
        subprocess.CalledProcessError: it does not take the source.
    """
    wide = [WIDE] if sysconfig.get_platform().endswith("x86_64") else []
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        subprocess.run([*compiler(), *FLAGS, *wide, str(source), "-o", str(made), "-lm"], check=True)
        made.replace(library)
