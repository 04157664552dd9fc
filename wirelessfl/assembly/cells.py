"""Several cells: base stations, power control of each, and edges with models of their own."""

from __future__ import annotations

from wirelessfl.assembly.power_control import build_power_control
from wirelessfl.learning.timing import BITS_PER_PARAMETER
from wirelessfl.privacy import Statement
from wirelessfl.radio.cellular import CellularNetwork
from wirelessfl.scenario import Scenario, config
from wirelessfl.simulation.uplinks import EdgeModels, MultiCell, OverTheAir


def build_multi_cell(
    scenario: Scenario,
    topology: config.MultiCell | config.Hierarchical,
    one_cell: OverTheAir,
    network: CellularNetwork,
    statement: Statement,
) -> MultiCell:
    """The uplink of several cells, like that of one cell everywhere else."""
    assert isinstance(scenario.uplink, config.OverTheAir), "the scenario was checked"
    control = scenario.uplink.power_control
    stations = len(network.sites)
    both_ways = 2 * BITS_PER_PARAMETER * one_cell.air.dimension / topology.backhaul_bps
    edges = None
    if isinstance(topology, config.Hierarchical):
        edges = EdgeModels(stations, topology.edge_rounds, both_ways)
    return MultiCell(
        network=network,
        policies=[build_power_control(scenario, control, network, statement) for _ in range(stations)],
        air=one_cell.air,
        iq_packing=one_cell.iq_packing,
        fade_threshold=one_cell.fade_threshold,
        schedule=one_cell.schedule,
        airtime=one_cell.airtime,
        joules_per_unit=one_cell.joules_per_unit,
        theorem=one_cell.theorem,
        backhaul_s=both_ways,
        edges=edges,
        gradient_step=one_cell.gradient_step,
    )
