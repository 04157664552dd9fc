"""Map of the accounted ε by place of an observer."""

from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from numpy.typing import NDArray

from wirelessfl.summary.drawing import drawing, plain_number
from wirelessfl.summary.style import BLACK, FAINT, PAPER, ROLES, STYLE, VERMILION


def draw_observer_map(
    title: str,
    axis_m: tuple[NDArray[np.float64], NDArray[np.float64]],
    epsilon: NDArray[np.float64],
    nodes: tuple[NDArray[np.float64], NDArray[np.float64] | None, tuple[float, float] | None],
    label: str,
    path: Path,
    width_in: float,
) -> None:
    """Drawing of ε over a square, with the nodes of the network.

    Args:
        title: above the map.
        axis_m: x (n,) and y (m,) of columns and rows.
        epsilon: (m, n); where it is infinite, the map is empty.
        nodes: places of the clients (K, 2), of the jammer (2,) or None, of the scenario's observer or None.
        label: of the colours.
        path: where the figure goes; its suffix is the format.
        width_in: width (inches).
    """
    clients, jammer, observer = nodes
    with drawing(path, title, (width_in, 0.95 * width_in + 0.3), {**STYLE, "axes.grid": False}) as figure:
        axes = figure.subplots()
        known = np.ma.masked_invalid(epsilon)
        if known.count():
            scale = _Scale.of(known.compressed())
            colours = colormaps["viridis"].with_extremes(under=BLACK)
            shown = np.ma.maximum(known, scale.below)
            mesh = axes.pcolormesh(*axis_m, shown, norm=scale.norm, cmap=colours, shading="nearest", rasterized=True)
            zero, extend = (" (black: 0)", "min") if scale.has_zeros else ("", "neither")
            bar = figure.colorbar(mesh, ax=axes, label=label + zero, pad=0.02, fraction=0.046, extend=extend)
            bar.set_ticks(scale.ticks, labels=[plain_number(float(f"{tick:.2g}")) for tick in scale.ticks])
            bar.ax.minorticks_off()
        axes.set_facecolor(FAINT)
        _mark(axes, np.zeros((1, 2)), "^", 55, BLACK, "base station")
        _mark(axes, clients, "o", 16, PAPER, "client")
        if jammer is not None:
            _mark(axes, jammer[None], "X", 60, ROLES["jam"], "jammer")
        if observer is not None:
            _mark(axes, np.array([observer]), "*", 95, VERMILION, "observer of the scenario")
        x, y = axis_m
        axes.set(xlabel="x of the observer (m)", ylabel="y of the observer (m)", aspect="equal")
        axes.set_xlim(*_ends(x))
        axes.set_ylim(*_ends(y))
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2 if width_in < 5 else 4)


class _Scale(NamedTuple):
    # The logarithmic scale of colours of ε above 0, what stands for 0 below it, and ticks
    norm: LogNorm
    below: float
    has_zeros: bool
    ticks: list[float]

    @classmethod
    def of(cls, epsilon: NDArray[np.float64]) -> Self:
        positive = epsilon[epsilon > 0]
        low, high = (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 1.0)
        ticks = np.geomspace(low, high, 5).tolist() if high > low else [low] * min(len(positive), 1)
        norm = LogNorm(low, high if high > low else low * 1.01)
        return cls(norm, low / 2, len(positive) < len(epsilon), ticks)


def _mark(axes: Axes, places: NDArray[np.float64], marker: str, size: float, colour: str, label: str) -> None:
    edge = BLACK if colour == PAPER else PAPER
    x, y = places.T
    axes.scatter(x, y, s=size, marker=marker, color=colour, edgecolors=edge, linewidths=0.6, label=label, zorder=3)


def _ends(axis: NDArray[np.float64]) -> tuple[float, float]:
    # The outer edges of the first and the last cell
    half = float(axis[1] - axis[0]) / 2
    return float(axis[0]) - half, float(axis[-1]) + half
