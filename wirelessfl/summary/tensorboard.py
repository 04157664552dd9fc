"""The rounds of a run as TensorBoard event files, written while it goes on. Needs the package ``tensorboard``."""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from wirelessfl.errors import InputError, OutputError

if TYPE_CHECKING:
    from wirelessfl.simulation import FinishedRound

_CARDS = {
    "learning": ("test_accuracy", "test_loss", "train_loss", "participants"),
    "privacy": ("epsilon_published", "epsilon_accounted"),
    "cost": ("sim_time", "wall_time", "airtime", "energy"),
}
"""How the values of a round are grouped on the page; what is in no group belongs to the radio."""


class TensorBoardLog:
    """Writes each finished round for TensorBoard; give it to ``simulate`` as ``on_round``.

    A resumed run goes on where its trace does: rounds that an earlier process logged and that were lost with it are
    taken back.

    >>> with TensorBoardLog("results/x/tensorboard") as log:
    ...     wfl.simulate(scenario, "results/x", on_round=log)
    """

    def __init__(self, folder: str | Path) -> None:
        """A log in a folder that need not exist yet; the first round makes it.

        Raises:
            InputError: the package tensorboard is not installed.
            OutputError: there is no place for the folder.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise InputError(
                "--tensorboard needs the package tensorboard; install it with: pip install 'wirelessfl[tensorboard]'"
            ) from None
        self.folder = Path(folder)
        there = next(path for path in (self.folder, *self.folder.absolute().parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise OutputError(f"{folder} cannot be written: {there} is no folder that can be written in")
        self._open = SummaryWriter
        self._writer: Any = None

    def __call__(self, finished: FinishedRound) -> None:
        """Write the values of a round; one that has none (NaN) leaves a gap.

        Raises:
            OutputError: the folder cannot be written.
        """
        if self._writer is None:
            # Only now is it known whether the run begins or goes on: steps from here on count anew.
            try:
                self._writer = self._open(str(self.folder), purge_step=finished.index)
            except OSError as error:
                raise OutputError(f"{self.folder} cannot be written: {error.strerror}") from error
        for name, value in finished.values.items():
            if not math.isnan(value):
                self._writer.add_scalar(f"{_card_of(name)}/{name}", value, finished.index)

    def __enter__(self) -> Self:
        """The log itself; the first round opens a file."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Put everything on disk, however the run ended."""
        if self._writer is not None:
            self._writer.close()


def _card_of(name: str) -> str:
    return next((card for card, names in _CARDS.items() if name in names), "radio")
