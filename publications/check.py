"""Checks of a paper's results: that the page follows from the runs, and that the runs come out the same again.

A run is compared to the last digit under the torch, the version of wirelessfl and on the kind of processor with which
it was recorded, in the same blocks of clients. Under others training rounds differently, and nothing else does: what is
not learnt agrees within `NOT_LEARNT`, and what is learnt within the limit of its kind of model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import wirelessfl as wfl
from publications.drift import NOT_LEARNT, Drift, apart, is_accuracy, is_learnt, near, own_drift
from publications.files import cell, read_rows
from publications.long_table import long_table
from publications.page import claim_rows
from publications.paper import Paper
from publications.provenance import Provenance
from publications.results import Results
from publications.stored import Stored, device_here
from publications.tables import Tables
from wirelessfl.processor import processor_name


@dataclass(frozen=True)
class Limit:
    """How far what is learnt may lie from what was recorded elsewhere; one of its parts is enough.

    Attributes:
        relative: Of the number itself.
        samples: Of an accuracy, in samples of those that it is measured on: one and a half let a single one turn.
        spread: In standard deviations over the seeds of the point.
        drifts: In drifts of the same number of the run itself, see `own_drift`; 0 where it is not made again for it.
    """

    relative: float
    samples: float = 0.0
    spread: float = 0.0
    drifts: float = 0.0


Kind = Literal["dense", "convolutional", "other torch or GPU"]

LIMITS: Mapping[Kind, Limit] = {
    "dense": Limit(relative=1e-6, samples=1.5, drifts=5.0),
    "convolutional": Limit(relative=0.01, spread=0.25),
    "other torch or GPU": Limit(relative=0.01, spread=0.25),
}
"""By what rounds differently.

Dense: linear models and perceptrons. Of 120 runs and 88 trials of other processors, made again on an AMD of family 26,
192 had losses within 1e-6, or the digits that are stored, and the same accuracies but for one sample of 10,000. The
others turn at a last digit: a large rate, a sample at the kink of a unit or of a clip. They lay up to 0.3 % and 0.08
points (runs) and 5 % and 49 points (a trial at rate 32) off. No fixed limit finds 0.7133 for 0.7099 and passes these,
so that each is measured by what disturbs it. With one drift for each run, the largest over all its metrics, runs lay
within 2.3 of their own drifts, trials within 3.4 of theirs but for the losses of `VALIDATION_LOSS`. Each number is now
compared with its own drift alone (`own_drift`), with which those 16 runs and trials have not been measured again.

Convolutional: of six runs of 25 rounds without privacy on two processors one ended 1.2 % apart in test loss and 4 % in
training loss, about a tenth of the deviation over its seeds. A GPU or another torch moves any model as far.
"""

VALIDATION_LOSS = 0.01
"""Relative difference of a trial's loss, which decides between equal accuracies alone.

