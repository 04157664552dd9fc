"""``audit.png``: the two output distributions of an audit, and the three ε."""

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from wirelessfl.analysis.audit.audit import Audit
from wirelessfl.summary import epsilon_text
from wirelessfl.summary.drawing import drawing, legend_inside, log_scale
from wirelessfl.summary.style import COLUMN_IN, GREY, ROLES, STYLE

_BINS = (16, 48)


def draw_audit(audit: Audit, path: Path, width_in: float = COLUMN_IN) -> None:
    """Figure of the statistic of all trials in both worlds, and of published, empirical and accounted ε.

    Args:
        audit: what was found.
        path: where the figure goes; its suffix is the format.
        width_in: width (inches).

    Raises:
        OutputError: the place cannot be written.
    """
    title = f"{audit.name}: audit by {audit.trials} games in either world"
    with drawing(path, title, (width_in, 4.2), {**STYLE, "axes.grid.axis": "x"}) as figure:
        outputs, numbers = figure.subplots(2, 1, height_ratios=(3, 2))
        _outputs(outputs, audit)
        _numbers(numbers, audit)


def _outputs(axes: Axes, audit: Audit) -> None:
    evidence = audit.evidence
    both = np.concatenate([evidence.with_canary, evidence.without])
    low, high = float(both.min()), float(both.max())
    margin = 0.05 * (high - low) or 1.0
    bins = int(np.clip(np.sqrt(4 * len(both)), *_BINS))
    edges = np.linspace(low - margin, high + margin, bins + 1).tolist()
    opposite = "its opposite" if evidence.exchange else "without it"
    axes.hist(evidence.without, edges, color=ROLES["without_canary"], alpha=0.6, label=opposite)
    axes.hist(evidence.with_canary, edges, color=ROLES["with_canary"], alpha=0.6, label="with the canary")
    axes.axvline(evidence.threshold.threshold, color=GREY, linewidth=1, linestyle="--", label="threshold")
    axes.set(xlabel=evidence.statistic, ylabel="trials")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    legend_inside(axes)


def _numbers(axes: Axes, audit: Audit) -> None:
    rows = (
        ("accounted", audit.epsilon_accounted, ROLES["accounted"]),
        ("empirical ≥", audit.epsilon_empirical, ROLES["empirical"]),
        ("published", audit.epsilon_published, ROLES["published"]),
    )
    finite = [value for _, value, _ in rows if 0 < value < math.inf]
    decades = [math.log10(value) for value in finite] or [0.0]
    low, high = 10.0 ** (math.ceil(min(decades)) - 1), 10.0 ** (math.floor(max(decades)) + 1)
    for row, (_, value, colour) in enumerate(rows):
        shown = min(max(value, low), high)
        axes.barh(row, shown - low, left=low, color=colour, height=0.6)
        inside = shown > math.sqrt(low * high)
        axes.annotate(
            epsilon_text(value),
            (shown, row),
            xytext=(-3 if inside else 3, 0),
            textcoords="offset points",
            ha="right" if inside else "left",
            va="center",
            fontsize=8,
            color="white" if inside else "black",
        )
    log_scale(axes.xaxis, (low, high))
    axes.set(xlim=(low, high), xlabel=f"ε at δ = {audit.statement.delta:g}")
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
