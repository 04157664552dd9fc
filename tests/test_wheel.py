"""What is released: a wheel that runs where it is installed, its tag, and a source with all that its tests need."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.tags import sys_tags

from hatch_build import SOURCES, compiler, platform_tag
from wirelessfl.version import package_version

ROOT = Path(__file__).resolve().parents[1]


KERNELS = [source.with_suffix(".bin").as_posix() for source in SOURCES]


def build(source: Path, folder: Path, target: str = "wheel", **environment: str) -> Path:
    """The wheel, or the "sdist", of a folder with the source."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, env=os.environ | environment)
    (made,) = folder.glob("wirelessfl-*.whl" if target == "wheel" else "wirelessfl-*.tar.gz")
    return made


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(build(ROOT, folder, "sdist")) as archive:
        archive.extractall(folder, filter="data")
    return folder / f"wirelessfl-{package_version()}"


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution as ``python -m build`` does."""
    return build(source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked as an installation would."""
    target = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which pip has installed the wheel, and nothing else; what that needs is lent to it."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(folder)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True)
    packages = next((folder / "lib").glob("python*/site-packages"))
    # Files named .pth in a folder that is lent have no effect, so that an installed checkout stays out of sight.
    (packages / "lent.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return folder


def run_in(environment: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command without the variables that would show it this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(command, cwd=folder, env=kept | {"PATH": path}, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_installed_command_runs_quickstart_from_another_folder(environment: Path, tmp_path: Path) -> None:
    where = run_in(environment, tmp_path, "python", "-c", "import wirelessfl; print(wirelessfl.__file__)")
    assert Path(where.stdout.strip()).is_relative_to(environment), where.stderr
    done = run_in(environment, tmp_path, "wirelessfl", "simulate", "quickstart", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["status"], summary["rounds"]) == ("complete", 40) and summary["test_accuracy"] > 0.9
    made = {file.name for file in (tmp_path / "results" / "quickstart-7").iterdir()}
    assert {"trace.h5", "scenario.yaml", "summary.json", "summary.png", "timeline.png"} <= made


@pytest.mark.slow
def test_the_demo_runs_in_the_unpacked_source(environment: Path, source: Path) -> None:
    (environment / ".installed").touch()  # what the recipe installs from an index is there already
    done = run_in(environment, source, "make", "demo", f"VENV={environment}")
    assert done.returncode == 0, done.stderr
    assert (source / "results" / "quickstart-7" / "trace.h5").exists()


@pytest.mark.slow
def test_the_tag_is_one_that_an_index_takes_and_that_fits_this_machine(wheel: Path) -> None:
    tag = re.fullmatch(rf"wirelessfl-{re.escape(package_version())}-(py3-none-.*)\.whl", wheel.name)
    assert tag is not None
    if shutil.which(compiler()[0]) is not None:
        assert re.fullmatch(r"py3-none-(manylinux_2_\d+|macosx_\d+_\d+)_\w+", tag[1])
    assert tag[1] in map(str, sys_tags())


SYSTEMS = {
    "no library at all": (b"", "manylinux_2_17_x86_64"),
    "old symbols": (b"libc.so.6 libm.so.6 GLIBC_2.2.5 GLIBC_2.14", "manylinux_2_17_x86_64"),
    "a newer symbol": (b"libm.so.6 GLIBC_2.2.5 GLIBC_2.29 GLIBC_2.4", "manylinux_2_29_x86_64"),
    "a library that not every Linux has": (b"libc.so.6 libmvec.so.1 GLIBC_2.22", "linux_x86_64"),
}


@pytest.mark.parametrize("needs", SYSTEMS)
def test_the_tag_names_the_oldest_linux_that_has_what_the_kernel_needs(
    needs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sysconfig.get_platform", lambda: "linux-x86_64")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", "2.41"))
    library, tag = SYSTEMS[needs]
    assert platform_tag(library) == tag


def test_a_system_with_another_c_library_is_named_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_platform", lambda: "linux-x86_64")
    monkeypatch.setattr("platform.libc_ver", lambda: ("", ""))
    assert platform_tag(b"libc.musl-x86_64.so.1") == "linux_x86_64"


@pytest.mark.parametrize(
    ("machine", "target", "tag"),
    [
        ("arm64", "", "macosx_11_0_arm64"),
        ("arm64", "10.9", "macosx_11_0_arm64"),  # no older one runs on these processors
        ("arm64", "14.2", "macosx_14_0_arm64"),
        ("x86_64", "10.15", "macosx_10_15_x86_64"),
    ],
)
def test_the_tag_of_macos_is_that_of_its_deployment_target(
    machine: str, target: str, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sysconfig.get_platform", lambda: "macosx-10.9-universal2")
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setenv("MACOSX_DEPLOYMENT_TARGET", target)
    assert platform_tag(b"\xcf\xfa\xed\xfe") == tag


def test_the_version_is_that_of_the_source(wheel: Path, source: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    for text in (metadata, (source / "PKG-INFO").read_text(encoding="utf-8")):
        assert text.startswith("Metadata-Version: 2.4\n")  # a newer one is refused by older indexes
        assert f"\nVersion: {package_version()}\n" in text
        assert "\nLicense-File: NOTICE\n" in text


def test_the_source_has_everything_that_is_under_version_control(source: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no checkout: there is nothing to compare with")
    tracked = {Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}
    assert not tracked - {path.relative_to(source) for path in source.rglob("*")}


def test_everything_shipped_is_inside(installed: Path) -> None:
    for shelf in ("scenarios", "channels"):
        shipped = {path.relative_to(ROOT / shelf) for path in (ROOT / shelf).rglob("*.yaml")}
        inside = installed / "wirelessfl" / "shipped" / shelf
        assert {path.relative_to(inside) for path in inside.rglob("*.yaml")} == shipped
    assert (installed / "wirelessfl" / "py.typed").exists()


@pytest.mark.slow
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


def test_the_kernel_of_the_noise_is_inside_where_there_is_a_compiler(installed: Path) -> None:
    compiled = shutil.which(compiler()[0]) is not None
    assert [(installed / kernel).exists() for kernel in KERNELS] == [compiled] * len(KERNELS)
    if compiled:
        (record,) = installed.glob("wirelessfl-*.dist-info/WHEEL")
        assert "Root-Is-Purelib: false" in record.read_text(encoding="utf-8")


def test_without_a_compiler_the_wheel_is_for_every_machine(source: Path, tmp_path: Path) -> None:
    wheel = build(source, tmp_path, CC="/nowhere/cc")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not set(KERNELS) & set(archive.namelist())


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
