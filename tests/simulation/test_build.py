"""Every variant of a family can be built, and what is built conforms to the family's protocol."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from wirelessfl.assembly.network import build_fading
from wirelessfl.radio.conformance import check_fading_model
from wirelessfl.scenario import config
from wirelessfl.scenario.base import CoreVariant
from wirelessfl.scenario.channel import RicianFading


def variants(family: Any) -> list[type[Any]]:
    """The variants of a union of the scenario, the user's own left out."""
    return [variant for variant in get_args(get_args(family)[0]) if not variant.__name__.startswith("External")]


@pytest.mark.parametrize("variant", [law for law in variants(config.Fading) if issubclass(law, CoreVariant)])
def test_every_fading_model_can_be_built_and_conforms(variant: type[Any]) -> None:
    check_fading_model(build_fading(variant()))


def test_the_rician_factor_becomes_linear() -> None:
    own = config.ExternalFading(model="wirelessfl.radio:Rician", options={"rician_k": 10.0})
    assert build_fading(RicianFading(k_db=10.0)) == build_fading(own)
