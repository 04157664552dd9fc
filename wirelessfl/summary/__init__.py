"""What a finished (or interrupted) run has to say: numbers and pictures, read from its trace alone."""

from wirelessfl.summary.numbers import epsilon_text, summarise, to_json
from wirelessfl.summary.picture import draw_summary
from wirelessfl.summary.tensorboard import TensorBoardLog
from wirelessfl.summary.timeline import draw_timeline
from wirelessfl.summary.topology import draw_topology

__all__ = ["TensorBoardLog", "draw_summary", "draw_timeline", "draw_topology", "epsilon_text", "summarise", "to_json"]
