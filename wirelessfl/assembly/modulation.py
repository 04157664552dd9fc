"""Modulations over the air, and how many symbols they take."""

from wirelessfl.assembly.objects import RunFacts, make_object
from wirelessfl.errors import ScenarioError
from wirelessfl.radio import DDsgd, Modulation, Waveform
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.base import External
from wirelessfl.scenario.modulation import DDsgd as DDsgdSection
from wirelessfl.scenario.modulation import WaveformModulation
from wirelessfl.scenario.uplink import OverTheAir


def build_modulation(scenario: Scenario, uplink: OverTheAir) -> Modulation | Waveform:
    """The modulation.

    Raises:
        ScenarioError: code from outside cannot be used.
    """
    key = "uplink.modulation.scheme"
    made: Modulation | Waveform = make_object(key, uplink.modulation, context=RunFacts.of(scenario))
    if isinstance(uplink.modulation, External) and isinstance(made, Waveform):
        raise ScenarioError(f"{key}: found {uplink.modulation.reference}, a Waveform; allowed: a Modulation")
    return made


def symbol_count(scenario: Scenario, uplink: OverTheAir, dimension: int) -> int:
    """n, the real symbols that an update of d coordinates is sent in: d of linear amplitudes."""
    if not isinstance(uplink.modulation, WaveformModulation):
        return dimension
    if isinstance(uplink.modulation, DDsgdSection):
        return build_code(uplink.modulation).symbol_count(dimension)
    made = build_modulation(scenario, uplink)
    assert isinstance(made, Waveform)
    return made.symbol_count(dimension)


def build_code(section: DDsgdSection) -> DDsgd:
    """The code of D-DSGD, whose clients send bits and no waveform that adds up."""
    made: DDsgd = make_object("uplink.modulation.scheme", section)
    return made
