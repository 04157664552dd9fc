"""The numbers of a summary in words for people."""

import math
from collections.abc import Mapping
from typing import Any

OF_CLIENTS = ("accuracy_client_mean", "accuracy_worst10", "fairness_index")
"""Entries on the accuracies of the global model on samples of single clients."""

PERSONAL = ("personal_accuracy_mean", "personal_accuracy_worst10", "personal_fairness_index")
"""The same on personal models."""

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def epsilon_text(epsilon: float) -> str:
    """An ε in words for people: three digits, ∞, or – where it is not known."""
    return "–" if math.isnan(epsilon) else "∞" if math.isinf(epsilon) else f"{epsilon:.3g}"


def of_clients_text(summary: Mapping[str, Any]) -> str:
    """Accuracies of single clients in words for people; empty where there are none."""
    return _spread_text(summary, OF_CLIENTS)


def personal_text(summary: Mapping[str, Any]) -> str:
    """Accuracies of personal models in words for people; empty where there are none."""
    return _spread_text(summary, PERSONAL)


def _spread_text(summary: Mapping[str, Any], names: tuple[str, str, str]) -> str:
    mean, worst, jain = (summary.get(name, math.nan) for name in names)
    return "" if math.isnan(mean) else f"mean {mean:.1%}, worst tenth {worst:.1%}, Jain index {jain:.3f}"


def number_text(value: float, digits: int = 4) -> str:
    """A number in words for people; ∞ and – where there is none."""
    return "–" if math.isnan(value) else "∞" if math.isinf(value) else f"{value:.{digits}g}"


def power_of_ten(exponent: int) -> str:
    """A power of ten with its exponent in small raised digits: 10⁻³, 10¹⁵⁹."""
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def rounds_text(summary: Mapping[str, Any]) -> str:
    """Rounds, the limits that ended them before M, and clients heard on average, in words for people."""
    limits = [] if "rounds" in summary["ended_by"] else summary["ended_by"]
    ended = f", ended by {' and '.join(limits)}" if limits else ""
    return f"{summary['rounds']}{ended}, on average {summary['participants_mean']:.1f} clients heard"
