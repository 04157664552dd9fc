"""Tuning of compared methods: the same number of settings and seeds for each, judged on validation samples alone.

A sweep names the methods that a study compares and, for each, the keys that are tuned with the values that they may
take. Its budget is the number of settings of every method:

- a grid of exactly so many settings is tried in full;
- of a larger grid the setting that the study has without tuning comes first, then the points of the unscrambled Sobol
  sequence behind its origin, each at the value in whose equal share of the axis it falls, until the budget is full;
- a smaller grid is refused, for its method would be tuned with less.

The setting with the largest mean validation accuracy wins; of equal ones that with the smaller validation loss, then
the earlier one. Test accuracy is not read, and no seed of a sweep is reported.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from publications.provenance import UNKNOWN, Provenance
from publications.studies import Size

Setting = Mapping[str, Any]
"""Keys of the scenario to their values."""

SEEDS = (1001, 1002, 1003)
"""Seeds of tuning; studies count theirs from 1."""
VALIDATION: Setting = {"data.validation": {"fraction": 0.1}}
"""What is held out of every client's share, in tuning and in what is reported of it."""
_MOST_DRAWN = 4096


@dataclass(frozen=True)
class TunedMethod:
    """A method that is compared with others.

    Attributes:
        name: For tables and pictures.
        fixed: What makes it this method; a value may be a mapping.
        grid: The tuned keys with all values that they may take. A key below one of `fixed` changes that mapping.
        start: The untuned setting, a point of the grid.
    """

    name: str
    fixed: Setting
    grid: Mapping[str, Sequence[Any]]
    start: Setting

    def __post_init__(self) -> None:
        """Refuse a start that is not on the grid."""
        if self.start.keys() != self.grid.keys():
            raise ValueError(f"{self.name}: the start has {list(self.start)}, the grid {list(self.grid)}")
        for key, value in self.start.items():
            if value not in self.grid[key]:
                raise ValueError(f"{self.name}: the start's {key}={value} is not among {list(self.grid[key])}")

    def settings(self, budget: int) -> tuple[Setting, ...]:
        """The settings that are tried.

        Raises:
            ValueError: the grid has fewer than the budget.
        """
        size = math.prod(len(values) for values in self.grid.values())
        if size < budget:
            raise ValueError(f"{self.name}: found a grid of {size} settings; allowed: at least the budget, {budget}")
        chosen = [dict(self.start)]
        for setting in _whole(self.grid) if size == budget else _sobol(self.grid):
            if len(chosen) == budget:
                break
            if setting not in chosen:
                chosen.append(setting)
        if len(chosen) < budget:
            raise ValueError(f"{self.name}: {_MOST_DRAWN} Sobol points meet {len(chosen)} of {budget} settings")
        return tuple(chosen)

    def at(self, setting: Setting) -> dict[str, Any]:
        """The method with a setting, as the values of a study's keys."""
        values = copy.deepcopy(dict(self.fixed))
        for key, value in setting.items():
            above = next((one for one in values if key.startswith(f"{one}.")), None)
            if above is None:
                values[key] = value
                continue
            *parents, last = key.removeprefix(f"{above}.").split(".")
            node = values[above]
            for parent in parents:
                node = node.setdefault(parent, {})
            node[last] = value
        return values

    def setting_in(self, values: Mapping[str, Any]) -> Setting:
        """The setting with which `at` gives these values."""
        return {key: value_in(values, key) for key in self.grid}


