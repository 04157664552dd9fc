"""Local training, models, data and aggregation: the learning core, without a clock."""

from __future__ import annotations
