"""Numbers and pictures of the page on what an ε means: from the accountant, from plans, and from stored audits.

MkDocs calls the functions named ``on_…``. The line ``<!-- epsilon: meaning -->`` becomes the table of what an attacker
can do, ``<!-- epsilon: audits -->`` that of the audits, ``<!-- epsilon: levers -->`` that of what lowers ε; all of it
when the site is built. Audits take minutes: ``python docs/epsilon.py`` writes results/epsilon/audits.json.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from kept import kept
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import wirelessfl as wfl
from wirelessfl.cli.meaning import ON_THE_PAGE, meaning_rows
from wirelessfl.privacy import detection_bound, gaussian_detection, meaning_of
from wirelessfl.summary.drawing import drawing, log_scale, plain_number
from wirelessfl.summary.style import COLUMN_IN, CYCLE, GREY, ROLES

AUDITS = Path(__file__).resolve().parents[1] / "results" / "epsilon" / "audits.json"
DELTA = 1e-5
TRIALS = 400
_PLACE = re.compile(r"^<!-- epsilon: (?P<what>\w+) -->$", re.MULTILINE)
_DIGITS = 6
_BINS = 32
_NEARLY_ALL = 0.99


class Lever(NamedTuple):
    """One change of a scenario.

    Attributes:
        words: what it is.
        scenario: a shipped one.
        changes: what ``--set`` is given.
    """

    words: str
    scenario: str
    changes: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that prints its plan."""
        settings = "".join(f' --set "{change}"' if " " in change else f" --set {change}" for change in self.changes)
        return f"wirelessfl validate {self.scenario}{settings}"


EXACT = "uplink.jammer.calibration=exact"
PLAYED = {
    2.0: Lever("the jammer calibrated exactly to 2", "quickstart", (EXACT, "uplink.jammer.epsilon=2")),
    8.0: Lever("the jammer calibrated exactly to 8", "quickstart", (EXACT, "uplink.jammer.epsilon=8")),
    50.0: Lever("the jammer calibrated exactly to 50", "quickstart", (EXACT, "uplink.jammer.epsilon=50")),
    367.0: Lever("as it is shipped: the jammer calibrated by the theorem to 2", "quickstart"),
}
"""The settings that are audited, by their accounted ε."""

UNIT_NOISE = "training.privacy.noise_multiplier=1"
LEVERS = (
    Lever("quickstart as it is", "quickstart"),
    Lever("more noise from the jammer", "quickstart", ("uplink.jammer.epsilon=0.2",)),
    Lever("a fifth of the clients a round", "quickstart", ("clients.selection={scheme: poisson, rate: 0.2}",)),
    Lever("the same data on 200 clients", "quickstart", ("clients.count=200",)),
    Lever("noise by what holds, not by the theorem", "quickstart", (EXACT,)),
    Lever("DP-SGD at noise multiplier 1", "dp-sgd", (UNIT_NOISE,)),
    Lever("twice the noise", "dp-sgd", ("training.privacy.noise_multiplier=2",)),
    Lever("10 rounds, not 30", "dp-sgd", (UNIT_NOISE, "rounds=10")),
    Lever("batches of half the size", "dp-sgd", (UNIT_NOISE, "training.batch_size=12")),
    Lever(
        "samples clipped, here on the digits", "ota-sample-private", ("data.dataset={name: digits}", "data.limit=null")
    ),
    Lever("whole clients, by an exact jammer", "ota-client-private"),
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the trade-off curves and the histograms of the audits."""
    for name, draw in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            draw(path)
            files.append(File.generated(config, f"explanation/{name}", content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Puts the tables in their places."""
    return _PLACE.sub(lambda place: fill(place["what"]), markdown)


def fill(what: str) -> str:
    """What belongs in a place."""
    match what:
        case "meaning":
            meanings = [meaning_of(epsilon, DELTA) for epsilon in ON_THE_PAGE]
            head = ("", *(f"ε = {wfl.epsilon_text(one.epsilon)}" for one in meanings))
            return _table(head, meaning_rows(meanings))
        case "audits":
            return _table(("ε accounted", "ε that the attack shows", "test accuracy", "setting"), _audit_rows())
        case "levers":
            return _table(("ε published", "ε accounted", "change"), map(lever_row, LEVERS))
        case _:
            raise ValueError(f"no such place on the page: {what}")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [" | ".join(head), *(" | ".join(cells) for cells in rows)]
    columns = lines[0].count(" | ") + 1
    first, *others = (f"| {line} |" for line in lines)
    return "\n".join([first, f"|{' --- |' * columns}", *others])


def lever_row(lever: Lever) -> tuple[str, ...]:
    """A change with its command, and both ε that the plan of the scenario has then."""
    name = f"plan-{hashlib.sha256(lever.command.encode()).hexdigest()[:16]}.json"
    epsilons = json.loads(kept(name, lambda: json.dumps(_planned(lever)).encode()))
    return (*map(wfl.epsilon_text, epsilons), f"{lever.words}<br>`{lever.command}`")


def _planned(lever: Lever) -> tuple[float, float]:
    forecast = wfl.make_plan(lever.scenario, lever.changes).forecast
    return forecast.epsilon_published, forecast.epsilon_accounted


def stored_audits() -> list[dict[str, Any]]:
    """The audits as they were played last."""
    found: list[dict[str, Any]] = json.loads(AUDITS.read_text(encoding="utf-8"))
    return found


def _audit_rows() -> Iterator[tuple[str, ...]]:
    for audit in stored_audits():
        accounted, shown = (wfl.epsilon_text(audit[name]) for name in ("epsilon_accounted", "epsilon_empirical"))
        yield accounted, f"at least {shown}", f"{audit['test_accuracy']:.1%}", audit["words"]


def draw_curves(path: Path, *, logarithmic: bool) -> None:
    """Figure of true-positive over false-positive rates: the best attack on Gaussian noise, and the bound."""
    rates = np.logspace(-6, 0, 400)
    with drawing(path, "", (COLUMN_IN, 2.8)) as figure:
        axes = figure.subplots()
        for epsilon, colour in zip(ON_THE_PAGE, CYCLE, strict=False):
            corner = " (along the edge)" if meaning_of(epsilon, DELTA).found_gaussian > _NEARLY_ALL else ""
            reached, allowed = (of(epsilon, DELTA, rates) for of in (gaussian_detection, detection_bound))
            axes.plot(rates, reached, color=colour, label=f"ε = {epsilon:g}{corner}")
            axes.plot(rates, allowed, color=colour, linestyle=":", linewidth=0.9)
        axes.plot(rates, rates, color=GREY, linestyle="--", linewidth=0.8, label="a coin")
        axes.set(xlabel="wrongly accused (%)", ylabel="found (%)")
        for axis in (axes.xaxis, axes.yaxis):
            if logarithmic:
                log_scale(axis)
            axis.set_major_formatter(FuncFormatter(lambda share, _: plain_number(100 * share)))
        lowest, highest = (rates[0], 1.6) if logarithmic else (0.0, 1.03)
        axes.set(xlim=(lowest, 1), ylim=(lowest, highest))
        axes.legend(loc="lower right")


def draw_audits(path: Path, *, chosen: slice) -> None:
    """Figure of what the attacker sees in either world, for some of the audits."""
    audits = stored_audits()[chosen]
    with drawing(path, "", (COLUMN_IN, 2.0)) as figure:
        panels = figure.subplots(1, len(audits))
        for axes, audit in zip(panels, audits, strict=True):
            _histograms(axes, audit)
        panels[0].set_ylabel("games")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)


