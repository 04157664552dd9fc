"""Scenario files: what a user writes, checked and frozen."""

from __future__ import annotations

from wirelessfl.scenario.scenario import Scenario, scenario_schema

__all__ = ["Scenario", "scenario_schema"]
