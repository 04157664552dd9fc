"""Workers for the local training of a run: of this machine, of a running cluster, or in Slurm jobs."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from wirelessfl import plugins
from wirelessfl.cluster.connection import SLURM
from wirelessfl.errors import InputError, ScenarioError, precondition
from wirelessfl.scenario.scenario import outside_code

if TYPE_CHECKING:
    from wirelessfl.learning.cohort import TrainingElsewhere
    from wirelessfl.scenario import Scenario
    from wirelessfl.simulation.learner import Learner

Elsewhere: TypeAlias = "Callable[[Scenario, Learner], TrainingElsewhere]"
"""What makes the `TrainingElsewhere` of a run."""


def check_workers(workers: int | None, scheduler: str | None) -> None:
    """Checks that at most one of both says where blocks are trained; Slurm takes both.

    Raises:
        InputError: both do, the workers are no positive number, or the scheduler is no text.
    """
    number = workers is None or (isinstance(workers, int) and not isinstance(workers, bool) and workers >= 1)
    precondition(number, f"--workers: found {workers!r}; allowed: a whole number of at least 1", InputError)
    text = scheduler is None or isinstance(scheduler, str)
    precondition(text, f"--scheduler: found {scheduler!r}; allowed: an address, or {SLURM}", InputError)
    both = workers is not None and scheduler is not None and scheduler != SLURM
    words = f"--workers with --scheduler: found {workers} and {scheduler}; allowed: one of them, as the cluster behind "
    precondition(not both, f"{words}a scheduler has workers of its own (--scheduler {SLURM} takes both)", InputError)
    jobs = scheduler != SLURM or workers is not None
    precondition(jobs, f"--scheduler {SLURM}: found no number; allowed: with --workers N, the Slurm jobs", InputError)


@contextmanager
def training_elsewhere(
    workers: int | None, scheduler: str | None, check: Callable[[], None]
) -> Iterator[Elsewhere | None]:
    """What makes the `TrainingElsewhere` of a run, for as long as its workers are there; None for this process.

    Args:
        workers: Processes to start on this machine, or Slurm jobs.
        scheduler: The address of a Dask scheduler, or slurm.
        check: Called while workers are waited for; may raise to give up.

    Raises:
        InputError: the address is none.
        InfeasibleError: Dask is not installed, or the scheduler does not answer.
    """
    check_workers(workers, scheduler)
    if workers is None and scheduler is None:
        yield None
        return
    from wirelessfl.cluster.blocks import BlocksElsewhere
    from wirelessfl.cluster.dask_workers import dask_workers
    from wirelessfl.cluster.local import local_workers
    from wirelessfl.cluster.worker import RunOnWorkers

    count = workers or 1
    found = local_workers(count, check) if scheduler is None else dask_workers(scheduler, count, check)
    with found as there:

        def elsewhere(scenario: Scenario, learner: Learner) -> TrainingElsewhere:
            _refuse_typed(scenario)
            _refuse_unsendable(learner)
            blocks = BlocksElsewhere(there, RunOnWorkers.of(scenario, learner.population))
            blocks.prepare(count)
            return blocks

        yield elsewhere


def _refuse_typed(scenario: Scenario) -> None:
    # What a script or an interpreter defines is in no other process
    for key, reference in outside_code(scenario).items():
        precondition(
            plugins.top_of(reference) != "__main__",
            f"{key}: found {reference}, which worker processes cannot import; allowed: a class or function in a module "
            "of its own, or a run without --workers and --scheduler",
            ScenarioError,
        )


def _refuse_unsendable(learner: Learner) -> None:
    gradients = None if learner.private is None else learner.private.gradients
    check_sendable({"training.optimizer.name": learner.training, "training.privacy.mechanism": gradients})


def check_sendable(parts: Mapping[str, object]) -> None:
    """Checks that objects, by their key, can be sent to workers: the user's own may hold what cannot be pickled.

    Raises:
        ScenarioError: one cannot.
    """
    for key, one in parts.items():
        try:
            pickle.dumps(one)
        except Exception as error:
            raise ScenarioError(
                f"{key}: its object cannot be sent to workers ({type(error).__name__}: {error}); allowed: one that "
                "can be pickled, or a run without --workers and --scheduler"
            ) from error
