"""Files, profiles, and scenarios written out again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wirelessfl.errors import ScenarioError
from wirelessfl.scenario import (
    Scenario,
    differing_keys,
    dump_scenario,
    list_shipped,
    load_scenario,
    parse_scenario,
    resolve_scenario,
)
from wirelessfl.scenario.base import LARGEST_SINGLE, LEAST_NORM
from wirelessfl.study import load_study


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "# mine\nfading: {model: 'a.b:C', options: {k: 1, j: 2}}\ncsi:\n  error_std: 0.5\n  estimator: mmse\n"
    )
    return path


def scenario_file(folder: Path, text: str) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("shipped", list_shipped(), ids=lambda shipped: shipped.name)
def test_shipped_scenarios_load_and_round_trip(shipped: Any) -> None:
    scenario = load_scenario(shipped.name)
    assert scenario.name == shipped.name.split("/")[-1]
    assert load_scenario(shipped.path) == scenario
    assert parse_scenario(dump_scenario(scenario)) == scenario


@pytest.mark.parametrize("shipped", list_shipped("channels"), ids=lambda shipped: shipped.name)
def test_shipped_channels_load(shipped: Any) -> None:
    load_scenario("quickstart", [f"channel.profile={shipped.name}"])


def test_the_issue_s_large_population_loads() -> None:
    scenario = load_scenario(
        "quickstart",
        [
            "data.dataset={name: synthetic}",
            "data.partition={scheme: natural}",
            "rounds=20",
            "clients.count=1000000",
            "clients.selection={scheme: uniform, count: 50}",
        ],
    )
    assert scenario.clients.count == 10**6


finite = st.floats(allow_nan=False, allow_infinity=False, min_value=1e-300, max_value=1e300)
single = st.floats(min_value=1e-300, max_value=LARGEST_SINGLE)
norms = st.floats(min_value=LEAST_NORM, max_value=LARGEST_SINGLE)
gains = st.floats(min_value=1e-100, max_value=1e100)
waits = st.floats(min_value=1e-300, max_value=1e12)
counts = st.integers(1, 10**9)
steps = st.dictionaries(st.integers(2, 10**6), single, max_size=3).flatmap(
    lambda later: single.map(lambda first: {**later, 1: first})
)
options = st.dictionaries(
    st.text("abc", min_size=1), st.integers() | st.text("yesno10e5.:", max_size=4) | st.booleans()
)
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "name": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True),
    "seed": st.integers(0, 2**63 - 1),
    "rounds": st.integers(1, 10**6),
    "data.split_seed": st.integers(0, 2**32 - 1),
    "data.partition": st.sampled_from([{"scheme": "iid"}, {"scheme": "dirichlet", "alpha": 0.1}, {"scheme": "sizes"}]),
    "model": st.sampled_from([{"name": "logistic"}, {"name": "mlp", "activation": {"name": "tempered_sigmoid"}}])
    | options.map(lambda given: {"name": "pkg.mod:Name", "options": given}),
    "training.algorithm": (finite | steps).map(lambda lam: {"name": "upcycled", "lambda": lam})
    | st.just({"name": "fedavg"}),
    "training.optimizer": st.sampled_from([{"name": "adam"}, {"name": "adagrad", "eps": 1e-5}]),
    "training.lr_schedule": st.none() | steps,
    "training.steps": counts,
    "uplink": (st.none() | norms).map(lambda clip: {"kind": "ideal", "clip": clip})
    | gains.map(lambda gain: {"power_control": {"server_gain": gain}, "jammer": {}}),
    "timing.wait_for": st.floats(0.01, 1).map(lambda share: {"fraction": share}) | st.just("all"),
    "timing.deadline_s": st.none() | waits,
    "trace": st.integers(1, 10**6).map(lambda every: {"models": f"every {every}", "events": False}),
    "privacy.delta": st.floats(1e-300, 1, exclude_max=True),
}


@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=KEYS))
def test_any_scenario_round_trips(overrides: dict[str, Any]) -> None:
    scenario = parse_scenario("name: x", overrides=overrides)
    text = dump_scenario(scenario)
    again = parse_scenario(text)
    assert again == scenario
    assert dump_scenario(again) == text
    assert differing_keys(scenario, again) == []


def test_the_resolved_file_names_every_key() -> None:
    tree = parse_scenario("name: x").model_dump(by_alias=True)
    text = dump_scenario(parse_scenario("name: x"))
    for section, keys in tree.items():
        assert f"\n{section}:" in f"\n{text}"
        for key in keys if isinstance(keys, dict) else ():
            assert key in text


def test_differing_keys_name_both_values() -> None:
    a, b = parse_scenario("name: x"), parse_scenario("{name: x, rounds: 5, uplink: {kind: ideal, clip: 1}}")
    found = differing_keys(a, b)
    assert found[0] == "rounds: 40 -> 5"
    assert "uplink.kind: over_the_air -> ideal" in found
    assert "uplink.snr_db: 1.0 -> absent" in found
    assert not [text for text in found if text.startswith("uplink.clip")]
    assert "uplink.snr_db: absent -> 1.0" in differing_keys(b, a)
    assert differing_keys(a, a) == []


def test_differing_keys_see_types_and_lists() -> None:
    a = parse_scenario("{name: x, model: {name: 'a:b', options: {k: 1, e: {}}}}")
    b = parse_scenario("{name: x, model: {name: 'a:b', options: {k: '1', e: null}}}")
    assert differing_keys(a, b) == ["model.options.k: 1 -> '1'", "model.options.e: {} -> null"]
    c = parse_scenario("{name: x, model: {hidden: [32, 16]}}")
    assert differing_keys(parse_scenario("name: x"), c) == ["model.hidden: [32] -> [32, 16]"]


def test_a_path_wins_over_a_shipped_name_when_it_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("quickstart").write_text("name: mine")
    assert load_scenario("quickstart").name == "quickstart"
    assert load_scenario("./quickstart").name == "mine"
    assert load_scenario(Path("quickstart")).name == "mine"


def test_unknown_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError) as caught:
        load_scenario("quickstrat")
    assert str(caught.value).startswith("quickstrat: found no such file or shipped name; allowed: a file, or ")
    assert str(caught.value).endswith("did you mean quickstart?")
    with pytest.raises(ScenarioError, match=r"none\.yaml: cannot be read: No such file or directory"):
        load_scenario("none.yaml")
    with pytest.raises(ScenarioError, match="cannot be read: Is a directory"):
        load_scenario(tmp_path)


def test_a_profile_fills_in_below_the_scenario_s_keys(profile: Path, tmp_path: Path) -> None:
    scenario = load_scenario(scenario_file(tmp_path, "{name: x, channel: {profile: mine.yaml, csi: {error_std: 0.1}}}"))
    assert scenario.channel.csi.error_std == 0.1
    assert scenario.channel.csi.estimator == "mmse"
    assert scenario.channel.fading.model == "a.b:C"
    assert scenario.channel.profile is None


def test_another_variant_replaces_that_of_the_profile(profile: Path, tmp_path: Path) -> None:
    text = "{name: x, channel: {profile: mine.yaml, fading: {model: rayleigh}}}"
    assert load_scenario(scenario_file(tmp_path, text)).channel.fading.model_dump() == {"model": "rayleigh"}


def test_a_key_without_tag_changes_the_profile_s_variant(profile: Path, tmp_path: Path) -> None:
    text = "{name: x, channel: {profile: mine.yaml, fading: {options: {k: 9}}}}"
    fading = load_scenario(scenario_file(tmp_path, text)).channel.fading
    assert fading.model_dump() == {"model": "a.b:C", "options": {"k": 9}}


def test_overrides_win_over_the_profile(profile: Path, tmp_path: Path) -> None:
    file = scenario_file(tmp_path, "{name: x, channel: {profile: mine.yaml}}")
    assert load_scenario(file, ["channel.csi.error_std=0.2"]).channel.csi.error_std == 0.2
    assert load_scenario(file, ["channel.fading.model=static"]).channel.fading.model == "static"


def test_a_profile_set_by_override_wins_over_the_file(profile: Path, tmp_path: Path) -> None:
    file = scenario_file(tmp_path, "{name: x, channel: {csi: {error_std: 0.1}, noise_figure_db: 7}}")
    channel = load_scenario(file, [f"channel.profile={profile}"]).channel
    assert (channel.csi.error_std, channel.noise_figure_db) == (0.5, 7.0)
    later = load_scenario(file, [f"channel.profile={profile}", "channel.csi.error_std=0.3"]).channel
    assert later.csi.error_std == 0.3
    whole = load_scenario(file, [f"channel={{profile: {profile}, csi: {{error_std: 0.4}}}}"]).channel
    assert (whole.csi.error_std, whole.csi.estimator, whole.noise_figure_db) == (0.4, "mmse", 5.0)


def test_a_null_profile_is_none() -> None:
    assert resolve_scenario("quickstart", ["channel.profile=null"]).scenario == load_scenario("quickstart")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("csi: {error_std: -1}", "mine.yaml:1: channel.csi.error_std: found -1; allowed: a number from 0 to 1000000.0"),
        ("# a\nfadin: {}", "mine.yaml:2: channel.fadin: found an unknown key"),
        ("- 1", "mine.yaml:1: found almost no key of a channel profile; allowed: a mapping with at least one key of"),
        ("", "mine.yaml:1: found null; allowed: a mapping with keys of channel"),
        ("profile: ideal", "mine.yaml:1: profile: found a profile in a profile; allowed: its own keys"),
    ],
)
def test_mistakes_in_a_profile_name_its_file(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(scenario_file(tmp_path, "{name: x, channel: {profile: mine.yaml}}"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "channel: {profile: idel}",
            "f:2: channel.profile: idel: found no such file or shipped name; allowed: a file, or",
        ),
        ("channel: {profile: idel}", "did you mean ideal?"),
        ("channel: {profile: 3}", "f:2: channel.profile: found 3; allowed: text or null"),
        ("channel: {profile: none.yaml}", "none.yaml: cannot be read: No such file"),
        ("channel: rayleigh", "f:2: channel: found rayleigh; allowed: a mapping"),
    ],
)
def test_bad_profiles(text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f").write_text(f"name: x\n{text}")
    with pytest.raises(ScenarioError) as caught:
        load_scenario("f")
    assert message in str(caught.value)


def test_a_recorded_scenario_reads_no_file_as_its_profile(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("csi: {error_std: 0.1}")
    with pytest.raises(
        ScenarioError, match=r"f:1: channel\.profile: found .*; allowed in a recorded scenario: ideal, "
    ):
        parse_scenario(f"{{name: x, channel: {{profile: {tmp_path / 'mine.yaml'}}}}}", "f")
    assert parse_scenario("{name: x, channel: {profile: ideal}}") == load_scenario_with_profile(tmp_path, "ideal")


def load_scenario_with_profile(folder: Path, name: str) -> Scenario:
    return load_scenario(scenario_file(folder, f"{{name: x, channel: {{profile: {name}}}}}"))


SECRET = "geheim4711"
OTHER_FILES = {
    "a list of users": f"root:x:0:0:{SECRET}:/root:/bin/sh\n{SECRET}:x:1:1::/:/bin/sh\n",
    "a word": f"{SECRET}\n",
    "settings": f"TOKEN={SECRET}\n",
    "a list": f"- {SECRET}: 1\n",
    "a table of an access": f"version: v1\nusers:\n- user: {{token: {SECRET}}}\nname: x\n",
    "json": f'{{"token": "{SECRET}", "{SECRET}": 1}}',
    "an alias": f"a: *{SECRET}\n",
    "a key twice": f"{SECRET}: 1\n{SECRET}: 2\n",
    "a tag": f"a: !{SECRET} 1\n",
    "no number": f"a: !!int {SECRET}\n",
    "no end": f"{SECRET}: [\n",
}


@pytest.mark.parametrize("text", OTHER_FILES.values(), ids=OTHER_FILES)
@pytest.mark.parametrize("role", ["scenario", "profile", "study", "base"])
def test_nothing_of_another_file_gets_into_a_message(text: str, role: str, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(text, encoding="utf-8")
    naming = tmp_path / "naming.yaml"
    with pytest.raises(ScenarioError) as caught:
        if role == "profile":
            naming.write_text("{name: x, channel: {profile: other.yaml}}", encoding="utf-8")
            load_scenario(naming)
        elif role == "base":
            naming.write_text("base: other.yaml\ngrid: {rounds: [1, 2]}", encoding="utf-8")
            load_study(naming)
        else:
            (load_scenario if role == "scenario" else load_study)(other)
    assert SECRET not in str(caught.value)
    assert "other.yaml" in str(caught.value)


def test_a_scenario_object_is_whole() -> None:
    """Nothing of the file is kept but its values."""
    assert set(Scenario.model_fields) == set(load_scenario("quickstart").model_dump())
