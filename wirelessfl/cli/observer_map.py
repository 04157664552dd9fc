"""``wirelessfl privacy map``: accounted ε by place of an observer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirelessfl.cli.figure_options import figures_option, refuse_other_format, width_option
from wirelessfl.cli.terminal import (
    OutputPath,
    ScenarioCommand,
    json_option,
    override_option,
    plugins_option,
    progress_of,
    read_scenario,
    remark,
    say,
    scenario_argument,
)

if TYPE_CHECKING:
    from wirelessfl.analysis.observer_map import ObserverMap
    from wirelessfl.summary.style import FigureFormat


@click.command("map", cls=ScenarioCommand)
@scenario_argument
@override_option
@plugins_option
@click.option("--extent", type=float, metavar="M", help="Half the side of the square in metres [all nodes, and more].")
@click.option("--step", type=float, metavar="M", help="Metres between places [a tenth of the extent].")
@click.option("--out", type=OutputPath(), metavar="FILE", help="The figure [NAME-observer-map.png here].")
@figures_option(words="Format of the figure; none draws none.")
@width_option("column")
@json_option
def observer_map_command(
    scenario: str,
    overrides: tuple[str, ...],
    allow_plugins: bool,
    extent: float | None,
    step: float | None,
    out: Path | None,
    form: FigureFormat,
    width: float,
    as_json: bool,
) -> None:
    """Draw the accounted ε of SCENARIO over the places at which an observer may stand.

    Nothing is trained: channels, powers and jamming are those of the run with this seed, and ε at a place is that of
    the run with privacy.observer.position_m there. Antennas and noise figure are those of privacy.observer.
    """
    from wirelessfl.analysis.observer_map import observer_map
    from wirelessfl.outputs import refuse_inputs
    from wirelessfl.scenario import locate
    from wirelessfl.summary import epsilon_text, to_json
    from wirelessfl.summary.style import FigureOptions, figure_file

    resolved, options = read_scenario(scenario, overrides, allow_plugins), FigureOptions(form, width)
    picture = options.file(Path(f"{resolved.name}-observer-map")) if out is None else out
    if options.drawn:
        refuse_other_format(figure_file(picture), form)
        refuse_inputs([picture], [locate(scenario)])
    if resolved.stop.accuracy is not None:
        words = "at which a run may end early: nothing is trained here, and ε is that of all rounds"
        remark(f"stop.accuracy: found {resolved.stop.accuracy:g}, {words}")
    with progress_of("rounds") as on_progress:
        found = observer_map(resolved, extent, step, on_progress)
    if options.drawn:
        draw(found, picture, width, resolved.privacy.observer is not None)
        remark(f"picture: {picture}")
    if as_json:
        say(to_json({**found.as_mapping(), "picture": str(picture) if options.drawn else None}), nl=False)
        return
    import numpy as np  # which takes a tenth of a second, and other commands need none

    for word, at in (("smallest", np.argmin(found.epsilon)), ("largest", np.argmax(found.epsilon))):
        row, column = np.unravel_index(at, found.epsilon.shape)
        where = f"[{found.x_m[column]:g}, {found.y_m[row]:g}] m"
        say(f"{word} ε accounted: {epsilon_text(float(found.epsilon[row, column]))}, observer at {where}")


def draw(found: ObserverMap, picture: Path, width_in: float, of_scenario: bool) -> None:
    """The figure of a map.

    Args:
        found: the map.
        picture: where the figure goes; its suffix is the format.
        width_in: width (inches).
        of_scenario: whether the observer is one of the scenario, which is then shown at its place.
    """
    from wirelessfl.outputs import replacing
    from wirelessfl.summary.observer_map import draw_observer_map

    antennas = "1 antenna" if found.observer.antennas == 1 else f"{found.observer.antennas} antennas"
    title = f"{found.name}: observer with {antennas}, {found.rounds} rounds"
    nodes = (found.clients_m, found.jammer_m, found.observer.position_m if of_scenario else None)
    label = f"accounted ε at δ = {found.delta:g}"
    with replacing(picture) as new:
        draw_observer_map(title, (found.x_m, found.y_m), found.epsilon, nodes, label, new, width_in)
