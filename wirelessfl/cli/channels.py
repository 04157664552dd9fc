"""``wirelessfl channels``: files of imported channels, made from those of other tools and looked into."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import override

from wirelessfl.cli.figure_options import figures_option, width_option
from wirelessfl.cli.terminal import (
    OutputPath,
    json_option,
    remark,
    say,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirelessfl.channels.sources.options import Side
    from wirelessfl.channels.sources.reading import Source
    from wirelessfl.summary.style import FigureFormat

_MOST_CLIENTS = 10**7


class ClientNumbers(click.ParamType["NDArray[Any]"]):
    """Numbers of clients: ``0,3,10-19``."""

    name = "clients"

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        import numpy as np

        numbers: list[int] = []
        for part in str(value).split(","):
            first, dash, last = part.partition("-")
            bounds = (first, last) if dash else (first, first)
            if not all(one.strip().isdecimal() and len(one) < 9 for one in bounds):
                self.fail(f"found {part!r}; allowed: numbers and ranges, as in 0,3,10-19", param, ctx)
            begin, end = int(bounds[0]), int(bounds[1])
            if begin > end or end - begin + len(numbers) > _MOST_CLIENTS:
                self.fail(f"found {part!r}; allowed: a range from the smaller to the larger number", param, ctx)
            numbers += range(begin, end + 1)
        if len(set(numbers)) < len(numbers):
            self.fail(f"found {value!r}; allowed: every client once", param, ctx)
        return np.array(numbers, dtype=np.int64)


@click.group()
def channels() -> None:
    """Make files of imported channels from those of other tools, and look into them."""


@channels.command("import")
@click.argument("source_file", metavar="IN", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "source",
    type=click.Choice(["sionna", "deepmimo", "mat", "csv"]),
    required=True,
    help="Tool that IN is from: Sionna RT (.npz of cir or cfr), DeepMIMO (.npz, .mat), MATLAB (.mat), or CSV.",
)
@click.option("--out", type=OutputPath(), required=True, metavar="FILE", help="Channel file to write: .h5 or .npz.")
@click.option("--clients", type=ClientNumbers(), metavar="0,3,10-19", help="Clients to take, in this order [all].")
@click.option(
    "--clients-are", type=click.Choice(["tx", "rx"]), help="sionna: which end of the links the clients are [tx]."
)
@click.option("--receiver", type=click.IntRange(0), help="sionna, deepmimo: which one of several receivers, from 0.")
@click.option("--antenna", type=click.IntRange(0), help="sionna, deepmimo: which antenna of the clients, from 0.")
@click.option(
    "--ofdm-subcarriers",
    type=click.IntRange(1),
    help="deepmimo: all subcarriers of an OFDM symbol; needed for its scale.",
)
@click.option("--bandwidth-hz", type=float, help="Band that even subcarriers cover, where IN has no frequencies.")
@click.option("--interval-s", type=float, help="Seconds between snapshots, where IN has no times.")
@click.option("--name", "names", multiple=True, metavar="OURS=THEIRS", help="mat: variable of IN for one of ours.")
def import_file(
    source_file: Path,
    source: Source,
    out: Path,
    clients: NDArray[Any] | None,
    clients_are: Side | None,
    receiver: int | None,
    antenna: int | None,
    ofdm_subcarriers: int | None,
    bandwidth_hz: float | None,
    interval_s: float | None,
    names: tuple[str, ...],
) -> None:
    """Write the channels in IN, a file of another tool, as a channel file for channel.fading: {model: imported}.

    Gains are linear and absolute, path loss included. What is sent from clients to the receiver counts; a tool's links
    in the other direction are taken for those back.
    """
    from wirelessfl.channels import write_channels
    from wirelessfl.channels.sources import ImportOptions, import_channels
    from wirelessfl.channels.statistics import sizes_in_words
    from wirelessfl.outputs import refuse_inputs

    for option, value in (("--bandwidth-hz", bandwidth_hz), ("--interval-s", interval_s)):
        if value is not None and not 0 < value < math.inf:
            raise click.BadParameter(f"found {value:g}; allowed: above 0", param_hint=option)
    renamed = dict(_pair(one) for one in names)
    options = ImportOptions(
        clients, clients_are, receiver, antenna, bandwidth_hz, interval_s, renamed, ofdm_subcarriers
    )
    refuse_inputs([out], [source_file])
    record = import_channels(source_file, source, options)
    if record.doubt is not None:
        remark(f"Warning: {source_file}: {record.doubt}")
    write_channels(record, out)
    say(f"{out}: {sizes_in_words(record)}")


def _pair(text: str) -> tuple[str, str]:
    ours, equals, theirs = text.partition("=")
    if not (ours and equals and theirs):
        raise click.BadParameter(f"found {text!r}; allowed: OURS=THEIRS, as in gains=H", param_hint="--name")
    return ours, theirs


@channels.command()
@click.argument("file", type=click.Path(path_type=Path))
@figures_option(words="Format of the picture FILE-channels in the current folder; none draws none.")
@width_option()
@json_option
def inspect(file: Path, form: FigureFormat, width: float, as_json: bool) -> None:
    """Print the statistics of a channel FILE, and draw it: gains on a map and over time, delays, Doppler shifts."""
    from wirelessfl.channels import read_channels
    from wirelessfl.channels.statistics import figures_of, summary_of
    from wirelessfl.cli.console import print_rows
    from wirelessfl.summary.style import FigureOptions

    record, options = read_channels(file), FigureOptions(form, width)
    summary = summary_of(record)
    if as_json:
        say(json.dumps(summary, indent=2, ensure_ascii=False))
    else:
        print_rows(_rows(summary))
    if summary["doubt"]:
        remark(f"Warning: {file}: {summary['doubt']}")
    if options.drawn:
        from wirelessfl.outputs import replacing
        from wirelessfl.summary.channel_file import draw_channels

        picture = options.file(Path(f"{file.stem}-channels"))
        with replacing(picture) as new:
            draw_channels(record, figures_of(record), file.name, new, width)
        remark(f"picture: {picture}")


def _rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    def in_unit(name: str, unit: str, scale: float = 1.0) -> str:
        value = summary[name]
        return "not known" if value is None else f"{value * scale:.4g} {unit}"

    counts = ("snapshots", "clients", "antennas", "subcarriers")
    far = ("distance_min_m", "distance_max_m")
    return [
        ("source", summary["source"] or "not known"),
        *((name, f"{summary[name]:,}") for name in counts),
        ("time", f"{summary['begin_s']:g} s to {summary['end_s']:g} s"),
        ("least interval", in_unit("interval_s", "s")),
        ("bandwidth", in_unit("bandwidth_hz", "MHz", 1e-6)),
        ("carrier", in_unit("carrier_hz", "GHz", 1e-9)),
        ("distances", " to ".join(in_unit(name, "m") for name in far) if summary[far[0]] is not None else "not known"),
        ("mean gain", in_unit("mean_gain_db", "dB")),
        ("clients' mean gains", f"{in_unit('weakest_client_db', 'dB')} to {in_unit('strongest_client_db', 'dB')}"),
        ("clients without a path", str(summary["clients_without_path"])),
        ("gains of 0", f"{summary['zero_gains']:,}"),
        ("delay spread", in_unit("delay_spread_s", "ns", 1e9)),
        ("Doppler spread", in_unit("doppler_spread_hz", "Hz")),
        ("correlation of neighbouring subcarriers", in_unit("neighbour_correlation", "").rstrip()),
        ("gains of a jammer", "yes" if summary["jammer"] else "no"),
    ]
