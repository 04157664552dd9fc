"""Picture of a partition: the samples of each class that clients hold."""

from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator

from wirelessfl.learning.label_counts import LabelCounts
from wirelessfl.summary.drawing import drawing
from wirelessfl.summary.style import STYLE

MOST_CLIENTS = 100
"""Rows that can be told apart at the width of a page."""


def draw_labels(counts: LabelCounts, name: str, path: Path, width_in: float) -> None:
    """Drawing of a table of clients and classes; cells without samples are left empty.

    Args:
        counts: samples of each class at each client.
        name: of the scenario, for the title.
        path: where the figure goes; its suffix is the format.
        width_in: width (inches).
    """
    shown, classes = counts.samples.shape
    registered = f"{counts.registered:,} clients"
    of_all = registered if shown == counts.registered else f"{shown} of {registered}"
    height_in = float(np.clip(0.14 * shown + 1.2, 2.4, 1.3 * width_in))
    with drawing(path, f"{name}: classes of {of_all}", (width_in, height_in), {**STYLE, "axes.grid": False}) as figure:
        axes = figure.subplots()
        held = np.ma.masked_equal(counts.samples, 0)
        mesh = axes.pcolormesh(
            np.arange(classes), np.arange(shown), held, cmap="viridis_r", vmin=0, shading="nearest", rasterized=True
        )
        figure.colorbar(mesh, ax=axes, label="samples", pad=0.02, fraction=0.06)
        axes.set(xlabel="class", ylabel="client")
        axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
        places = np.unique(np.linspace(0, shown - 1, min(shown, 10)).round().astype(np.int64))
        axes.set_yticks(places, [f"{counts.clients[place]:,}" for place in places])
        axes.invert_yaxis()
