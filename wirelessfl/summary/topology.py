"""Picture of a topology: places of all nodes, and their links."""

import math
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import RegularPolygon

from wirelessfl.summary.drawing import drawing
from wirelessfl.summary.style import BLACK, CYCLE, FAINT, GREY, ROLES, STYLE

# Label and line style by line of sight, None where the channel has no such state.
_RADIO_LINKS = {
    None: ("radio link", "solid"),
    True: ("line of sight", "solid"),
    False: ("no line of sight", "dotted"),
}

Place = tuple[float, float]


def draw_topology(graph: nx.Graph, name: str, path: Path, width_in: float) -> None:
    """Drawing of clients, base stations, cells, jammer, servers and wired links.

    Args:
        graph: from `wirelessfl.simulation.topology_graph`.
        name: of the scenario, for the title.
        path: where the figure goes; its suffix is the format.
        width_in: width (inches).
    """
    shown, registered = sum(data["kind"] == "client" for _, data in graph.nodes(data=True)), graph.graph["clients"]
    of_all = f"{registered} clients" if shown == registered else f"{shown} of {registered} clients"
    title = f"{name}: {of_all}" + (" at the beginning" if graph.graph["places"] else "")
    with drawing(path, title, (width_in, width_in + 0.6), {**STYLE, "axes.grid": False}) as figure:
        axes = figure.subplots()
        places = _places(graph)
        for draw in (_cells, _links, _nodes):
            draw(axes, graph, places)
        axes.set_aspect("equal")
        if graph.graph["places"]:
            axes.set(xlabel="x (m)", ylabel="y (m)")
        else:
            axes.set_axis_off()
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=max(2, int(width_in)))


def _places(graph: nx.Graph) -> dict[Any, Place]:
    # Coordinates of every node; nodes without a place are put on a circle, servers and cloud above all others
    places = {node: (data["x"], data["y"]) for node, data in graph.nodes(data=True) if "x" in data}
    above = [
        node for node, data in graph.nodes(data=True) if node not in places and data["kind"] in ("server", "cloud")
    ]
    around = [node for node in graph if node not in places and node not in above]
    places |= {node: (float(x), float(y)) for node, (x, y) in nx.circular_layout(around).items()}
    top = max(y for _, y in places.values())
    height = top - min(y for _, y in places.values())
    return places | dict.fromkeys(above, (0.0, top + 0.15 * (height or 1.0)))


def _cells(axes: Axes, graph: nx.Graph, places: dict[Any, Place]) -> None:
    radius = graph.graph["spacing"] / math.sqrt(3)
    for node, data in graph.nodes(data=True):
        if data["kind"] == "station" and not math.isnan(radius):
            axes.add_patch(
                RegularPolygon(places[node], 6, radius=radius, facecolor="none", edgecolor=FAINT, linewidth=0.8)
            )


def _links(axes: Axes, graph: nx.Graph, places: dict[Any, Place]) -> None:
    groups: dict[tuple[str, str], list[list[Place]]] = {}
    for one, other, data in graph.edges(data=True):
        sight = graph.nodes[one].get("line_of_sight", graph.nodes[other].get("line_of_sight"))
        group = ("wire", "dashed") if data["kind"] == "wire" else _RADIO_LINKS[sight]
        groups.setdefault(group, []).append([places[one], places[other]])
    for (label, style), lines in groups.items():
        colour = BLACK if label == "wire" else GREY
        axes.add_collection(
            LineCollection(lines, colors=colour, linestyles=style, linewidths=0.6, label=label, zorder=1)
        )


def _nodes(axes: Axes, graph: nx.Graph, places: dict[Any, Place]) -> None:
    clients = [node for node, data in graph.nodes(data=True) if data["kind"] == "client"]
    colours = [CYCLE[graph.nodes[node]["cell"] % len(CYCLE)] for node in clients]
    size = float(np.clip(2000 / max(len(clients), 1), 4, 30))
    x, y = np.array([places[node] for node in clients]).T
    axes.scatter(
        x, y, s=size, c=colours, label="client (colour: its cell)" if graph.graph["spacing"] > 0 else "client", zorder=2
    )
    for kind, marker, colour in (
        ("station", "^", BLACK),
        ("server", "s", BLACK),
        ("cloud", "D", BLACK),
        ("jammer", "X", ROLES["jam"]),
    ):
        found = [places[node] for node, data in graph.nodes(data=True) if data["kind"] == kind]
        if found:
            label = "base station" if kind == "station" else kind
            x, y = np.array(found).T
            axes.scatter(x, y, s=45, marker=marker, color=colour, label=label, zorder=3)
