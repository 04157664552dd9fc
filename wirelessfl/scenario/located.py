"""Places of the keys of a scenario in its files, and errors that name a key with the place in front."""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from wirelessfl.errors import InfeasibleError, InputError
from wirelessfl.scenario.yamltree import Document, KeyPath

_KEY_FIRST = re.compile(r"(?P<key>[a-z_]+(?:\.\w+)*)(?:, [a-z_.]+)*: ")


@dataclass(frozen=True)
class Written:
    """Places in which the keys of a scenario are written; two are equal, for they are no part of what it says.

    Attributes:
        places: By key path, such as ``scenario.yaml:12``; empty for a scenario that was not read.
    """

    places: Mapping[KeyPath, str] = field(default_factory=dict, compare=False)

    @contextmanager
    def located(self, keys: Collection[str]) -> Iterator[None]:
        """Errors whose message begins with a key path get its place in front, or that of the nearest key above it.

        Args:
            keys: First parts of key paths; what begins with another word is no key, or has its place already.
        """
        try:
            yield
        except (InputError, InfeasibleError) as error:
            # The same exception goes on: what it has beside its message, and where it was raised, stay
            message = str(error.args[0]) if error.args else ""
            found = _KEY_FIRST.match(message)
            if self.places and found is not None and found["key"].partition(".")[0] in keys:
                path = tuple(int(part) if part.isdecimal() else part for part in found["key"].split("."))
                error.args = (f"{Document(None, dict(self.places)).place(path)}: {message}",)
            raise
