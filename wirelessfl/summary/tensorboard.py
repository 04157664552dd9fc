"""TensorBoard event files of a run in progress. Needs the package ``tensorboard``."""

from __future__ import annotations

import math
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from wirelessfl.errors import InputError, OutputError, precondition
from wirelessfl.outputs import writing
from wirelessfl.trace import ROOT

if TYPE_CHECKING:
    from wirelessfl.simulation import FinishedRound

# Groups of the variables on the page; all others are in the group radio
_CARDS = {
    "learning": ("test_accuracy", "test_loss", "train_loss", "participants"),
    "privacy": ("epsilon_published", "epsilon_accounted"),
    "cost": ("sim_time", "wall_time", "airtime", "energy"),
}

# Names of curves whose unit the name of the variable does not tell
_JOULES = {variable.name: f"{variable.name}_j" for variable in ROOT.of("round") if variable.units == "J"}


class TensorBoardLog(AbstractContextManager["TensorBoardLog"]):
    """TensorBoard log of finished rounds, as ``on_round`` of ``simulate``.

    A resumed run continues its log; logged rounds that its trace lacks are removed.

    >>> with TensorBoardLog("results/x/tensorboard") as log:
    ...     wfl.simulate(scenario, "results/x", on_round=log)

    Args:
        folder: The folder, made with the first round.

    Raises:
        InputError: the package tensorboard is not installed.
        OutputError: the folder cannot be written.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise InputError(
                "--tensorboard needs the package tensorboard; install it with: pip install 'wirelessfl[tensorboard]'"
            ) from None
        self.folder = Path(folder)
        there = next(path for path in (self.folder, *self.folder.absolute().parents) if path.exists())
        precondition(
            there.is_dir() and os.access(there, os.W_OK),
            f"{folder} cannot be written: {there} is not a writable folder",
            OutputError,
        )
        self._open = SummaryWriter
        self._writer: Any = None

    def __call__(self, finished: FinishedRound) -> None:
        """Log of one round; a value of NaN leaves a gap.

        Raises:
            OutputError: the folder cannot be written.
        """
        if self._writer is None:
            with writing(self.folder):  # steps from the first round of this process on replace earlier ones
                self._writer = self._open(str(self.folder), purge_step=finished.index)
        for name, value in finished.values.items():
            if not math.isnan(value):
                card = next((card for card, names in _CARDS.items() if name in names), "radio")
                self._writer.add_scalar(f"{card}/{_JOULES.get(name, name)}", value, finished.index)

    @override
    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
