"""The picture of a topology: who is where, and who is connected with whom."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN = 5.0
# Okabe and Ito's palette; the middle cell and the ring around it all get different colours.
CELL_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F")
BLACK = "#000000"
RADIO_LINKS = {
    None: ("radio link", "solid"),
    True: ("line of sight", "solid"),
    False: ("no line of sight", "dotted"),
}
"""Label and line style, by whether there is a line of sight, where that is known."""

Place = tuple[float, float]


def draw_topology(graph: nx.Graph, name: str, path: Path) -> None:
    """Draw clients, base stations, cells, jammer and what is behind the base stations.

    Args:
        graph: from `wirelessfl.simulation.topology_graph`.
        name: of the scenario, for the title.
        path: where the PNG goes.
    """
    # The object interface needs no display and leaves no global figure behind.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_IN, WIDTH_IN + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    places = _places(graph)
    _cells(axes, graph, places)
    _links(axes, graph, places)
    _nodes(axes, graph, places)
    axes.set_aspect("equal")
    shown = sum(data["kind"] == "client" for _, data in graph.nodes(data=True))
    registered = graph.graph["clients"]
    of_all = f"{registered} clients" if shown == registered else f"{shown} of {registered} clients"
    figure.suptitle(
        f"{name}: {of_all}" + (" at the beginning" if graph.graph["places"] else ""), fontsize=9, parse_math=False
    )
    if graph.graph["places"]:
        axes.set_xlabel("m", fontsize=8)
        axes.tick_params(labelsize=7)
    else:
        axes.set_axis_off()
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=7, frameon=False, loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=200)


def _places(graph: nx.Graph) -> dict[Any, Place]:
    """Where every node is drawn; nodes without a place of their own go on a circle, servers behind above all others."""
    places = {node: (data["x"], data["y"]) for node, data in graph.nodes(data=True) if "x" in data}
    homeless = [node for node, data in graph.nodes(data=True) if node not in places and data["kind"] != "cloud"]
    behind = [node for node in homeless if graph.nodes[node]["kind"] == "server"]
    around = [node for node in homeless if node not in behind]
    places |= {node: (float(x), float(y)) for node, (x, y) in nx.circular_layout(around).items()}
    top = max(y for _, y in places.values())
    height = top - min(y for _, y in places.values())
    for node, data in graph.nodes(data=True):
        if node not in places:
            places[node] = (0.0, top + 0.15 * (height or 1.0))
            assert data["kind"] in ("server", "cloud")
    return places


def _cells(axes: Axes, graph: nx.Graph, places: dict[Any, Place]) -> None:
    """Hexagons around the base stations of a grid."""
    from matplotlib.patches import RegularPolygon

    radius = graph.graph["spacing"] / math.sqrt(3)
    if math.isnan(radius):
        return
    for node, data in graph.nodes(data=True):
        if data["kind"] == "station":
            hexagon = RegularPolygon(
                places[node], 6, radius=radius, facecolor="none", edgecolor="#D9D9D9", linewidth=0.8
            )
            axes.add_patch(hexagon)


def _links(axes: Axes, graph: nx.Graph, places: dict[Any, Place]) -> None:
    """Radio links, dotted without a line of sight where the channel tells; wires dashed."""
    from matplotlib.collections import LineCollection

    groups: dict[tuple[str, str], list[list[Place]]] = {}
    for one, other, data in graph.edges(data=True):
        seen = graph.nodes[one].get("line_of_sight", graph.nodes[other].get("line_of_sight"))
        group = {
            None: ("radio link", "solid"),
            True: ("line of sight", "solid"),
            False: ("no line of sight", "dotted"),
        }[seen]
        if data["kind"] == "wire":
            group = ("wire", "dashed")
        groups.setdefault(group, []).append([places[one], places[other]])
    for (label, style), lines in groups.items():
        colour = BLACK if label == "wire" else "#7F7F7F"
        collection = LineCollection(lines, colors=colour, linestyles=style, linewidths=0.6, label=label, zorder=1)
        axes.add_collection(collection)


def _nodes(axes: Axes, graph: nx.Graph, places: dict[Any, Place]) -> None:
    clients = [node for node, data in graph.nodes(data=True) if data["kind"] == "client"]
    colours = [CELL_COLOURS[graph.nodes[node]["cell"] % len(CELL_COLOURS)] for node in clients]
    size = float(np.clip(2000 / max(len(clients), 1), 4, 30))
    x, y = np.array([places[node] for node in clients]).T
    axes.scatter(
        x, y, s=size, c=colours, label="client (colour: its cell)" if graph.graph["spacing"] > 0 else "client", zorder=2
    )
    for kind, marker, colour in (
        ("station", "^", BLACK),
        ("server", "s", BLACK),
        ("cloud", "D", BLACK),
        ("jammer", "X", "#D55E00"),
    ):
        found = [places[node] for node, data in graph.nodes(data=True) if data["kind"] == kind]
        if found:
            label = "base station" if kind == "station" else kind
            x, y = np.array(found).T
            axes.scatter(x, y, s=45, marker=marker, color=colour, label=label, zorder=3)