Three of the 88 trials had losses up to 0.7 % off at the same accuracy, and no disturbance moves them on this processor,
where the commit that recorded one of them gives the number of today: a rate does not disturb the first step.
"""

KINDS: Mapping[str, Kind] = {
    "logistic": "dense",
    "publications.clouds:zero_logistic": "dense",
    "mlp": "dense",
    "cnn_mnist": "convolutional",
    "cnn_cifar10": "convolutional",
}
"""The models of the papers by their name in a scenario."""


def limit_of(one: Stored) -> Limit | None:
    """The limit of what is learnt in a run that was recorded elsewhere; None where none was measured for its model."""
    if one.provenance.torch != _torch() or one.provenance.trained_on != "cpu":
        return LIMITS["other torch or GPU"]
    kind = KINDS.get(one.run.scenario.model.name)
    return None if kind is None else LIMITS[kind]


def check_page(paper: Paper, tables: Tables, folder: Path) -> list[str]:
    """Differences between the tables of a size on disk and those that follow from the runs on disk."""
    wanted = {
        f"{name}.csv": [
            {key: cell(value) for key, value in row.items()} for row in long_table(tables, paper.study(name))
        ]
        for name, table in tables.studies.items()
        if table.runs
    }
    return [_stale(paper, name) for name, rows in wanted.items() if read_rows(folder / name) != rows]


def check_claims(paper: Paper, results: Results, folder: Path) -> list[str]:
    """Whether the verdicts on disk are those that follow from the runs on disk."""
    same = read_rows(folder / "claims.csv") == claim_rows(paper, results)
    return [] if same else [_stale(paper, "claims.csv")]


def _stale(paper: Paper, name: str) -> str:
    return f"{name}: does not follow from the runs; `wirelessfl papers table {paper.name}` writes it anew"


def check_runs(chosen: Sequence[Stored], work: Path, tell: Callable[[str], None] = lambda line: None) -> list[str]:
    """Differences between runs on disk and the same runs made again.

    Args:
        chosen: The runs and trials.
        work: Folder for their traces.
        tell: Called with a line for each.
    """
    found = []
    for at, one in enumerate(chosen):
        # Two rows of a study may be of one run: each has a folder of its own
        differing, how = compare_run(one, work / f"{at}-{one.run.id}")
        tell(f"{one.text()}: {'differs' if differing else 'the same'} ({how})")
        found += [f"{one.text()} ({how}): {', '.join(differing)}"] if differing else []
    return found


def compare_run(one: Stored, work: Path) -> tuple[list[str], str]:
    """What differs between a stored run and the same run made again, number by number, and how they were compared."""
    how, other = _origin(one.provenance), _elsewhere(one.provenance)
    limit = None if other is None else limit_of(one)
    if other is not None and limit is None:
        name = one.run.scenario.model.name
        return [f"found the model {name}; limits are known for {', '.join(KINDS)}"], f"{how}, {other}: not made again"

    now = one.made_again(work / "again")
    differing = [name for name, then in one.numbers.items() if one.cell(now[name]) != one.cell(then)]
    if limit is not None:
        how += f", {other}: {_limit_text(limit, one)}"
        differing = [name for name in differing if not agree(one, name, now[name], limit)]
        if limit.drifts and any(map(is_learnt, differing)):
            drift = own_drift(one, now, work)
            how += f"; {drift.text(differing)}"
            differing = [name for name in differing if not agree(one, name, now[name], limit, drift)]
    return [f"{name} is {one.cell(now[name])}, recorded is {one.cell(one.numbers[name])}" for name in differing], how


def agree(one: Stored, name: str, now: float, limit: Limit, drift: Drift | None = None) -> bool:
    """Whether a number of a run agrees with what was recorded elsewhere.

    Args:
        one: The run.
        name: Of the number.
        now: The number as it is here.
        limit: Of what is learnt.
        drift: The run's own, where it was looked for.
    """
    then = one.numbers[name]
    stored = 0.0 if one.digits else _SIX_DIGITS
    if not is_learnt(name):
        return near(now, then, NOT_LEARNT + stored)
    spread = limit.spread * one.spread.get(name, 0.0)
    flat = limit.samples / one.tested(name) if limit.samples and is_accuracy(name) else 0.0
    relative = max(limit.relative, VALIDATION_LOSS) if name == "validation_loss" else limit.relative
    allowed = 0.0 if drift is None else drift.allows(name, limit.drifts)
    return near(now, then, relative + stored, max(spread, flat)) or apart(name, now, then) <= allowed


_SIX_DIGITS = 5e-6
"""Largest relative error of a number that is stored with six digits."""


def _torch() -> str:
    return version("torch").partition("+")[0]


def _elsewhere(recorded: Provenance) -> str | None:
    """What rounds differently here than where a run was recorded, in words."""
    if not recorded.kept:
        return None
    if recorded.torch != _torch():
        return f"now {_torch()}"
    if recorded.processor != processor_name(device_here(recorded)):
        return f"on {recorded.processor or 'a processor that was not kept'}"
    if recorded.version != wfl.__version__:
        return f"now {wfl.__version__}"
    return None if recorded.chunk else "in blocks of clients that were not kept"


def _origin(recorded: Provenance) -> str:
    if not recorded.kept:
        return "recorded before versions were kept, to six digits"
    commit = recorded.commit or "an unknown commit"
    return f"recorded at {commit}, wirelessfl {recorded.version}, torch {recorded.torch}"


def _limit_text(limit: Limit, one: Stored) -> str:
    parts = [f"{limit.relative:.2g}"]
    parts += [f"{limit.samples:g} samples of an accuracy"] if limit.samples else []
    parts += [f"{limit.spread:g} of the deviation over seeds"] if limit.spread else []
    parts += [f"{limit.drifts:g} times what rounding moves it by"] if limit.drifts else []
    parts += [f"{VALIDATION_LOSS:g} of a validation loss"] if "validation_loss" in one.numbers else []
    return f"what is learnt within {' or '.join(parts)}, the rest within {NOT_LEARNT:g}"
