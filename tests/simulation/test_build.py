"""Every variant of a family can be built, and what is built conforms to the family's protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from wirelessfl.assembly.network import build_fading
from wirelessfl.errors import CheckFailed
from wirelessfl.radio.conformance import check_fading_model
from wirelessfl.scenario import config
from wirelessfl.scenario.base import CoreVariant
from wirelessfl.scenario.channel import RicianFading
from wirelessfl.simulation.availability import AvailabilityModel, BernoulliAvailability, GilbertElliott
from wirelessfl.simulation.conformance import check_availability
from wirelessfl.streams import Streams


def variants(family: Any) -> list[type[Any]]:
    """The variants of a union of the scenario, the user's own left out."""
    return [variant for variant in get_args(get_args(family)[0]) if not variant.__name__.startswith("External")]


@pytest.mark.parametrize("variant", [law for law in variants(config.Fading) if issubclass(law, CoreVariant)])
def test_every_fading_model_can_be_built_and_conforms(variant: type[Any]) -> None:
    check_fading_model(build_fading(variant()))


def test_the_rician_factor_becomes_linear() -> None:
    own = config.ExternalFading(model="wirelessfl.radio:Rician", options={"rician_k": 10.0})
    assert build_fading(RicianFading(k_db=10.0)) == build_fading(own)


@pytest.mark.parametrize("model", [BernoulliAvailability(0.6), GilbertElliott(0.2, 0.4)])
def test_every_availability_model_conforms(model: AvailabilityModel) -> None:
    check_availability(model)


class Forgetful(GilbertElliott):
    """A chain whose checkpoint is empty."""

    def restore(self, state: Mapping[str, Any]) -> None:
        pass


class Together:
    """Presence that depends on who else is selected."""

    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        return np.asarray(np.arange(len(clients)) % 2 == 0)


@pytest.mark.parametrize(
    ("model", "words"), [(Forgetful(0.2, 0.4), "goes on from its state"), (Together(), "other clients are selected")]
)
def test_a_broken_promise_of_an_availability_model_is_found(model: AvailabilityModel, words: str) -> None:
    with pytest.raises(CheckFailed, match=words):
        check_availability(model)
