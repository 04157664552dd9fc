"""How clients, base stations and server hang together."""

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import BitsPerSecond, Count, Family, Metres, Section, key

Rings = Annotated[int, Field(ge=0, le=10)]


class SingleCell(Section):
    """One base station, which is the server."""

    kind: Literal["single_cell"] = key("single_cell", "One base station in the origin, which is the server.")


class MultiCell(Section):
    """Several base stations over the air in one slot, one server behind them."""

    kind: Literal["multi_cell"] = key(
        "multi_cell", "A hexagonal grid of base stations that all listen in one slot, and one server behind them."
    )
    rings: Rings = key(1, "Rings of base stations around the middle one: 1 makes 7 cells, 2 make 19.")
    inter_site_distance_m: Metres = key(500.0, "Distance of neighbouring base stations [m].")
    backhaul_bps: BitsPerSecond = key(1.0e9, "Rate of the wire between a base station and the server [bit/s].")


class Hierarchical(Section):
    """Clients, edges and cloud (Liu et al.: "Client-Edge-Cloud Hierarchical Federated Learning", ICC 2020)."""

    kind: Literal["hierarchical"] = key(
        "hierarchical", "As multi_cell, with a model at each base station, which the cloud averages now and then."
    )
    rings: Rings = key(1, "Rings of base stations around the middle one: 1 makes 7 edges, 2 make 19.")
    inter_site_distance_m: Metres = key(500.0, "Distance of neighbouring base stations [m].")
    backhaul_bps: BitsPerSecond = key(1.0e9, "Rate of the wire between a base station and the cloud [bit/s].")
    edge_rounds: Count = key(5, "Rounds from one averaging in the cloud to the next.")


Topology = Annotated[SingleCell | MultiCell | Hierarchical, Family("kind", default="single_cell")]
