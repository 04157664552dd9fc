"""Picture of a channel file in both themes, beside the page that shows it.

python docs/channel_pictures.py channels/street.npz how-to/import-channels
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

sys.path.insert(0, str(Path(__file__).parents[1]))

from home import ground
from pictures import THEMES

import wirelessfl as wfl
from wirelessfl.channels import figures_of
from wirelessfl.summary.channel_file import draw_channels
from wirelessfl.summary.style import PAGE_IN


def main(file: Path, picture: str) -> None:
    """Both pictures; ``picture`` is their path below docs, without theme and suffix."""
    record = wfl.read_channels(file)
    for theme, colours in THEMES.items():
        with mpl.rc_context(ground(colours["ink"])):
            path = Path(__file__).parent / f"{picture}-{theme}.png"
            draw_channels(record, figures_of(record), file.name, path, PAGE_IN)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
