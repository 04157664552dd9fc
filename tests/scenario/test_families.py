"""The families are read off the scenario's unions."""

from __future__ import annotations

from wirelessfl.scenario.base import External
from wirelessfl.scenario.channel import ExternalFading, NakagamiFading
from wirelessfl.scenario.scenario import families


def test_a_family_is_told_by_its_union() -> None:
    fading = families()["fading"]
    assert (fading.paths, fading.tag, fading.default) == (("channel.fading",), "model", "rayleigh")
    assert list(fading.members) == ["rayleigh", "rician", "nakagami", "static", "tdl", "recorded", "imported"]
    assert fading.members["nakagami"] is NakagamiFading
    assert fading.external is ExternalFading


def test_every_external_variant_has_a_family_of_its_own() -> None:
    own = [one.external for one in families().values() if one.external is not None]
    assert set(own) == {one for one in External.__subclasses__() if one.__module__.startswith("wirelessfl.")}
    assert len({one.family for one in own}) == len(own) >= 5
    for one in own:
        assert families()[one.family].external is one
