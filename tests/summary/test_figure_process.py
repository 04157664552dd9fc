"""Figures drawn beside the run: what the run imports, how the other process ends, and what is said if it fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.errors import TraceError
from wirelessfl.summary.figure_process import FigureProcess, figure_process
from wirelessfl.summary.style import FigureOptions

NOT_IMPORTED = (
    "dask",
    "dp_accounting",
    "h5netcdf",
    "jinja2",
    "matplotlib",
    "networkx",
    "pandas",
    "pyarrow",
    "scipy.integrate",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.stats",
    "sklearn",
    "sympy",
    "torch._dynamo",
    "torch._inductor",
    "torch.onnx",
    "torchvision",
    "xarray",
)
"""What takes long to import and no run of quickstart needs."""

RUN = """
import sys
from wirelessfl.cli import main
try:
    main(sys.argv[1:])
finally:
    print(*sys.modules)
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wfl.simulate(small(rounds=1), tmp_path_factory.mktemp("run") / "run", device="cpu", pictures=False).trace


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not drawn anything yet."""
    monkeypatch.setattr("wirelessfl.summary.figure_process._LOADED_BY_THEM", "no module of this name")


def child_of(figures: FigureProcess) -> subprocess.Popen[str]:
    process = figures._process
    assert process is not None
    return process


def alive(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_run_of_quickstart_imports_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, "simulate", "quickstart", "--set", "rounds=2", "--quiet", "--out", "run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
    modules = set(done.stdout.split())
    assert "torch" in modules
    assert not modules.intersection(NOT_IMPORTED)
    for name in ("summary.png", "timeline.png"):  # which were drawn all the same
        assert (tmp_path / "run" / name).stat().st_size > 20_000


@pytest.mark.slow
@pytest.mark.usefixtures("apart")
def test_the_figures_are_those_that_are_drawn_here(trace: Path, tmp_path: Path) -> None:
    from wirelessfl.summary.run_figures import draw_run

    options = FigureOptions("svg", 3.5)
    with figure_process(options) as figures:
        child = child_of(figures)
        figures.begin(trace)
        assert figures.missing() == ()
    assert child.returncode == 0
    here = draw_run(trace, options, tmp_path)
    for file in here.files:
        assert trace.with_name(file.name).read_bytes() == file.read_bytes()


@pytest.mark.usefixtures("apart")
def test_a_process_that_dies_costs_the_figures_and_not_the_run(trace: Path, tmp_path: Path) -> None:
    copy = tmp_path / "trace.h5"
    copy.write_bytes(trace.read_bytes())
    with figure_process(FigureOptions("pdf")) as figures:
        child = child_of(figures)
        child.kill()
        child.wait()
        figures.begin(copy)
        first, second = figures.missing()
    assert first == f"{tmp_path / 'summary.pdf'} cannot be drawn: the process that draws it ended by SIGKILL"
    assert str(tmp_path / "timeline.pdf") in second


@pytest.mark.usefixtures("apart")
def test_a_trace_that_cannot_be_read_is_refused_as_ever(tmp_path: Path) -> None:
    (tmp_path / "trace.h5").write_text("no trace")
    with figure_process(FigureOptions()) as figures:
        figures.begin(tmp_path / "trace.h5")
        with pytest.raises(TraceError, match="not an HDF5 file"):
            figures.missing()


@pytest.mark.slow
@pytest.mark.usefixtures("apart")
def test_a_run_that_is_given_up_leaves_neither_a_process_nor_parts_of_files(trace: Path, tmp_path: Path) -> None:
    copy = tmp_path / "trace.h5"
    copy.write_bytes(trace.read_bytes())
    children = []
    for told in (False, True):
        with pytest.raises(KeyboardInterrupt), figure_process(FigureOptions()) as figures:
            children.append(child_of(figures))
            if told:
                figures.begin(copy)
                while not list(tmp_path.glob(".partial-*")) and alive(children[-1].pid):
                    time.sleep(0.01)
            raise KeyboardInterrupt
    assert not any(alive(child.pid) for child in children)
    assert not list(tmp_path.glob(".partial-*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "told",
    [pytest.param(False, id="before the order", marks=pytest.mark.slow), pytest.param(True, id="while it draws")],
)
def test_a_killed_run_leaves_no_process_behind(told: bool, trace: Path, tmp_path: Path) -> None:
    copy = tmp_path / "trace.h5"
    copy.write_bytes(trace.read_bytes())
    code = (
        "import sys, time, pathlib\n"
        "from wirelessfl.summary.figure_process import figure_process\n"
        "from wirelessfl.summary.style import FigureOptions\n"
        "with figure_process(FigureOptions()) as figures:\n"
        "    print(figures._process.pid, flush=True)\n"
        f"    {told} and figures.begin(pathlib.Path(sys.argv[1]))\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(copy)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)
        while told and not list(tmp_path.glob(".partial-*")):
            time.sleep(0.01)
        os.kill(parent.pid, signal.SIGKILL)
    limit = time.monotonic() + 20
    while alive(child):
        assert time.monotonic() < limit
        time.sleep(0.02)
    assert not list(tmp_path.glob(".partial-*"))


@pytest.mark.slow
def test_where_matplotlib_is_loaded_figures_are_drawn_at_once(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.figure

    monkeypatch.setattr("wirelessfl.summary.figure_process._LOADED_BY_THEM", matplotlib.figure.__name__)
    with figure_process(FigureOptions("pdf")) as figures:
        assert figures._process is None
        figures.begin(trace)
        assert figures.missing() == ()
    assert trace.with_name("summary.pdf").exists()


def test_without_figures_nothing_is_started(trace: Path) -> None:
    with figure_process(FigureOptions("none")) as figures:
        assert figures._process is None
        figures.begin(trace)
        assert figures.missing() == ()


@pytest.mark.usefixtures("apart")
def test_a_process_that_cannot_be_started_is_done_without(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with figure_process(FigureOptions("png")) as figures:
        assert figures._process is None
        figures.begin(trace)
        assert figures.missing() == ()
    assert trace.with_name("timeline.png").exists()
