"""Every variant of a family can be built, and what is built conforms to the family's protocol."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from tests.simulation.scenarios import small
from wirelessfl.radio.conformance import check_fading_model
from wirelessfl.scenario import config
from wirelessfl.scenario.channel import RicianFading
from wirelessfl.simulation.build.radio import build_fading


def variants(family: Any) -> list[type[Any]]:
    """The variants of a union of the scenario, the user's own left out."""
    return [variant for variant in get_args(get_args(family)[0]) if not variant.__name__.startswith("External")]


@pytest.mark.parametrize("variant", variants(config.Fading))
def test_every_fading_model_can_be_built_and_conforms(variant: type[Any]) -> None:
    check_fading_model(build_fading(variant()))


def test_the_rician_factor_becomes_linear() -> None:
    assert build_fading(RicianFading(k_db=10.0)) == build_fading(
        small(channel__fading={"model": "wirelessfl.radio:Rician", "options": {"rician_k": 10.0}}).channel.fading
    )
