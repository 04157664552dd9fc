"""Small-scale gains at single antennas: the laws of a scenario, and their correlation in time."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wirelessfl.assembly.objects import make_object
from wirelessfl.assembly.slot import build_path_loss, given_doppler_hz
from wirelessfl.errors import ScenarioError
from wirelessfl.radio import (
    AntennaGains,
    ChannelSource,
    DirectRay,
    Doppler,
    Draws,
    Fading,
    FadingModel,
    FlatGains,
    GivenDoppler,
    ImportedChannels,
    MotionDoppler,
    Placement,
    Rayleigh,
    Rician,
    SelectiveGains,
    TappedDelayLine,
)
from wirelessfl.scenario.channel import Channel, IndependentFading, TdlFading
from wirelessfl.scenario.geography import NoPathLoss

Law = FadingModel | TappedDelayLine | ImportedChannels
"""What channels are made of: the law of a gain, a profile over the delay, or the gains themselves."""


@dataclass(frozen=True)
class CorrelationContext:
    """Context of correlations in time, beside their keys.

    Attributes:
        channel: the section of the scenario.
        fading: its law of a single gain.
        draws: streams of the links.
        placement: where their nodes are.
        site: (x, y) of the base station in metres.
    """

    channel: Channel
    fading: FadingModel
    draws: Draws
    placement: Placement
    site: tuple[float, float]

    @cached_property
    def in_sight(self) -> Rician | None:
        """The law of links with line of sight, where the path loss knows them apart and the fading says nothing else.

        With Rician fading its K counts where there is a line of sight, with Rayleigh fading that of the standard;
        without one the link is Rayleigh. Any other law holds for all links.
        """
        if isinstance(self.channel.pathloss, NoPathLoss) or isinstance(self.channel.fading, TdlFading):
            return None  # a profile says itself whether it has a line of sight
        rician_k = build_path_loss(self.channel.pathloss).rician_k
        if rician_k is None or not isinstance(self.fading, Rayleigh | Rician):
            return None
        return self.fading if isinstance(self.fading, Rician) else Rician(rician_k)

    @property
    def law(self) -> FadingModel:
        """The law of a single gain without line of sight."""
        return self.fading if self.in_sight is None else Rayleigh()

    @cached_property
    def doppler(self) -> Doppler:
        """The Doppler shifts of the links: given, or those of the nodes' own speed."""
        correlation, pathloss = self.channel.correlation, self.channel.pathloss
        assert not isinstance(correlation, IndependentFading), "it has no Doppler shift"
        if isinstance(pathloss, NoPathLoss):
            return GivenDoppler(given_doppler_hz(self.channel), False, self.draws)
        if correlation.doppler_hz is not None:
            return GivenDoppler(correlation.doppler_hz, not self.placement.moves, self.draws)
        return MotionDoppler(self.placement, build_path_loss(pathloss), self.site)

    @property
    def ray(self) -> DirectRay:
        """The direct rays beside a scattered part that is correlated.

        Raises:
            ScenarioError: the fading has no such part.
        """
        if not isinstance(self.fading, Rayleigh | Rician):
            raise ScenarioError(
                f"channel.correlation.model: found {self.channel.correlation.model} with {self.channel.fading.model} "
                "fading; allowed: rayleigh | rician fading, whose scattered part can be correlated"
            )
        scattered = self.fading if isinstance(self.fading, Rician) and self.in_sight is None else Rician(0.0)
        return DirectRay(scattered, self.in_sight, self.doppler, self.draws)


def antenna_gains(
    law: FadingModel | TappedDelayLine,
    draws: Draws,
    channel: Channel,
    placement: Placement,
    site: tuple[float, float],
    frequency_hz: NDArray[np.float64],
) -> AntennaGains:
    """Gains at one antenna: of one path, or of the paths of a delay line, each with streams of its own."""

    def path(law: FadingModel, draws: Draws) -> Fading:
        context = CorrelationContext(channel, law, draws, placement, site)
        fading: Fading = make_object("channel.correlation.model", channel.correlation, context=context)
        return fading

    if not isinstance(law, TappedDelayLine):
        return FlatGains(path(law, draws))
    laws = [Rician(law.rician_k) if law.rician_k > 0 else Rayleigh(), *[Rayleigh()] * (len(law.power) - 1)]
    taps = [path(one, replace(draws, site=f"{draws.site}tap{number}_")) for number, one in enumerate(laws)]
    single = Rician(law.total_rician_k) if law.rician_k > 0 else Rayleigh()
    return SelectiveGains(tuple(taps), law.response(frequency_hz), single)


def further_antennas(
    first: ChannelSource,
    count: int,
    law: FadingModel | TappedDelayLine,
    channel: Channel,
    placement: Placement,
    site: tuple[float, float],
    frequency_hz: NDArray[np.float64],
) -> tuple[ChannelSource, ...]:
    """Channels of so many further antennas of a node, which fade independently and share all else with the first.

    Args:
        first: channels of its first antenna.
        count: N − 1.
        law: of the fading.
        channel: the section of the scenario.
        placement: where the node is.
        site: (x, y) of the receiver in metres.
        frequency_hz: (F,) centres of the groups of subcarriers.
    """
    further = []
    for number in range(1, count + 1):
        draws = replace(first.draws, site=f"{first.draws.site}element{number}_")
        own = (draws, *(replace(draws, site=f"{draws.site}antenna{a}_") for a in range(1, len(first.antennas))))
        gains = tuple(antenna_gains(law, each, channel, placement, site, frequency_hz) for each in own)
        further.append(replace(first, antennas=gains, draws=draws))
    return tuple(further)
