"""``wirelessfl families`` shows what is in the unions."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from wirelessfl.cli import main
from wirelessfl.scenario.scenario import families


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["families", *arguments])


def test_the_list_names_every_family_and_member() -> None:
    shown = invoke()
    assert shown.exit_code == 0
    words = shown.stdout.replace(",", " ").split()
    for name, family in families().items():
        assert name in words
        assert set(family.members) <= set(words), name


@pytest.mark.parametrize("name", families())
def test_a_family_is_shown_with_members_keys_and_protocol(name: str) -> None:
    shown = json.loads(invoke(name, "--json").stdout)
    family = families()[name]
    assert list(shown["members"]) == list(family.members)
    for tag, section in family.members.items():
        keys = {field.alias or key for key, field in section.model_fields.items()} - {family.tag}
        assert set(shown["members"][tag]["keys"]) == keys
    if family.external is None:
        assert shown["outside"] is None
    else:
        assert shown["outside"]["protocol"] == family.external.protocol
        assert shown["outside"]["check"].startswith(f"{family.external.check}(")
        assert shown["outside"]["signatures"]
    text = " ".join(invoke(name).stdout.split())
    assert f"{family.paths[0]}.{family.tag} default {family.default}" in text


def test_signatures_and_what_is_filled_in() -> None:
    fading = json.loads(invoke("fading", "--json").stdout)["outside"]
    assert fading["signatures"] == ["draw(stream: NodeStream) -> NDArray[np.complex128]"]
    assert fading["context"] == {"rounds": "int", "clients": "int", "jammer": "bool"}
    model = json.loads(invoke("model", "--json").stdout)["outside"]
    assert model["signatures"] == ["(feature_shape, num_classes, **options) -> Module"]


def test_an_unknown_family_is_refused() -> None:
    refused = invoke("fadings")
    assert refused.exit_code == 2
    assert "NAME: found fadings; allowed: dataset | partition | model" in refused.stderr
