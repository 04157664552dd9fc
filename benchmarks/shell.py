"""The event simulation: time of a round beside training, measured with a learner that returns zeros.

Everything else happens as in any run: selection, SimPy events, channels, power control, superposition, ledger, trace
and checkpoint; and which of them takes how long. Also how long ``wirelessfl --help`` takes, which imports no more than
it must.

Two shares of a workload's round tell what remains of it when nobody trains:

* "over the air", all of it: power control, superposition, receiver noise and the step of the model included;
* "less the air", shell (events, streams, ledger) and trace (writer, checkpoint) alone. The air is simulated as training
  is, and no overhead: reading all updates once and drawing the noise is what any program has to do.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from typing import Any

from benchmarks.measurement import Case, Runner, Sample, steady
from benchmarks.phases import PARTS, SHELL, TRACE, time_parts
from benchmarks.recorded import time_scenario, time_shell
from benchmarks.workloads import Workload
from wirelessfl.scenario import Scenario

GROUP = "shell"
SAMPLES = 20  # of each client


def on_demand(clients: int, rounds: int, /, **sections: Any) -> Scenario:
    """Logistic regression on synthetic data that is made for the clients of a round only.

    Args:
        clients: K, all active unless ``sections`` say otherwise.
        rounds: of the run.
        sections: further sections of the scenario, in place of these.
    """
    sizes = {"min_samples": SAMPLES, "max_samples": SAMPLES}
    return Scenario.model_validate(
        {
            "name": "on-demand",
            "rounds": rounds,
            "data": {"dataset": {"name": "synthetic", **sizes}, "partition": {"scheme": "natural"}},
            "model": {"name": "logistic"},
            "clients": {"count": clients},
            "training": {"algorithm": {"name": "fedavg"}, "epochs": 1, "batch_size": SAMPLES},
            "uplink": {"kind": "over_the_air"},
            "evaluate": {"every": rounds},
            **sections,
        }
    )


def shell_cases(workload: Workload, threads: int, runner: Runner, *, quick: bool) -> list[Case]:
    """Microseconds of simulation for each client and round, also by part, its share of a workload, and start-up."""
    active, many, rounds = (20, 50, 2) if quick else (1_000, 100_000, 20)
    over_the_air, crowd = on_demand(active, rounds), on_demand(many, 2)
    scenarios = {
        f"{active:,} active, over the air": over_the_air,
        f"{active:,} active, over the air, no event log": on_demand(active, rounds, trace={"events": False}),
        f"{active:,} active, ideal uplink": on_demand(active, rounds, uplink={"kind": "ideal"}),
    }
    unit = "µs/client/round"
    return [
        *(
            Case(GROUP, name, unit, partial(_per_client, runner, scenario, threads))
            for name, scenario in scenarios.items()
        ),
        *(
            Case(GROUP, f"{active:,} active: {part}", unit, partial(_part, runner, over_the_air, threads, active, part))
            for part in PARTS
        ),
        Case(GROUP, f"{many:,} active, over the air", unit, partial(_per_client, runner, crowd, threads), most=1),
        Case(GROUP, f"share of {workload.name}, over the air", "%", partial(_share, runner, workload, threads)),
        Case(GROUP, f"share of {workload.name}, less the air", "%", partial(_bare_share, runner, workload, threads)),
        Case(GROUP, "wirelessfl --help", "s", _start_up),
    ]


def _per_client(runner: Runner, scenario: Scenario, threads: int) -> Sample:
    times, memory_mib = runner(partial(time_shell, scenario, threads))
    return Sample(1e6 * steady(times.seconds) / times.clients, steady(times.cpu_seconds), memory_mib=memory_mib)


def _share(runner: Runner, workload: Workload, threads: int) -> Sample:
    """Percent of a round of the workload that remain when nobody trains."""
    scenario = workload.scenario("over_the_air")
    whole, _ = runner(partial(time_scenario, scenario, threads))
    shell, _ = runner(partial(time_shell, scenario, threads))
    return Sample(100 * steady(shell.seconds) / steady(whole.seconds), steady(shell.cpu_seconds))


def _part(runner: Runner, scenario: Scenario, threads: int, clients: int, part: str) -> Sample:
    """Microseconds of the processor that one part takes."""
    seconds, _ = runner(partial(time_parts, scenario, threads))
    return Sample(1e6 * seconds[part] / clients, seconds[part])


def _bare_share(runner: Runner, workload: Workload, threads: int) -> Sample:
    """Percent of a round of the workload that shell and trace take, which no training thread shares.

    Processor seconds of the one over seconds of the other: a share of the round's processor seconds would be the
    smaller the more threads train.
    """
    scenario = workload.scenario("over_the_air")
    whole, _ = runner(partial(time_scenario, scenario, threads))
    parts, _ = runner(partial(time_parts, scenario, 1))
    bare = sum(parts[part] for part in (*SHELL, *TRACE))
    return Sample(100 * bare / steady(whole.seconds), bare)


def _start_up() -> Sample:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "wirelessfl", "--help"], check=True, stdout=subprocess.DEVNULL)
    return Sample(time.perf_counter() - started)
