"""The calculators: names, goldens and bad input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from dp_accounting import get_epsilon_gaussian

from wirelessfl.cli import main


def calculate(*arguments: str) -> dict[str, Any]:
    """A calculator's JSON."""
    result = CliRunner().invoke(main, ["privacy", *arguments, "--json"])
    assert result.exit_code == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_epsilon_of_plain_gaussian_steps() -> None:
    answer = calculate("epsilon", "--noise-multiplier", "2", "--steps", "16", "--delta", "1e-5")
    assert answer == {"epsilon": pytest.approx(get_epsilon_gaussian(2 / 4, 1e-5), rel=1e-6)}


def test_noise_is_the_inverse_of_epsilon() -> None:
    for accountant in ("pld", "rdp"):
        common = ("--steps", "100", "--sample-rate", "0.1", "--delta", "1e-5", "--accountant", accountant)
        multiplier = calculate("noise", "--epsilon", "3", *common)["noise_multiplier"]
        found = calculate("epsilon", "--noise-multiplier", str(multiplier), *common)["epsilon"]
        assert found <= 3 and found == pytest.approx(3, rel=1e-3)


JAMMER = ("--rounds", "80", "--samples", "5000", "--server-gain", "676", "--channel-noise-std", "1", "--delta", "1e-5")


def test_jammer_golden() -> None:
    # PRIVACY.md, Goldens.
    answer = calculate("jammer", "--epsilon", "1", *JAMMER)
    assert answer == {"jammer_gain": pytest.approx(5.8411, abs=5e-5), "needed": True}
    assert calculate("jammer", "--epsilon", "1", "--margin", "7", *JAMMER)["jammer_gain"] == pytest.approx(
        40.888, abs=5e-4
    )


def test_no_jamming_where_the_channel_is_enough() -> None:
    assert calculate("jammer", "--epsilon", "100", *JAMMER) == {"jammer_gain": 0.0, "needed": False}


def test_zcdp_names() -> None:
    arguments = "--clip 1 --noise-std 0.1 --batch-size 10 --samples 100 --local-steps 10 --participations 5"
    answer = calculate("zcdp", *arguments.split(), "--clients-per-round", "4", "--delta", "1e-4")
    assert set(answer) == {"rho_published", "epsilon_published", "rho_accounted", "epsilon_accounted"}
    # Theorem 1: 2 C τ G²/(r n γ σ²).
    assert answer["rho_published"] == pytest.approx(2 * 5 * 10 / (4 * 100 * 10 * 0.01))


@pytest.mark.parametrize(
    "arguments",
    [
        ("epsilon", "--noise-multiplier", "0", "--steps", "1", "--delta", "1e-5"),
        ("epsilon", "--noise-multiplier", "1", "--steps", "0", "--delta", "1e-5"),
        ("epsilon", "--noise-multiplier", "1", "--steps", "1", "--delta", "1"),
        ("epsilon", "--noise-multiplier", "1", "--steps", "1", "--delta", "1e-5", "--sample-rate", "1.5"),
        ("epsilon", "--noise-multiplier", "one", "--steps", "1", "--delta", "1e-5"),
        ("noise", "--epsilon", "0", "--steps", "1", "--delta", "1e-5"),
        ("noise", "--epsilon", "nan", "--steps", "1", "--delta", "1e-5"),
        ("jammer", "--epsilon", "-1", *JAMMER),
        ("zcdp", "--clip", "1"),
    ],
)
def test_numbers_out_of_range(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, ["privacy", *arguments])
    assert result.exit_code == 2
    assert result.stderr and "Traceback" not in result.stderr
    assert result.stdout == ""


def test_words_without_json() -> None:
    result = CliRunner().invoke(main, ["privacy", "jammer", "--epsilon", "1", *JAMMER])
    assert result.stdout.splitlines() == ["jammer gain α_CJ: 5.84", "jamming needed: yes"]


@pytest.mark.parametrize("terminal", [True, False])
def test_the_time_of_a_calculation_is_on_stderr_of_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    if terminal:
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
    result = CliRunner().invoke(main, ["privacy", "jammer", "--epsilon", "1", *JAMMER, "--json"])
    assert json.loads(result.stdout)["needed"]
    assert ("composing privacy losses" in result.stderr) == terminal
    assert terminal or not result.stderr
