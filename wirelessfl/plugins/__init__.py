"""Code from outside the package: where it is looked for, what it must be before it is called, its text, and its errors.

A scenario names it as ``package.module:Name``. Importing runs it, so whoever calls this has made sure that the user
wants that (`wirelessfl.scenario.scenario`). What was imported is then held against the protocol of its family before
anything of it is called: a class with the methods, or a function with the parameters, and nothing of Python's own
library. Whatever goes wrong in the user's code is told with the file and line of that code.
"""

from wirelessfl.plugins.blame import RAISED, failure, place_of, refusal
from wirelessfl.plugins.loading import load_class, load_function, make
from wirelessfl.plugins.places import folders, forget, search, top_of
from wirelessfl.plugins.recorded import importing_from, write_sources
from wirelessfl.plugins.sources import Sources, sources_of
from wirelessfl.plugins.turns import RunCode, tops_of

__all__ = [
    "RAISED",
    "RunCode",
    "Sources",
    "failure",
    "folders",
    "forget",
    "importing_from",
    "load_class",
    "load_function",
    "make",
    "place_of",
    "refusal",
    "search",
    "sources_of",
    "top_of",
    "tops_of",
    "write_sources",
]
