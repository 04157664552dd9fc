"""What a trial of a game costs, by counting operations."""

from wirelessfl.analysis.audit.games import SlotGame
from wirelessfl.analysis.audit.steps import CanaryClient

# Seconds on one core of a common server, as measured: a slot or local step, and each element of it.
_SLOT_SECONDS, _STEP_SECONDS = 6e-4, 1e-5
_SLOT_ELEMENT_SECONDS, _HAAR_SLOT_ELEMENT_SECONDS = 2.5e-8, 1e-7
_STEP_ELEMENT_SECONDS, _HAAR_STEP_ELEMENT_SECONDS = 1e-8, 2.8e-8


def slot_cost(game: SlotGame, dimension: int, haar_noise: bool) -> float:
    """Seconds of both worlds of a trial of a game on slots."""
    return 2 * len(game.slots.rounds) * hearing_cost(dimension, haar_noise)


def hearing_cost(dimension: int, haar_noise: bool) -> float:
    """Seconds in which one slot is heard."""
    return _SLOT_SECONDS + dimension * (_HAAR_SLOT_ELEMENT_SECONDS if haar_noise else _SLOT_ELEMENT_SECONDS)


def step_cost(client: CanaryClient, crowd: int) -> float:
    """Seconds of both worlds of a trial of a game on local steps."""
    element = _HAAR_STEP_ELEMENT_SECONDS if client.haar_noise else _STEP_ELEMENT_SECONDS
    return 2 * crowd * client.num_steps * (_STEP_SECONDS + client.dimension * element)