@dataclass(frozen=True)
class Sweep:
    """The tuning of all methods that a study compares.

    Attributes:
        name: Its results are ``tuning-<name>.csv``, and what it chooses is the study ``tuned-<name>``, if there is one.
        title: What is compared.
        size: The size of the study.
        study: The study whose base and ``set`` hold.
        budget: Settings of each method.
        methods: The methods, in the order of the tuned study.
        change: What differs from the study for all methods, e.g. one of several data sets.
        trial: What differs from it in the runs of the sweep alone, e.g. an earlier end.
        words: Short words for keys, for tables and pictures.
        seeds: Seeds of every setting.
        reported: The number of seeds of the tuned study; 0 where there is none, and studies take what won themselves.
    """

    name: str
    title: str
    size: Size
    study: str
    budget: int
    methods: tuple[TunedMethod, ...]
    change: Setting
    words: Mapping[str, str]
    seeds: tuple[int, ...] = SEEDS
    reported: int = 5
    trial: Setting = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse methods of which one has keys that another lacks: they would not fit into one study."""
        keys = [sorted(method.at(method.start)) for method in self.methods]
        if any(one != keys[0] for one in keys):
            raise ValueError(f"{self.name}: the methods differ in their keys: {keys}")
        names = [method.name for method in self.methods]
        if len(set(names)) < len(names):
            raise ValueError(f"{self.name}: found two methods of one name: {names}")

    @property
    def runs(self) -> int:
        """How many runs it takes."""
        return len(self.methods) * self.budget * len(self.seeds)


@dataclass(frozen=True)
class Trial:
    """A run of a sweep.

    Attributes:
        method: Name of the method.
        setting: Number of the setting, from 0 on.
        seed: Its seed.
        accuracy: Validation accuracy after the last round, NaN of a run that diverged.
        loss: Validation loss after the last round.
        epsilon: Accounted ε.
        run: Its id.
        provenance: Where it comes from.
    """

    method: str
    setting: int
    seed: int
    accuracy: float
    loss: float
    epsilon: float
    run: str
    provenance: Provenance = UNKNOWN


@dataclass(frozen=True)
class Score:
    """A setting with the means over its seeds.

    Attributes:
        setting: Number of the setting.
        values: The tuned keys.
        accuracy: Mean validation accuracy; a run that diverged counts as 0.
        loss: Mean validation loss; a run that diverged counts as infinite.
        low: The smallest accuracy of a seed.
        high: The largest accuracy of a seed.
    """

    setting: int
    values: Setting
    accuracy: float
    loss: float
    low: float
    high: float


def scores(sweep: Sweep, method: TunedMethod, trials: Sequence[Trial]) -> tuple[Score, ...]:
    """The settings of a method, in their order.

    Raises:
        ValueError: a run is missing, or one too many.
    """
    found = []
    for at, values in enumerate(method.settings(sweep.budget)):
        here = [one for one in trials if one.method == method.name and one.setting == at]
        if sorted(one.seed for one in here) != sorted(sweep.seeds):
            seeds = [one.seed for one in here]
            raise ValueError(f"{sweep.name}, {method.name}, setting {at}: found seeds {seeds}, not {sweep.seeds}")
        accuracies = [0.0 if math.isnan(one.accuracy) else one.accuracy for one in here]
        losses = [math.inf if math.isnan(one.loss) else one.loss for one in here]
        mean, loss = (math.fsum(numbers) / len(numbers) for numbers in (accuracies, losses))
        found.append(Score(at, values, mean, loss, min(accuracies), max(accuracies)))
    return tuple(found)


def winner(found: Sequence[Score]) -> Score:
    """The setting that tuning chooses."""
    return min(found, key=lambda one: (-one.accuracy, one.loss, one.setting))


def value_in(values: Mapping[str, Any], key: str) -> Any:
    """The value of a key among values of a study's keys, each of which may be a mapping.

    Raises:
        KeyError: there is none.
    """
    above = next((one for one in values if key == one or key.startswith(f"{one}.")), None)
    if above is None:
        raise KeyError(key)
    found = values[above]
    for part in key.removeprefix(above).split(".")[1:]:
        found = found[part]
    return found


def at_the_edge(method: TunedMethod, setting: Setting) -> tuple[str, ...]:
    """Tuned numbers whose value is the first or last of several: a wider grid might find better ones."""
    return tuple(
        key
        for key, values in method.grid.items()
        if len(values) > 1 and setting[key] in (values[0], values[-1]) and isinstance(setting[key], int | float)
    )


def _whole(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    settings: list[dict[str, Any]] = [{}]
    for key, values in grid.items():
        settings = [{**one, key: value} for one in settings for value in values]
    yield from settings


def _sobol(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    from scipy.stats import qmc

    points = qmc.Sobol(len(grid), scramble=False).random_base2(int(math.log2(_MOST_DRAWN)))
    for point in points[1:]:
        yield {key: values[int(at * len(values))] for at, (key, values) in zip(point, grid.items(), strict=True)}
