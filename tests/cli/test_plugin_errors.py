"""Errors of code from outside on the command line: one line, exit code 2, the traceback where it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from wirelessfl import plugins
from wirelessfl.cli import main

SCENARIO = """name: failing
rounds: 2
data: {limit: 120, partition: {scheme: iid}}
model: {name: mlp, hidden: [4]}
clients: {count: 4}
training: {algorithm: {name: "failing_own:Own"}, epochs: 1}
uplink: {kind: ideal}
"""
HEAD = """from wirelessfl.errors import ScenarioError
from wirelessfl.learning import FedAvg
from failing_helper import help_out
class Odd(Exception):
    def __init__(self, *, why):
        super().__init__(f"odd: {why}")
class Own(FedAvg):
    def step(self, server, aggregate, facts):
"""
FAILURES = {
    "return [1, 2][7]": "failing_own.py:9 in Own.step: IndexError: list index out of range",
    "raise Odd(why='so')": "failing_own.py:9 in Own.step: Odd: odd: so",
    "help_out()": "failing_helper.py:3 in help_out.<locals>.deeper: ZeroDivisionError: division by zero",
    "return (lambda: {}['x'])()": "failing_own.py:9 in Own.step.<locals>.<lambda>: KeyError: 'x'",
    "return self.step(server, aggregate, facts)": "failing_own.py:9 in Own.step: RecursionError: maximum recursion",
    "raise ScenarioError('of my own')": "failing_own.py:9 in Own.step: of my own",
    "return next(iter(()))": "failing_own.py:9 in Own.step: ",
    "int('x')\n        return 1": "failing_own.py:9 in Own.step: ValueError: invalid literal for int() with base 10",
    "try:\n            1 / 0\n        except ArithmeticError as e:\n            raise ValueError('after it') from e": (
        "failing_own.py:12 in Own.step: ValueError: after it"
    ),
    "aggregate @ aggregate": "failing_own.py:9 in Own.step: RuntimeError: ",
    "exec('1 / 0')": "failing_own.py:9 in Own.step: ZeroDivisionError",
}
Start = Callable[..., Result]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """`simulate` with an algorithm of which this is the server step."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins.places, "_searched", [])
    monkeypatch.setattr(plugins.blame, "_loaded", {})
    (tmp_path / "failing.yaml").write_text(SCENARIO, encoding="utf-8")
    helper = "def help_out():\n    def deeper():\n        return 1 / 0\n    return deeper()\n"
    (tmp_path / "failing_helper.py").write_text(helper, encoding="utf-8")

    def simulate(body: str) -> Result:
        (tmp_path / "failing_own.py").write_text(f"{HEAD}        {body}\n", encoding="utf-8")
        return CliRunner().invoke(main, ["simulate", "failing.yaml", "--quiet", "--device", "cpu", "--out", "run"])

    yield simulate
    for name in [name for name in sys.modules if name.startswith("failing_")]:
        del sys.modules[name]


@pytest.mark.parametrize("body", FAILURES)
def test_a_failure_is_one_line_with_place_and_words(body: str, start: Start) -> None:
    result = start(body)
    assert result.exit_code == 2, result.stderr
    assert f"Error: {FAILURES[body]}" in result.stderr, result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_traceback_is_shown_where_the_environment_asks_for_it(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIRELESSFL_DEBUG", "1")
    result = start("help_out()")
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.stderr and "wirelessfl/simulation/learner.py" in result.stderr
    assert "\nError: failing_helper.py:3 in help_out" in result.stderr


def test_an_interrupt_stays_one(start: Start) -> None:
    result = start("raise KeyboardInterrupt")
    assert result.exit_code == 130
    assert "failing_own.py" not in result.stderr


def test_memory_that_is_lacking_is_told_with_the_line(start: Start) -> None:
    result = start("raise MemoryError('4 TiB')")
    assert result.exit_code == 3
    assert "Error: failing_own.py:9 in Own.step: this takes more memory than there is (4 TiB)" in result.stderr
