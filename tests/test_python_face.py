"""From Python as people write it: names, mappings, keywords, messages in Python's words, short reprs."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.api import make_plan
from wirelessfl.errors import InputError, OutputError, ScenarioError, command_line_words
from wirelessfl.scenario import Scenario, Source, all_keys, differing_keys, rejection
from wirelessfl.scenario.python_values import SEPARATOR, named_parameters
from wirelessfl.study.file import StudyFile

TAKE_KEYS = {
    wfl.simulate: Scenario,
    wfl.load_scenario: Scenario,
    wfl.load_population: Scenario,
    make_plan: Scenario,
    wfl.audit_scenario: Scenario,
    wfl.load_study: StudyFile,
    wfl.run_study: StudyFile,
}

TINY: dict[str, Any] = {"name": "tiny", "rounds": 2, "clients": {"count": 4}, "data": {"limit": 80}}


@pytest.mark.parametrize(("function", "root"), TAKE_KEYS.items(), ids=lambda one: one.__name__)
def test_no_key_is_taken_for_a_parameter(function: Any, root: Any) -> None:
    parameters = named_parameters(function)
    assert not {*parameters} & root.model_fields.keys()
    assert any(one.kind is inspect.Parameter.VAR_KEYWORD for one in inspect.signature(function).parameters.values())


def test_no_key_has_what_stands_for_a_dot() -> None:
    assert not [info.path for root in (Scenario, StudyFile) for info in all_keys(root) if SEPARATOR in info.path]


def test_a_name_and_keywords_are_a_run(tmp_path: Path) -> None:
    rate = np.float64(0.1)
    result = wfl.simulate(
        "quickstart", tmp_path, overrides={"data.split_seed": 3}, rounds=1, training__optimizer__lr=rate, pictures=False
    )
    expected = wfl.load_scenario("quickstart", {"data.split_seed": 3, "rounds": 1, "training.optimizer.lr": 0.1})
    assert wfl.load_scenario(result.folder / "scenario.yaml") == expected


@pytest.mark.parametrize("kind", ["mapping", "path", "text", "scenario"])
def test_every_kind_of_source_is_the_same_scenario(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text("{name: tiny, rounds: 2, clients: {count: 4}, data: {limit: 80}}\n", encoding="utf-8")
    sources: dict[str, Source] = {"mapping": TINY, "path": file, "text": str(file), "scenario": wfl.load_scenario(TINY)}
    assert wfl.load_scenario(sources[kind], uplink__snr_db=5) == wfl.load_scenario(file, {"uplink.snr_db": 5})


def test_the_file_that_is_simulated_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text("{name: tiny, rounds: 1, clients: {count: 4}}\n", encoding="utf-8")
    with pytest.raises(OutputError, match=r"scenario\.yaml"):
        wfl.simulate(file, tmp_path)


def test_a_scenario_is_changed_by_keywords() -> None:
    before = wfl.load_scenario(TINY)
    after = wfl.load_scenario(before, seed=9, training__algorithm__lambda__1=0.2, channel={"profile": "urban-macro"})
    changed = {line.partition(":")[0] for line in differing_keys(before, after)}
    assert {"seed", "training.algorithm.lambda.1"} <= changed and any(key.startswith("channel.") for key in changed)


def test_values_of_python_are_taken_as_those_of_a_file() -> None:
    given = {
        **TINY,
        "timing": {"cpu_hz": np.array([1e9, 2e9])},
        "data": {"dataset": {"name": "mnist", "root": Path("x")}},
    }
    scenario = wfl.load_scenario(given, clients__count=np.int64(7))
    assert scenario.clients.count == 7 and tuple(scenario.timing.cpu_hz) == (1e9, 2e9)


ENDLESS: dict[str, Any] = {}
ENDLESS["data"] = ENDLESS


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "x", "rouns": 5}, "scenario: rouns: found an unknown key (with the value 5); allowed: name, seed,"),
        ({"name": "x", "rouns": 5}, "did you mean rounds?"),
        ({"name": "x", "uplink": {"snr_db": "high"}}, "scenario: uplink.snr_db: found high; allowed: a number"),
        ({"name": "x", "uplink": {"snr_db": float("nan")}}, "scenario: uplink.snr_db: found nan; allowed: a finite"),
        ({"name": "x", 2.5: 1}, "scenario: found the key 2.5; allowed: keys that are text or whole numbers"),
        ({"name": "x", "model": {"hidden": (size for size in (3,))}}, "hidden: found a generator; allowed: a list of"),
        ({"name": "x", "seed": object}, "scenario: seed: found <class 'object'>; allowed: a whole number"),
        ({}, "scenario: name: found nothing; allowed: "),
        (ENDLESS, "scenario: data: found more than 24 levels of nesting"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_mapping_is_told_by_key_path(given: Any, words: str) -> None:
    with pytest.raises(ScenarioError) as refusal:
        wfl.load_scenario(given)
    assert words in str(refusal.value)


@pytest.mark.parametrize("threads", [0, -1, 1025, True, "2"])
def test_threads_are_a_number_of_them(threads: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"threads: found .*; allowed: a whole number from 1 to 1,024"):
        wfl.simulate(TINY, tmp_path, threads=threads, pictures=False)


@pytest.mark.parametrize("source", [None, 5, [TINY]], ids=repr)
def test_what_is_no_source_is_refused_in_words(source: Any) -> None:
    for load, words in ((wfl.load_scenario, "scenarios: found an? "), (wfl.load_study, "studies: found an? ")):
        with pytest.raises(ScenarioError, match=words):
            load(source)


def test_keys_of_numpy_are_those_that_they_stand_for() -> None:
    schedule = {"name": "upcycled", "lambda": {np.int64(1): 0.2}}
    expected = {"name": "upcycled", "lambda": {1: 0.2}}
    assert wfl.load_scenario(TINY, training__algorithm=schedule) == wfl.load_scenario(
        TINY, training__algorithm=expected
    )


def test_a_huge_mapping_of_unknown_keys_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    guesses: list[Any] = []

    def guess(wrong: Any, _: Any) -> str:
        guesses.append(wrong)
        return ""

    monkeypatch.setattr(rejection, "closest", guess)
    with pytest.raises(ScenarioError, match=r"and \d+ more$"):
        wfl.load_scenario({**TINY, **{f"key{at}": at for at in range(1000)}})
    assert len(guesses) <= rejection.MAX_LINES


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"rouns": 5}, "rouns=5: rouns: found an unknown key; allowed: name, seed, rounds, "),
        ({"rouns": 5}, "; did you mean rounds?"),
        ({"overwritte": True}, "overwritte=True: overwritte: found an unknown key; allowed: name, "),
        ({"overwritte": True}, "; did you mean overwrite?"),
        ({"training__optimiser__lr": 1}, "training__optimiser__lr=1: training.optimiser: found an unknown key; "),
        ({"training__optimiser__lr": 1}, "did you mean optimizer?"),
        ({"rounds": "5"}, "rounds='5': rounds: found '5'; allowed: a whole number from 1 to 1000000; write it without"),
        ({"rounds": float("inf")}, "rounds: found inf; allowed: a finite number"),
        ({"uplink__": 5}, "uplink__=5: found the key path 'uplink__'; allowed: keys joined by two underscores"),
        ({"overrides": {"rounds": 3}, "rounds": 4}, "rounds=4: rounds: found the key in overrides as well as in a"),
        ({"overrides": {"rouns": 3}}, "rouns=3: rouns: found an unknown key; allowed: name, seed, rounds, "),
    ],
)
def test_misspelt_keywords_get_the_message_of_a_file(keywords: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as refusal:
        wfl.simulate("quickstart", tmp_path / "out", **keywords)
    assert words in str(refusal.value) and "--" not in str(refusal.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_study_is_a_name_or_a_mapping_with_keywords(tmp_path: Path) -> None:
    design = wfl.load_study("snr-clients", base__rounds=3, seeds=1, grid__clients__count=[4])
    assert {run.scenario.rounds for run in design.runs} == {3} and {
        run.scenario.clients.count for run in design.runs
    } == {4}
    study = {"base": TINY, "grid": {"uplink.snr_db": [0, 10]}}
    result = wfl.run_study(study, tmp_path / "out", workers=1, base__rounds=1, seeds=1)
    assert len(result.complete) == 2 and result.name == "study"
    shown = repr(result)
    assert "2 of 2 runs complete, over uplink.snr_db, accuracy " in shown and str(tmp_path) in shown
    assert repr(wfl.open_study(tmp_path / "out")) == shown and shown.count("\n") <= 1


@pytest.mark.parametrize(
    ("function", "source", "keywords", "words"),
    [
        (wfl.load_study, "snr-clients", {"rounds": 3}, "rounds=3: rounds: found an unknown key; allowed: base.KEY, "),
        (wfl.load_study, "snr-clients", {"rounds": 3}, "did you mean base.rounds?"),
        (wfl.run_study, "snr-clients", {"resum": True}, "resum=True: resum: found an unknown key; "),
        (wfl.run_study, "snr-clients", {"resum": True}, "did you mean resume?"),
        (
            wfl.load_study,
            {"base": "quickstart", "gird": {}},
            {},
            "study: gird: found an unknown key (with the value {})",
        ),
    ],
)
def test_a_misspelt_key_of_a_study(function: Any, source: Any, keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError) as refusal:
        function(source, **keywords)
    assert words in str(refusal.value)


def test_a_design_that_is_made_takes_no_keys() -> None:
    design = wfl.load_study("snr-clients", base__rounds=1, seeds=1)
    with pytest.raises(ScenarioError, match="seeds=3: seeds: found a key for a design whose runs are made already"):
        wfl.run_study(design, seeds=3)


def test_messages_name_what_the_caller_can_write(tmp_path: Path) -> None:
    wfl.simulate(TINY, tmp_path, rounds=1, pictures=False)
    with pytest.raises(OutputError) as refusal:
        wfl.simulate(TINY, tmp_path, rounds=1)
    words = "use resume=True to continue it, overwrite=True to replace it, or out= for another folder"
    assert words in str(refusal.value)
    with command_line_words():
        assert "use --resume to continue it, --overwrite to replace it, or --out for" in str(refusal.value)
    assert words in str(refusal.value)
    assert wfl.simulate(TINY, tmp_path, rounds=1, overwrite=True, pictures=False).summary["rounds"] == 1


def test_what_a_repl_shows_is_a_line_or_two(tmp_path: Path) -> None:
    scenario = wfl.load_scenario(TINY)
    assert (
        repr(scenario)
        == str(scenario)
        == ("<Scenario tiny: seed 7, 2 rounds, 4 clients, mlp on digits, uplink over_the_air>")
    )
    result = wfl.simulate(small(rounds=1), tmp_path, pictures=False)
    accuracy = f"{result.summary['test_accuracy']:.1%}"
    assert repr(result).splitlines() == [
        f"<Result small, seed {result.summary['seed']}: complete, 1 rounds, accuracy {accuracy},",
        f" ε {wfl.epsilon_text(result.summary['epsilon_published'])} published and "
        f"{wfl.epsilon_text(result.summary['epsilon_accounted'])} accounted at δ = 1e-05, in {tmp_path}>",
    ]
    plan = repr(make_plan(scenario, rounds=1))
    assert plan.startswith("<Plan tiny: 1 rounds, d = ") and " accounted at δ = 1e-05" in plan and plan.count("\n") == 1
    design = repr(wfl.load_study("snr-clients", base__rounds=1, seeds=2))
    assert design.startswith("<StudyDesign snr-clients: ") and design.endswith(
        "runs over uplink.snr_db, clients.count>"
    )
