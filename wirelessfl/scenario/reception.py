"""Receivers: their antennas, how these are placed, correlated and combined."""

from typing import Annotated, Any, Literal

from pydantic import Field

from wirelessfl.scenario.base import CoreVariant, External, Reference, Rule, key
from wirelessfl.scenario.family import Family

Antennas = Annotated[int, Field(ge=1, le=1024)]


class LinearArray(CoreVariant, core="wirelessfl.assembly.reception:linear_array"):
    """Antennas side by side."""

    geometry: Literal["ula"] = key("ula", "A uniform linear array across the x axis.")
    spacing: Annotated[float, Field(gt=0, le=100)] = key(0.5, "Distance of neighbours in wavelengths.")


class PlanarArray(CoreVariant, core="wirelessfl.assembly.reception:planar_array"):
    """Antennas in rows above each other."""

    geometry: Literal["upa"] = key("upa", "A uniform planar array across the x axis.")
    rows: Antennas = key(1, "Rows above each other; their number divides that of the antennas.")
    spacing: Annotated[float, Field(gt=0, le=100)] = key(0.5, "Distance of neighbours in wavelengths.")


Array = Annotated[LinearArray | PlanarArray, Family("geometry", default="ula")]


class NoCorrelation(CoreVariant, core="wirelessfl.radio.propagation:IndependentAntennas"):
    """Rich scattering around the array."""

    model: Literal["none"] = key("none", "Antennas fade independently.")


class Exponential(CoreVariant, core="wirelessfl.radio.propagation:ExponentialCorrelation"):
    """Correlation that falls with the distance of antennas."""

    model: Literal["exponential"] = key("exponential", "ρ^|a−b| between antennas a and b.")
    coefficient: Annotated[float, Field(ge=0, lt=1)] = key(0.5, "ρ between neighbours.")


class OneRing(CoreVariant, core="wirelessfl.radio.propagation:OneRing"):
    """Scatterers around the client, the array high above its surroundings."""

    model: Literal["one_ring"] = key("one_ring", "Scatterers around each client, seen under an angular spread.")
    spread_deg: Annotated[float, Field(gt=0, le=180)] = key(
        10.0, "Half of the angle under which the array sees them [degrees]."
    )


SpatialCorrelation = Annotated[NoCorrelation | Exponential | OneRing, Family("model", default="none")]


class ArrayReceiver(CoreVariant):
    """A receiver with an array of antennas."""

    combiner: str = key("sum", "How the antennas are combined.")
    antennas: Antennas = key(1, "Antennas A of each receiver.")
    array: Array = key(LinearArray(), "Where the antennas are.")
    correlation: SpatialCorrelation = key(NoCorrelation(), "Correlation of what is scattered between the antennas.")

    def arguments(self) -> dict[str, Any]:
        """The number of antennas: where they are concerns the channel."""
        return {"antennas": self.antennas}

    def rules(self) -> list[Rule]:
        """Full rows of antennas."""
        rows = self.array.rows if isinstance(self.array, PlanarArray) else 1
        return [(self.antennas % rows != 0, "array.rows", f"{rows} with {self.antennas} antennas", "a divisor of them")]


class SumCombiner(ArrayReceiver, core="wirelessfl.radio.reception:SumReceiver"):
    """The signals of all antennas added up as they come."""

    combiner: Literal["sum"] = key("sum", "The plain sum of what the antennas receive.")


class RandomCombiner(ArrayReceiver, core="wirelessfl.radio.reception:RandomBeam"):
    """A beam of random direction."""

    combiner: Literal["random"] = key("random", "A unit vector drawn anew in every round, whatever the channels are.")


class MaxMinCombiner(ArrayReceiver, core="wirelessfl.radio.reception:MaxMinBeam"):
    """The beam that serves the weakest client."""

    combiner: Literal["max_min"] = key(
        "max_min", "The beam with the largest min |fᴴĥ|² P/p² over the clients that it lets send."
    )


class StreamReceiver(ArrayReceiver):
    """An array that tells apart clients that send in the same band at once."""

    streams: Antennas | None = key(
        None,
        "Clients of a group, which send at the same time, at most; 1 is maximum-ratio combining. null: the number of "
        "antennas.",
    )
    group_wait_s: Annotated[float, Field(ge=0, le=1e6)] | None = key(
        None,
        "How long a group that is not full waits for further clients from its first on [s]. null: as long as any of "
        "the round are at work.",
    )

    @property
    def most_streams(self) -> int:
        """Clients of a group at most."""
        return self.streams or self.antennas

    def arguments(self) -> dict[str, Any]:
        """None: a combiner follows from the channels."""
        return {}


class ZeroForcingCombiner(StreamReceiver, core="wirelessfl.radio.reception:ZeroForcing"):
    """No stream disturbs another."""

    combiner: Literal["zf"] = key("zf", "Zero forcing: no stream disturbs another, at the price of noise.")

    def rules(self) -> list[Rule]:
        """No more streams than antennas."""
        allowed = f"at most {self.antennas}, one for each antenna, or combiner: mmse"
        return [
            *super().rules(),
            (self.most_streams > self.antennas, "streams", f"{self.streams} with {self.antennas} antennas", allowed),
        ]


class LinearMmseCombiner(StreamReceiver, core="wirelessfl.radio.reception:LinearMmse"):
    """The largest SINR for every stream."""

    combiner: Literal["mmse"] = key("mmse", "Linear MMSE: the largest SINR of each stream that a linear receiver has.")


class ExternalReceiver(
    External,
    family="receiver",
    protocol="wirelessfl.radio.reception:Receiver",
    check="wirelessfl.radio.reception.conformance:check_receiver",
    context="wirelessfl.assembly.reception:ReceiverFacts",
):
    """A receiver of the user's own."""

    combiner: Reference = key(
        ..., "Importable receiver, as package.module:Class; without a release of its own the accounted ε is infinite."
    )


Receiver = Annotated[
    SumCombiner | RandomCombiner | MaxMinCombiner | ExternalReceiver, Family("combiner", default="sum")
]

SharedBandReceiver = Annotated[ZeroForcingCombiner | LinearMmseCombiner, Family("combiner", default="zf")]
