"""Summary of a run: numbers and pictures, from its trace alone."""

from wirelessfl.summary.numbers import summarise, to_json
from wirelessfl.summary.tensorboard import TensorBoardLog
from wirelessfl.summary.texts import (
    epsilon_text,
    number_text,
    of_clients_text,
    personal_text,
    power_of_ten,
    rounds_text,
)

__all__ = [
    "TensorBoardLog",
    "epsilon_text",
    "number_text",
    "of_clients_text",
    "personal_text",
    "power_of_ten",
    "rounds_text",
    "summarise",
    "to_json",
]
