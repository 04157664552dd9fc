"""Picture of the tutorial "Over the air against digital, fairly" in both themes, from the study that it runs.

wirelessfl study ota-digital-secagg --workers 2
python docs/three_uplinks.py results/ota-digital-secagg
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

sys.path.insert(0, str(Path(__file__).parents[1]))

from home import ground
from pictures import THEMES

from wirelessfl.study.figure import draw_study
from wirelessfl.study.result import open_study


def main(study: Path) -> None:
    """Both pictures, beside the page that shows them."""
    for theme, colours in THEMES.items():
        with mpl.rc_context(ground(colours["ink"])):
            draw_study(
                open_study(study), Path(__file__).parent / "tutorials" / f"over-the-air-against-digital-{theme}.png"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
