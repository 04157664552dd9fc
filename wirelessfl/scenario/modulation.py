"""Modulations over the air: how updates become symbols, and which of the uplink's other choices go with each."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wirelessfl.scenario.base import (
    RUN,
    CoreVariant,
    External,
    NonNegativeSingle,
    PositiveSingle,
    Reference,
    Rule,
    Share,
    key,
)
from wirelessfl.scenario.family import Family


class AnalogModulation(CoreVariant, core="wirelessfl.radio.modulation:Analog"):
    """Coordinates as amplitudes."""

    scheme: Literal["analog"] = key("analog", "Linear amplitudes: every coordinate of an update is one.")


class WaveformModulation(CoreVariant):
    """Base of the schemes that read the received signal themselves (`wirelessfl.radio.modulation.Waveform`)."""

    policies: ClassVar[tuple[str, ...]] = ()
    """The power controls that go with it."""

    packs: ClassVar[bool] = True
    """Whether two of its real symbols can share a channel use."""

    combiners: ClassVar[tuple[str, ...]] = ("sum", "random", "max_min")
    """The combiners of several antennas that go with it."""

    fixed_norm: ClassVar[bool] = True
    """Whether its symbols have the norm of the clip whatever the update is."""

    scheme: str = key("", "The scheme.")


_STEP = "Server step η: each coordinate of the model moves by it in every round, up or down."


class Obda(WaveformModulation, core="wirelessfl.radio.modulation:Obda", policies=("truncated_inversion",)):
    """Zhu, Du, Gündüz, Huang, TWC 2021."""

    scheme: Literal["obda"] = key("obda", "One-bit signs over inverted channels, and a majority vote (OBDA).")
    step: PositiveSingle = key(1.0e-3, _STEP)


class FskVote(
    WaveformModulation,
    core="wirelessfl.radio.modulation:FskVote",
    policies=("no_csi",),
    packs=False,
    combiners=("sum",),
):
    """Şahin, Everette, Hoque, CommNet 2021; Şahin, TWC 2023."""

    scheme: Literal["fsk_vote"] = key(
        "fsk_vote", "A majority vote by two tones a coordinate and energy detectors, without channel knowledge."
    )
    step: PositiveSingle = key(1.0e-3, _STEP)
    absentee_threshold: NonNegativeSingle = key(
        0.0, "A coordinate that changed by no more sends neither tone, in the unit of an update."
    )


class Blind(
    WaveformModulation,
    core="wirelessfl.radio.modulation:Blind",
    policies=("no_csi",),
    combiners=("sum",),
    fixed_norm=False,
):
    """Amiri, Duman, Gündüz, Kulkarni, Poor, TWC 2021."""

    scheme: Literal["blind"] = key(
        "blind",
        "Amplitudes of clients without channel knowledge, and many antennas combined by the sum of the channels.",
    )


class ADsgd(WaveformModulation, core="wirelessfl.radio.modulation:ADsgd", policies=("truncated_inversion",)):
    """Amiri, Gündüz, IEEE TSP 2020."""

    scheme: Literal["a_dsgd"] = key(
        "a_dsgd", "Sparse updates behind a random projection, recovered by message passing; the rest waits (A-DSGD)."
    )
    symbols: Share = key(0.5, "Real symbols for each coordinate, s/d.")
    kept: Share = key(0.1, "Share of the coordinates that are sent in a round, k/d; below symbols.")
    iterations: Annotated[int, Field(ge=1, le=1000)] = key(20, "Iterations of approximate message passing.")
    threshold: PositiveSingle = key(1.3, "Soft threshold of each, in standard deviations of the error.")

    def rules(self) -> list[Rule]:
        """Fewer coordinates than measurements."""
        allowed = f"less than symbols, {self.symbols:g}"
        return [(self.kept >= self.symbols, "kept", f"{self.kept:g}", allowed)]


class DDsgd(
    WaveformModulation,
    core="wirelessfl.radio.modulation:DDsgd",
    policies=("full_power",),
    combiners=("sum",),
):
    """Amiri, Gündüz, IEEE TSP 2020."""

    scheme: Literal["d_dsgd"] = key(
        "d_dsgd", "Digital: the mean of the highest or lowest coordinates, as many as the channel's capacity carries."
    )
    symbols: Share = key(0.5, "Real symbols for each coordinate, s/d.")


class ExternalModulation(
    External,
    family="modulation",
    protocol="wirelessfl.radio.modulation:Modulation",
    check="wirelessfl.radio.modulation.conformance:check_modulation",
    context=RUN,
):
    """A modulation of the user's own."""

    scheme: Reference = key(
        ..., "Importable modulation, as package.module:Class; without a release of its own the accounted ε is infinite."
    )


Modulation = Annotated[
    AnalogModulation | Obda | FskVote | Blind | ADsgd | DDsgd | ExternalModulation, Family("scheme", default="analog")
]
