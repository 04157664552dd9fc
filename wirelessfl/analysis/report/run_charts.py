"""The charts of one run for its report."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from wirelessfl.analysis.report.channel import ChannelStatistics, PowerLaw
from wirelessfl.analysis.report.charts import Chart, Curve, Dash, Values
from wirelessfl.analysis.report.rounds import USED_EDGES, Rounds
from wirelessfl.trace import Status

_BINS = 40
_DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted")
_QUANTILE = 0.995
"""Of the powers of channels, how many a chart shows: beyond it lie single ones."""


def run_charts(rounds: Rounds, delta: float, statistics: ChannelStatistics | None) -> tuple[Chart, ...]:
    """All charts of a run that have something to show.

    Args:
        rounds: its numbers.
        delta: δ of both ε.
        statistics: of its channels; None without radio.
    """
    chart, places = partial(Chart, x_labels=rounds.labels), rounds.places
    made = [
        *_learning(chart, places, rounds),
        *_drift(chart, places, rounds),
        _privacy(chart, places, rounds, delta),
        _outcomes(chart, places, rounds),
        *_radio(chart, places, rounds),
        *_spent(chart, places, rounds),
        *([] if statistics is None else [_law(statistics)]),
        _budget(rounds),
    ]
    return tuple(chart for chart in made if chart.curves)


def _curves(places: dict[str, Values], *curves: tuple[str, str, Values]) -> tuple[Curve, ...]:
    # Those of (label, role, values) that have any value, infinite or not
    return tuple(
        Curve(label, role, places, values, dash=_DASHES[at])
        for at, (label, role, values) in enumerate(curves)
        if not np.isnan(values).all()
    )


def _learning(chart: "partial[Chart]", places: dict[str, Values], rounds: Rounds) -> Iterator[Chart]:
    columns = rounds.columns
    yield chart(
        name="accuracy",
        title="Accuracy",
        caption="Accuracy of the global model on the test set.",
        y_label="test accuracy (%)",
        curves=_curves(places, ("test accuracy", "accuracy", 100 * columns["test_accuracy"])),
        low=0.0,
        high=100.0,
    )
    yield chart(
        name="clients-accuracy",
        title="Accuracy of clients",
        caption="Accuracy of the global model on the test samples of single clients, each client counted once.",
        y_label="accuracy (%)",
        curves=_curves(
            places,
            ("mean", "accuracy", 100 * columns["accuracy_client_mean"]),
            ("worst tenth", "loss", 100 * columns["accuracy_worst10"]),
        ),
        low=0.0,
        high=100.0,
    )
    yield chart(
        name="personal-accuracy",
        title="Accuracy of personal models",
        caption="Accuracy of each client's own model on its own test samples, each client counted once.",
        y_label="accuracy (%)",
        curves=_curves(
            places,
            ("mean", "accuracy", 100 * columns["personal_accuracy_mean"]),
            ("worst tenth", "loss", 100 * columns["personal_accuracy_worst10"]),
        ),
        low=0.0,
        high=100.0,
    )
    yield chart(
        name="loss",
        title="Loss",
        caption="Loss of the global model on the test set; training loss is the weighted mean of the clients.",
        y_label="loss (nat)",
        curves=_curves(
            places, ("test", "loss", columns["test_loss"]), ("training", "train_loss", columns["train_loss"])
        ),
    )


def _drift(chart: "partial[Chart]", places: dict[str, Values], rounds: Rounds) -> Iterator[Chart]:
    columns = rounds.columns
    if np.isnan(columns["client_drift"]).all():
        return
    yield chart(
        name="drift",
        title="Client drift",
        caption="Root mean square distance of the clients' updates from their mean, and the step of the global model.",
        y_label="norm",
        curves=_curves(
            places,
            ("client drift", "clients", columns["client_drift"]),
            ("step of the server", "server", columns["server_step_norm"]),
        ),
        low=0.0,
    )


def _privacy(chart: "partial[Chart]", places: dict[str, Values], rounds: Rounds, delta: float) -> Chart:
    infinite = np.isinf(rounds.columns["epsilon_accounted"]).any()
    remark = " An accounted ε of ∞ has no place on the axis." if infinite else ""
    return chart(
        name="privacy",
        title="Privacy",
        caption="Privacy spent so far by the worst client: what the paper's theorem says, and what holds for what ran."
        + remark,
        y_label=f"ε at δ = {delta:g}",
        curves=_curves(
            places,
            ("published", "published", rounds.columns["epsilon_published"]),
            ("accounted", "accounted", rounds.columns["epsilon_accounted"]),
        ),
        log=True,
    )


def _outcomes(chart: "partial[Chart]", places: dict[str, Values], rounds: Rounds) -> Chart:
    counted = [
        (code.name.lower().replace("_", " "), code.name.lower(), rounds.outcomes[:, code].astype(np.float64))
        for code in Status
        if code and rounds.outcomes[:, code].any()
    ]
    heard = rounds.columns["participants"].mean()
    return chart(
        name="outcomes",
        title="Clients by outcome",
        caption=f"How many clients a round ended in which way for; {heard:.1f} were heard on average.",
        y_label="clients",
        curves=tuple(Curve(label, role, places, values) for label, role, values in counted),
        low=0.0,
    )


def _radio(chart: "partial[Chart]", places: dict[str, Values], rounds: Rounds) -> Iterator[Chart]:
    low, median, high, most = rounds.gain_db.T
    known = np.isfinite(median).any()
    yield chart(
        name="gain",
        title="Channel gains",
        caption="Gain of the channels of the clients with one in the round; the band holds four of five of them.",
        y_label="|h|² (dB)",
        curves=(Curve("median", "clients", places, median, low=low, high=high),) if known else (),
    )
    low, median, high, most = rounds.backoff.T
    largest = (Curve("largest", "backoff", places, most, dash="dotted"),) if np.isfinite(most).any() else ()
    yield chart(
        name="backoff",
        title="Back-off",
        caption="By what clients in a fade turn their power down; 1 is none. The band holds four of five clients.",
        y_label="back-off s_i",
        curves=(Curve("median", "backoff", places, median, low=low, high=high), *largest) if largest else (),
    )
    columns, unknown = rounds.columns, np.full(len(median), np.nan)
    yield chart(
        name="noise",
        title="Noise",
        caption="Noise on each coordinate: as received, and on the mean update, rescaled.",
        y_label="standard deviation",
        curves=_curves(
            places,
            ("received σ_m", "accounted", columns.get("effective_noise_std", unknown)),
            ("on the mean", "published", columns.get("aggregate_noise_std", unknown)),
        ),
        log=True,
    )


def _spent(chart: "partial[Chart]", places: dict[str, Values], rounds: Rounds) -> Iterator[Chart]:
    columns, joules = rounds.columns, rounds.unit == "J"
    jammed = np.where(columns["jammer_energy"] > 0, columns["jammer_energy"], np.nan)
    spent = (
        (
            ("all of it", "clients", columns["energy"]),
            ("sending", "send", columns["tx_energy_j"]),
            ("computing", "compute", columns["compute_energy_j"]),
        )
        if joules
        else (("clients", "send", columns["tx_energy"]), ("jammer", "jam", jammed))
    )
    total = f" In all {columns['energy'].sum():.4g} J." if joules else ""
    yield chart(
        name="energy",
        title="Energy",
        caption=f"Energy of each round.{total}",
        y_label="energy (J)" if joules else "energy (noise = 1)",
        curves=_curves(places, *spent) if any(np.any(np.nan_to_num(values) > 0) for _, _, values in spent) else (),
        log=True,
    )
    lasting = np.diff(columns["sim_time"], prepend=0.0)
    yield chart(
        name="airtime",
        title="Time",
        caption=f"How long each round lasted, and how long it was on the air; {columns['airtime'].sum():.4g} s in all.",
        y_label="seconds",
        curves=_curves(places, ("round", "server", lasting), ("on the air", "send", columns["airtime"])),
        log=True,
    )


def _law(statistics: ChannelStatistics) -> Chart:
    law, top = statistics.law, float(np.quantile(statistics.power, _QUANTILE))
    inside = statistics.power[statistics.power <= top]
    bins = min(_BINS, 3 + len(inside) // 20)
    counts, edges = np.histogram(inside, bins=bins, range=(0.0, max(top, 1e-12)), density=True)
    share = len(inside) / len(statistics.power)
    curves = [Curve("recorded", "recorded", {"power": edges}, np.append(counts, counts[-1]) * share, shape="steps")]
    if isinstance(law, PowerLaw):
        power = np.linspace(edges[1] / 20, edges[-1], 400)
        curves.append(Curve(law.words, "accounted", {"power": power}, law.density(power)))
    drawn = ", and the density of the law they were drawn from." if isinstance(law, PowerLaw) else "."
    return Chart(
        name="law",
        title="Law of the channels",
        caption=f"Power of {len(statistics.power):,} recorded links relative to their path gain{drawn}",
        y_label="density",
        curves=tuple(curves),
        x_labels={"power": "|h|²/β"},
        low=0.0,
    )


def _budget(rounds: Rounds) -> Chart:
    counted = np.flatnonzero(rounds.used)
    shown = slice(counted[0], counted[-1] + 1) if len(counted) else slice(0)
    edges, counts = USED_EDGES[shown.start : shown.stop + 1] if len(counted) else USED_EDGES[:0], rounds.used[shown]
    steps = np.append(counts, counts[-1:]).astype(np.float64)
    return Chart(
        name="budget",
        title="Power used",
        caption="Share of its power budget that each transmission used; 1 is all of it.",
        y_label="transmissions",
        curves=(Curve("transmissions", "send", {"share": edges}, steps, shape="steps"),) if len(counted) else (),
        x_labels={"share": "‖x_i‖² / P_i"},
        log_x=("share",),
        low=0.0,
    )
