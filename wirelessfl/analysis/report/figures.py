"""The figures of one run for its report."""

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from wirelessfl.analysis.replay.export import timeline
from wirelessfl.analysis.replay.paired import series
from wirelessfl.analysis.replay.recording import Recording
from wirelessfl.analysis.report.channel import ChannelStatistics, PowerLaw
from wirelessfl.analysis.report.elements import FAINT, INK, draw_svg, log_scale, whole_numbers
from wirelessfl.errors import InputError
from wirelessfl.summary.picture import epsilon_curves
from wirelessfl.summary.style import BLUE, ROLES, VERMILION
from wirelessfl.trace import Status, by_client

MOST_CLIENTS, MOST_LANES = 200, 24
_BINS = 40
_STATUS_COLOURS = {status: ROLES[status.name.lower()] for status in Status if status}
_BAR_COLOURS = {
    "broadcast": ROLES["server"],
    "compute": ROLES["compute"],
    "transmit": ROLES["send"],
    "jam": ROLES["jam"],
}


@dataclass(frozen=True)
class Drawing:
    """A figure on the page.

    Attributes:
        title: above it.
        svg: the picture.
        caption: below it, in words for everybody.
    """

    title: str
    svg: Markup
    caption: str


def _line(axes: Axes, rounds: NDArray[np.int64], values: NDArray[np.float64], colour: str, label: str) -> None:
    known = np.isfinite(values)
    marker = "o" if known.sum() < 3 else ""
    axes.plot(rounds[known], values[known], color=colour, label=label, marker=marker, markersize=3)
    whole_numbers(axes.xaxis)


