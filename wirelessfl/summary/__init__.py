"""What a finished (or interrupted) run has to say: numbers and a picture, read from its trace alone."""

from __future__ import annotations

from wirelessfl.summary.numbers import summarise, to_json
from wirelessfl.summary.picture import draw_summary

__all__ = ["draw_summary", "summarise", "to_json"]
