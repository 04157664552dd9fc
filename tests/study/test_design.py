"""Study files: what they mean, and how they are refused."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.study.studies import BASE, design, write_study
from wirelessfl.errors import ScenarioError
from wirelessfl.scenario import load_scenario
from wirelessfl.scenario.yamltree import dump_yaml
from wirelessfl.study import Factor, load_study
from wirelessfl.study.file import METRICS
from wirelessfl.trace.schema import ROOT


def refusal(folder: Path, text: str, overrides: Any = ()) -> str:
    """Why a study is refused; its file is called s.yaml, line 1 of ``text`` is line 1 of the file."""
    (folder / "s.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        load_study(folder / "s.yaml", overrides)
    return str(caught.value)


def test_every_combination_at_every_seed(tmp_path: Path) -> None:
    plan = design(tmp_path, grid={"uplink.snr_db": [0, 5.5], "clients.count": [2, 3, 4]}, seeds=2)
    expected = list(itertools.product([0, 5.5], [2, 3, 4], [11, 12]))
    found = [(run.scenario.uplink.snr_db, run.scenario.clients.count, run.scenario.seed) for run in plan.runs]  # type: ignore[union-attr]
    assert found == expected
    assert plan.factors == (Factor(("uplink.snr_db",), ((0,), (5.5,))), Factor(("clients.count",), ((2,), (3,), (4,))))
    assert [run.levels for run in plan.runs] == [(i, j) for i, j in itertools.product(range(2), range(3)) for _ in "ab"]
    assert plan.name == "small-study"
    assert plan.seeds == (11, 12)
    assert plan.metrics == ("test_accuracy",)
    assert len({run.id for run in plan.runs}) == 12


def test_the_text_of_a_study_needs_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("noise_figure_db: 7\ncsi: {error_std: 0.1}\n")
    (tmp_path / "base.yaml").write_text(dump_yaml({**BASE, "channel": {"profile": "mine.yaml"}}))
    keys = {"base": "base.yaml", "grid": {"uplink.kind": ["over_the_air", "digital"]}, "seeds": 2}
    (tmp_path / "s.yaml").write_text(dump_yaml({**keys, "set": {"rounds": 2}}))
    plan = load_study(tmp_path / "s.yaml", ["base.clients.count=4", "seeds=[1, 5]"])
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "alone.yaml").write_text(plan.text)
    alone = load_study(tmp_path / "elsewhere" / "alone.yaml")
    assert [run.id for run in alone.runs] == [run.id for run in plan.runs] and len(plan.runs) == 4
    assert alone.name == "s" and alone.runs[0].scenario.rounds == 2 and alone.runs[0].scenario.clients.count == 4


def test_zip_moves_keys_together(tmp_path: Path) -> None:
    plan = design(tmp_path, zip={"clients.count": [2, 4], "data.limit": [20, 40]}, grid={"rounds": [1, 2]})
    found = [(run.scenario.rounds, run.scenario.clients.count, run.scenario.data.limit) for run in plan.runs]
    assert found == [(1, 2, 20), (1, 4, 40), (2, 2, 20), (2, 4, 40)]
    assert plan.factors[1].name == "clients.count + data.limit"


def test_one_axis_changes_a_key_of_the_mappings_that_another_sets(tmp_path: Path) -> None:
    mechanisms = [{"mechanism": "gaussian", "noise_multiplier": 1.0}, {"mechanism": "zcdp"}]
    grid = {"training.privacy.epsilon": [2, 9], "training.privacy": mechanisms}
    for order in (list(grid), list(grid)[::-1]):
        plan = design(tmp_path, {"base.uplink": {"kind": "ideal"}}, grid={name: grid[name] for name in order})
        found = {(run.scenario.training.privacy.mechanism, run.scenario.training.privacy.epsilon) for run in plan.runs}  # type: ignore[union-attr]
        assert found == {("gaussian", 2), ("gaussian", 9), ("zcdp", 2), ("zcdp", 9)}
    assert plan.describe(plan.runs[1]).startswith("training.privacy=gaussian, training.privacy.epsilon=9, seed")


def test_seeds_alone_are_a_study(tmp_path: Path) -> None:
    plan = design(tmp_path, seeds=[5, 3])
    assert [run.scenario.seed for run in plan.runs] == [5, 3]
    assert plan.describe(plan.runs[0]) == "the base, seed 5"


def test_a_point_is_the_scenario_that_simulate_would_run(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("base: quickstart\ngrid: {uplink.jammer.epsilon: [0.5]}\n", encoding="utf-8")
    (run,) = load_study(file, ["base.rounds=3"]).runs
    assert run.scenario == load_scenario("quickstart", {"rounds": 3, "uplink.jammer.epsilon": 0.5})


def test_a_base_file_lies_beside_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "below"
    folder.mkdir()
    (folder / "mine.yaml").write_text("name: mine\n", encoding="utf-8")
    (folder / "s.yaml").write_text("base: mine.yaml\ngrid: {rounds: [1]}\n", encoding="utf-8")
    assert load_study("below/s.yaml").runs[0].scenario.name == "mine"


def test_what_a_study_sets_holds_at_all_points(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "base: quickstart\nset: {rounds: 3, uplink.jammer: null}\ngrid: {clients.count: [3, 4]}\n", encoding="utf-8"
    )
    runs = load_study(tmp_path / "s.yaml").runs
    changes = {"rounds": 3, "uplink.jammer": None}
    assert [run.scenario for run in runs] == [
        load_scenario("quickstart", {**changes, "clients.count": count}) for count in (3, 4)
    ]
    assert {run.scenario.rounds for run in load_study(tmp_path / "s.yaml", ["base.rounds=2"]).runs} == {2}
    assert {run.scenario.rounds for run in load_study(tmp_path / "s.yaml", ["set.rounds=5"]).runs} == {5}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("set: {rounds: 3}\ngrid: {rounds: [1, 2]}", "a key that is on the axis grid too"),
        ("set: {a..b: 3}\ngrid: {rounds: [1, 2]}", "the key path 'a..b'"),
        ("set: [1]\ngrid: {rounds: [1, 2]}", "a mapping from keys of the scenario to their value"),
        ("set: {uplink.nothing: 3}\ngrid: {rounds: [1, 2]}", "s.yaml:2: uplink.nothing: found an unknown key"),
    ],
)
def test_what_a_study_may_set(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refusal(tmp_path, f"base: quickstart\n{text}\n")


def test_dropped_siblings_are_named_once(tmp_path: Path) -> None:
    keys = {"training.algorithm.name": ["fedavg", "fedprox"], "rounds": [1, 2]}
    plan = design(tmp_path, {"base.training.algorithm": {"name": "fedprox", "mu": 0.5}}, grid=keys)
    assert [note.partition(" ")[2] for note in plan.notes] == [
        "dropped training.algorithm.mu: 0.5 (name: fedavg does not have it)"
    ]


@pytest.mark.parametrize(
    "overrides",
    [
        {"base.rounds": 9, "seeds": 3, "grid.clients.count": [2], "metrics": ["airtime"], "x": "energy", "name": "new"},
        ["base.rounds=9", "seeds=3", "grid.clients.count=[2]", "metrics=[airtime]", "x=[energy]", "name=new"],
    ],
)
def test_overrides_of_base_and_study(tmp_path: Path, overrides: Any) -> None:
    plan = load_study(write_study(tmp_path, grid={"clients.count": [3], "uplink.snr_db": [0, 1]}), overrides)
    assert {(run.scenario.rounds, run.scenario.clients.count) for run in plan.runs} == {(9, 2)}
    assert (plan.name, plan.metrics, plan.x, len(plan.runs)) == ("new", ("airtime",), ("energy",), 6)


def test_the_axes_of_the_picture(tmp_path: Path) -> None:
    assert design(tmp_path, seeds=2).x == ("round",)
    assert design(tmp_path, seeds=2, x="sim_time").x == ("sim_time",)
    assert design(tmp_path, seeds=2, x=["epsilon", "round", "epsilon"]).x == ("epsilon", "round")


def test_points_in_joules_and_without_have_no_axis_of_energy_in_common(tmp_path: Path) -> None:
    uplinks = [{"kind": "ideal"}, {"kind": "over_the_air", "snr_db": 3}, {"kind": "digital", "snr_db": 3}]
    watts = {"kind": "digital", "tx_power_dbm": 10}
    fixed = {"base.channel.pathloss": {"model": "log_distance"}}
    assert design(tmp_path, grid={"uplink": uplinks}, x=["energy"]).x == ("energy",)
    assert design(tmp_path, fixed, grid={"uplink": [*uplinks, watts]}, x=["round"]).x == ("round",)
    with pytest.raises(ScenarioError) as caught:
        design(tmp_path, fixed, grid={"uplink": [*uplinks, watts]}, x=["round", "energy"])
    (message,) = str(caught.value).splitlines()
    assert "x: found energy, known in joules at some points and not at uplink=over_the_air" in message
    assert "uplink.tx_power_dbm" in message


def test_the_base_can_be_replaced(tmp_path: Path) -> None:
    plan = design(tmp_path, {"base": "fedavg-ideal", "base.rounds": 2}, grid={"clients.count": [3]})
    assert plan.runs[0].scenario == load_scenario("fedavg-ideal", {"rounds": 2, "clients.count": 3})


LINE_1 = "base: quickstart\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "s.yaml:1: found an empty file"),
        ("- 1\n", "s.yaml:1: found almost no key of a study"),
        ("base: [\n", "not valid YAML"),
        ("grid: {rounds: [1]}\n", "s.yaml:1: base: found nothing"),
        ("base: nowhere\ngrid: {rounds: [1]}\n", "s.yaml:1: base: nowhere: found no such file or shipped name"),
        ("base: 3\ngrid: {rounds: [1]}\n", "s.yaml:1: base: found 3; allowed: a scenario file"),
        (LINE_1, "s.yaml:1: grid: found nothing that varies"),
        (f"{LINE_1}grid: {{}}\n", "s.yaml:2: grid: found {}; allowed: a mapping from at least one key"),
        (f"{LINE_1}grid: {{}}\nseeds: 3\n", "s.yaml:2: grid: found {}"),
        (f"{LINE_1}grid:\n", "s.yaml:2: grid: found null"),
        (f"{LINE_1}grid:\n  rounds: []\n", "s.yaml:3: grid.rounds: found []; allowed: a list of at least one value"),
        (f"{LINE_1}grid:\n  uplink.snr_db: 3\n", "s.yaml:3: grid.uplink.snr_db: found 3; allowed: a list"),
        (f"{LINE_1}grid:\n  uplink: {{snr_db: [3]}}\n", "s.yaml:3: grid.uplink: found {snr_db: [3]}; allowed: a list"),
        (f"{LINE_1}grid:\n  uplink..snr_db: [3]\n", "s.yaml:3: grid.uplink..snr_db: found the key path"),
        (f"{LINE_1}grid:\n  seed: [3]\n", "s.yaml:3: grid.seed: found the seed as an axis; allowed: seeds beside"),
        (f"{LINE_1}grid:\n  uplink.snr_bd: [1, 2]\n", "s.yaml:3: uplink.snr_bd: found an unknown key"),
        (f"{LINE_1}grid:\n  nowhere.x: [1]\n", "s.yaml:3: nowhere: found an unknown key"),
        (f"{LINE_1}grid:\n  rounds: [1, many]\n", "s.yaml:3: rounds: found many; allowed: a whole number"),
        (f"{LINE_1}grid:\n  rounds: [1, 1]\n", "s.yaml:2: grid: found the same scenario at two points"),
        (f"{LINE_1}grid:\n  uplink.snr_db: [1, 1.0]\n", "(at uplink.snr_db=1.0 and uplink.snr_db=1)"),
        (f"{LINE_1}zip: {{rounds: [1], seeds: [1, 2]}}\n", "s.yaml:2: zip: found lists of unequal length (1 for"),
        (f"{LINE_1}grid: {{rounds: [1]}}\nzip: {{rounds: [2]}}\n", "s.yaml:3: zip.rounds: found the key a second"),
        (
            f"{LINE_1}grid: {{uplink: [{{kind: ideal}}, null], uplink.clip: [2]}}\n",
            "s.yaml:2: grid.uplink.clip: found a key that overlaps with uplink",
        ),
        (f"{LINE_1}seeds: 0\n", "s.yaml:2: seeds: found 0; allowed: a number of seeds from 1"),
        (f"{LINE_1}seeds: true\n", "s.yaml:2: seeds: found true"),
        (f"{LINE_1}seeds: 1.5\n", "s.yaml:2: seeds: found 1.5"),
        (f"{LINE_1}seeds: []\n", "s.yaml:2: seeds: found []"),
        (f"{LINE_1}seeds: [1, 1]\n", "s.yaml:2: seeds: found [1, 1]; allowed: a number of seeds"),
        (f"{LINE_1}seeds: [-1]\n", "s.yaml:2: seeds: found [-1]"),
        (f"{LINE_1}seeds: 2\nmetrics: [accuracy]\n", "s.yaml:3: metrics: found [accuracy]; allowed: a list of"),
        (f"{LINE_1}seeds: 2\nmetrics: []\n", "s.yaml:3: metrics: found []"),
        (
            f"{LINE_1}seeds: 2\nx: [round, seconds]\n",
            "s.yaml:3: x: found [round, seconds]; allowed: one of round, sim_time, energy, epsilon, or a list of them",
        ),
        (f"{LINE_1}seeds: 2\nx: []\n", "s.yaml:3: x: found []"),
        (f"{LINE_1}seeds: 2\nname: a/b\n", "s.yaml:3: name: found a/b"),
        (f"{LINE_1}seeds: 2\nsedes: 2\n", "s.yaml:3: sedes: found an unknown key (with the value 2); allowed: name"),
        (f"{LINE_1}seeds: 2\nrounds: 2\n", "s.yaml:3: rounds: found an unknown key"),
        (f"{LINE_1}seeds: 101\ngrid: {{rounds: [{', '.join(map(str, range(1, 101)))}]}}\n", "found 10,100 runs"),
        ("base: {name: x, rounds: {a: 1}}\nseeds: 2\n", "s.yaml:1: rounds: found {a: 1}; allowed: a whole number"),
        ("base:\n  name: x\n  round: 3\nseeds: 2\n", "s.yaml:3: round: found an unknown key"),
        (f"base: {{name: x, seed: {2**63 - 1}}}\nseeds: 2\n", "s.yaml:2: seeds: found 2 seeds from the base's"),
    ],
)  # fmt: skip
def test_refusals_say_where_what_and_what_is_allowed(tmp_path: Path, text: str, words: str) -> None:
    assert words in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("rounds=3", "--set rounds=3: rounds: found an unknown key; allowed: base.KEY, name"),
        ("rounds=3", "did you mean base.rounds?"),
        ("base.round=3", "--set base.round=3: round: found an unknown key"),
        ("base.seed=x", "--set base.seed=x: seed: found x"),
        ("seeds.x=3", "--set seeds.x=3: seeds.x: found an unknown key"),
        ("grid.rounds=[]", "--set grid.rounds=[]: grid.rounds: found []"),
        ("grid.rounds", "found no '='"),
        (
            "base.rounds=3",
            "--set base.rounds=3: base.rounds: found a key that is on the axis grid.rounds too; allowed: ",
        ),
        ("base.uplink.snr_db=3", "base.uplink.snr_db: found a key that is on the axis zip.uplink too"),
        ("grid.rounds.2=3", "--set grid.rounds.2=3: grid.rounds.2: found no such item; allowed: an index from 0 to 1"),
        ("base.clients.roles.0.count=1", "roles.0: found no such item; allowed: no index, as the list is empty"),
    ],
)
def test_overrides_are_refused_like_files(tmp_path: Path, override: str, words: str) -> None:
    axes = "grid: {rounds: [1, 2]}\nzip: {uplink: [{kind: ideal}, {kind: digital}]}\n"
    assert words in refusal(tmp_path, LINE_1 + axes, [override])


def test_files_beside_the_base_are_in_the_ids_wherever_the_study_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started from elsewhere, a study did not find them, and kept the runs of other files."""
    (tmp_path / "mine").mkdir()
    base = {**BASE, "faults": {"availability": {"model": "recorded", "file": "who.csv"}}}
    (tmp_path / "mine" / "base.yaml").write_text(dump_yaml(base))
    (tmp_path / "mine" / "s.yaml").write_text("base: base.yaml\nseeds: 2\n")

    def ids(folder: Path, path: str) -> list[str]:
        monkeypatch.chdir(folder)
        return [run.id for run in load_study(path).runs]

    (tmp_path / "mine" / "who.csv").write_text("one")
    one = ids(tmp_path, "mine/s.yaml")
    assert one == ids(tmp_path / "mine", "s.yaml")
    (tmp_path / "who.csv").write_text("not this one")
    assert ids(tmp_path, "mine/s.yaml") == one
    (tmp_path / "mine" / "who.csv").write_text("other")
    assert not set(ids(tmp_path, "mine/s.yaml")) & set(one)


