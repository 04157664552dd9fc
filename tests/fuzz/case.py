"""One case: which healthy file, what is done to it, and what is run on it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

Step = dict[str, Any]
"""One change as plain data: ``op`` names it, the rest are its arguments."""

KINDS = ("traces", "scenarios", "checkpoints", "studies", "signals", "archives")


@dataclass(frozen=True)
class Case:
    """A case as plain data, so that it can be written down and played again.

    Attributes:
        kind: one of `KINDS`.
        stratum: the family of damage.
        subject: name of the healthy file or folder.
        command: arguments of ``wirelessfl``; ``{subject}`` stands for the damaged file or folder.
        steps: the damage, in order.
    """

    kind: str
    stratum: str
    subject: str
    command: tuple[str, ...]
    steps: tuple[Step, ...]

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(
            {
                "kind": self.kind,
                "stratum": self.stratum,
                "subject": self.subject,
                "command": list(self.command),
                "steps": list(self.steps),
            },
            ensure_ascii=True,
        )

    @classmethod
    def from_json(cls, text: str) -> Case:
        """The case of a line of JSON."""
        plain = json.loads(text)
        return cls(plain["kind"], plain["stratum"], plain["subject"], tuple(plain["command"]), tuple(plain["steps"]))


def generator_of(kind: str, seed: int, index: int) -> np.random.Generator:
    """The randomness of one case, independent of every other case."""
    return np.random.default_rng([seed, KINDS.index(kind), index])


def pick(rng: np.random.Generator, choices: Any) -> Any:
    """One of a sequence, uniformly; NumPy's own ``choice`` would turn Python values into its own."""
    return choices[int(rng.integers(len(choices)))]
