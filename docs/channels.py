"""The page of the channel profiles: what each is for, its keys, its laws with their sources, and pictures of its gains.

MkDocs calls the functions named ``on_…``. Text comes from ``channels/*.yaml`` and the scenario format; numbers and
curves come from the models that a run uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pictures import Draw, in_both_themes, shown

from wirelessfl.assembly.network import build_fading
from wirelessfl.assembly.slot import build_path_loss, given_doppler_hz
from wirelessfl.radio.fading import Rician
from wirelessfl.radio.propagation.path_loss import PathLossModel
from wirelessfl.scenario import Scenario, all_keys, list_shipped, parse_scenario
from wirelessfl.scenario.yamltree import inline_yaml
from wirelessfl.streams import Streams
from wirelessfl.summary.drawing import log_scale
from wirelessfl.summary.style import BLUE, ORANGE

FOLDER = "reference/channels"
SOURCES = {
    ("fading", "rayleigh"): r"$\tilde h \sim CN(0, 1)$ (Rappaport, *Wireless Communications*, ch. 5)",
    ("fading", "static"): r"$\tilde h = 1$",
    ("correlation", "independent"): "a fresh draw in each round",
    ("correlation", "clarke"): r"$J_0(2\pi f_D \tau)$ at lag $\tau$ (Clarke 1968), as a sum of 64 sinusoids",
    ("pathloss", "none"): r"$\beta = 1$",
    ("pathloss", "log_distance"): r"free space up to $d_0$, then $+10\,n \log_{10}(d/d_0)$ dB (Rappaport, ch. 4)",
    ("pathloss", "tr38901"): "3GPP TR 38.901 V16: loss by Table 7.4.1-1, line of sight by Table 7.4.2-1, shadowing and "
    "Rician factor by Table 7.5-6",
}
"""Equation and source of each law that a profile uses."""
PANELS = {"loss": "Path loss over distance", "fading": "Distribution of the fading"}
DRAWS = 20_000
_KEY_PATH = re.compile(r"\b[a-z]{2,}(?:[._][a-z]+)+\b")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the page and its pictures."""
    files.append(File.generated(config, f"{FOLDER}.md", content=channels_page()))
    for name in profile_names():
        for part, draw in panels(profile(name)).items():
            for theme, svg in in_both_themes(draw, (3.4, 2.4)).items():
                files.append(File.generated(config, f"{FOLDER}/{name}-{part}-{theme}.svg", content=svg))
    return files


def profile_names() -> list[str]:
    """All shipped profiles, by name."""
    return [shipped.name for shipped in list_shipped("channels")]


def profile(name: str) -> Scenario:
    """A scenario with the channel of a profile and nothing else of its own."""
    return parse_scenario(f"name: {name}\nchannel: {{profile: {name}}}\nuplink: {{tx_power_dbm: 23, snr_db: null}}")


# --- the page ----------------------------------------------------------------------------------------------------


def channels_page() -> str:
    """Every profile: what it is for, where its laws come from, gains as picture and numbers, and keys."""
    lines = [
        "# Channel profiles",
        "",
        "A profile is a `channel` section that is shipped under a name. `channel: {profile: urban-macro}` starts from",
        "it; keys that you write beside `profile` replace its own. The path of a YAML file of yours works in the same",
        "place. [Radio models](../explanation/radio-models.md) explains every law; all keys are in the",
        "[scenario reference](scenario.md#channel).",
        "",
        "For each profile, one picture shows the path loss over distance; the shade is one standard deviation of the",
        "shadowing. The other shows the probability that the fading is weaker than a given power (0 dB is its mean).",
        "",
    ]
    for shipped in list_shipped("channels"):
        scenario, text = profile(shipped.name), shipped.path.read_text(encoding="utf-8")
        lines += [f"## {shipped.name}", "", _purpose(text), "", '<div class="pair" markdown>', ""]
        for part in panels(scenario):
            lines += [shown(f"channels/{shipped.name}-{part}", f"{PANELS[part]} of {shipped.name}"), ""]
        lines += ["</div>", "", *_numbers(scenario), ""]
        lines += [*_laws(scenario), "", *_keys(shipped.name, yaml.safe_load(text)), ""]
    return "\n".join(lines)


def _purpose(text: str) -> str:
    """The comment at the head of a profile, with key paths as code."""
    head = text[: re.search(r"^\w", text, re.MULTILINE).start()]  # type: ignore[union-attr]
    pieces = "\n".join(line.removeprefix("#").strip() for line in head.splitlines()).split("`")
    pieces[::2] = [_KEY_PATH.sub(r"`\g<0>`", plain) for plain in pieces[::2]]
    return "".join(f"`{piece}`" if number % 2 else piece for number, piece in enumerate(pieces))


def _laws(scenario: Scenario) -> Iterator[str]:
    yield from ("| law | equation and source |", "| --- | --- |")
    for part in ("fading", "correlation", "pathloss"):
        model = getattr(scenario.channel, part).model
        yield f"| `{part}: {model}` | {SOURCES[part, model]} |"


