"""A short campaign and everything that was found before: the same cases in every run.

``python -m tests.fuzz`` runs longer ones. Each has a process of its own, whose children take the damage.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of healthy files, the same for all workers of this test run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if base.name.startswith("popen-") else base) / "fuzz-subjects"


def fuzz(subjects: Path, *options: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--subjects", str(subjects), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


@pytest.mark.slow
def test_a_short_campaign_finds_nothing_and_what_was_found_stays_mended(subjects: Path) -> None:
    fuzz(subjects, "--short")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "start", "count"),
    [
        ("traces", 9, 45),
        ("scenarios", 24, 36),
        ("studies", 0, 3),
        ("signals", 0, 4),
        ("archives", 8, 40),
    ],
)
def test_no_damage_does_harm(kind: str, start: int, count: int, subjects: Path) -> None:
    fuzz(subjects, "--kind", kind, "--start", str(start), "--count", str(count))
