"""The graph of who is connected with whom, and its picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import wirelessfl.assembly.first_round as topology
from tests.simulation.scenarios import PLAN, small
from tests.simulation.test_multi_cell import CELLS, cellular, hierarchical
from wirelessfl.assembly import build_simulation, topology_graph
from wirelessfl.errors import InputError, OutputError
from wirelessfl.radio.propagation import Moment
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import Simulation

URBAN = {"channel__profile": "urban-macro", "uplink": {"kind": "over_the_air", "tx_power_dbm": 23.0}}
JAMMED = {"epsilon": 1.0}

SCENARIOS: dict[str, Scenario] = {
    "no places": small(uplink__jammer=JAMMED),
    "one cell": small(**URBAN),
    "jammer": small(channel__profile="urban-macro", uplink__jammer=JAMMED),
    "rotating": small(uplink__jammer={**JAMMED, "role": "rotating"}),
    "cells": cellular(),
    "edges on the move": hierarchical(2, channel__profile="vehicular"),
    "one of many": small(clients__count=1, topology={**CELLS, "rings": 0}, **URBAN),
    "ideal": small(uplink={"kind": "ideal"}),
}


def graph_of(name: str) -> tuple[Simulation, nx.Graph]:
    simulation = build_simulation(SCENARIOS[name], PLAN)
    return simulation, topology_graph(simulation.deployment)


def of_kind(graph: nx.Graph, kind: str) -> list[Any]:
    return [node for node, data in graph.nodes(data=True) if data["kind"] == kind]


def test_one_cell_is_a_star_around_the_server() -> None:
    _, graph = graph_of("no places")
    assert of_kind(graph, "server") == ["station 0"]
    assert of_kind(graph, "client") == list(range(6)) and of_kind(graph, "jammer") == ["jammer"]
    assert set(graph.edges) == {("station 0", node) for node in (*range(6), "jammer")}
    assert graph.graph["places"] is False and "x" not in graph.nodes[3]
    assert of_kind(graph_of("rotating")[1], "jammer") == []


def test_clients_stand_where_the_channel_has_them() -> None:
    simulation, graph = graph_of("one cell")
    network = simulation.deployment.network
    clients = np.arange(6)
    distance = [np.hypot(graph.nodes[client]["x"], graph.nodes[client]["y"]) for client in range(6)]
    np.testing.assert_allclose(distance, network.last_distances(clients))
    gains = network.clients.large_scale.gains(clients, Moment(1, 0.0))
    assert [graph.nodes[client]["line_of_sight"] for client in range(6)] == gains.line_of_sight.tolist()
    assert {"x", "y"} <= graph_of("jammer")[1].nodes["jammer"].keys()


@pytest.mark.parametrize(("name", "behind"), [("cells", "server"), ("edges on the move", "cloud")])
def test_cells_hang_together_behind_their_base_stations(name: str, behind: str) -> None:
    simulation, graph = graph_of(name)
    network = simulation.deployment.network
    assert network.sites is not None
    assert nx.is_tree(graph) and of_kind(graph, behind) == [behind]
    assert sorted(graph[behind]) == [f"station {number}" for number in range(7)]
    serving = network.cell_links(np.arange(14), Moment(1, 0.0)).serving.tolist()
    assert [graph.nodes[client]["cell"] for client in range(14)] == serving
    assert all(graph.has_edge(client, f"station {cell}") for client, cell in enumerate(serving))
    assert graph.graph["spacing"] == pytest.approx(400.0)


def test_looking_changes_nothing() -> None:
    simulation, _ = graph_of("edges on the move")
    assert all(len(memory.state().get("nodes", ())) == 0 for memory in simulation.deployment.memories.values())


def test_very_many_clients_are_shown_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "MOST_CLIENTS", 4)
    _, graph = graph_of("cells")
    assert len(of_kind(graph, "client")) == 4 and graph.graph["clients"] == 14


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_topology_has_a_picture(name: str, tmp_path: Path) -> None:
    import wirelessfl.api as api

    api.plot_topology(SCENARIOS[name], tmp_path / "topology.png")
    assert (tmp_path / "topology.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written() -> None:
    import wirelessfl.api as api

    with pytest.raises(OutputError, match="cannot be written"):
        api.plot_topology(SCENARIOS["one cell"], "/nowhere/topology.png")


@pytest.mark.parametrize("draw", ["plot_topology", "plot_labels", "plot_beam", "plot_spectrum"])
def test_a_picture_of_another_format(draw: str) -> None:
    import wirelessfl.plots as plots

    with pytest.raises(InputError, match=r"found '\.jpg' as the suffix of a figure; allowed: \.pdf, \.svg, \.png"):
        getattr(plots, draw)(SCENARIOS["one cell"], "x.jpg")
