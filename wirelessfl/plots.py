"""Pictures of a scenario before it runs: topology, partition of the data, beam and spectrum of the first slot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from wirelessfl.errors import InputError, precondition
from wirelessfl.outputs import replacing
from wirelessfl.scenario import Scenario

if TYPE_CHECKING:
    from wirelessfl.simulation import Simulation


class Plot(Protocol):
    """A picture of a scenario."""

    def __call__(self, scenario: Scenario, path: str | Path, *, width_in: float = 5.0) -> None:
        """Drawing into a file."""


def plot_topology(scenario: Scenario, path: str | Path, *, width_in: float = 5.0) -> None:
    """Picture of clients, base stations and servers at the beginning of a scenario.

    Args:
        scenario: the scenario.
        path: the file; its suffix is the format: .pdf, .svg or .png.
        width_in: width (inches).

    Raises:
        InputError: the suffix is of no format, or the data or a file of the channel cannot be used.
        OutputError: the place cannot be written.
    """
    from wirelessfl.assembly import topology_graph
    from wirelessfl.summary.style import figure_file
    from wirelessfl.summary.topology import draw_topology

    place = figure_file(path)
    graph = topology_graph(_built(scenario).deployment)
    with replacing(place) as new:
        draw_topology(graph, scenario.name, new, width_in)


def plot_labels(scenario: Scenario, path: str | Path, *, width_in: float = 5.0) -> None:
    """Picture of the samples of each class that clients hold; of more than a hundred clients evenly spaced ones.

    Args:
        scenario: the scenario.
        path: the file; its suffix is the format: .pdf, .svg or .png.
        width_in: width (inches).

    Raises:
        InputError: the suffix is of no format, or the data or a file of the channel cannot be used.
        OutputError: the place cannot be written.
    """
    from wirelessfl.learning.label_counts import label_counts
    from wirelessfl.summary.labels import MOST_CLIENTS, draw_labels
    from wirelessfl.summary.style import figure_file

    place = figure_file(path)
    learner = _built(scenario).deployment.learner
    counts = label_counts(learner.population, MOST_CLIENTS)
    with replacing(place) as new:
        draw_labels(counts, scenario.name, new, width_in)


def plot_beam(scenario: Scenario, path: str | Path, *, width_in: float = 5.0) -> None:
    """Picture of the combiner's array pattern in the first round, and of the clients' gains behind it.

    Of several base stations the one that serves most clients is drawn, of several groups of subcarriers the first.
    Imported channels say nothing of directions: there the gains are over the clients.

    Args:
        scenario: one with a receiver of several antennas over the air.
        path: the file; its suffix is the format: .pdf, .svg or .png.
        width_in: width (inches).

    Raises:
        InputError: the suffix is of no format, there is no such receiver, it forms no beam, or a file cannot be used.
        OutputError: the place cannot be written.
    """
    from wirelessfl.assembly.first_slot import first_slot
    from wirelessfl.summary.beam import draw_beam, draw_gains
    from wirelessfl.summary.style import figure_file

    place = figure_file(path)
    _, antennas = _axes(scenario)
    precondition(
        antennas > 1,
        "no beam to draw; allowed: uplink.receiver.antennas from 2 over the air, with a modulation that is read "
        "behind a combiner",
        InputError,
    )
    slot = first_slot(lambda: _built(scenario))
    with replacing(place) as new:
        draw = draw_gains if slot.geometry is None else draw_beam
        draw(slot, scenario.name, new, width_in)


def plot_spectrum(scenario: Scenario, path: str | Path, *, width_in: float = 5.0) -> None:
    """Picture of the clients' gains over the groups of subcarriers in the first round, and of who sends in which.

    Args:
        scenario: one with several groups of subcarriers over the air.
        path: the file; its suffix is the format: .pdf, .svg or .png.
        width_in: width (inches).

    Raises:
        InputError: the suffix is of no format, there is one group, or a file cannot be used.
        OutputError: the place cannot be written.
    """
    from wirelessfl.assembly.first_slot import first_slot
    from wirelessfl.summary.spectrum import draw_spectrum
    from wirelessfl.summary.style import figure_file

    place = figure_file(path)
    groups, _ = _axes(scenario)
    precondition(groups > 1, "no spectrum to draw; allowed: channel.fading.groups from 2 over the air", InputError)
    slot = first_slot(lambda: _built(scenario))
    with replacing(place) as new:
        draw_spectrum(slot, scenario.name, new, width_in)


def plots_of(scenario: Scenario) -> dict[str, Plot]:
    """The pictures that a scenario has, by the ending of their names.

    Raises:
        InputError: the suffix is of no format, or the data or a file of the channel cannot be used.
    """
    found: dict[str, Plot] = {"topology": plot_topology, "labels": plot_labels}
    groups, antennas = _axes(scenario)
    return found | ({"beam": plot_beam} if antennas > 1 else {}) | ({"spectrum": plot_spectrum} if groups > 1 else {})


def _axes(scenario: Scenario) -> tuple[int, int]:
    # Groups of subcarriers of a slot over the air, and antennas behind a combiner; 0 without a slot
    from wirelessfl.radio.modulation import Waveform
    from wirelessfl.simulation.uplinks import OverTheAir

    uplink = _built(scenario).deployment.uplink
    if not isinstance(uplink, OverTheAir):
        return 0, 0
    _, groups, antennas = uplink.gain_shape
    apart = isinstance(uplink.modulation, Waveform) and uplink.modulation.at_antennas
    return groups, 0 if apart else antennas


def _built(scenario: Scenario) -> Simulation:
    from wirelessfl.assembly import build_simulation, plan_to_look

    return build_simulation(scenario, plan_to_look(scenario.compute))
