"""Files of other tools as channels: Sionna RT, DeepMIMO, MATLAB, CSV."""

from wirelessfl.channels.sources.options import ImportOptions
from wirelessfl.channels.sources.reading import SOURCES, Source, import_channels

__all__ = ["SOURCES", "ImportOptions", "Source", "import_channels"]
