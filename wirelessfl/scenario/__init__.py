"""Scenario files: what a user writes, checked and frozen.

`load_scenario` reads a file or a shipped name into a `Scenario`, a tree of frozen sections; the families of variants
(``training.algorithm``, ``channel.fading``, ...) are unions of small classes, one module each.
"""

from wirelessfl.scenario.base import Steps
from wirelessfl.scenario.library import Shipped, copy_shipped, list_shipped, locate
from wirelessfl.scenario.loader import (
    Resolved,
    Source,
    differing_keys,
    dump_scenario,
    load_scenario,
    parse_scenario,
    places_of,
    resolve_document,
    resolve_scenario,
)
from wirelessfl.scenario.scenario import Scenario, scenario_schema
from wirelessfl.scenario.shape import KeyInfo, all_keys

__all__ = [
    "KeyInfo",
    "Resolved",
    "Scenario",
    "Shipped",
    "Source",
    "Steps",
    "all_keys",
    "copy_shipped",
    "differing_keys",
    "dump_scenario",
    "list_shipped",
    "load_scenario",
    "locate",
    "parse_scenario",
    "places_of",
    "resolve_document",
    "resolve_scenario",
    "scenario_schema",
]
