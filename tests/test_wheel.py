"""The wheel carries the scenarios and channels, and finds them where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from hatch_build import compiler

ROOT = Path(__file__).resolve().parents[1]


KERNEL = "wirelessfl/privacy/mechanisms/normals/kernel.bin"


def build(folder: Path, **environment: str) -> Path:
    """The wheel."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=os.environ | environment)
    (wheel,) = folder.glob("wirelessfl-*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built and unpacked as an installation would."""
    folder = tmp_path_factory.mktemp("wheel")
    target = folder / "site-packages"
    with zipfile.ZipFile(build(folder)) as archive:
        archive.extractall(target)
    return target


def test_everything_shipped_is_inside(installed: Path) -> None:
    for shelf in ("scenarios", "channels"):
        shipped = {path.relative_to(ROOT / shelf) for path in (ROOT / shelf).rglob("*.yaml")}
        inside = installed / "wirelessfl" / "shipped" / shelf
        assert {path.relative_to(inside) for path in inside.rglob("*.yaml")} == shipped
    assert (installed / "wirelessfl" / "py.typed").exists()


def test_the_papers_are_outside(installed: Path, tmp_path: Path) -> None:
    """``publications`` is no part of the wheel; the command says so and runs where the current folder has it."""
    assert {path.name for path in installed.iterdir() if path.suffix != ".dist-info"} == {"wirelessfl"}

    def papers(folder: Path) -> subprocess.CompletedProcess[str]:
        code = (
            "import sys, pathlib\n"  # a checkout that is installed as such is left out
            "sys.path[:] = [p for p in sys.path if not pathlib.Path(p, 'publications').is_dir()]\n"
            "from wirelessfl.cli import main; main(['papers', 'list'])"
        )
        return subprocess.run(
            [sys.executable, "-P", "-c", code],
            cwd=folder,
            env={"PYTHONPATH": str(installed), "PATH": "", "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )

    missing = papers(tmp_path)
    assert (missing.returncode, missing.stdout) == (3, "")
    assert "Get the source" in missing.stderr and "Traceback" not in missing.stderr
    shutil.copytree(ROOT / "publications", tmp_path / "publications")
    found = papers(tmp_path)
    assert found.returncode == 0, found.stderr
    assert "ota-cross-layer-dp" in found.stdout


def test_the_source_has_the_papers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (source,) = tmp_path.glob("wirelessfl-*.tar.gz")
    with tarfile.open(source) as archive:
        inside = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    assert {path.relative_to(ROOT) for path in (ROOT / "publications").rglob("*.py")} <= inside


def test_the_kernel_of_the_noise_is_inside_where_there_is_a_compiler(installed: Path) -> None:
    assert (installed / KERNEL).exists() == (shutil.which(compiler()[0]) is not None)
    if (installed / KERNEL).exists():
        (record,) = installed.glob("wirelessfl-*.dist-info/WHEEL")
        assert "Root-Is-Purelib: false" in record.read_text(encoding="utf-8")


def test_without_a_compiler_the_wheel_is_for_every_machine(tmp_path: Path) -> None:
    wheel = build(tmp_path, CC="/nowhere/cc")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert KERNEL not in archive.namelist()


def test_a_scenario_is_found_by_name_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    code = (
        "import wirelessfl, wirelessfl.scenario as s; print(wirelessfl.__file__); "
        "print(s.load_scenario('quickstart', ['channel.profile=rayleigh-normalised']).name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    where, name = done.stdout.splitlines()
    assert Path(where).is_relative_to(installed) and name == "quickstart"


def test_the_checkout_runs_the_command_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), "scenarios", "list"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "quickstart" in done.stdout
