"""What the terminal says about the meaning of an ε: ``privacy explain``, and a line below a large accounted ε."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from click.testing import CliRunner, Result

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.cli import main
from wirelessfl.cli.console import print_summary
from wirelessfl.cli.meaning import HOLDING, LARGE, PAGE, odds_text, share_text
from wirelessfl.privacy import meaning_of
from wirelessfl.privacy.gaussian import gaussian_mu
from wirelessfl.privacy.meaning import LOOSE


def invoke(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(main, ["privacy", "explain", *arguments])


def test_several_are_compared_in_plain_words() -> None:
    result = invoke("2", "367")
    assert result.exit_code == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["at", "δ", "=", "1e-05", "ε", "=", "2", "ε", "=", "367"] in lines
    assert ["called", "reasonable", "weak", "to", "none"] in lines
    assert ["right", "guesses,", "at", "most", "88.1", "%", "100", "%"] in lines
    assert PAGE in result.stdout and all(name in result.stdout for name in HOLDING)


def test_large_factors_are_powers_with_raised_digits() -> None:
    texts = {epsilon: odds_text(meaning_of(epsilon, 1e-5)) for epsilon in (2.0, 8.0, 50.0, 367.0, math.inf)}
    assert texts == {2.0: "7.39", 8.0: "2,981", 50.0: "10²²", 367.0: "10¹⁵⁹", math.inf: "without limit"}


def test_without_one_those_of_the_page_are_explained() -> None:
    assert all(f"ε = {epsilon}" in invoke().stdout for epsilon in (2, 8, 50, 367))


def test_many_are_read_in_80_columns() -> None:
    many = [str(epsilon) for epsilon in range(1, 13)]
    shown = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["privacy", "explain", *many]).stdout.splitlines()
    heads = [line for line in shown if line.startswith("at δ = 1e-05 ")]
    assert [line.count("ε = ") for line in heads] == [4, 4, 4]
    assert sum(line.startswith("right guesses, at most ") for line in shown) == 3 and max(map(len, shown)) <= 80


def test_the_star_says_how_often_odds_grow_by_more() -> None:
    assert "at most 2 δ" in invoke("2").stdout
    for epsilon, delta in ((0.5, 1e-5), (2.0, 1e-5), (8.0, 1e-10), (50.0, 1e-3)):
        mu = float(gaussian_mu(epsilon, delta))
        chance = 1 - NormalDist(mu**2 / 2, mu).cdf(epsilon)
        more = 1 - NormalDist(mu**2 / 2, mu).cdf(epsilon + math.log(2))
        assert chance > delta, "δ is not the chance that the loss exceeds ε"
        assert more <= 2 * delta


def test_the_numbers_are_those_of_the_core() -> None:
    answer = json.loads(invoke("8", "inf", "--delta", "1e-6", "--json").stdout)["meanings"]
    eight = meaning_of(8.0, 1e-6)
    assert answer[0]["guess_gaussian"] == eight.guess_gaussian and answer[0]["odds"] == eight.odds
    assert answer[0]["tpr_at_fpr_0.001_bound"] == eight.found_bound and answer[0]["called"] == "reasonable"
    assert answer[1]["epsilon"] == answer[1]["odds"] == "inf" and answer[1]["advantage_gaussian"] == 1.0


@pytest.mark.parametrize("arguments", [("nan",), ("--", "-1"), ("2", "--delta", "0"), ("2", "--delta", "1"), ("two",)])
def test_bad_numbers_are_refused(arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "found" in result.stderr.lower() or "not a valid float" in result.stderr


@pytest.mark.parametrize("value", ["-1", "-0.5"])
def test_a_negative_epsilon_is_no_option(value: str) -> None:
    result = invoke("2", value)
    assert result.exit_code == 2
    assert f"EPSILON: found {value}; allowed: a number of at least 0, or inf" in result.stderr


def test_almost_all_is_not_all() -> None:
    shares = [0.5, 0.0048, 0.9996647, 0.99983, 1 - 1e-9, 1.0]
    assert [share_text(share) for share in shares] == ["50.0 %", "0.48 %", "99.97 %", "99.98 %", ">99.99 %", "100 %"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> wfl.Result:
    folder = tmp_path_factory.mktemp("runs") / "with-a-path-longer-than-a-terminal-is-wide" / "one-more-folder-in-it"
    return wfl.simulate(small(rounds=1), folder, pictures=False)


def printed(run: wfl.Result, trace: Path, capsys: pytest.CaptureFixture[str], **changes: Any) -> str:
    """The summary as the terminal shows it, on one line."""
    print_summary({**run.summary, **changes}, {"trace": trace})
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("epsilon", "words"), [(367.3, "367"), (math.inf, "inf")])
def test_a_large_epsilon_comes_with_what_explains_it(
    epsilon: float, words: str, run: wfl.Result, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(run, run.trace, capsys, epsilon_accounted=epsilon, delta=1e-5)
    assert f"`wirelessfl privacy explain {words} --delta 1e-05`" in text and PAGE in text
    attack = f"Attack it: `wirelessfl audit {run.trace.with_name('scenario.yaml')}`"
    assert attack.replace(" ", "") in text.replace(" ", "")  # a long path breaks anywhere
    assert f"It is small in {HOLDING[0]} and {HOLDING[1]}" in text
    assert invoke(words, "--delta", "1e-05").exit_code == 0


def test_a_small_or_unknown_one_does_not(run: wfl.Result, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert LARGE == LOOSE
    for epsilon in (0.5, LARGE, math.nan):
        assert "privacy explain" not in printed(run, run.trace, capsys, epsilon_accounted=epsilon)
    assert "audit" not in printed(run, tmp_path / "trace.h5", capsys, epsilon_accounted=50.0)
