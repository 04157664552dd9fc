"""Comparison of two commits in pairs: the interval, the verdict, what is measured where, and what is refused."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from benchmarks import check as checking
from benchmarks.__main__ import main
from benchmarks.check import ROOT, checkout
from benchmarks.checked import last_commit
from benchmarks.measurement import Case
from benchmarks.paired import LEAST_PAIRS, paired_ratio


@pytest.mark.parametrize("pairs", [6, 7, 8, 10, 12, 13])
def test_the_interval_is_the_narrowest_that_holds_the_median_with_95_percent(pairs: int) -> None:
    """By all ways in which the ratios may fall on either side of the median, each equally likely."""
    ratio = paired_ratio([float(value) for value in range(pairs)])
    depth = int(ratio.low)
    assert ratio.high == pairs - 1 - depth
    below = [sum(sides) for sides in product((0, 1), repeat=pairs)]

    def covered(depth: int) -> float:
        return float(np.mean([depth < count < pairs - depth for count in below]))

    assert covered(depth) >= 0.95 > covered(depth + 1)


def test_the_interval_holds_the_median_of_drawn_ratios_as_often_as_stated() -> None:
    """Of lognormal ratios, 10 pairs, 4,000 times; at the exact 97.9 % fewer than 3,880 come once in 10⁵ seeds."""
    draws = np.random.default_rng(5).lognormal(0.2, 0.5, (4000, 10))
    ratios = [paired_ratio(list(row)) for row in draws]
    assert sum(ratio.low <= np.exp(0.2) <= ratio.high for ratio in ratios) >= 3880


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="5 pairs: at least 6 are needed"):
        paired_ratio([1.0] * (LEAST_PAIRS - 1))


class Machine:
    """Stands in for the measurements: speed of either tree, and the order in which they were asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, here: float, there: float) -> None:
        """Both with a little scatter."""
        self.asked: list[str] = []
        noise = np.random.default_rng(3)

        @contextmanager
        def other(commit: str) -> Iterator[Path]:
            yield tmp_path / "other"

        def measure(tree: Path, case: Case, question: str) -> float:
            self.asked.append(tree.name)
            speed = (here if tree == ROOT else there) * float(noise.lognormal(0.0, 0.01))
            assert json.loads(question)[:2] == [case.group, case.name]
            return speed if case.is_rate else 1 / speed

        monkeypatch.setattr(checking, "checkout", other)
        monkeypatch.setattr(checking, "_measure", measure)


def invoke(*arguments: str) -> Result:
    """The command in this process, with a table of full width."""
    return CliRunner().invoke(main, ["check", *arguments], env={"COLUMNS": "160"})


@pytest.mark.parametrize("group", ["W1", "start"])  # rates, and seconds
@pytest.mark.parametrize(
    ("here", "slack", "code", "verdict"),
    [
        (0.8, "0", 3, "slower"),
        (0.8, "0.25", 0, "no difference seen"),
        (1.0, "0", 0, "no difference seen"),
        (1.3, "0", 0, "faster"),
    ],
)
def test_the_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, group: str, here: float, slack: str, code: int, verdict: str
) -> None:
    machine, out = Machine(monkeypatch, tmp_path, here, 1.0), tmp_path / "checked.csv"
    done = invoke("--against", "HEAD", "--only", group, "--slack", slack, "--out", str(out))
    assert (done.exit_code, verdict in done.stdout) == (code, True), done.output
    assert machine.asked[:4] == [ROOT.name, "other", "other", ROOT.name]
    with out.open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert {line["group"] for line in lines} == {group}
    assert "plain loop" not in {line["case"] for line in lines}  # no code of the project
    assert all(abs(float(line["ratio"]) - here) < 0.02 for line in lines)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout[:12]
    assert {line["against"] for line in lines} == {head}
    assert last_commit(out) in (head, None)  # None where files differ from the commit


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "W9"], "no group 'W9'; groups: W1, W2"),
        (["--only", "W1:fast"], "W1 has no case 'fast'; it has \"plain loop\""),
        (["--against", "no-such-commit"], "'no-such-commit' is no commit of"),
        ([], "no commit was checked before: name one with --against"),
        (["--pairs", "5"], "5 is not in the range x>=6"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = invoke("--out", str(tmp_path / "none.csv"), *arguments)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())


def test_kernels_that_cannot_be_compiled_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no repository")
    monkeypatch.setenv("CC", "no-such-compiler")
    done = invoke("--quick", "--against", "HEAD", "--out", str(tmp_path / "none.csv"))
    assert done.exit_code == 1
    assert "kernel.c is not compiled, without which speeds do not compare" in " ".join(done.stderr.split())


@pytest.mark.slow
def test_two_checkouts_are_measured(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no repository")
    out = tmp_path / "checked.csv"
    case = "W3:simulator, ideal uplink"
    done = invoke("--quick", "--against", "HEAD", "--only", case, "--pairs", "6", "--threads", "1", "--out", str(out))
    assert done.exit_code in (0, 3), done.output
    assert "W3" in done.stdout and not out.exists()
    with checkout("HEAD") as folder:
        sources = list(folder.rglob("kernel.c"))
        assert sources and all(source.with_suffix(".bin").exists() for source in sources)
    assert not folder.exists()
    trees = subprocess.run(["git", "worktree", "list"], cwd=ROOT, capture_output=True, text=True).stdout
    assert folder.name not in trees.split()
