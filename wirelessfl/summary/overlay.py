"""Runs and points of studies laid over each other: their curves over one axis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import InputError, precondition
from wirelessfl.summary.axes import (
    Columns,
    EnergyUnit,
    XAxis,
    axis_values,
    columns_of,
    common_energy_unit,
    x_label,
)
from wirelessfl.summary.curves import STEPS_SENTENCE, mean_curve
from wirelessfl.summary.intervals import Interval, interval_of, lowest_of, on_scale
from wirelessfl.trace import ROOT, at_slot_start

if TYPE_CHECKING:
    import xarray as xr

COMPARED = ("test_accuracy", "test_loss", "epsilon_accounted")
"""Variables of the trace that a comparison shows."""

PLOTTED = tuple(variable.name for variable in ROOT.of("round") if variable.name != "event_count")
"""Variables of the trace with one value a round."""


def run_columns(trace: xr.Dataset) -> dict[str, NDArray[np.float64]]:
    """Columns by round of an opened trace: all variables with one value a round, and what axes are made of."""
    there = {name: at_slot_start(trace[name]).astype(np.float64) for name in PLOTTED if name in trace}
    return columns_of(trace) | there


@dataclass(frozen=True, eq=False)
class Entry:
    """A run, or a point of a study with all its seeds.

    Attributes:
        name: what it is called in the legend.
        runs: columns by round of each run.
    """

    name: str
    runs: tuple[Columns, ...]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Curve of one variable of an entry.

    Attributes:
        x: (g,) places on the axis.
        interval: (g,) means over the runs, in the unit of the axis.
        missing: what is drawn of the entry, and why not all; "" where all rounds have a place.
    """

    x: NDArray[np.float64]
    interval: Interval
    missing: str


@dataclass(frozen=True)
class Overlay:
    """Entries that are drawn over each other.

    Attributes:
        entries: in the order of the legend.
    """

    entries: tuple[Entry, ...]

    @cached_property
    def energy_unit(self) -> EnergyUnit | None:
        """Unit of the axis of energy; None where no energy is known.

        Raises:
            InputError: some are known in joules and others in units of the noise.
        """
        return common_energy_unit({entry.name: run for entry in self.entries for run in entry.runs})

    def curve(self, entry: Entry, y: str, x: XAxis) -> Drawn:
        """Mean of a variable over the runs of an entry, in the unit of its axis."""
        unit = self.energy_unit if x == "energy" else None
        places = [axis_values(x, run, unit) for run in entry.runs]
        curve = mean_curve(x, places, [on_scale(y, run[y]) for run in entry.runs])
        return Drawn(curve.x, interval_of(y, curve.mean, lowest_of(y, [curve.mean.mean])), curve.missing)

    def label(self, x: XAxis) -> str:
        """Label of an axis."""
        return x_label(x, self.energy_unit if x == "energy" else None)

    def legend(self, x: XAxis) -> list[str]:
        """Names of the entries, and what an axis does not show of each."""
        curves = ((entry.name, self.curve(entry, COMPARED[0], x).missing) for entry in self.entries)
        return [f"{name}: {words}" if words else name for name, words in curves]

    def missing(self, x: XAxis) -> list[str]:
        """Entries that an axis does not show, or not with all rounds, each with the reason."""
        return [words for words, entry in zip(self.legend(x), self.entries, strict=True) if words != entry.name]

    def require(self, x: XAxis) -> None:
        """Check that an axis other than the rounds shows anything at all.

        Raises:
            InputError: no entry has a place on it, or their energies have no unit in common.
        """
        shown = x == "round" or any(len(self.curve(entry, COMPARED[0], x).x) for entry in self.entries)
        words = "; ".join(self.missing(x)) or "no evaluated round"
        precondition(
            shown, f"x: {x}: nothing to draw ({words}); allowed: an axis on which a run can be drawn", InputError
        )

    def metrics(self, x: XAxis) -> tuple[str, ...]:
        """Variables of a comparison that say anything over an axis: an ε over itself does not, nor one of ∞ alone."""
        finite = any(np.isfinite(run["epsilon_accounted"]).any() for entry in self.entries for run in entry.runs)
        return COMPARED if finite and x != "epsilon" else COMPARED[:2]


def caption(overlay: Overlay) -> str:
    """Words below an overlay: what bands and curves are; "" where every entry is one run."""
    several = any(len(entry.runs) > 1 for entry in overlay.entries)
    words = "Mean over the seeds with its 95 % confidence interval; of ε the geometric mean."
    return f"{words} {STEPS_SENTENCE}" if several else ""
