"""Turns of runs whose code from outside may have modules of one name, in a process that serves several runs."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from wirelessfl.plugins.places import forget, look_for, top_of

_changed = threading.Condition()
_waiting: deque[object] = deque()  # threads in the order in which they came, so that no run waits for ever
_inside: list[RunCode] = []  # once for each thread
_latest: list[RunCode] = []  # the one whose modules are loaded


def tops_of(digests: Iterable[str]) -> set[str]:
    """Top-level packages and modules of the files among the keys of ``Sources.digests``; installed ones are none."""
    return {path.removesuffix(".py").partition("/")[0] for path in digests if path.endswith(".py")}


class RunCode:
    """Modules from outside as one run has loaded them, in place of those of other runs.

    Args:
        tops: Their top-level names; none where the process serves no other run.
        folders: In which they are looked up, the first one first, and in no others.
    """

    def __init__(self, tops: Collection[str], folders: Sequence[Path]) -> None:
        self._tops, self._folders = frozenset(tops), tuple(folders)
        self._modules: dict[str, ModuleType] = {}

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Context in which imports, also those of pickled objects, find the modules of this run.

        Threads of one run may be in it beside each other, each of them once; those of several runs take turns.
        """
        if not self._tops:
            yield
            return
        ticket = object()
        with _changed:
            _waiting.append(ticket)
            try:
                _changed.wait_for(lambda: _waiting[0] is ticket and all(one is self for one in _inside))
                self._turn()
                _inside.append(self)
            finally:
                _waiting.remove(ticket)
                _changed.notify_all()
        try:
            yield
        finally:
            with _changed:
                _inside.remove(self)
                _changed.notify_all()

    def _turn(self) -> None:
        # In place of the modules that are loaded those of this run
        if _latest == [self]:
            return
        for other in _latest:
            other._keep()
            forget(other._tops)
        _latest[:] = [self]
        forget(self._tops)
        sys.modules.update(self._modules)
        look_for(self._tops, self._folders)

    def _keep(self) -> None:
        # With what was imported while it ran
        self._modules = {name: one for name, one in sys.modules.copy().items() if top_of(name) in self._tops}
