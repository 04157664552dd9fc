"""Elements of the page: static figures, and sortable tables."""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from markupsafe import Markup

from wirelessfl.analysis.replay.recording import Recording
from wirelessfl.summary import number_text
from wirelessfl.trace import SecAggOutcome, SecAggStage, has_group, read_group

# A table of more rounds than these shows every second, every third, ... of them.
_MOST_ROWS = 1000


@dataclass(frozen=True)
class Cell:
    """A cell of a table: what is shown, and by what it is sorted."""

    text: str
    value: float | str


@dataclass(frozen=True)
class SortedTable:
    """A table whose rows the reader may sort.

    Attributes:
        caption: what its rows are.
        head: names of the columns.
        rows: of cells.
    """

    caption: str
    head: tuple[str, ...]
    rows: list[list[Cell]]


@dataclass(frozen=True)
class Drawing:
    """A static figure on the page.

    Attributes:
        title: above it.
        svg: the picture.
        caption: below it, in words for everybody.
    """

    title: str
    svg: Markup
    caption: str


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{share:.1%}"


def number_cell(value: float) -> Cell:
    """A number, sorted as such."""
    return Cell(number_text(value), value)


# Variables of the trace or the summary, with the heads of their columns.
_EPSILONS = {"epsilon_published": "ε published", "epsilon_accounted": "ε accounted"}
_ROUND_COLUMNS = {
    "test_accuracy": "accuracy",
    "test_loss": "loss",
    "participants": "heard",
    **_EPSILONS,
    "server_gain": "α_u",
    "jammer_gain": "α_CJ",
    "effective_noise_std": "σ_m",
    "aggregate_noise_std": "on the mean",
    "sim_time": "time (s)",
}
POINT_COLUMNS = {
    **_EPSILONS,
    "participants_mean": "heard",
    "sim_time": "time (s)",
    "airtime": "airtime (s)",
    "energy": "energy (J)",
}


def round_table(trace: xr.Dataset) -> SortedTable:
    """The rounds of a run, or as many of them as a table can show."""
    step, unknown = -(-trace.sizes["round"] // _MOST_ROWS), np.full(trace.sizes["round"], np.nan)
    # An earlier version did not record every variable.
    columns = [trace["round"].values, *(trace[name].values if name in trace else unknown for name in _ROUND_COLUMNS)]
    rows = [
        [Cell(_percent(value), value) if at == 1 else number_cell(value) for at, value in enumerate(map(float, row))]
        for row in zip(*(column[::step] for column in columns), strict=True)
    ]
    return SortedTable("Rounds" if step == 1 else f"Rounds, one in {step}", ("round", *_ROUND_COLUMNS.values()), rows)


_BITS_A_BYTE = 8
_COST_COLUMNS = {
    "messages_up": "messages up",
    "bits_up": "bytes up",
    "messages_down": "messages down",
    "bits_down": "bytes down",
    "seconds": "time (s)",
    "energy": "energy (J)",
    "dropouts": "not heard",
    "refused": "refused",
}


def secure_aggregation_costs(recording: Recording) -> xr.Dataset | None:
    """The group ``/secagg`` of the rounds of a recording; None for a run without secure aggregation."""
    rounds, known = slice(recording.first, recording.last), has_group(recording.path, "secagg")
    return read_group(recording.path, "secagg").sel(round=rounds) if known else None


def cost_facts(costs: xr.Dataset) -> list[tuple[str, str]]:
    """Facts on secure aggregation: the number of sums, and the cost of all of them together."""
    outcomes = costs["outcome"].values
    summed = int((outcomes == SecAggOutcome.SUMMED).sum())
    up, down, seconds = (float(costs[name].sum(skipna=False)) for name in ("bits_up", "bits_down", "seconds"))
    return [
        ("secure aggregation", f"{costs.attrs['protocol']}, {summed} of {len(outcomes)} rounds summed"),
        ("secure messages", f"{_megabytes(up)} up, {_megabytes(down)} down, {number_text(seconds)} s"),
    ]


def cost_table(costs: xr.Dataset) -> SortedTable:
    """A row for each stage that the protocol has, all rounds together; unknown watts stay unknown."""
    totals = costs[list(_COST_COLUMNS)].sum("round", skipna=False)
    rows = []
    for stage in costs["stage"].values:
        values = {name: float(total) for name, total in totals.sel(stage=stage).items()}
        if any(value > 0 for value in values.values()):
            words = SecAggStage(stage).name.lower().replace("_", " ")
            rows.append([Cell(words, words), *(_cost_cell(name, values[name]) for name in _COST_COLUMNS)])
    caption = "Secure aggregation: the cost of each stage, all rounds together"
    return SortedTable(caption, ("stage", *_COST_COLUMNS.values()), rows)


def _cost_cell(name: str, value: float) -> Cell:
    if name in ("seconds", "energy"):
        return number_cell(value)
    count = value / _BITS_A_BYTE if name.startswith("bits") else value
    return Cell(f"{count:,.0f}", count)


def _megabytes(bits: float) -> str:
    return f"{number_text(bits / _BITS_A_BYTE / 1e6)} MB"
