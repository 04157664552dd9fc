"""Pictures of a study in both themes, beside the page that shows them.

wirelessfl study ota-digital-secagg --workers 2
python docs/study_pictures.py results/ota-digital-secagg tutorials/over-the-air-against-digital
wirelessfl study jammer-antennas --workers 2
python docs/study_pictures.py results/jammer-antennas explanation/jammer-antennas
wirelessfl study jammer-arrays --workers 2
python docs/study_pictures.py results/jammer-arrays explanation/jammer-arrays
wirelessfl study robust-rules --workers 2
python docs/study_pictures.py results/robust-rules explanation/robust-rules
wirelessfl study attacks-uplinks --workers 2
python docs/study_pictures.py results/attacks-uplinks explanation/attacks-uplinks
wirelessfl study slot-groups --workers 2
python docs/study_pictures.py results/slot-groups explanation/slot-groups
wirelessfl study sdma-airtime --workers 2
python docs/study_pictures.py results/sdma-airtime explanation/sdma-airtime
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


def main(study: Path, picture: str) -> None:
    """Both pictures; ``picture`` is their path below docs, without theme and suffix."""
    for theme, colours in THEMES.items():
        with mpl.rc_context(ground(colours["ink"])):
            draw_study(open_study(study), Path(__file__).parent / f"{picture}-{theme}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
