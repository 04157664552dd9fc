"""Curves of a study: means over the seeds by round, or over seconds, energy or ε, and after the last round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wirelessfl.study.factors import Levels, point_text
from wirelessfl.study.record import RunRecord
from wirelessfl.study.result import Study
from wirelessfl.summary.axes import EnergyUnit, XAxis, axis_values, common_energy_unit
from wirelessfl.summary.curves import Band, Curve, band, mean_curve
from wirelessfl.summary.intervals import on_scale
from wirelessfl.summary.numbers import last_finite

_NEEDED = ("round", "sim_time", "energy", "tx_energy", "jammer_energy", "epsilon_accounted")


@dataclass(frozen=True)
class StudyCurves:
    """Curves of a study, from its table.

    Attributes:
        study: the study; its table is written.
    """

    study: Study

    @cached_property
    def _runs(self) -> dict[str, dict[str, NDArray[np.float64]]]:
        # By run: its columns by round; NaN for those that the table of an earlier version lacks
        columns = {*_NEEDED, *self.study.metrics}
        table = self.study.to_dataframe()
        table = table.reindex(columns=["run", *columns])
        return {
            str(run): {name: rows[name].to_numpy(dtype=np.float64) for name in columns}
            for run, rows in table.groupby("run", sort=False)
        }

    @cached_property
    def _points(self) -> dict[Levels, tuple[RunRecord, ...]]:
        return self.study.points()

    @cached_property
    def energy_unit(self) -> EnergyUnit | None:
        """Unit of the axis of energy; None where the energy of no run is known.

        Raises:
            InputError: some are known in joules and others in units of the noise.
        """
        named = {point_text(self.study.factors, levels): records for levels, records in self._points.items()}
        return common_energy_unit({name: self._runs[records[0].run] for name, records in named.items() if records})

    def curve(self, metric: str, levels: Levels, x: XAxis) -> Curve:
        """Mean of a metric at a point; shares in percent, log10 of what has a logarithmic axis."""
        runs = [self._runs[record.run] for record in self._points[levels]]
        series = [on_scale(metric, run[metric]) for run in runs]
        unit = self.energy_unit if x == "energy" else None
        return mean_curve(x, [axis_values(x, run, unit) for run in runs], series)

    def last(self, metric: str, levels: Levels) -> Band:
        """Mean of a metric after the last round of each run; runs may differ in length."""
        runs = [self._runs[record.run] for record in self._points[levels]]
        return band([[last_finite(on_scale(metric, run[metric]))] for run in runs])

    def remarks(self) -> list[str]:
        """Sentences on the points that have no place, or not with all rounds, on an axis of the picture."""
        sentences = []
        for x in self.study.x:
            for levels in self._points:
                missing = self.curve(self.study.metrics[0], levels, x).missing
                if missing:
                    sentences.append(f"over {x}, {point_text(self.study.factors, levels)}: {missing}")
        return sentences
