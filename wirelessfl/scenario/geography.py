"""Places and topology: positions of clients and base stations, and the path loss between them."""

from typing import Annotated, Any, Literal

from pydantic import Field

from wirelessfl.scenario.base import (
    RUN,
    BitsPerSecond,
    CoreVariant,
    Count,
    External,
    Hertz,
    Metres,
    Reference,
    Rule,
    Section,
    Speed,
    key,
)
from wirelessfl.scenario.family import Family

Shadowing = Annotated[float, Field(ge=0, le=50)]
Coordinate = Annotated[float, Field(ge=-1e9, le=1e9)]
Point = Annotated[tuple[Coordinate, Coordinate], Field(strict=False)]

_REFERENCE = (
    "Distance at which a client has the SNR of uplink.snr_db: path gains are divided by the one there, without "
    "shadowing [m]. Not used with uplink.tx_power_dbm."
)


class NoPathLoss(Section):
    """Every client at the same path gain 1."""

    model: Literal["none"] = key("none", "No path loss: every client has path gain β = 1.")


class FreeSpacePathLoss(CoreVariant, core="wirelessfl.radio.propagation.path_loss:LogDistance"):
    """Friis."""

    model: Literal["free_space"] = key("free_space", "Free space (Friis), with shadowing if wanted.")
    carrier_hz: Hertz = key(3.5e9, "Carrier frequency [Hz].")
    shadowing_db: Shadowing = key(0.0, "Standard deviation of log-normal shadowing [dB].")
    decorrelation_m: Metres = key(
        50.0, "d_cor of the shadowing along a moving client's way: its autocorrelation is e^(−Δd/d_cor) [m]."
    )
    reference_distance_m: Metres = key(100.0, _REFERENCE)

    def arguments(self) -> dict[str, Any]:
        """The power law of exponent 2."""
        return {
            "carrier_hz": self.carrier_hz,
            "exponent": 2.0,
            "reference_distance": self.reference_distance_m,
            "shadowing": self.shadowing_db,
            "decorrelation": self.decorrelation_m,
        }


class LogDistancePathLoss(
    CoreVariant,
    core="wirelessfl.radio.propagation.path_loss:LogDistance",
    core_names={
        "reference_distance_m": "reference_distance",
        "shadowing_db": "shadowing",
        "decorrelation_m": "decorrelation",
    },
):
    """A power of the distance."""

    model: Literal["log_distance"] = key("log_distance", "Free space up to reference_distance_m, then d^-exponent.")
    exponent: Annotated[float, Field(gt=0, le=10)] = key(3.0, "Path-loss exponent beyond the reference distance.")
    carrier_hz: Hertz = key(3.5e9, "Carrier frequency [Hz].")
    shadowing_db: Shadowing = key(0.0, "Standard deviation of log-normal shadowing [dB].")
    decorrelation_m: Metres = key(
        50.0, "d_cor of the shadowing along a moving client's way: its autocorrelation is e^(−Δd/d_cor) [m]."
    )
    reference_distance_m: Metres = key(100.0, f"Distance up to which free space is assumed [m]. {_REFERENCE}")


BASE_STATION_HEIGHT = {"uma": 25.0, "umi": 10.0, "inh": 3.0}
"""Heights of Table 7.2-1 and 7.2-2, metres."""


class Tr38901PathLoss(CoreVariant, core="wirelessfl.radio.propagation.path_loss:Tr38901"):
    """3GPP TR 38.901."""

    model: Literal["tr38901"] = key(
        "tr38901", "3GPP TR 38.901: path loss, random line of sight (with it, Rician fading), shadowing."
    )
    scenario: Literal["uma", "umi", "inh"] = key("uma", "Urban macro, urban micro, or indoor hotspot.")
    carrier_hz: Hertz = key(3.5e9, "Carrier frequency [Hz].")
    h_bs: Metres | None = key(None, "Height of the base station [m]. null: 25, 10 or 3, as in the standard.")
    h_ut: Metres = key(1.5, "Height of the clients [m].")
    shadowing_db: Shadowing | None = key(
        None, "Standard deviation of the shadowing [dB]. null: that of the standard, with and without line of sight."
    )
    reference_distance_m: Metres = key(100.0, f"{_REFERENCE} The reference link has a line of sight.")

    def arguments(self) -> dict[str, Any]:
        """Arguments of the path loss, the station's height filled in."""
        return {
            "scenario": self.scenario,
            "carrier_hz": self.carrier_hz,
            "h_bs": BASE_STATION_HEIGHT[self.scenario] if self.h_bs is None else self.h_bs,
            "h_ut": self.h_ut,
            "shadowing": self.shadowing_db,
        }

    def rules(self) -> list[Rule]:
        """Outdoors, antennas are above ground."""
        outdoors, highest = self.scenario != "inh", 23 if self.scenario == "uma" else 22.5
        low, h_ut = self.h_bs is not None and self.h_bs <= 1, f"{self.h_ut} m with {self.scenario}"
        return [
            (outdoors and low, "h_bs", f"{self.h_bs} m with {self.scenario}", "above 1 m"),
            (outdoors and not 1 < self.h_ut <= highest, "h_ut", h_ut, "above 1 m and up to 22.5 m"),
        ]


class ExternalPathLoss(
    External,
    family="path_loss",
    protocol="wirelessfl.radio:PathLossModel",
    check="wirelessfl.radio.conformance:check_path_loss",
):
    """A path loss of the user's own."""

    model: Reference = key(..., "Importable path-loss model, as package.module:Class.")
    reference_distance_m: Metres = key(100.0, _REFERENCE)


