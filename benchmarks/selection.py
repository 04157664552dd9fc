"""Selection of clients: its share of a round in which 50 of a million registered clients take part.

The round is W1's in size: 50 clients of 100 samples, 5 local epochs, a perceptron of as many parameters, over the air.
What counts as selection is the rule and what is kept for it, in processor time. The pilots of all registered clients,
which some rules follow, are channels and count to the round: they are simulated whoever is selected.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from math import log
from typing import Any
from unittest import mock

from benchmarks.measurement import Case, Runner, Sample, steady
from benchmarks.phases import PartTimes
from benchmarks.recorded import prepare, time_simulation
from benchmarks.shell import on_demand
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.selection import ClientSelection

GROUP = "selection"
RULES: dict[str, dict[str, Any]] = {
    "uniform": {"scheme": "uniform"},
    "round_robin": {"scheme": "round_robin"},
    "poisson": {"scheme": "poisson"},
    "age": {"scheme": "age"},
    "best_channel": {"scheme": "best_channel"},
    "best_channel, last gains": {"scheme": "best_channel", "csi": "last"},
    "proportional_fair": {"scheme": "proportional_fair"},
    "proportional_fair, last gains": {"scheme": "proportional_fair", "csi": "last"},
    "channel_threshold": {"scheme": "channel_threshold"},
    "power_of_choice": {"scheme": "power_of_choice", "candidates": 100},
    "power_of_choice, last losses": {"scheme": "power_of_choice", "candidates": 100, "loss": "last"},
    "oort": {"scheme": "oort"},
}
ACTIVE, SAMPLES, EPOCHS, BATCH, HIDDEN, ROUNDS = 50, 100, 5, 20, 2194, 3
_STEPS = ("candidates", "choose", "note")


def with_rule(rule: dict[str, Any], registered: int, *, quick: bool) -> Scenario:
    """A round in the size of W1, of few among many registered clients."""
    active, samples, hidden, epochs = (5, BATCH, 4, 1) if quick else (ACTIVE, SAMPLES, HIDDEN, EPOCHS)
    sizes = {"min_samples": samples, "max_samples": samples}
    # By chance as many as of the other rules by number: under Rayleigh fading a client is above g with e^−g
    by_chance = {"poisson": {"rate": active / registered}, "channel_threshold": {"threshold": log(registered / active)}}
    return on_demand(
        registered,
        2 if quick else ROUNDS,
        clients={"count": registered, "selection": {**rule, **by_chance.get(rule["scheme"], {"count": active})}},
        data={"dataset": {"name": "synthetic", **sizes}, "partition": {"scheme": "natural"}},
        model={"name": "mlp", "hidden": [hidden]},
        training={"algorithm": {"name": "fedavg"}, "epochs": epochs, "batch_size": BATCH},
    )


def time_selection(scenario: Scenario, threads: int) -> tuple[float, float]:
    """Processor seconds of the selection in a round, and those of the round: the medians without the first."""
    times, spent = PartTimes(), [0.0]
    simulation = prepare(scenario, threads)
    with ExitStack() as patches:
        for step in _STEPS:
            counted = times.counted(GROUP, getattr(ClientSelection, step))
            patches.enter_context(mock.patch.object(ClientSelection, step, counted))
        rounds = time_simulation(simulation, scenario, lambda: spent.append(times.seconds[GROUP]))
    return steady(after - before for before, after in pairwise(spent)), steady(rounds.cpu_seconds)


def selection_cases(threads: int, runner: Runner, *, quick: bool) -> list[Case]:
    """Percent of a round that each rule takes."""
    registered = 1_000 if quick else 1_000_000

    def measure(scenario: Scenario) -> Sample:
        (selection, whole), memory_mib = runner(partial(time_selection, scenario, threads))
        return Sample(100 * selection / whole, selection, memory_mib=memory_mib)

    return [
        Case(
            GROUP,
            f"{name}, of {registered:,}",
            "% of a round",
            partial(measure, with_rule(rule, registered, quick=quick)),
            most=1,
        )
        for name, rule in RULES.items()
    ]