PICTURES: dict[str, Callable[[Path], None]] = {
    "epsilon-curves.svg": partial(draw_curves, logarithmic=False),
    "epsilon-curves-log.svg": partial(draw_curves, logarithmic=True),
    "epsilon-audits.svg": partial(draw_audits, chosen=slice(2)),
    "epsilon-audits-large.svg": partial(draw_audits, chosen=slice(2, None)),
}
"""Pictures of the page, each one column wide: beside each other on a screen, below each other on a phone."""


def _histograms(axes: Axes, audit: dict[str, Any]) -> None:
    without, with_canary = (np.array(audit[name]) for name in ("without", "with_canary"))
    both = np.concatenate([without, with_canary])
    edges = np.linspace(float(both.min()), float(both.max()), _BINS + 1).tolist()
    axes.hist(without, edges, color=ROLES["without_canary"], alpha=0.6, label="the sample is not there")
    axes.hist(with_canary, edges, color=ROLES["with_canary"], alpha=0.6, label="the sample is there")
    axes.set(title=f"ε = {wfl.epsilon_text(audit['epsilon_accounted'])}", xlabel="what the attacker computes")
    axes.set(xticks=[], yticks=[])


def play() -> list[dict[str, Any]]:
    """The four audits, each with the accuracy of a run of its setting."""
    played = []
    for expected, lever in PLAYED.items():
        audit = wfl.audit_scenario(lever.scenario, TRIALS, overrides=lever.changes)
        if not math.isclose(audit.epsilon_accounted, expected, rel_tol=0.01):
            raise ValueError(f"{lever.command}: accounted ε {audit.epsilon_accounted:g}, expected {expected:g}")
        with tempfile.TemporaryDirectory() as folder:
            run = wfl.simulate(lever.scenario, folder, overrides=lever.changes, device="cpu", pictures=False)
        played.append(
            {
                "words": f"{lever.words}<br>`{lever.command.replace('validate', 'audit')}`",
                "trials": audit.trials,
                **{
                    name: getattr(audit, name)
                    for name in ("epsilon_published", "epsilon_accounted", "epsilon_empirical")
                },
                "confidence": audit.confidence,
                "test_accuracy": run.summary["test_accuracy"],
                **{name: _rounded(getattr(audit.evidence, name)) for name in ("with_canary", "without")},
            }
        )
    return played


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]


if __name__ == "__main__":
    AUDITS.parent.mkdir(parents=True, exist_ok=True)
    AUDITS.write_text(json.dumps(play(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