PathLoss = Annotated[
    NoPathLoss | FreeSpacePathLoss | LogDistancePathLoss | Tr38901PathLoss | ExternalPathLoss,
    Family("model", default="none"),
]


class UniformDiscPlacement(
    CoreVariant,
    core="wirelessfl.radio.placement:UniformDisc",
    core_names={"radius_m": "radius", "min_radius_m": "min_radius"},
):
    """Evenly over a disc."""

    scheme: Literal["uniform_disc"] = key("uniform_disc", "Evenly over a disc around the base station, at rest.")
    radius_m: Metres = key(500.0, "Radius [m].")
    min_radius_m: Annotated[float, Field(ge=0, le=1e9)] = key(10.0, "Minimum distance to the base station [m].")

    def rules(self) -> list[Rule]:
        """The disc is larger than its hole."""
        allowed = f"less than radius_m, {self.radius_m:g}"
        return [(self.min_radius_m >= self.radius_m, "min_radius_m", f"{self.min_radius_m:g}", allowed)]


class HexagonalPlacement(
    CoreVariant,
    core="wirelessfl.radio.placement:UniformHexagons",
    core_names={"inter_site_distance_m": "inter_site_distance"},
):
    """Evenly over hexagonal cells."""

    scheme: Literal["hexagonal"] = key("hexagonal", "Evenly over hexagonal cells, equally many in each, at rest.")
    inter_site_distance_m: Metres = key(500.0, "Distance between the centres of neighbouring cells [m].")
    rings: Annotated[int, Field(ge=0, le=20)] = key(0, "Rings of cells around the central one; 0 means one cell.")


class GivenPlacement(
    CoreVariant,
    core="wirelessfl.assembly.recordings:given_positions",
    exclusive=(("points_m", "file"),),
    files=("file",),
):
    """Positions of the user's own."""

    scheme: Literal["positions"] = key("positions", "Positions as given, at rest.")
    points_m: Annotated[tuple[Point, ...], Field(strict=False, min_length=1)] | None = key(
        None, "[x, y] of client 0, 1, ..., the base station at [0, 0] [m]."
    )
    file: str | None = key(None, "CSV file with the columns x and y, one row for each client [m].")


MOST_RADII_PER_S = 1000
"""Every waypoint is computed: ten thousand of them take a second."""


class RandomWaypointPlacement(
    CoreVariant, core="wirelessfl.radio.placement:RandomWaypoint", core_names={"radius_m": "radius"}
):
    """Clients on the move."""

    scheme: Literal["random_waypoint"] = key(
        "random_waypoint", "Moving within a disc: straight to a random point, a pause, on to the next."
    )
    radius_m: Metres = key(500.0, "Radius of the disc around the base station [m].")
    min_speed: Speed = key(1.0, "Minimum speed [m/s].")
    max_speed: Speed = key(15.0, "Maximum speed [m/s].")
    pause_s: Annotated[float, Field(ge=0, le=1e9)] = key(0.0, "Rest at every waypoint [s].")

    def rules(self) -> list[Rule]:
        """Speeds are in order, and there are not too many waypoints."""
        slowest, fastest, most = self.min_speed, self.max_speed, MOST_RADII_PER_S * self.radius_m
        allowed = f"at most {MOST_RADII_PER_S} times radius_m a second, {most:g}"
        return [
            (slowest > fastest, "min_speed", f"{slowest:g}", f"at most max_speed, {fastest:g}"),
            (fastest > most, "max_speed", f"{fastest:g}", allowed),
        ]


class ExternalPlacement(
    External,
    family="placement",
    protocol="wirelessfl.radio:PlacementLaw",
    check="wirelessfl.radio.conformance:check_placement",
    context=RUN,
):
    """A placement of the user's own."""

    scheme: Reference = key(..., "Importable placement of clients at rest, as package.module:Class.")


Placement = Annotated[
    UniformDiscPlacement | HexagonalPlacement | GivenPlacement | RandomWaypointPlacement | ExternalPlacement,
    Family("scheme", default="uniform_disc"),
]


Rings = Annotated[int, Field(ge=0, le=10)]


class SingleCell(Section):
    """One base station, which is the server."""

    kind: Literal["single_cell"] = key("single_cell", "One base station in the origin, which is the server.")


class Grid(Section):
    """A hexagonal grid of base stations, each wired to what is behind them."""

    rings: Rings = key(1, "Rings of base stations around the middle one: 1 makes 7 cells, 2 make 19.")
    inter_site_distance_m: Metres = key(500.0, "Distance of neighbouring base stations [m].")
    backhaul_bps: BitsPerSecond = key(
        1.0e9, "Rate of the wire between a base station and the server or the cloud [bit/s]."
    )


class MultiCell(Grid):
    """Several base stations over the air in one slot, one server behind them."""

    kind: Literal["multi_cell"] = key(
        "multi_cell", "A hexagonal grid of base stations that all listen in one slot, and one server behind them."
    )


class Hierarchical(Grid):
    """Clients, edges and cloud (Liu et al.: "Client-Edge-Cloud Hierarchical Federated Learning", ICC 2020)."""

    kind: Literal["hierarchical"] = key(
        "hierarchical", "As multi_cell, with a model at each base station, which the cloud averages now and then."
    )
    edge_rounds: Count = key(5, "Rounds from one averaging in the cloud to the next.")


Topology = Annotated[SingleCell | MultiCell | Hierarchical, Family("kind", default="single_cell")]
