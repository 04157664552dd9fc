"""Beam and spectrum of the first round of two scenarios in both themes, beside the pages that show them.

python docs/slot_pictures.py explanation
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

sys.path.insert(0, str(Path(__file__).parents[1]))

from home import ground
from pictures import THEMES

import wirelessfl as wfl
from wirelessfl.api import plot_beam, plot_spectrum
from wirelessfl.summary.style import PAGE_IN

BEAM: Mapping[str, Any] = {
    "name": "street-array",
    "clients.count": 12,
    "channel.fading": {"model": "rician", "k_db": 8},
    "uplink.receiver": {"antennas": 8, "combiner": "max_min", "correlation": {"model": "one_ring", "spread_deg": 5}},
}
SPECTRUM: Mapping[str, Any] = {
    "name": "street-groups",
    "clients.count": 12,
    "channel.fading": {"model": "tdl", "profile": "C", "delay_spread_s": 3.0e-7, "groups": 64},
    "timing.bandwidth_hz": 1.0e7,
    "faults.fade_threshold": 0.1,
    "uplink.jammer": {"epsilon": 5.0},
}


def main(folder: str) -> None:
    """All four pictures; ``folder`` is theirs below docs."""
    for name, plot, keys in (("beam", plot_beam, BEAM), ("spectrum", plot_spectrum, SPECTRUM)):
        scenario = wfl.load_scenario("quickstart", keys)
        for theme, colours in THEMES.items():
            with mpl.rc_context(ground(colours["ink"])):
                plot(scenario, Path(__file__).parent / folder / f"{name}-{theme}.png", width_in=0.75 * PAGE_IN)


if __name__ == "__main__":
    main(sys.argv[1])
