"""What secure aggregation cost a run, for its report."""

import xarray as xr

from wirelessfl.analysis.replay.recording import Recording
from wirelessfl.analysis.report.tables import Cell, SortedTable, number_cell, number_text
from wirelessfl.trace import SecAggOutcome, SecAggStage, has_group, read_group

_BITS_A_BYTE = 8
_COLUMNS = (
    ("messages up", "messages_up"),
    ("bytes up", "bits_up"),
    ("messages down", "messages_down"),
    ("bytes down", "bits_down"),
    ("time (s)", "seconds"),
    ("energy (J)", "energy"),
    ("not heard", "dropouts"),
    ("refused", "refused"),
)


def secure_aggregation_costs(recording: Recording) -> xr.Dataset | None:
    """The group ``/secagg`` of the rounds of a recording; None for a run without secure aggregation."""
    if not has_group(recording.path, "secagg"):
        return None
    return read_group(recording.path, "secagg").sel(round=slice(recording.first, recording.last))


def cost_facts(costs: xr.Dataset) -> list[tuple[str, str]]:
    """What is to be known first: how many sums there are, and what all of them cost together."""
    outcomes = costs["outcome"].values
    summed = int((outcomes == SecAggOutcome.SUMMED).sum())
    up, down, seconds = (float(costs[name].sum(skipna=False)) for name in ("bits_up", "bits_down", "seconds"))
    return [
        ("secure aggregation", f"{costs.attrs['protocol']}, {summed} of {len(outcomes)} rounds summed"),
        ("secure messages", f"{_megabytes(up)} up, {_megabytes(down)} down, {number_text(seconds)} s"),
    ]


def cost_table(costs: xr.Dataset) -> SortedTable:
    """A row for each stage that the protocol has, all rounds together; unknown watts stay unknown."""
    totals = costs[[name for _, name in _COLUMNS]].sum("round", skipna=False)
    rows = []
    for stage in costs["stage"].values:
        values = {name: float(total) for name, total in totals.sel(stage=stage).items()}
        if any(value > 0 for value in values.values()):
            words = SecAggStage(stage).name.lower().replace("_", " ")
            rows.append([Cell(words, words), *(_cost_cell(name, values[name]) for _, name in _COLUMNS)])
    caption = "Secure aggregation: the cost of each stage, all rounds together"
    return SortedTable(caption, ("stage", *(words for words, _ in _COLUMNS)), rows)


def _cost_cell(name: str, value: float) -> Cell:
    if name in ("seconds", "energy"):
        return number_cell(value)
    count = value / _BITS_A_BYTE if name.startswith("bits") else value
    return Cell(f"{count:,.0f}", count)


def _megabytes(bits: float) -> str:
    return f"{number_text(bits / _BITS_A_BYTE / 1e6)} MB"
