"""What ``wirelessfl replay`` prints of two runs: the verdict of a repeated one, and paired differences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from wirelessfl.cli.terminal import open_console, say

if TYPE_CHECKING:
    from wirelessfl.analysis.replay.comparison import Comparison
    from wirelessfl.analysis.replay.paired import PairedRow
    from wirelessfl.analysis.replay.recording import Recording

NAMES_SHOWN = 6
_ROUNDING = 1e-12  # of a number: less is no difference of two


def print_comparison(recording: Recording, comparison: Comparison) -> None:
    """How much of a repeated run is the same, and what was not compared."""
    say(
        f"verified: {comparison.numbers:,} of {comparison.of_numbers:,} numbers and "
        f"{comparison.attributes:,} of {comparison.of_attributes:,} attributes are the same, bit for bit "
        f"(rounds {recording.first} to {recording.last})"
    )
    for reason in dict.fromkeys(one.reason for one in comparison.left_out):
        names = [one.name for one in comparison.left_out if one.reason == reason]
        count = sum(one.numbers for one in comparison.left_out if one.reason == reason)
        listed = ", ".join(names) if len(names) <= NAMES_SHOWN else f"{len(names)} datasets and attributes"
        say(
            f"not compared: {listed}"
            + (f" ({count:,} number{'s' if count > 1 else ''})" if count else "")
            + f": {reason}"
        )


def print_paired(rows: list[PairedRow], first: int, last: int, picture: Path | None) -> None:
    """A table of recorded and changed values over some rounds, and the file of their figure."""
    from rich.text import Text

    from wirelessfl.cli.console import print_table
    from wirelessfl.trace import axis_scale

    def cells(row: PairedRow) -> Iterator[str]:
        scale = axis_scale(row.name)
        unit = "%" if scale != 1.0 else row.unit
        yield f"{row.words} ({unit})" if unit else row.words
        # Numbers that are equal but for rounding have no difference
        rounding = _ROUNDING * max(abs(row.recorded), abs(row.changed))
        yield from (_number_text(scale * number) for number in (row.recorded, row.changed))
        for difference in (row.difference, row.mean_round_difference):
            yield _number_text(0.0 if abs(difference) <= rounding else scale * difference, signed=True)

    print_table(
        ("changed − recorded", "recorded", "changed", "difference", "mean over rounds"), map(cells, rows), numbers=True
    )
    open_console().print(Text(f"rounds {first} to {last}, on the recorded channels", style="dim"))
    if picture is not None:
        say(f"picture  {picture}")


def _number_text(value: float, *, signed: bool = False) -> str:
    special = {"nan": "–", "inf": "∞", "-inf": "−∞", "0": "0", "-0": "0"}
    return special.get(f"{value:g}", f"{value:+.4g}" if signed else f"{value:.4g}")