def learning_figure(prefix: str, trace: xr.Dataset) -> Drawing:
    """Accuracy, and test and training loss, over the rounds."""
    rounds = trace["round"].values

    def draw(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        _line(above, rounds, 100 * trace["test_accuracy"].values, ROLES["accuracy"], "test accuracy")
        above.set(ylabel="accuracy (%)", ylim=(0, 100))
        _line(below, rounds, trace["test_loss"].values, ROLES["loss"], "test")
        _line(below, rounds, trace["train_loss"].values, ROLES["train_loss"], "training")
        below.set(ylabel="loss (nat)", xlabel="round", ylim=(0, None))
        below.legend()

    caption = (
        "Accuracy and loss of the global model on the test set; training loss is the weighted mean of the clients."
    )
    return Drawing("Accuracy and loss", draw_svg(f"{prefix}-learning", caption, draw, (5.0, 3.6)), caption)


def privacy_figure(prefix: str, trace: xr.Dataset) -> Drawing:
    """Both ε over the rounds."""
    rounds = trace["round"].values

    def draw(figure: Figure) -> None:
        axes, curves = figure.subplots(), list(epsilon_curves(trace, "published", "accounted"))
        for values, colour, words in curves:
            _line(axes, rounds, values, colour, words)
        axes.set(ylabel=f"ε at δ = {trace.attrs['delta']:g}", xlabel="round")
        if any(np.isfinite(values).any() for values, _, _ in curves):
            log_scale(axes.yaxis)
        else:
            axes.text(0.5, 0.5, "no finite ε", transform=axes.transAxes, ha="center", va="center", color=FAINT)
            axes.set_yticks([])
        axes.legend()

    caption = "Privacy spent so far by the worst client: what the paper's theorem says, and what holds for what ran."
    return Drawing("Privacy", draw_svg(f"{prefix}-privacy", caption, draw), caption)


def channel_figure(prefix: str, statistics: ChannelStatistics) -> Drawing:
    """|h|²/β of all links and rounds, against its law."""
    law, top = statistics.law, float(np.quantile(statistics.power, 0.995))

    def draw(figure: Figure) -> None:
        axes, inside = figure.subplots(), statistics.power[statistics.power <= top]
        share = len(inside) / len(statistics.power)
        counts, edges = np.histogram(
            inside, bins=min(_BINS, 3 + len(inside) // 20), range=(0.0, max(top, 1e-12)), density=True
        )
        axes.stairs(counts * share, edges, fill=True, color=BLUE, alpha=0.45, label="recorded")
        if isinstance(law, PowerLaw):
            power = np.linspace(edges[1] / 20, edges[-1], 400)
            axes.plot(power, law.density(power), color=VERMILION, label=law.words)
        axes.set(xlabel="|h|²/β", ylabel="density", xlim=(0, edges[-1]))
        axes.legend()

    drawn = ", and the density of the law they were drawn from." if isinstance(law, PowerLaw) else "."
    caption = f"Power of {len(statistics.power):,} recorded links relative to their path gain{drawn}"
    return Drawing("Channels", draw_svg(f"{prefix}-channels", caption, draw), caption)


def power_figure(prefix: str, trace: xr.Dataset) -> Drawing | None:
    """Energy of clients and jammer over the rounds, and how much of its budget each transmission used."""
    rounds, sent = trace["round"].values, series(trace, "tx_energy")
    if not np.any(np.nan_to_num(sent) > 0):
        return None
    budget = float(trace["power_budget"].values[0]) if trace.sizes["client"] else np.nan
    used = trace["tx_energy"].values[np.isfinite(trace["tx_energy"].values)] / budget

    def draw(figure: Figure) -> None:
        above, below = figure.subplots(2, 1)
        _line(above, rounds, sent, ROLES["clients"], "all clients")
        jammed = trace["jammer_energy"].values
        if np.any(jammed > 0):
            _line(above, rounds, np.where(jammed > 0, jammed, np.nan), ROLES["jam"], "jammer")
        log_scale(above.yaxis)
        above.set(ylabel="energy\n(noise = 1)", xlabel="round")
        figure.legend(handles=above.get_lines(), loc="outside upper right", ncols=2)
        if np.any(used > 0):
            low = min(float(used[used > 0].min()), 0.5)
            below.hist(
                used,
                bins=np.geomspace(low, max(1.0, float(used.max())) * (1.0 + 1e-9), _BINS).tolist(),
                color=BLUE,
                alpha=0.6,
            )
            below.axvline(1.0, color=INK, linestyle="--", linewidth=1.0)
            log_scale(below.xaxis)
        below.set(xlabel="‖x_i‖² / P_i", ylabel="transmissions")

    joules = series(trace, "energy")
    spent = f" In all {joules.sum():.4g} J." if np.isfinite(joules).all() else ""
    caption = f"Energy sent a round, and the share of the power budget (dashed) that each transmission used.{spent}"
    return Drawing("Power and energy", draw_svg(f"{prefix}-power", caption, draw, (5.0, 3.8)), caption)


def participation_figure(prefix: str, trace: xr.Dataset) -> Drawing:
    """The outcome of each round for each client."""
    pivoted = by_client(trace[["client_id", "status"]])
    clients = pivoted["client"].values
    shown = clients[np.unique(np.linspace(0, len(clients) - 1, min(len(clients), MOST_CLIENTS)).round().astype(int))]
    status = pivoted["status"].sel(client=shown).values.T
    present = [code for code in Status if np.any(status == code)]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        first, last = trace["round"].values[[0, -1]]
        axes.imshow(
            status,
            cmap=ListedColormap(["none", *(_STATUS_COLOURS[code] for code in Status if code)]),
            vmin=-0.5,
            vmax=len(Status) - 0.5,
            aspect="auto",
            interpolation="none",
            extent=(first - 0.5, last + 0.5, len(shown) - 0.5, -0.5),
        )
        axes.grid(False)
        whole_numbers(axes.xaxis)
        whole_numbers(axes.yaxis)
        axes.set(xlabel="round", ylabel="client" if len(shown) == len(clients) else f"{len(shown)} of {len(clients)}")
        handles = [
            Patch(color=_STATUS_COLOURS[code], label=code.name.lower().replace("_", " ")) for code in present if code
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4)

    heard = trace["participants"].values
    caption = f"The outcome of each round for each client; {heard.mean():.1f} were heard on average."
    return Drawing("Participation", draw_svg(f"{prefix}-participation", caption, draw, (5.0, 3.6)), caption)


def timeline_figure(prefix: str, recording: Recording) -> Drawing | None:
    """The events by node of the first round in which somebody was heard; None where the run kept none."""
    label = int(recording.dataset["round"].values[np.argmax(recording.dataset["participants"].values > 0)])
    try:
        rows = timeline(replace(recording, first=label, last=label))["traceEvents"]
    except InputError:
        return None
    bars = [row for row in rows if row["ph"] == "X"]
    names = {row["tid"]: row["args"]["name"] for row in rows if row["name"] == "thread_name"}
    lanes = sorted(names)[:MOST_LANES]
    start = min((row["ts"] for row in bars), default=0.0)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name, colour in _BAR_COLOURS.items():
            these = [row for row in bars if row["name"] == name and row["tid"] in lanes]
            if these:
                place = [lanes.index(row["tid"]) for row in these]
                left = [(row["ts"] - start) / 1e3 for row in these]
                width = [row["dur"] / 1e3 for row in these]
                # The edge keeps a slot visible that is a thousandth of the round.
                axes.barh(place, width, 0.7, left, color=colour, edgecolor=colour, linewidth=0.8, label=name)
        axes.set_yticks(range(len(lanes)), [names[lane] for lane in lanes], fontsize=7)
        axes.invert_yaxis()
        axes.set_xlabel("simulated time in the round (ms)")
        figure.legend(loc="outside lower center", ncols=4)

    more = f" The first {len(lanes)} of {len(names)} nodes." if len(names) > len(lanes) else ""
    caption = f"Round {label} by node.{more} `wirelessfl replay --export chrome` has all rounds."
    height = 1.3 + 0.16 * len(lanes)
    return Drawing("Timeline", draw_svg(f"{prefix}-timeline", caption, draw, (5.0, height)), caption)


def run_figures(prefix: str, recording: Recording, statistics: ChannelStatistics | None) -> list[Drawing]:
    """All figures of a run that have something to show."""
    trace = recording.dataset
    figures = (
        learning_figure(prefix, trace),
        privacy_figure(prefix, trace),
        None if statistics is None else channel_figure(prefix, statistics),
        *(power_figure(prefix, trace), participation_figure(prefix, trace), timeline_figure(prefix, recording)),
    )
    return [figure for figure in figures if figure is not None]