def test_an_override_changes_one_value_of_an_axis() -> None:
    plan = load_study(
        {"base": "quickstart", "grid": {"training.batch_size": [5, 10]}}, ["grid.training.batch_size.1=7"]
    )
    assert [run.scenario.training.batch_size for run in plan.runs] == [5, 7]


def test_a_mapping_of_the_base_gives_way_to_the_keys_of_it_on_an_axis() -> None:
    study = {"base": "quickstart", "grid": {"training.batch_size": [5, 10]}}
    plan = load_study(study, ["base.training={batch_size: 3, steps: 2}"])
    found = [(run.scenario.training.batch_size, run.scenario.training.steps) for run in plan.runs]
    assert found == [(5, 2), (10, 2)]


def test_all_errors_are_listed_before_anything_runs(tmp_path: Path) -> None:
    text = (
        f"{LINE_1}grid:\n"
        "  uplink.snr_bd: [0, 1]\n"  # unknown
        "  clients.count: [5, many]\n"  # one bad value
        "  clients.selection: [{scheme: all}, {scheme: uniform, count: 30}]\n"  # a contradiction at some points
    )
    lines = refusal(tmp_path, text, ["base.roundz=3"]).splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("--set base.roundz=3: roundz: found an unknown key") and "(at" not in lines[0]
    assert lines[1].startswith(f"{tmp_path}/s.yaml:3: uplink.snr_bd: found an unknown key") and "(at" not in lines[1]
    bad_value = next(line for line in lines if "clients.count: found many" in line)
    assert bad_value.startswith(f"{tmp_path}/s.yaml:4: ") and bad_value.endswith("and 3 more)")
    contradiction = next(line for line in lines if "clients.selection.count: found 30" in line)
    assert "clients.count=5" in contradiction and contradiction.endswith("and 1 more)")


