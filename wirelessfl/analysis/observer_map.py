"""The accounted ε against observers all over a map, from one rehearsal of a scenario without training."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.assembly import build_simulation, plan_to_look
from wirelessfl.assembly.network import build_observer
from wirelessfl.errors import InfeasibleError, InputError, precondition
from wirelessfl.memory import forgotten
from wirelessfl.privacy import AirRelease, BareRelease, DpSgdRelease, Release, ZcdpRelease
from wirelessfl.privacy.ledger import recompute
from wirelessfl.radio import AT_ONCE, ChannelSource, DistanceGain, Instants, Moment, Observer, Overheard, Placement
from wirelessfl.scenario import Scenario, Source, load_scenario
from wirelessfl.scenario.observer import Observer as ObserverPlace
from wirelessfl.scenario.observer_consistency import farthest_m
from wirelessfl.scenario.overrides import Overrides
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.rehearsal import without_training
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.simulation.uplinks.air.plan import AirPlan

MOST_PLACES = 10_000
"""Places of a map."""
_ACROSS = 20  # steps across a map unless a step is given
_AROUND = 1.25  # reach of a map, over the distance of the farthest node


@dataclass(frozen=True, eq=False)
class ObserverMap:
    """Accounted ε by place of an observer.

    Attributes:
        name: of the scenario.
        x_m: (n,) of the columns, from the base station.
        y_m: (n,) of the rows.
        epsilon: (n, n) of each row and column, worst client.
        delta: at which it is stated.
        clients_m: (K, 2) places of the clients at the beginning.
        jammer_m: (2,) place of an external jammer, or None.
        observer: the scenario's own, or the default one.
        rounds: of the run.
    """

    name: str
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    epsilon: NDArray[np.float64]
    delta: float
    clients_m: NDArray[np.float64]
    jammer_m: NDArray[np.float64] | None
    observer: ObserverPlace
    rounds: int

    def as_mapping(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "delta": self.delta,
            "rounds": self.rounds,
            "antennas": self.observer.antennas,
            "noise_figure_db": self.observer.noise_figure_db,
            "x_m": self.x_m.tolist(),
            "y_m": self.y_m.tolist(),
            "epsilon_accounted": self.epsilon.tolist(),
            "jammer_m": None if self.jammer_m is None else self.jammer_m.tolist(),
        }


@dataclass(frozen=True)
class _Panel(Observer):
    """An observer beside which others listen, each as if it were the only one.

    Attributes:
        others: at their places.
        heard: what each of them heard, slot after slot.
    """

    others: tuple[Observer, ...] = ()
    heard: list[list[Overheard]] = field(default_factory=list)

    @override
    def hears(
        self,
        nodes: NDArray[np.int64],
        sending: NDArray[np.int64],
        jams: NDArray[np.int64] | None,
        moment: Moment,
        instants: Instants = AT_ONCE,
    ) -> Overheard:
        self.heard.append([one.hears(nodes, sending, jams, moment, instants) for one in self.others])
        return super().hears(nodes, sending, jams, moment, instants)


def observer_map(
    scenario: Source,
    extent_m: float | None = None,
    step_m: float | None = None,
    on_progress: Callable[[float], None] = lambda part: None,
    *,
    overrides: Overrides = (),
    **keys: Any,
) -> ObserverMap:
    """Accounted ε of a scenario for an observer at each place of a square around the base station.

    Channels, powers and jamming are those of the run; only what the observer hears differs from place to place. The
    value at a place is that of the run with `privacy.observer.position_m` there, in all its rounds: no accuracy and no
    divergence ends it, as nothing is trained.

    Args:
        scenario: as for `load_scenario`; without an observer one with one antenna looks at it.
        extent_m: half the side of the square; by default a quarter more than the distance of the farthest node.
        step_m: between places; by default a tenth of the extent.
        on_progress: told which part of the rounds has been played since it was last told.
        overrides: as for `load_scenario`.
        keys: as for `load_scenario`.

    Raises:
        InputError: extent or step is out of range, or the scenario has no places or stops by its ε.
        InfeasibleError: nobody is heard, or a record is not that of linear amplitudes.
    """
    scenario = load_scenario(scenario, overrides, **keys)
    if scenario.privacy.observer is None:
        scenario = load_scenario(scenario, {"privacy.observer.antennas": 1, "privacy.adversary": "observer"})
    section, stop = scenario.privacy.observer, scenario.stop.epsilon
    assert section is not None, "it was just set"
    words = f"stop.epsilon: found {stop}, at which runs end in other rounds from place to place; allowed: null"
    precondition(stop is None, words, InputError)
    simulation = build_simulation(scenario, plan_to_look(scenario.compute))
    network = simulation.deployment.network
    clients = _places(network.clients, network.registry.count)
    external = network.observer is not None and len(network.observer.jammer) > 0
    jammer = _places(network.jammer, 1)[0] if external else None
    nodes = clients if jammer is None else np.vstack([clients, jammer])
    farthest = float(np.hypot(*nodes.T).max())
    axis = _axis(scenario, _AROUND * max(farthest, math.hypot(*section.position_m)), extent_m, step_m)
    epsilon, rounds = _rehearsed(simulation, scenario, section, axis, on_progress)
    return ObserverMap(scenario.name, axis, axis, epsilon, scenario.privacy.delta, clients, jammer, section, rounds)


def _axis(scenario: Scenario, around_m: float, extent_m: float | None, step_m: float | None) -> NDArray[np.float64]:
    # Coordinates of rows and columns
    most = farthest_m(scenario) / math.sqrt(2)
    extent = min(around_m, most) if extent_m is None else extent_m
    words = (
        f"--extent: found {extent:g} m; allowed: above 0, up to {most:g} m, where corners reach as far as the path loss"
    )
    precondition(0 < extent <= most, words, InputError)
    step = 2 * extent / _ACROSS if step_m is None else step_m
    words = f"--step: found {step:g} m; allowed: above 0, up to the extent, {extent:g} m"
    precondition(0 < step <= extent, words, InputError)
    least = 2 * extent / (math.isqrt(MOST_PLACES) - 1)
    words = f"--step: found {step:g} m, {(2 * extent / step + 1) ** 2:,.0f} places; allowed: at least {least:.4g} m"
    precondition(step >= least * (1 - 1e-9), words, InputError)
    count = int(extent / step * (1 + 1e-9))
    return step * np.arange(-count, count + 1, dtype=np.float64)


def _places(source: ChannelSource, count: int) -> NDArray[np.float64]:
    # (n, 2) where nodes are at the beginning
    with forgotten(source.memories()):
        return _placement(source).motion(np.arange(count, dtype=np.int64), Moment(1, 0.0)).position


def _placement(source: ChannelSource) -> Placement:
    assert isinstance(source.large_scale, DistanceGain), "an observer needs a path loss"
    return source.large_scale.placement


def _rehearsed(
    simulation: Simulation,
    scenario: Scenario,
    section: ObserverPlace,
    axis: NDArray[np.float64],
    on_progress: Callable[[float], None],
) -> tuple[NDArray[np.float64], int]:
    # ε (n, n) and rounds played; the simulation is used up by it
    deployment, ledger = simulation.deployment, simulation.ledger
    network, uplink = deployment.network, deployment.uplink
    assert isinstance(uplink, OverTheAir) and network.observer is not None, "the scenario was checked"
    given = (network.streams, uplink.dimension, _placement(network.clients), _placement(network.jammer))
    sections = [section.model_copy(update={"position_m": (float(x), float(y))}) for y in axis for x in axis]
    others = tuple(build_observer(scenario, one, *given) for one in sections)
    panel = _Panel(network.observer.clients, network.observer.jammer, network.observer.noise_std, others)
    heard_by = replace(network, observer=panel)
    listening = replace(uplink, network=heard_by)
    simulation.deployment = replace(deployment, uplink=listening, network=heard_by)
    releases: list[list[Release]] = [[] for _ in others]
    without_training(simulation)

    def play(finished: Any, _: Any) -> None:
        this = finished.round
        heard = panel.heard.pop() if panel.heard else []
        if this.loss_release is not None:
            for mine in releases:
                mine.append(this.loss_release)
        for release in this.releases:
            each: Sequence[Release] = [release] * len(others)
            if type(release) is AirRelease and isinstance(this.heard, AirPlan):
                each = listening.observed(this.heard, release, heard)
            elif not isinstance(release, DpSgdRelease | ZcdpRelease | BareRelease):
                raise InfeasibleError(f"there is no map of an observer for {release.route}")
            for mine, one in zip(releases, each, strict=True):
                mine.append(one)
        on_progress(1 / simulation.stop.rounds)

    simulation.run(play)
    ledgers = (recompute(mine, ledger.facts, ledger.statement) for mine in releases)
    found = [math.inf if ledger.is_void else one.epsilon_accounted() for one in ledgers]
    return np.array(found).reshape(len(axis), len(axis)), simulation.state.round_index