def _keys(name: str, tree: dict[str, Any]) -> Iterator[str]:
    meanings = {key.path: key.description for key in all_keys(Scenario)}
    variants = {(key.path, key.variant.rpartition(", ")[2]): key.description for key in all_keys(Scenario)}
    yield from (f'??? note "{name}.yaml, key by key"', "", "    | key | value | meaning |", "    | --- | --- | --- |")
    for section, below in tree.items():
        tags = below if isinstance(below, dict) else {}
        for key, value in (tags or {"": below}).items():
            path = f"channel.{section}.{key}".rstrip(".")
            tag = next((f"{word}: {tags[word]}" for word in ("model", "scheme") if word in tags), "")
            meaning = variants.get((path, tag), meanings.get(path, ""))
            yield f"    | `{path}` | `{inline_yaml(value)}` | {meaning.replace('|', chr(92) + '|')} |"


def _numbers(scenario: Scenario) -> Iterator[str]:
    law, doppler = path_loss(scenario), given_doppler_hz(scenario.channel)
    spread = f"Largest Doppler shift: {doppler:.3g} Hz." if doppler else "The gains of two rounds are independent."
    if law is None:
        static = scenario.channel.fading.model == "static"
        yield f"There is no path loss: every client has a path gain of 1. {'' if static else spread}"
        return
    heads = ("distance (m)", "loss in sight (dB)", "out of sight (dB)", "probability of a line of sight")
    yield from (f"| {' | '.join(heads)} |", "| --- | --- | --- | --- |")
    for distance in scenario.channel.placement.radius_m * np.array([0.25, 0.5, 1.0]):
        losses = [float(law.loss_db(np.array([distance]), np.array([seen]))[0]) for seen in (True, False)]
        chance = float(law.line_of_sight_probability(np.array([distance]))[0])
        cells = (f"{distance:.4g}", f"{losses[0]:.1f}", f"{losses[1]:.1f}" if chance < 1 else "", f"{chance:.0%}")
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield f"{spread} Noise figure of the receiver: {scenario.channel.noise_figure_db:g} dB."


# --- the picture -------------------------------------------------------------------------------------------------


def path_loss(scenario: Scenario) -> PathLossModel | None:
    """The law of the distance; None without one."""
    pathloss = scenario.channel.pathloss
    return None if pathloss.model == "none" else build_path_loss(pathloss)


def distances(scenario: Scenario, count: int) -> np.ndarray[Any, Any]:
    """Distances (count,) from the nearest to the farthest place of a client, evenly on a log scale; metres."""
    placement = scenario.channel.placement
    return np.geomspace(max(getattr(placement, "min_radius_m", 0.0), 10.0), placement.radius_m, count)


def panels(scenario: Scenario) -> dict[str, Draw]:
    """What draws the pictures of a profile, by a part of their file names; what is constant is not drawn."""
    law = path_loss(scenario)
    found: dict[str, Draw] = {}
    if law is not None:
        found["loss"] = partial(_draw_loss, law, distances(scenario, 120))
    if scenario.channel.fading.model != "static":
        found["fading"] = partial(_draw_fading, scenario, law)
    return found


def _draw_fading(scenario: Scenario, law: PathLossModel | None, figure: Figure, faint: str) -> None:
    axes = figure.subplots()
    stream = Streams(1).nodes("picture", 1, np.arange(DRAWS))
    _draw_distribution(axes, build_fading(scenario).draw(stream), BLUE, scenario.channel.fading.model.capitalize())
    if law is not None and law.rician_k is not None:
        label = f"in sight: Rician, K = {10 * np.log10(law.rician_k):.0f} dB"
        _draw_distribution(axes, Rician(law.rician_k).draw(stream), ORANGE, label)
    axes.axvline(0, color=faint, linewidth=0.8, zorder=0)
    axes.set(xlabel="power of the fading (dB)", ylabel="probability of less power")
    log_scale(axes.yaxis)
    axes.set(xlim=(-30, 10), ylim=(1e-3, 1.3))
    axes.legend(loc="upper left")


def _draw_loss(law: PathLossModel, distance: np.ndarray[Any, Any], figure: Figure, _faint: str) -> None:
    axes = figure.subplots()
    axes.set(xlabel="distance (m)", ylabel="path loss (dB)")
    hidden_too = float(law.line_of_sight_probability(distance).min()) < 1
    cases = [(True, BLUE, "in sight"), (False, ORANGE, "out of sight")] if hidden_too else [(True, BLUE, "all links")]
    for seen, colour, label in cases:
        mask = np.full(len(distance), seen)
        loss, spread = law.loss_db(distance, mask), law.shadowing_std_db(mask)
        axes.plot(distance, loss, color=colour, label=label)
        axes.fill_between(distance, loss - spread, loss + spread, color=colour, alpha=0.2, linewidth=0)
    log_scale(axes.xaxis)
    axes.legend(loc="upper left")


def _draw_distribution(axes: Axes, gains: np.ndarray[Any, Any], colour: str, label: str) -> None:
    levels = np.linspace(-30.0, 10.0, 400)
    below = (20 * np.log10(np.abs(gains)) <= levels[:, None] + 1e-9).mean(axis=1)
    axes.plot(levels, np.where(below > 0, below, np.nan), color=colour, label=label)