def test_a_flood_of_errors_is_cut(tmp_path: Path) -> None:
    values = ", ".join(f"x{number}" for number in range(100))
    lines = refusal(tmp_path, f"{LINE_1}grid: {{rounds: [{values}]}}\n").splitlines()
    assert len(lines) == 31
    assert lines[-1] == "and more"


def test_metrics_are_the_rounds_variables_of_the_trace() -> None:
    assert set(METRICS) == {variable.name for variable in ROOT.of("round")} - {"event_count"}


def test_the_schema_knows_grid_keys_and_a_base_written_in_place() -> None:
    from wirelessfl.study import study_schema

    schema = json.loads(json.dumps(study_schema()))
    assert schema["required"] == ["base"]
    assert set(schema["properties"]) == {"name", "base", "set", "grid", "zip", "seeds", "metrics", "x"}
    for axis in ("set", "grid", "zip"):
        assert "uplink.jammer.epsilon" in schema["properties"][axis]["properties"]
    assert "uplink" in schema["$defs"]["Scenario"]["properties"]
    references = json.dumps(schema).split('"$ref": "#/$defs/')[1:]
    assert {text.partition('"')[0] for text in references} <= set(schema["$defs"])


def test_a_name_is_made_of_the_file_s(tmp_path: Path) -> None:
    path = tmp_path / "my study (2).yaml"
    path.write_text(dump_yaml({"base": BASE, "seeds": 1}), encoding="utf-8")
    assert load_study(path).name == "my-study--2-"


def test_importing_studies_is_cheap() -> None:
    heavy = "{'torch', 'pandas', 'pyarrow', 'matplotlib', 'dask', 'distributed', 'xarray', 'simpy', 'rich', 'click'}"
    code = f"import sys, wirelessfl.study; sys.exit(str({heavy} & set(sys.modules) or ''))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
