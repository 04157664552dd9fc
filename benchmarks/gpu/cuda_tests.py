"""The tests that need CUDA, by plain pytest."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.gpu.prepare import ROOT
from benchmarks.gpu.setting import Measure, Measured, Setting

MARK = "pytest.mark.cuda"


def marked_files(folder: Path) -> list[Path]:
    """The test files in which something is marked; no other is imported, as it may ask for what is not there."""
    return [path for path in sorted(folder.rglob("test_*.py")) if MARK in path.read_text(encoding="utf-8")]


def measure_tests(setting: Setting) -> Measured:
    """Runs them; without a GPU all are skipped, with one some must have passed."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        files = [str(path) for path in marked_files(ROOT / "tests")]
        # Neither what others have plugged into pytest there nor a warning of their packages decides on a GPU.
        options = ["-q", "-m", "cuda", "-p", "no:cacheprovider", "-W", "default", f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", *options, *files]
        environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
        if not report.exists():
            return Measured(failure=f"pytest ended with exit code {done.returncode} and without a report")
        passed, failed, skipped = count(report.read_text(encoding="utf-8"))
    told = f"{passed} passed, {failed} failed, {skipped} skipped"
    if failed or done.returncode or (setting.device == "cuda" and not passed):
        return Measured(time.perf_counter() - started, failure=told)
    return Measured(time.perf_counter() - started, detail=told)


def count(report: str) -> tuple[int, int, int]:
    """Tests that passed, that failed or could not be run, and that were skipped, from a report in JUnit's XML."""
    suites = list(ElementTree.fromstring(report).iter("testsuite"))
    tests, failures, errors, skipped = (
        sum(int(suite.get(name, "0")) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    return tests - failed - skipped, failed, skipped


WORKLOADS: dict[str, Measure] = {"pytest -m cuda": measure_tests}
