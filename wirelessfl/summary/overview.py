"""Panel of all clients over all rounds: their outcomes, or where all took part, what varies among them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from wirelessfl.summary.drawing import log_scale, whole_numbers
from wirelessfl.summary.gains import gain_label, in_decibels, magnitudes
from wirelessfl.summary.style import GREY, ROLES
from wirelessfl.trace import EMPTY_CLIENT, AnyRoot, Status, axis_label

STATUS_COLOURS = {status: ROLES[status.name.lower()] for status in Status}

# Distinct clients above which slots are shown instead of clients.
_MOST_CLIENTS = 200
# Up to the first ratio, of the 90th to the 10th percentile, nothing varies; above the second, of the largest to the
# smallest, the scale is logarithmic.
_VARIES, _WIDE = 1.05, 30.0


@dataclass(frozen=True, eq=False)
class Quantity:
    """Quantity of every client in every round.

    Attributes:
        values: (m, n) by round and slot, NaN where there is none.
        label: of its axis.
        logarithmic: whether its scale is.
    """

    values: NDArray[np.float64]
    label: str
    logarithmic: bool


def draw_overview(figure: Figure | SubFigure, trace: AnyRoot) -> list[Patch]:
    """Panel of the clients over simulated time; what a legend has to name.

    Args:
        figure: what it fills.
        trace: the opened trace.
    """
    axes = figure.subplots()
    cells = _cells(trace, trace["status"].values, Status.EMPTY_SLOT)
    quantity = what_varies(trace) if not set(np.unique(cells)) - {Status.EMPTY_SLOT, Status.PARTICIPATED} else None
    if quantity is None:
        axes.set_title("outcome of every round for every client")
        _mesh(axes, trace, cells, cmap=ListedColormap(list(STATUS_COLOURS.values())), vmin=-0.5, vmax=len(Status) - 0.5)
    else:
        whose = "every selected client" if np.any(cells == Status.EMPTY_SLOT) else "every client"
        axes.set_title(f"{whose} took part in every round")
        shown = _cells(trace, quantity.values, np.nan)
        norm = (LogNorm if quantity.logarithmic else Normalize)(np.nanmin(shown), np.nanmax(shown))
        mesh = _mesh(axes, trace, shown, cmap="viridis", norm=norm)
        bar = figure.colorbar(mesh, ax=axes, pad=0.02, fraction=0.05)
        bar.ax.set_ylabel(quantity.label)
        if quantity.logarithmic:
            log_scale(bar.ax.yaxis)
    return [
        Patch(facecolor=STATUS_COLOURS[status], label=status.name.lower().replace("_", " "), edgecolor=GREY)
        for status in Status
        if quantity is None and status and np.any(cells == status)
    ]


def what_varies(trace: AnyRoot) -> Quantity | None:
    """First of compute time, back-off, gain and energy that is not the same for all clients in all rounds."""
    for values, label, ratios in _quantities(trace):
        known = values[np.isfinite(values)]
        if not len(known):
            continue
        low, high = np.percentile(known, (10, 90))
        if high - low > _VARIES - 1 if not ratios else low > 0 and high > _VARIES * low:
            return Quantity(values, label, ratios and known.max() > _WIDE * known.min() > 0)
    return None


def _quantities(trace: AnyRoot) -> Iterator[tuple[NDArray[np.float64], str, bool]]:
    # Values, label, and whether they are compared by their ratio; decibels are by their difference
    decibels = in_decibels(trace)
    for name in ("compute_time", "backoff"):
        yield trace[name].values, axis_label(name), True
    yield magnitudes(trace).clients, gain_label(decibels), not decibels
    for name in ("tx_energy_j", "tx_energy"):
        yield trace[name].values, axis_label(name), True


def _mesh(axes: Axes, trace: AnyRoot, cells: NDArray[Any], **colours: Any) -> Any:
    # Client 0 on top, as in every picture
    ends = trace["sim_time"].values
    edges = np.concatenate([[0.0], ends])
    mesh = axes.pcolormesh(edges, np.arange(cells.shape[1] + 1) - 0.5, cells.T, rasterized=True, **colours)
    axes.set(xlim=(0.0, edges[-1]) if len(ends) else None, ylabel=_row_label(trace))
    whole_numbers(axes.yaxis)
    axes.invert_yaxis()
    return mesh


def _clients(trace: AnyRoot) -> NDArray[np.int64]:
    ids = trace["client_id"].values
    return np.unique(ids[ids != EMPTY_CLIENT])


def _row_label(trace: AnyRoot) -> str:
    clients = _clients(trace)
    if len(clients) > _MOST_CLIENTS:
        return "slot"
    return "client" if np.array_equal(clients, np.arange(len(clients))) else "client (rank)"


def _cells(trace: AnyRoot, values: NDArray[Any], fill: float) -> NDArray[Any]:
    # Values (rounds, rows) by client, or by slot above ``_MOST_CLIENTS`` clients
    clients, ids = _clients(trace), trace["client_id"].values
    if len(clients) > _MOST_CLIENTS:
        return values
    cells = np.full((len(ids), len(clients)), fill, dtype=values.dtype)
    rounds, slots = np.nonzero(ids != EMPTY_CLIENT)
    cells[rounds, np.searchsorted(clients, ids[rounds, slots])] = values[rounds, slots]
    return cells
