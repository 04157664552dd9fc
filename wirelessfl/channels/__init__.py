"""Files of imported channels: their format, what is refused, sources that they are made from, and statistics."""

from wirelessfl.channels.file import FORMATS, read_channels, write_channels
from wirelessfl.channels.record import ChannelRecord
from wirelessfl.channels.statistics import ChannelFigures, figures_of

__all__ = ["FORMATS", "ChannelFigures", "ChannelRecord", "figures_of", "read_channels", "write_channels"]
