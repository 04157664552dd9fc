"""Maps of the accounted ε by place of an observer in both themes, beside the page that shows them.

python docs/observer_pictures.py eavesdropper explanation/observer-map
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

sys.path.insert(0, str(Path(__file__).parents[1]))

from home import ground
from pictures import THEMES

from wirelessfl.analysis.observer_map import observer_map
from wirelessfl.cli.observer_map import draw
from wirelessfl.summary.style import COLUMN_IN

EXTENT_M = 250.0


def main(scenario: str, picture: str) -> None:
    """All pictures; ``picture`` is their path below docs, without theme and suffix."""
    for antennas, suffix in ((1, ""), (2, "-2")):
        found = observer_map(scenario, EXTENT_M, overrides={"privacy.observer.antennas": antennas})
        for theme, colours in THEMES.items():
            with mpl.rc_context(ground(colours["ink"])):
                draw(found, Path(__file__).parent / f"{picture}{suffix}-{theme}.png", 1.4 * COLUMN_IN, True)


if __name__ == "__main__":
    main(*sys.argv[1:])
